public import ATProtocol
public import IPLD

/// `com.atproto.identity.getRecommendedDidCredentials`: what an operation for the account's DID has
/// to say so that the server can speak for it.
public struct GetRecommendedDIDCredentials: XRPCQuery {
  /// Its name.
  public var nsid: String { "com.atproto.identity.getRecommendedDidCredentials" }

  /// Asks for it.
  public init() {}

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> PLCCredentials {
    guard let credentials = PLCCredentials(answer.json) else {
      throw AnswerFault("it names no signing key, or no server")
    }
    return credentials
  }
}

/// `com.atproto.identity.requestPlcOperationSignature`: has a code sent by mail, with which the
/// server signs one operation.
public struct RequestPLCOperationSignature: XRPCProcedure {
  /// Its name.
  public var nsid: String { "com.atproto.identity.requestPlcOperationSignature" }

  /// Asks for it.
  public init() {}
}

/// `com.atproto.identity.signPlcOperation`: an operation signed with the server's rotation key.
public struct SignPLCOperation: XRPCQuery {
  /// Its name.
  public var nsid: String { "com.atproto.identity.signPlcOperation" }
  /// It has something signed.
  public static let method = HTTPRequest.Method.post

  /// The code that came by mail.
  public var token: Secret
  /// What the operation is to say.
  public var state: PLCState

  /// Asks for it.
  public init(token: Secret, state: PLCState) {
    self.token = token
    self.state = state
  }

  /// The code, and the fields of the operation.
  public var input: [UInt8] {
    var map = state.fields
    map["token"] = .string(token.text)
    return DataModelJSON.encode(.map(map))
  }

  /// The code.
  public var secrets: [Secret] { [token] }

  /// Reads the operation.
  public static func read(_ answer: Answer) throws(AnswerFault) -> IPLDValue {
    guard let operation = answer.json["operation"], operation.map != nil else {
      throw AnswerFault("it has no operation")
    }
    return operation
  }
}

/// `com.atproto.identity.submitPlcOperation`: hands an operation to the directory, if it lets the
/// server speak for the account.
public struct SubmitPLCOperation: XRPCProcedure {
  /// Its name.
  public var nsid: String { "com.atproto.identity.submitPlcOperation" }

  /// The signed operation.
  public var operation: IPLDValue

  /// Hands it over.
  public init(_ operation: IPLDValue) { self.operation = operation }

  /// What is sent along.
  public var input: [UInt8] {
    let input: IPLDMap = ["operation": operation]
    return DataModelJSON.encode(.map(input))
  }
}
