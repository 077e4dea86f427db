import Age
import Foundation
import Testing

/// The passphrase that a text is, with little work unless it is to be more.
func passphrase(
  _ text: String, workFactor: Int = 4, limit: Int = AgePassphrase.defaultLimit
) throws(AgeError) -> AgePassphrase {
  try AgePassphrase(secret(text), workFactor: workFactor, limit: limit)
}

/// The secret that a text is.
func secret(_ text: String) -> SecretBytes {
  let bytes = Array(text.utf8)
  return SecretBytes(copying: bytes.span)
}

/// The identities that texts are.
func identities(_ texts: [String]) throws(AgeError) -> [AgeIdentity] {
  var identities: [AgeIdentity] = []
  for text in texts { identities.append(try AgeIdentity(parsing: secret(text))) }
  return identities
}

extension SecretBytes {
  /// The bytes, where a test has to look at them.
  var exposed: [UInt8] { withBytes { bytes in bytes.indices.map { bytes[$0] } } }
  /// The bytes as a text.
  var exposedText: String { String(decoding: exposed, as: UTF8.self) }
}

/// Another program, run to its end.
func run(
  _ program: [String], input: [UInt8] = [], environment: [String: String] = [:]
) throws -> (status: Int32, output: [UInt8]) {
  let process = Process()
  process.executableURL = URL(filePath: "/usr/bin/env")
  process.arguments = program
  process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
  let (stdin, stdout) = (Pipe(), Pipe())
  process.standardInput = stdin
  process.standardOutput = stdout
  process.standardError = FileHandle.nullDevice
  try process.run()
  // What these programs are given is small, and fits into the pipe.
  try stdin.fileHandleForWriting.write(contentsOf: Data(input))
  try stdin.fileHandleForWriting.close()
  let output = try stdout.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  return (process.terminationStatus, [UInt8](output))
}
