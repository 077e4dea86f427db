import IPLD

/// What an account's owner alone is given.
extension StandInPDS {
  /// What the names of such methods begin with.
  static let privateMethods = [
    "app.bsky.actor.", "app.bsky.graph.", "app.bsky.bookmark.", "app.bsky.draft.",
    "app.bsky.notification.", "chat.bsky.",
  ]

  /// Answers with a page as it was set, the first for no cursor and the one with the cursor's
  /// number else.
  func answerOwner(_ method: String, _ call: Call) throws {
    guard let did = try authenticated(call), let account = find(did) else {
      return try call.refuse(401, "AuthenticationRequired", "Authentication Required")
    }
    if call.behaviour.appViewIsAway, !method.hasPrefix("app.bsky.actor.") {
      return try call.refuse(502, "UpstreamFailure", "pipethrough network error")
    }
    let isChat = method.hasPrefix("chat.")
    guard call.request["atproto-proxy"] == (isChat ? "did:web:api.bsky.chat#bsky_chat" : nil),
      let pages = account.privatePages[method]
    else {
      return try call.refuse(501, "MethodNotImplemented", "Method Not Implemented")
    }
    let number = call.request.parameter("cursor").flatMap { Int($0) } ?? 0
    guard pages.indices.contains(number) else {
      return try call.refuse(400, "InvalidRequest", "no such cursor")
    }
    try call.response.send(
      Array(pages[number].utf8),
      type: isChat ? "application/jsonl" : "application/json; charset=utf-8")
  }
}
