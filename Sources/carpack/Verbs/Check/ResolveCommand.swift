internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import Reports
internal import Terminal
internal import XRPC

/// `carpack resolve`: the DID, handle, server and key of an account, and whether they agree.
struct ResolveCommand: ReportingCommand {
  static let page = ManualPage("resolve", PackageResources.resolve_txt)

  @Argument(
    help: ArgumentHelp("A handle, a DID, or an at:// URI.", valueName: "account"))
  var account: String

  @OptionGroup(title: "Network options")
  var network: NetworkCommandOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let account = try ATIdentifier(account: account)
    let options = try network.options()
    let identity = try runBlocking {
      try await IdentityResolver(network: try Network(options)).resolve(account)
    }
    if json { Self.report.print(identity) } else { Self.printText(identity) }
    Console.flush()
    for warning in identity.warnings {
      common.say(.warning, "\(warning)")
    }
    try ExitStatus.worst(identity.warnings.map(Self.status)).finish()
  }

  private static func status(_ warning: IdentityWarning) -> ExitStatus {
    switch warning {
    case _ where warning.isContradiction: .notGenuine
    case .handleNotConfirmed(_, let error): Failure(error).status
    case .gap: .incomplete
    default: .success
    }
  }

  private static func printText(_ identity: ResolvedIdentity) {
    Console.print(identity.did.text)
    let (document, sources) = (identity.document, identity.sources)
    let claim = document.handle == identity.handle ? nil : document.handle
    let key = document.signingKey.map { "\($0.didKey), \($0.curve.rawValue)" }
    let facts: [(name: String, value: String?, source: String?)] = [
      ("handle", identity.handle.map { "\($0), both ways" }, sources.handle),
      ("claims", claim?.text, sources.document),
      ("server", identity.pds ?? "none", sources.pds ?? sources.document),
      ("key", key ?? "none", sources.document),
    ]
    for fact in facts where fact.value != nil {
      let isSet = fact.source == ResolvedIdentity.Sources.user
      let source = fact.source.map { isSet ? $0 : "from \($0)" }
      Console.print([(fact.name, fact.value), ("", source)], width: 9)
    }
  }

  static let report = Report<ResolvedIdentity>("resolve", "`carpack resolve`.") {
    Field("did", "the account") { $0.did }
    Field("handle", "its handle, checked both ways") { $0.handle?.text }
    Field("claimedHandle", "the handle that its document claims") { $0.document.handle?.text }
    Field("pds", "its server") { $0.pds }
    Field("signingKey", "its key, as a did:key") { $0.document.signingKey?.didKey }
    Field("curve", "the curve of the key") { $0.document.signingKey?.curve.rawValue }
    Field(
      "sources", "where each fact is from", \.sources,
      as: Fields {
        Field("handle", "where the handle is from") { $0.handle }
        Field("document", "where the document is from") { $0.document }
        Field("pds", "where the server is from") { $0.pds }
      })
    Field("warnings", "what does not hold") { $0.warnings.map(\.description) }
  }
}
