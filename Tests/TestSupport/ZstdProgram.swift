internal import Foundation

/// The `zstd` program, which knows nothing of archives.
public enum ZstdProgram {
  /// Whether it accepts the file: `zstd -t`.
  public static func accepts(_ path: String) throws -> Bool {
    try run(["-t", "-q", path]).status == 0
  }

  /// What it makes of the file: `zstd -dc`.
  public static func decompress(_ path: String) throws -> [UInt8] {
    try run(["-dc", "-q", path]).output
  }

  private static func run(_ arguments: [String]) throws -> (status: Int32, output: [UInt8]) {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["zstd"] + arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, [UInt8](output))
  }
}
