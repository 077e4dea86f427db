import FuzzSupport
import IPLD

@testable import Archive

/// Footers: one is read wherever it lies, or refused; what was read says the same when it is
/// written again; and the index segments that it names are looked for without harm.
///
/// ```
/// offset 0  flags: bit 0, make it a frame that lies here and whose checksum holds
///        1  u16: how many bytes come before it
///        3  the footer
/// ```
enum FuzzFooter: Fuzzer {
  static func run(_ bytes: Span<UInt8>) {
    guard bytes.count >= 3 else { return }
    let place = Int(bytes.u16(1)) % 4096
    var file = [UInt8](repeating: 0xa5, count: place)
    file.append(bytes.extracting(droppingFirst: 3))
    if bytes[0] & 1 == 1 { makeFrame(&file, at: place) }
    let last = Footer.last(in: file.span, before: file.count)
    let here = Footer.frame(file.span, at: place)
    if let here {
      require(last?.offset ?? -1 >= here.offset, "the last footer is not the last")
      check(file, here)
    }
    if let last, last != here { check(file, last) }
  }

  private static func makeFrame(_ file: inout [UInt8], at place: Int) {
    // As many segments as there are bytes for.
    let room = max(0, file.count - place - Footer.length(segments: 0))
    let length = Footer.length(segments: min(16, room / 24))
    let payload = length - SkippableFrame.minimumLength
    file.append(contentsOf: repeatElement(0, count: max(0, place + length - file.count)))
    let header = SkippableFrame.header(SkippableFrame.footer, payloadLength: payload) ?? []
    file.replaceSubrange(place..<place + header.count, with: header)
    let end = place + length - 8
    file.set(UInt64(place), at: end - 8)
    file.set(XXH64.hash(file.span.extracting(place..<end)), at: end)
  }

  private static func check(_ file: [UInt8], _ frame: SkippableFrame) {
    let generation: Generation
    do throws(ArchiveError) {
      generation = try Footer.read(file.span, frame)
    } catch {
      require(!error.description.isEmpty, "an error without words")
      return
    }
    require(generation.number > 0, "generations count from 1")
    require(generation.committedLength == UInt64(frame.end), "it commits another length")
    require(
      generation.segments.reduce(0) { $0 + UInt64($1.sectionCount) } == generation.sectionCount,
      "segments that do not cover the sections")
    do throws(ArchiveError) {
      let encoded = try Footer.encode(generation)
      require(encoded.count == frame.length, "another length")
      var again = Array(file[..<frame.offset])
      again.append(contentsOf: encoded)
      guard let found = Footer.frame(again.span, at: frame.offset) else {
        fatalError("a footer that was written does not hold")
      }
      require(try Footer.read(again.span, found) == generation, "a footer changes")
    } catch {
      fatalError("a footer that was read cannot be written: \(error)")
    }
    guard let index = try? ArchiveIndex(generation, in: file.span) else { return }
    _ = index.firstDamaged(in: file.span)
    for ordinal in [0, 1, generation.sectionCount] { _ = index.row(of: ordinal, in: file.span) }
  }

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    try ArchiveSeeds.all().flatMap { archive -> [[UInt8]] in
      guard let frame = Footer.frame(archive.span, endingAt: archive.count) else { return [] }
      let place = frame.offset
      let footer = Array(archive[place...])
      return ([0, 1] as [UInt8]).map { flag in
        [flag, UInt8(place & 0xff), UInt8(place >> 8 & 0x0f)] + footer
      }
    }
  }
}
