/// Whether a file is the remains of an interrupted copy, truncated or with sectors missing.
extension MappedFile {
  /// Whether another file has everything whole that this one has after what is committed, and at
  /// the same places: then nothing is lost with it.
  ///
  /// Where nothing is committed, both have to begin with the same frame.
  ///
  /// - Parameters:
  ///   - committed: What is committed here; nil if nothing is.
  ///   - count: How many bytes the other has.
  ///   - read: Reads some bytes of the other, from an offset on.
  /// - Throws: ``ArchiveError`` if another archive begins there, or the file holds more than it
  ///   may; what `read` throws.
  package func isCopied(
    behind committed: Generation?, in count: UInt64, read: (UInt64, Int) throws -> [UInt8]
  ) throws -> Bool {
    /// Whether the other has these bytes; with `isTorn` except for sectors that were never written.
    func has(_ range: Range<Int>, isTorn: Bool = false) throws -> Bool {
      guard UInt64(range.upperBound) <= count else { return false }
      for start in stride(from: range.lowerBound, to: range.upperBound, by: Self.comparedAtOnce) {
        let part = start..<min(range.upperBound, start + Self.comparedAtOnce)
        let other = try read(UInt64(start), part.count)
        let isSame = withBytes { bytes in
          Self.isSame(bytes.extracting(part), other.span, at: isTorn ? start : nil)
        }
        guard isSame else { return false }
      }
      return true
    }
    let start = Int(committed?.committedLength ?? 0)
    if try has(start..<self.count) { return true }
    let survey = try Survey(self, after: committed)
    try withBytes(reading: [start..<self.count]) { bytes throws in
      try survey.refuseFurtherArchives(in: bytes)
    }
    if committed == nil {
      guard let header = survey.header, header.failure == nil, try has(header.frame.range) else {
        return false
      }
    }
    let salvaged = Set(survey.salvaged.map(\.frame))
    for (number, frame) in survey.frames.enumerated()
    where frame.isIntact || salvaged.contains(number) {
      let range = Int(frame.offset)..<min(Int(frame.end), self.count)
      guard try has(range, isTorn: !frame.isIntact) else { return false }
    }
    for (_, landmark) in survey.landmarks {
      switch landmark {
      case .segment, .footer, .other: guard try has(landmark.range) else { return false }
      case .void, .gap: continue
      }
    }
    return true
  }

  /// How many bytes are compared at a time.
  private static let comparedAtOnce = 1 << 20
  /// What a disk writes at once, if the power fails.
  private static let sector = 512

  /// Whether bytes are the same as others, except for sectors of zeros if the place is given where
  /// the bytes begin.
  private static func isSame(_ own: Span<UInt8>, _ other: Span<UInt8>, at place: Int?) -> Bool {
    var start = 0
    while start < own.count {
      let end = min(own.count, (((place ?? 0) + start) / sector + 1) * sector - (place ?? 0))
      var (isSame, isZero) = (true, true)
      for index in start..<end {
        isSame = isSame && own[index] == other[index]
        isZero = isZero && own[index] == 0
      }
      guard isSame || place != nil && isZero else { return false }
      start = end
    }
    return true
  }
}
