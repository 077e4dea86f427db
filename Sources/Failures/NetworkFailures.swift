internal import ATProtocol
internal import Files
package import HTTP
internal import Live
package import Terminal
package import XRPC

extension TransportError: Explained {
  package var explanation: Explanation {
    let status: ExitStatus =
      switch reason {
      case _ where mayPass: .temporary
      case .unusableURL, .unusablePin, .unusableProxy: .usage
      case .proxyRefused: .loginRefused
      case .refusedAddress, .refusedRedirect, .tooManyRedirects, .tooLong: .refused
      case .unavailable: .failure
      default: .unavailable
      }
    return (status, hint)
  }

  fileprivate static let certificateHint =
    "if the server uses a private certificate authority, name its certificate file with --ca-file"

  static let proxyHint =
    "set HTTPS_PROXY or ALL_PROXY to the proxy's URL, such as http://proxy.example:3128, or unset it"
  static let proxyLoginHint =
    "HTTPS_PROXY takes them as http://NAME:PASSWORD@HOST:PORT; NO_PROXY lists hosts that need no proxy"

  fileprivate var hint: String? {
    switch reason {
    case .notSecure: Self.certificateHint
    case .unusableProxy: Self.proxyHint
    case .proxyRefused: Self.proxyLoginHint
    case .refusedAddress:
      "if it is your own server, name it with --pds, or give its address with --pin"
    case .unavailable:
      "carpack needs libcurl for the network: on Debian and Ubuntu, apt-get install libcurl4"
    default: nil
    }
  }
}

extension XRPCError: Explained {
  package var explanation: Explanation {
    let isLogin = Self.logins.contains(endpoint)
    return switch status {
    case _ where isPage:
      (
        .temporary,
        "a proxy or the network wants a browser: ask again later, or from another network"
      )
    case 400..<500 where name == "AuthFactorTokenRequired":
      (.loginRefused, "pass the code from the mail with --auth-factor-token")
    case _ where isPasswordRefused:
      (
        .loginRefused,
        "a backup takes an app password, which you make in the account's settings; a restore takes the account's own password"
      )
    case 401, 403: (.loginRefused, isLogin ? nil : "--login sends requests as the account's owner")
    case 400 where endpoint == "com.atproto.identity.signPlcOperation":
      (
        .loginRefused,
        "a code works once, within 15 minutes; run the command without --mail-code to get another"
      )
    case 400 where name == "InvalidToken":
      (.loginRefused, "use the account's own password, not an app password")
    case 400 where isLogin: (.loginRefused, nil)
    case 400..<500 where endpoint == "com.atproto.server.createAccount": (.refused, nil)
    default:
      (
        mayPass ? .temporary : .unavailable,
        declared(RepoError.self).map { BackupError.Unavailability($0).hint }
      )
    }
  }

  package var sentence: String {
    guard isPasswordRefused else { return description }
    return "\(host) refused the handle or the password: \(message ?? "status \(status)")"
  }

  /// Whether a session did not begin, for no reason that an account or a code of it gives.
  private var isPasswordRefused: Bool {
    endpoint == "com.atproto.server.createSession" && [400, 401].contains(status)
      && !["AuthFactorTokenRequired", "AccountTakedown"].contains(name)
  }

  /// The methods with which a session begins.
  private static let logins: Set<String> = [
    "com.atproto.server.createSession", "com.atproto.server.refreshSession",
    "com.atproto.server.getSession",
  ]
}

extension OtherSession: Explained {
  package var explanation: Explanation { (.loginRefused, nil) }
}

extension SessionEnded: Explained {
  package var explanation: Explanation {
    (.loginRefused, "run the command again: it logs in anew, and goes on with what has come")
  }
}

extension CutShort: Explained {
  package var explanation: Explanation {
    (
      .temporary,
      "if it stays so, the server has lost blocks: \"carpack fetch repo\" downloads what it has, and \"carpack pack\" packs the incomplete repository"
    )
  }
}

extension BrokenList: Explained {
  package var explanation: Explanation { (.incomplete, nil) }
}

extension IdentityError: Explained {
  package var explanation: Explanation {
    if case .noAnswer(_, let cause) = self, cause.isOfProxy { return cause.explanation }
    let status: ExitStatus =
      switch kind {
      case .unavailable: .unavailable
      case .temporary: .temporary
      case .notGenuine: .notGenuine
      case .refused: .refused
      }
    return (status, hint)
  }

  private var hint: String? {
    switch self {
    case .unresolvableHandle(let handle) where handle.topLevel != "invalid":
      "if a server on this machine knows the handle, name that server with --resolver, --pds or --plc"
    case .handleNotFound: "check the spelling; if you know its DID, use that instead"
    case .handleUnreachable: "if you know its DID, use that instead"
    case .didGone:
      "an archive keeps what it has; \"carpack restore --as-new\" makes a new account from it"
    case .handleUntrusted: TransportError.certificateHint
    case .noAnswer(_, let cause): cause.hint
    default: nil
    }
  }
}

extension PLCDirectory.Refusal: Explained {
  package var explanation: Explanation { (mayPass ? .temporary : .refused, nil) }
}
