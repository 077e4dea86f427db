internal import CCurl

/// What libcurl's errors mean here.
enum CurlFailure {
  /// The reason for a code.
  ///
  /// - Parameters:
  ///   - code: what libcurl returned.
  ///   - explanation: its words for it.
  ///   - wasSent: whether the request went out.
  ///   - settings: the time-outs.
  static func reason(
    _ code: CURLcode, explanation: String, wasSent: Bool, settings: CurlSettings
  ) -> TransportError.Reason {
    // A server may have put into it what disturbs a terminal.
    let what = Excerpt.of(explanation)
    switch code {
    case CURLE_URL_MALFORMAT: return .unusableURL
    case CURLE_COULDNT_RESOLVE_HOST: return .unknownHost
    case CURLE_OPERATION_TIMEDOUT:
      guard wasSent else {
        return .notConnected("none came about in \(settings.connectSeconds) seconds")
      }
      // "Operation too slow." for a stall, "Operation timed out" for the whole.
      guard let total = settings.totalSeconds, explanation.contains("timed out") else {
        return .stalled(seconds: settings.stallSeconds)
      }
      return .tooSlow(seconds: total)
    case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY:
      return .notConnected(what)
    case CURLE_SSL_CONNECT_ERROR:
      // A connection that breaks during the handshake is no answer to whether the server is who it says.
      let broke = ["SYSCALL", "reset", "unexpected eof", "closed abruptly"].contains {
        explanation.contains($0)
      }
      return broke ? .notConnected(what) : .notSecure(what)
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
      CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_USE_SSL_FAILED:
      return .notSecure(what)
    case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL:
      return .malformedAnswer(what)
    case CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_UNKNOWN_OPTION,
      CURLE_BAD_FUNCTION_ARGUMENT:
      return .unavailable(what)
    default:
      // CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2_STREAM, CURLE_BAD_CONTENT_ENCODING, and what else happens on the way.
      return wasSent ? .cutOff(what) : .notConnected(what)
    }
  }
}
