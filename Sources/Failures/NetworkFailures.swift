internal import ATProtocol
package import HTTP
package import Terminal
package import XRPC

extension TransportError: Explained {
  package var explanation: Explanation {
    let status: ExitStatus =
      switch reason {
      case _ where isTransient: .temporary
      case .unusableURL, .unusablePin: .usage
      case .refusedAddress, .refusedRedirect, .tooManyRedirects, .tooLong: .refused
      case .unavailable: .failure
      default: .unavailable
      }
    return (status, hint)
  }

  fileprivate static let certificateHint =
    "if the server uses a private certificate authority, name its certificate file with --ca-file"

  fileprivate var hint: String? {
    switch reason {
    case .notSecure: Self.certificateHint
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
    case 400..<500 where name == "AuthFactorTokenRequired":
      (.loginRefused, "pass the code from the mail with --auth-factor-token")
    case 401, 403: (.loginRefused, isLogin ? nil : "--login sends requests as the account's owner")
    case 400 where endpoint == "com.atproto.identity.signPlcOperation":
      (
        .loginRefused,
        "a code works once, within 15 minutes; run the command without --mail-code to get another"
      )
    case 400 where name == "InvalidToken":
      (.loginRefused, "use the account's own password, not an app password")
    case 400 where isLogin:
      (.loginRefused, "create an app password in the account's settings")
    case 400..<500 where endpoint == "com.atproto.server.createAccount": (.refused, nil)
    default: (isTransient ? .temporary : .unavailable, nil)
    }
  }

  /// The methods with which a session begins.
  private static let logins: Set<String> = [
    "com.atproto.server.createSession", "com.atproto.server.refreshSession",
    "com.atproto.server.getSession",
  ]
}

extension IdentityError: Explained {
  package var explanation: Explanation {
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
    case .handleUntrusted: TransportError.certificateHint
    case .noAnswer(_, let cause): cause.hint
    default: nil
    }
  }
}

extension PLCDirectory.Refusal: Explained {
  package var explanation: Explanation { (isTransient ? .temporary : .refused, nil) }
}
