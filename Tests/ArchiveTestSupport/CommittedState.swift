package import Archive

/// An archive as one commit left it.
package struct CommittedState: Sendable {
  /// What was committed.
  package let generation: Generation
  /// The file up to and including the footer.
  package let bytes: [UInt8]
  /// What it gives back.
  package let contents: ArchiveContents

  /// The state that `generation` is, at the beginning of these bytes.
  ///
  /// - Parameters:
  ///   - generation: What is committed; nil for what the file itself says.
  ///   - file: The file, whatever follows.
  ///   - image: What looks at it.
  /// - Throws: what reading it throws, and ``ArchiveImage/Problem`` if it does not verify.
  package init(_ generation: Generation? = nil, in file: [UInt8], using image: ArchiveImage) throws
  {
    guard let generation = try generation ?? image.generation(of: file) else {
      throw ArchiveError(.noFooter)
    }
    self.generation = generation
    bytes = Array(file.prefix(Int(generation.committedLength)))
    contents = try image.contents(of: bytes, generation)
  }
}
