package import ATProtocol
package import HTTP
package import IPLD

// Methods of `com.atproto.identity`: operations for the account's DID.

extension XRPCQuery<PLCCredentials> {
  /// `com.atproto.identity.getRecommendedDidCredentials`: what an operation for the account's DID
  /// has to say so that the server can host the account.
  package static func getRecommendedDIDCredentials() -> XRPCQuery {
    XRPCQuery(XRPCCall(get: "com.atproto.identity.getRecommendedDidCredentials")) {
      answer throws(AnswerFault) in
      guard let credentials = PLCCredentials(answer.json) else {
        throw AnswerFault("it names no signing key, or no server")
      }
      return credentials
    }
  }
}

extension XRPCQuery<DID> {
  /// `com.atproto.identity.resolveHandle`: the account that a handle leads to, according to this
  /// server.
  package static func resolveHandle(_ handle: Handle) -> XRPCQuery {
    let call = XRPCCall(
      get: "com.atproto.identity.resolveHandle", [("handle", handle.text)])
    return XRPCQuery(call) { answer throws(AnswerFault) in
      try answer.identifier("did", DID.self)
    }
  }
}

extension XRPCQuery<IPLDValue> {
  /// `com.atproto.identity.signPlcOperation`: an operation signed with the server's rotation key.
  ///
  /// - Parameters:
  ///   - state: what the operation is to say.
  ///   - code: the code that came by mail.
  package static func signPLCOperation(_ state: PLCState, code: Secret) -> XRPCQuery {
    @Sendable func input() -> [UInt8] {
      var fields = state.fields
      fields["token"] = .string(code.text)
      return DataModelJSON.encode(.map(fields))
    }
    let call = XRPCCall(
      post: "com.atproto.identity.signPlcOperation", hiding: [code], input())
    return XRPCQuery(call) { answer throws(AnswerFault) in
      guard let operation = answer.json["operation"], operation.map != nil else {
        throw AnswerFault("it has no operation")
      }
      return operation
    }
  }
}

extension XRPCCall {
  /// `com.atproto.identity.requestPlcOperationSignature`: has a code sent by mail, with which the
  /// server signs one operation.
  package static func requestPLCOperationSignature() -> XRPCCall {
    XRPCCall(post: "com.atproto.identity.requestPlcOperationSignature")
  }

  /// `com.atproto.identity.submitPlcOperation`: hands a signed operation to the directory, if it
  /// lets the server host the account.
  package static func submitPLCOperation(_ operation: IPLDValue) -> XRPCCall {
    XRPCCall(post: "com.atproto.identity.submitPlcOperation", json(["operation": operation]))
  }
}
