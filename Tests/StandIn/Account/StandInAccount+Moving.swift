package import IPLD

/// What an account is to its owner and its server beside its repository: passwords, codes, the key
/// of the server, and blobs that the server only believes to have.
extension StandInAccount {
  /// A password with which not everything is allowed; nil if there is none.
  package var appPassword: String? {
    get { change { $0.appPassword } }
    set { change { $0.appPassword = newValue } }
  }

  /// The code that logging in takes beside the password; nil if none.
  package var loginCode: String? {
    get { change { $0.loginCode } }
    set { change { $0.loginCode = newValue } }
  }

  /// The mail address.
  package var email: String {
    get { change { $0.email } }
    set { change { $0.email = newValue } }
  }

  /// The code that was sent by mail last and has not been used.
  package var mailCode: String? { change { $0.mailCode } }
  /// How many codes were sent by mail.
  package var mailCount: Int { change { $0.mailCount } }

  /// The key with which its server signs operations of its DID.
  package var rotation: SigningKey { change { $0.operations.rotation } }

  /// Loses the file of a blob, of which the server's table knows nothing.
  package func loseFile(_ cid: CID) { change { $0.blobs[cid] = nil } }

  /// Has other bytes in the place of a blob's, as many.
  package func damage(_ cid: CID) {
    change { state in
      guard let blob = state.blobs[cid] else { return }
      state.blobs[cid] = BlobContent(noise: 0xbad, size: blob.size, mimeType: blob.mimeType)
    }
  }

  /// Has a server's operator take a blob down.
  package func takeDown(_ cid: CID) { change { $0.rows[cid]?.isTakenDown = true } }
}
