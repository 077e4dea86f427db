package import ATProtocol
package import HTTP
internal import IPLD

/// The directory of `did:plc`, for changing an account.
package struct PLCDirectory: Sendable {
  private let network: Network

  /// The directory that the user set.
  package init(network: Network) { self.network = network }

  /// The directory's refusal of an operation.
  package struct Refusal: NetworkFault, Equatable, Sendable, CustomStringConvertible {
    /// The status.
    package var status: Int
    /// Its words.
    package var message: String

    package var mayPass: Bool { HTTPStatus.mayPass(status) }

    /// The sentence for people.
    package var description: String {
      "the PLC directory refused the operation: status \(status)"
        + (message.isEmpty ? "" : ", \(message)")
    }
  }

  /// The history of an account, and the time by the directory's clock; nil if it does not say.
  ///
  /// - Throws: ``IdentityError``; `PLCLogError` if what came is not a log.
  package func log(of did: DID) async throws -> (log: PLCLog, time: UnixTime?) {
    let (bytes, time) = try await DIDResolver(network.options, fetcher: network)
      .datedPLCLog(of: did)
    return (try PLCLog(bytes.span, of: did), time)
  }

  /// Gives a directory for rehearsals the history of an account, as far as it lacks it.
  ///
  /// Nullified operations are left out: nothing follows them.
  ///
  /// - Throws: ``Refusal`` if the directory has another history, or accepts no operation in the
  ///   form of 2022; ``IdentityError``, ``TransportError``, `PLCLogError`.
  package func copy(_ history: PLCLog, of did: DID) async throws {
    var known: Set<CID?> = []
    do {
      known = Set(try await log(of: did).log.entries.map(\.cid))
    } catch IdentityError.didNotFound {
      // None of it is there.
    }
    for entry in history.entries where !entry.isNullified && !known.contains(entry.cid) {
      try await submit(entry.operation, of: did)
    }
  }

  /// Hands an operation over, once.
  ///
  /// After an error, the operation may have been accepted anyway: the log shows that.
  ///
  /// - Throws: ``Refusal``; ``TransportError``.
  package func submit(_ operation: PLCSuccessor, of did: DID) async throws {
    try await submit(operation.operation, of: did)
  }

  private func submit(_ operation: IPLDValue, of did: DID) async throws {
    var request = HTTPRequest(
      .post, "\(network.options.plcDirectory)/\(did)",
      fields: [("Content-Type", "application/json")],
      body: DataModelJSON.encode(operation), followsRedirects: false, attempts: 1)
    request.hasOwnLimit = true
    let (delivery, value) = try await network.send(request) { response in
      try await response.body.beginning(maximumErrorBody)
    }
    guard value == nil else { return }
    let message = Answer(delivery.errorBody)?.json["message"]?.string
    throw Refusal(
      status: delivery.response.status,
      message: Excerpt.of(
        message ?? String(decoding: delivery.errorBody, as: UTF8.self)))
  }
}
