/// The `zstd` program, which knows nothing of archives.
package enum ZstdProgram {
  /// Whether it accepts the file: `zstd -t`.
  package static func accepts(_ path: String) throws -> Bool {
    try OtherProgram.run(["zstd", "-t", "-q", path]).status == 0
  }

  /// What it makes of the file: `zstd -dc`.
  package static func decompress(_ path: String) throws -> [UInt8] {
    try OtherProgram.run(["zstd", "-dc", "-q", path]).output
  }
}
