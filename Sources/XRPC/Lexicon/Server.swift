package import ATProtocol
package import HTTP
package import IPLD

// Methods of `com.atproto.server`: sessions and accounts.

/// The tokens of a session, and whose it is.
package struct SessionTokens: Sendable {
  /// The token for requests.
  package var accessJwt: Secret
  /// The token that renews the session.
  package var refreshJwt: Secret
  /// Who has logged in.
  package var did: DID
  /// The mail address, if the server says it.
  package var email: String?
  /// Whether the account is active: not deactivated, taken down or suspended.
  package var isActive = true
}

extension XRPCQuery<SessionTokens> {
  /// `com.atproto.server.createSession`: logs in.
  ///
  /// A session that is not used does no harm, so that it may be requested again.
  ///
  /// - Parameters:
  ///   - identifier: a handle, a DID or a mail address.
  ///   - password: the account's password, or an app password.
  ///   - code: the code that came by mail.
  ///   - allowTakendown: whether a session is also accepted that can only fetch the data of an
  ///     account that was taken down.
  package static func createSession(
    _ identifier: String, _ password: Secret, code: Secret? = nil, allowTakendown: Bool = false
  ) -> XRPCQuery {
    session(
      XRPCCall(
        post: "com.atproto.server.createSession", hiding: [password] + [code].compactMap { $0 },
        isRepeatable: true,
        XRPCCall.json([
          "identifier": .string(identifier), "password": .string(password.text),
          "authFactorToken": code.map { .string($0.text) },
          "allowTakendown": allowTakendown ? .boolean(true) : nil,
        ])))
  }

  /// `com.atproto.server.refreshSession`: new tokens instead of expired ones; the refresh token is
  /// the authorization.
  ///
  /// If a server accepts a refresh token only once, another session is begun instead.
  package static func refreshSession() -> XRPCQuery {
    session(XRPCCall(post: "com.atproto.server.refreshSession", isRepeatable: true))
  }

  private static func session(_ call: XRPCCall) -> XRPCQuery {
    let call = call.with {
      // The session waits as for any request.
      $0.hasOwnLimit = false
      $0.answersWithSecrets = true
    }
    return XRPCQuery(call) { answer throws(AnswerFault) in
      SessionTokens(
        accessJwt: Secret(try answer.token("accessJwt")),
        refreshJwt: Secret(try answer.token("refreshJwt")),
        did: try answer.identifier("did", DID.self), email: answer.optionalText("email"),
        isActive: answer.flag("active") ?? true)
    }
  }
}

extension XRPCQuery<Secret> {
  /// `com.atproto.server.getServiceAuth`: a token with which the account's server vouches for its
  /// owner to another service, for one method there.
  package static func getServiceAuth(for audience: DID, method: String) -> XRPCQuery {
    let call = XRPCCall(
      get: "com.atproto.server.getServiceAuth", [("aud", audience.text), ("lxm", method)])
    return XRPCQuery(call.with { $0.answersWithSecrets = true }) { answer throws(AnswerFault) in
      Secret(try answer.token("token"))
    }
  }
}

/// What a server says of itself to those who want an account.
package struct ServerDescription: Sendable, Equatable {
  /// The server's own DID, which tokens for it name.
  package var did: DID
  /// The domains under which it offers handles, each with a dot in front.
  package var userDomains: [String]
  /// Whether an account needs an invite code.
  package var isInviteRequired: Bool
  /// How long a blob may be, in bytes; nil if it does not say.
  package var blobLimit: UInt64?
}

extension XRPCQuery<ServerDescription> {
  /// `com.atproto.server.describeServer`: what a server says of itself.
  package static func describeServer() -> XRPCQuery {
    XRPCQuery(XRPCCall(get: "com.atproto.server.describeServer")) { answer throws(AnswerFault) in
      ServerDescription(
        did: try answer.identifier("did", DID.self),
        userDomains: (answer.json["availableUserDomains"]?.array ?? []).compactMap(\.string),
        isInviteRequired: answer.flag("inviteCodeRequired") ?? false,
        blobLimit: answer.json["blobUploadLimit"]?.integer.flatMap { UInt64(exactly: $0) })
    }
  }
}

/// An account that was created.
package typealias NewAccount = (did: DID, handle: Handle?)

extension XRPCQuery<NewAccount> {
  /// `com.atproto.server.createAccount`: creates an account on a server, for an existing DID or for
  /// a new one.
  ///
  /// An account for an existing DID needs a token that the DID's key has signed, and is
  /// deactivated until the DID document names the server.
  ///
  /// - Parameter did: the DID; nil for a new one.
  package static func createAccount(
    _ did: DID?, _ handle: Handle, email: String, _ password: Secret, inviteCode: Secret? = nil
  ) -> XRPCQuery {
    let call = XRPCCall(
      post: "com.atproto.server.createAccount",
      hiding: [password] + [inviteCode].compactMap { $0 },
      XRPCCall.json([
        "did": did.map { .string($0.text) }, "handle": .string(handle.text),
        "email": .string(email), "password": .string(password.text),
        "inviteCode": inviteCode.map { .string($0.text) },
      ]))
    return XRPCQuery(call.with { $0.answersWithSecrets = true }) { answer throws(AnswerFault) in
      (
        try answer.identifier("did", DID.self),
        answer.optionalIdentifier("handle", Handle.self)
      )
    }
  }
}

/// What a server has of the account that asks; nil for what it does not say.
///
/// Equal numbers prove nothing: every upload counts as imported, and references of records that are
/// gone count as expected.
package struct AccountStatus: Sendable, Equatable {
  /// Whether the account is active.
  package var isActivated: Bool?
  /// Whether the DID's document leads to this server.
  package var isDIDValid: Bool?
  /// The head of the repository.
  package var commit: CID?
  /// How many records there are.
  package var records: Int?
}

extension XRPCQuery<AccountStatus> {
  /// `com.atproto.server.checkAccountStatus`: what a server has of the account that asks.
  package static func checkAccountStatus() -> XRPCQuery {
    XRPCQuery(XRPCCall(get: "com.atproto.server.checkAccountStatus")) { answer in
      AccountStatus(
        isActivated: answer.flag("activated"), isDIDValid: answer.flag("validDid"),
        commit: answer.optionalCID("repoCommit"),
        records: answer.json["indexedRecords"]?.integer.flatMap { Int(exactly: $0) })
    }
  }
}

extension XRPCCall {
  /// `com.atproto.server.activateAccount`: activates the account on the server, once its DID
  /// document names that.
  ///
  /// Activating what is active changes nothing.
  package static func activateAccount() -> XRPCCall {
    XRPCCall(post: "com.atproto.server.activateAccount", isRepeatable: true)
  }

  /// `com.atproto.server.deactivateAccount`: deactivates the account on the server.
  ///
  /// Deactivating what is not active changes nothing. An object is sent, even an empty one.
  ///
  /// - Parameter moment: when the server may delete it, in RFC 3339; nil for never.
  package static func deactivateAccount(deleteAfter moment: String? = nil) -> XRPCCall {
    XRPCCall(
      post: "com.atproto.server.deactivateAccount", isRepeatable: true,
      json(["deleteAfter": moment.map { .string($0) }]))
  }
}
