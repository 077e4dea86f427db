internal import IPLD

/// What other archives know of lost sections of which no index of this one knows anything.
extension ArchiveRepair {
  /// The keys of lost ordinals that no index knows, by other archives with the same history.
  ///
  /// An archive only grows, so a copy of it, older or newer, has the same sections under the same
  /// ordinals. Another archive is believed about an ordinal if it has the same sections as this one
  /// under all ordinals before it of which both know the key, and under a later one. The newest
  /// manifest, as the last footer names it, is known, too.
  ///
  /// - Throws: ``ArchiveError`` if an archive cannot be read.
  func learnedKeys(_ survey: Survey, _ generation: Generation?, in bytes: Span<UInt8>) throws
    -> [UInt64: UInt64]
  {
    guard !sources.isEmpty, survey.start == 0 else { return [:] }
    let form = (generation?.features ?? .ofNewFile).indexForm
    let keys = survey.keysByOrdinal(in: bytes)
    let unknown = survey.lostOrdinals.joined().filter {
      Survey.isUnknown(keys[Int($0)], bits: form.keyBits(of: $0))
    }
    guard !unknown.isEmpty else { return [:] }
    var learned: [UInt64: UInt64] = [:]
    for source in sources {
      let trusted = try source.agreement(with: keys, generation?.head, form)
      for ordinal in unknown where learned[ordinal] == nil && trusted.contains(ordinal) {
        learned[ordinal] = try source.intactCID(of: ordinal)?.sectionKey
      }
    }
    return learned
  }
}

extension Survey {
  /// Whether what is kept of a key says nothing: all of it is ones.
  fileprivate static func isUnknown(_ key: UInt64, bits: Int) -> Bool {
    (~key).leadingZeroBitCount >= bits
  }
}

extension ArchiveReader {
  /// The ordinals about which this archive is believed by one that has these keys.
  fileprivate func agreement(
    with keys: KeyList, _ head: Generation.Head?, _ form: IndexForm
  ) throws -> Range<UInt64> {
    let own = try withFile { file in
      self.file.willRead(index.segments.map(\.frame.range))
      return index.keptKeys(in: file)
    }
    var end: UInt64 = 0
    for ordinal in 0..<UInt64(min(keys.count, own.count)) {
      let key = head?.ordinal == ordinal ? head?.cid.sectionKey : keys[Int(ordinal)]
      let bits = min(form.keyBits(of: ordinal), index.keptBits(of: ordinal))
      guard let key, bits > 0, !Survey.isUnknown(key, bits: bits),
        !Survey.isUnknown(own[Int(ordinal)], bits: bits)
      else { continue }
      guard (key ^ own[Int(ordinal)]).leadingZeroBitCount >= bits else { break }
      end = ordinal
    }
    return 0..<end
  }
}
