package import ATProtocol
package import HTTP
package import IPLD

/// `com.atproto.identity.getRecommendedDidCredentials`: what an operation for the account's DID has
/// to say so that the server can speak for it.
package struct GetRecommendedDIDCredentials: XRPCQuery {
  /// Its name.
  package var nsid: String { "com.atproto.identity.getRecommendedDidCredentials" }

  /// Asks for it.
  package init() {}

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> PLCCredentials {
    guard let credentials = PLCCredentials(answer.json) else {
      throw AnswerFault("it names no signing key, or no server")
    }
    return credentials
  }
}

/// `com.atproto.identity.requestPlcOperationSignature`: has a code sent by mail, with which the
/// server signs one operation.
package struct RequestPLCOperationSignature: XRPCProcedure {
  /// Its name.
  package var nsid: String { "com.atproto.identity.requestPlcOperationSignature" }

  /// Asks for it.
  package init() {}
}

/// `com.atproto.identity.signPlcOperation`: an operation signed with the server's rotation key.
package struct SignPLCOperation: XRPCQuery {
  /// Its name.
  package var nsid: String { "com.atproto.identity.signPlcOperation" }
  /// It has something signed.
  package static let method = HTTPRequest.Method.post

  /// The code that came by mail.
  package var token: Secret
  /// What the operation is to say.
  package var state: PLCState

  /// Asks for it.
  package init(token: Secret, state: PLCState) {
    self.token = token
    self.state = state
  }

  /// The code, and the fields of the operation.
  package var input: [UInt8] {
    var map = state.fields
    map["token"] = .string(token.text)
    return DataModelJSON.encode(.map(map))
  }

  /// The code.
  package var secrets: [Secret] { [token] }

  /// Reads the operation.
  package static func read(_ answer: Answer) throws(AnswerFault) -> IPLDValue {
    guard let operation = answer.json["operation"], operation.map != nil else {
      throw AnswerFault("it has no operation")
    }
    return operation
  }
}

/// `com.atproto.identity.submitPlcOperation`: hands an operation to the directory, if it lets the
/// server speak for the account.
package struct SubmitPLCOperation: XRPCProcedure {
  /// Its name.
  package var nsid: String { "com.atproto.identity.submitPlcOperation" }

  /// The signed operation.
  package var operation: IPLDValue

  /// Hands it over.
  package init(_ operation: IPLDValue) { self.operation = operation }

  /// What is sent along.
  package var input: [UInt8] {
    let input: IPLDMap = ["operation": operation]
    return DataModelJSON.encode(.map(input))
  }
}
