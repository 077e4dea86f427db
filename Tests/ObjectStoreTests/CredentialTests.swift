import Foundation
import HTTP
import StandIn
import TestSupport
import Testing
import XRPC

@testable import ObjectStore

struct `Credentials` {
  private func search(_ environment: [String: String], profile: String? = nil) -> CredentialSearch {
    var environment = environment
    if environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] == nil {
      environment["AWS_EC2_METADATA_DISABLED"] = "true"
    }
    let variables = environment
    var options = StoreOptions { variables[$0] }
    options.profile = profile
    return CredentialSearch(options: options, userAgent: "test")
  }

  private func home(_ credentials: String, _ config: String = "") throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    try folder.write(".aws/credentials", Array(credentials.utf8))
    try folder.write(".aws/config", Array(config.utf8))
    return folder
  }

  private static let twoProfiles = """
    # a remark
    [default]
    aws_access_key_id = AKDEFAULT   ; of the account
    aws_secret_access_key=secret/with+signs=
    [other]
    aws_access_key_id = AKOTHER
    aws_secret_access_key = other
    aws_session_token = token
    """

  @Test func `come from the environment first`() async throws {
    let home = try home(Self.twoProfiles)
    let found = try await search([
      "AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "env", "AWS_SESSION_TOKEN": "t",
      "HOME": home.path,
    ]).credentials()
    #expect(
      found == StoreCredentials(key: "AKENV", secret: Secret("env"), sessionToken: Secret("t")))
  }

  @Test func `come from the profile that was named before that`() async throws {
    let home = try home(Self.twoProfiles)
    let found = try await search(
      ["AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "env", "HOME": home.path],
      profile: "other"
    ).credentials()
    #expect(found?.key == "AKOTHER")
    #expect(found?.sessionToken == Secret("token"))
  }

  @Test func `come from the default profile, remarks left out`() async throws {
    let home = try home(
      Self.twoProfiles, "[default]\nregion = eu-north-1\ns3 =\n  addressing_style = path\n")
    let search = search(["HOME": home.path])
    let found = try await search.credentials()
    #expect(found == StoreCredentials(key: "AKDEFAULT", secret: Secret("secret/with+signs=")))
    #expect(try search.setting("region") == "eu-north-1")
    #expect(try search.setting("addressing_style") == nil)
  }

  @Test func `come from "profile NAME" in the file of settings`() async throws {
    let home = try home(
      "", "[profile work]\naws_access_key_id = AKWORK\naws_secret_access_key = w\n")
    let found = try await search(["HOME": home.path, "AWS_PROFILE": "work"]).credentials()
    #expect(found?.key == "AKWORK")
  }

  @Test(arguments: [
    ["AWS_ACCESS_KEY_ID": "AK"], ["AWS_PROFILE": "none"], ["AWS_PROFILE": "program"],
    ["AWS_PROFILE": "role"],
  ])
  func `that cannot be used are refused with the reason`(_ environment: [String: String])
    async throws
  {
    let home = try home(
      "[program]\ncredential_process = touch ran\n[role]\nrole_arn = arn:aws:iam::1:role/x\n")
    let error = await #expect(throws: StoreError.self) {
      try await search(environment.merging(["HOME": home.path]) { $1 }).credentials()
    }
    #expect(error?.kind == .noCredentials)
    #expect(!home.names(under: ".").contains { $0.hasSuffix("ran") })
  }

  @Test func `are none where there are none`() async throws {
    let home = try TemporaryFolder()
    #expect(try await search(["HOME": home.path]).credentials() == nil)
  }

  // MARK: Lent

  private static let lent = """
    {"Code":"Success","AccessKeyId":"AKLENT","SecretAccessKey":"lent","Token":"t","Expiration":"2099-01-01T00:00:00Z"}
    """

  @Test func `are lent by a container, which is asked with its token`() async throws {
    let server = try LoopbackServer { request, response in
      guard request["authorization"] == "the token" else {
        response.status = 403
        return try response.send()
      }
      try response.send(Self.lent, type: "application/json")
    }
    let home = try TemporaryFolder()
    try home.write("token", Array("the token\n".utf8))
    let found = try await search([
      "HOME": home.path, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "\(server.url)/get",
      "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": home.file("token"),
    ]).credentials()
    #expect(found?.key == "AKLENT")
    #expect(found?.end != nil)
  }

  @Test(arguments: [
    "http://10.0.0.1/x", "http://example.com/x", "https://example.com/x",
    "http://169.254.169.254/latest", "file:///etc/passwd",
  ])
  func `are not asked for at other addresses than those that are documented`(_ url: String)
    async throws
  {
    let error = await #expect(throws: StoreError.self) {
      try await search(["HOME": "/nonexistent", "AWS_CONTAINER_CREDENTIALS_FULL_URI": url])
        .credentials()
    }
    #expect(error?.kind == .noCredentials)
  }

  @Test func `are lent by an instance, in the second version only`() async throws {
    let server = try LoopbackServer { request, response in
      switch (request.method, request.path) {
      case ("PUT", "/latest/api/token"): try response.send("a token")
      case ("GET", _) where request["x-aws-ec2-metadata-token"] != "a token":
        response.status = 401
        try response.send()
      case ("GET", "/latest/meta-data/iam/security-credentials/"): try response.send("the-role\n")
      case ("GET", "/latest/meta-data/iam/security-credentials/the-role"):
        try response.send(Self.lent, type: "application/json")
      default:
        response.status = 404
        try response.send()
      }
    }
    let environment = [
      "HOME": "/nonexistent", "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.url,
    ]
    #expect(try await search(environment).credentials()?.key == "AKLENT")
    server.forgetLog()
    // A caller that disables the question is not asked.
    let silent = environment.merging(["AWS_EC2_METADATA_DISABLED": "TRUE"]) { $1 }
    #expect(try await search(silent).credentials() == nil)
    #expect(server.log.isEmpty)
  }

  @Test func `are none where the instance knows the first version only`() async throws {
    let server = try LoopbackServer { request, response in
      if request.method == "PUT" { response.status = 405 }
      try response.send("a-role")
    }
    let found = try await search([
      "HOME": "/nonexistent", "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.url,
    ]).credentials()
    #expect(found == nil)
    #expect(server.log.count == 1)
  }
}
