internal import ArgumentParser
internal import Live

/// Signing the head of an archive once it is backed up.
struct HeadSigningOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Sign the archive's head with this private key (PEM, readable by you alone), into NAME.head beside the archive. The passphrase of an encrypted key is read from CARPACK_KEY_PASSPHRASE, or asked for.",
      valueName: "keyfile"),
    completion: .file())
  var signHead: String?

  /// What signs heads; nil if none are to be signed.
  ///
  /// - Throws: ``Failure`` for a file that is no key, that others may read, or that cannot be read.
  func signer() throws -> HeadSigner? {
    try signHead.map { path throws in HeadSigner(try KeyFile(path).key) }
  }
}
