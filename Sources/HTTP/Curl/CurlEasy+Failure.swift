internal import CCurl

/// The meanings of libcurl's errors.
extension CurlEasy {
  /// Why it ended with a code.
  ///
  /// - Parameters:
  ///   - code: what libcurl returned.
  ///   - wasSent: whether the request went out.
  ///   - awaitsHead: whether the head of the answer has not come to its end.
  func reason(_ code: CURLcode, wasSent: Bool, awaitsHead: Bool) -> TransportError.Reason {
    if let refusal = check.refusal(code) { return refusal }
    let settings = check.target.settings
    let explanation = explanation(of: code)
    if check.target.proxy != nil, let refusal = Self.proxyRefusal(explanation) { return refusal }
    // A server may have put control characters into it.
    let what = Excerpt.of(explanation)
    switch code {
    case CURLE_URL_MALFORMAT: return .unusableURL
    case CURLE_COULDNT_RESOLVE_HOST: return .unknownHost
    case CURLE_OPERATION_TIMEDOUT:
      guard wasSent else {
        return .notConnected("none was made within \(settings.connectSeconds) seconds")
      }
      // "Operation too slow." for a stall, "Operation timed out" for the whole.
      guard let total = settings.totalSeconds, explanation.contains("timed out") else {
        return .stalled(seconds: settings.stallSeconds)
      }
      return .tooSlow(seconds: total)
    case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY:
      return .notConnected(what)
    case CURLE_SSL_CONNECT_ERROR:
      // A broken handshake says nothing about who the server is.
      return Self.isVerdict(explanation) ? .notSecure(what) : .notConnected(what)
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
      CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_USE_SSL_FAILED:
      return .notSecure(what)
    case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL:
      return .malformedAnswer(what)
    case CURLE_OUT_OF_MEMORY where wasSent && awaitsHead, Self.tooLarge where awaitsHead:
      // A line of the head was too long: libcurl 7.88 says the one, 8.6 and newer the other.
      return .malformedAnswer(Reception.isTooLong)
    case CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_UNKNOWN_OPTION,
      CURLE_BAD_FUNCTION_ARGUMENT:
      return .unavailable(what)
    default:
      // CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2_STREAM,
      // CURLE_BAD_CONTENT_ENCODING, and what else happens on the way.
      return wasSent ? .cutOff(what) : .notConnected(what)
    }
  }

  /// What is wrong with the proxy, whatever is tried; nil for anything else.
  ///
  /// libcurl's words have the proxy's URL in them, and with it perhaps a password.
  private static func proxyRefusal(_ explanation: String) -> TransportError.Reason? {
    // "Unsupported proxy syntax in …", "Unsupported proxy scheme for …".
    if explanation.hasPrefix("Unsupported proxy") { return .unusableProxy }
    // "CONNECT tunnel failed, response 407", or "Received HTTP code 407 from proxy after CONNECT".
    return explanation.contains("CONNECT") && explanation.contains(" 407") ? .proxyRefused : nil
  }

  /// `CURLE_TOO_LARGE`, which older headers do not have.
  private static let tooLarge = CURLcode(100)

  /// Whether a handshake failed for a permanent reason: a TLS alert, or an invalid certificate.
  private static func isVerdict(_ explanation: String) -> Bool {
    let text = explanation.lowercased()
    return ["certificate", "alert", "unsupported protocol"].contains { text.contains($0) }
  }
}
