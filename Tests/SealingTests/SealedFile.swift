import Age
import Archive
import IPLD

@testable import Sealing

/// A sealed file taken apart, so that it can be reassembled differently.
struct SealedFile {
  /// The key frames.
  var slots: [UInt8]
  /// The other frames, one after another.
  var frames: [[UInt8]]

  init(_ bytes: [UInt8]) {
    slots = Array(bytes[..<KeySlots.length])
    frames = Self.places(bytes).map { Array(bytes[$0]) }
  }

  var bytes: [UInt8] { slots + frames.joined() }

  /// Where the frames after the key frames lie.
  static func places(_ bytes: [UInt8]) -> [Range<Int>] {
    var walk = SealedFrameWalk(MappedFile(copying: bytes), from: KeySlots.length)
    var places: [Range<Int>] = []
    while let step = walk.next() { places.append(step.frame.range) }
    return places
  }

  /// The numbers of the frames of a kind.
  func numbers(_ kind: SealedFrame.Kind) -> [Int] {
    frames.indices.filter { number in
      let frame = frames[number]
      return SealedFrame(frame.span, at: 0)?.kind == kind
    }
  }

  /// The file without its tables.
  var withoutTables: SealedFile {
    var file = self
    for number in numbers(.table).reversed() { file.frames.remove(at: number) }
    return file
  }

  /// A frame that says another place, with the right checksum.
  static func frame(_ frame: [UInt8], number: UInt64, plainOffset: UInt64) -> [UInt8] {
    var bytes = Array(frame[..<SealedFrame.headerLength])
    bytes.append(littleEndian: number)
    bytes.append(littleEndian: plainOffset)
    return SealedFrame.withChecksum(bytes + frame[SealedFrame.contentOffset...])
  }

  /// Gives each piece the number and the place that it has in the file now.
  mutating func renumber() throws {
    var (number, place) = (0, 0)
    for index in frames.indices {
      let stored = frames[index]
      guard let frame = SealedFrame(stored.span, at: 0), frame.kind == .piece else { continue }
      frames[index] = Self.frame(
        frames[index], number: UInt64(number), plainOffset: UInt64(place))
      let content = frames[index][frame.content]
      let age = Array(content)
      let header = try AgeHeader(parsing: age.span)
      number += 1
      place += try AgePayload.length(
        ofSealed: content.count - header.length - AgePayload.nonceLength)
    }
  }
}
