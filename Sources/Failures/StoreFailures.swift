package import Archive
internal import HTTP
package import ObjectStore
package import Postgres
package import Remote
package import Terminal

extension FetchFailure: Explained {
  package var explanation: Explanation {
    switch kind {
    case .temporary: (.temporary, nil)
    case .unavailable: (.unavailable, nil)
    case .noAddress: (.usage, "an address in a store is s3://bucket/key")
    case .noProxy: (.usage, TransportError.proxyHint)
    case .absent: (.noInput, nil)
    case .forbidden: (.loginRefused, Self.hints[code ?? ""] ?? Self.hintOnKeys)
    case .replaced: (.temporary, "run the same command again")
    case .refused: (.refused, nil)
    case .noRoom: (.ioError, nil)
    }
  }

  private static let hintOnKeys =
    "carpack looks for keys in the environment, in Amazon's files, and in the machine's metadata"
  /// What to do about refusals that are not about which keys were found.
  private static let hints = [
    "RequestTimeTooSkewed": "set this machine's clock",
    "ExpiredToken": "get new credentials, and run the same command again",
    "TokenRefreshRequired": "get new credentials, and run the same command again",
    FetchFailure.proxyLogin: TransportError.proxyLoginHint,
  ]
}

extension StoreError: Explained {
  package var explanation: Explanation { FetchFailure(self).explanation }
  package var sentence: String { "\(FetchFailure(self))" }
}

extension PushError: Explained {
  package var explanation: Explanation {
    switch self {
    case .busy: (.cannotCreate, nil)
    case .otherObject: (.refused, "--replace replaces it")
    case .knowsNoConditions: (.refused, "if nothing else writes there, use --exclusive")
    case .notKept: (.ioError, "nothing was replaced; try again, or use another store")
    case .notReplaced: (.ioError, "try again, or use another store")
    case .unfinished:
      (.incomplete, "the next backup or \"carpack repair\" completes it")
    case .damagedObject(let name):
      (
        .damaged,
        "\"carpack push --replace ARCHIVE \(name.shellWord)\" replaces it with an intact copy"
      )
    case .unfinishedCopy(let name, let address):
      (
        .incomplete,
        "\"carpack repair \(name.shellWord)\" keeps it, and \"carpack merge\" then puts both into one archive; \"carpack pull --replace \(address.shellWord) \(name.shellWord)\" discards it"
      )
    case .damagedCopy(let name, let address):
      (
        .damaged,
        "\"carpack pull --replace \(address.shellWord) \(name.shellWord)\" replaces it with the archive there"
      )
    }
  }
}

extension DatabaseError: Explained {
  package var explanation: Explanation {
    switch kind {
    case .library: (.unavailable, "install libpq: the package is libpq5, or libpq")
    case .connection: (.unavailable, nil)
    case .statement: (.refused, nil)
    case .noTables: (.noInput, "\"carpack fleet init\" creates them, and updates older ones")
    }
  }
}
