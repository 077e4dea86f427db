// The plaintext of a table, sealed to the archive's identity:
//
// offset  size  field
//      0    32  the mark: HKDF of the archive's identity, with the info "carpack table"
//     32     8  u64: how many pieces the archive has up to here
//     40     8  u64: how many bytes they hold
//     48     4  u32: how many older tables still count, n
//     52     4  u32: how many pieces this one describes, m
//     56   16n  the older ones: u64 where the frame begins, u32 its length, u32 how many pieces
//      …   48m  the pieces: u64 where the frame begins, u32 its length, u32 how many bytes of the
//               archive it holds, 16 bytes file key, 16 bytes payload nonce
//      …    16  two u64: where the third and the fourth key frame begin, 0 for one that is not
//               there; only where the key frames have version 2

internal import Age
internal import Archive
internal import IPLD

/// A piece of a sealed archive: a frame with one age file.
struct Piece: Sendable {
  /// Where the frame lies in the file.
  let frame: Range<Int>
  /// Which bytes of the archive it holds.
  let plain: Range<Int>
  /// The key of its age file, and the nonce of the payload.
  let fileKey: SecretBytes
  let nonce: [UInt8]
  /// How many bytes were taken out of the frame, which therefore reaches over what follows.
  var takenOut = 0
  /// Whether the file ends inside it: these are the first of its chunks, and ``frame`` is what a
  /// piece of them takes.
  var isCutOff = false

  static let fileKeyLength = 16

  /// Its chunks.
  var chunks: AgeChunks { AgeChunks(length: plain.count) }

  /// Where the first chunk begins, after the nonce.
  var payloadOffset: Int {
    frame.upperBound - SealedFrame.checksumLength - chunks.sealedLength
  }

  /// Whether the payload ends with a chunk.
  func isLast(_ chunk: Int) -> Bool { !isCutOff && chunks.isLast(chunk) }

  /// How many of its first chunks open, in a file that may end inside it; nil if some behind them
  /// do, too.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  func openingCount(in file: Span<UInt8>) throws -> Int? {
    var payload = try payload()
    var content = [UInt8](repeating: 0, count: AgePayload.chunkLength)
    var count = 0
    for number in 0..<chunks.count {
      let sealed = chunks.sealedRange(of: number)
      let end = payloadOffset + sealed.upperBound
      guard end <= file.count else { break }
      do {
        var target = content.mutableSpan
        try payload.open(
          file.extracting(end - sealed.count..<end), index: UInt64(number), isLast: isLast(number),
          into: &target)
      } catch {
        guard error.faultKind == .damage else { throw error }
        continue
      }
      guard count == number else { return nil }
      count += 1
    }
    return count
  }

  /// The first chunks of this piece, where the file ends inside the next one.
  func cutOff(after count: Int) -> Piece {
    let plain = plain.lowerBound..<plain.lowerBound + chunks.range(of: count - 1).upperBound
    let missing = chunks.sealedLength - chunks.sealedRange(of: count - 1).upperBound
    return Piece(
      frame: frame.lowerBound..<frame.upperBound - missing, plain: plain, fileKey: fileKey,
      nonce: nonce, isCutOff: count < chunks.count)
  }

  /// This piece at another place of the archive.
  func moved(to place: Int) -> Piece {
    Piece(frame: frame, plain: place..<place + plain.count, fileKey: fileKey, nonce: nonce)
  }

  /// How many bytes a frame for this many bytes of the archive has, whatever the header.
  static func shortestFrame(of count: Int) -> Int {
    SealedFrame.emptyLength + AgePayload.nonceLength + AgePayload.sealedLength(of: count)
  }

  /// The cipher that opens its chunks.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  func payload() throws -> AgePayload { try AgePayload(fileKey: fileKey, nonce: nonce) }
}

/// Which pieces there are, as tables say it; each describes those since the one before, or since
/// older ones that it takes the place of, as index segments do.
struct PieceTable: Sendable {
  /// A table that counts: its frame, and which pieces it describes.
  struct Live: Sendable {
    let frame: Range<Int>
    let pieces: Range<Int>
  }

  private static let markLength = 32
  private static let headerLength = markLength + 24
  private static let liveLength = 16
  private static let entryLength = 16 + Piece.fileKeyLength + AgePayload.nonceLength
  /// How many key frames there may be among the pieces.
  static let mostKeyCopies = 2
  private static let keyCopiesLength = 8 * mostKeyCopies

  /// What tables begin with, so that no piece whose content another has chosen passes for one.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  private static func mark(_ identity: AgeIdentity) throws -> SecretBytes {
    try identity.secret(for: "carpack table")
  }

  /// The older tables that count, the oldest first.
  let older: [Live]
  /// The pieces that this one describes.
  let pieces: [Piece]
  /// Where key frames lie among the pieces; nil where there are none in this version, and where some
  /// pieces may not have reached the medium.
  let keyCopies: [Int]?

  /// Reads the plaintext of a table.
  ///
  /// - Parameters:
  ///   - secret: The plaintext.
  ///   - identity: The archive's own.
  /// - Throws: `AgeError` if the system lacks what age needs.
  /// - Returns: nil if it does not say what it should: frames lie one after the other, and a piece
  ///   is no longer than its frame.
  init?(_ secret: SecretBytes, _ identity: AgeIdentity) throws {
    let mark = try Self.mark(identity)
    let begins = mark.withBytes { mark in
      secret.withBytes {
        $0.count >= Self.markLength && $0.extracting(0..<Self.markLength).equals(mark)
      }
    }
    guard begins else { return nil }
    typealias Row = (frame: Range<Int>, count: Int, fileKey: SecretBytes, nonce: [UInt8])
    typealias Read = (older: [Live], rows: [Row], plainEnd: Int, keyCopies: [Int]?)
    let read = secret.withBytes { bytes -> Read? in
      guard bytes.count >= Self.headerLength else { return nil }
      let (olderCount, count) = (Int(bytes.u32(48)), Int(bytes.u32(52)))
      let start = Self.headerLength + olderCount * Self.liveLength
      let end = start + count * Self.entryLength
      guard bytes.count == end || bytes.count == end + Self.keyCopiesLength,
        let pieceCount = Int(exactly: bytes.u64(32)), let plainEnd = Int(exactly: bytes.u64(40))
      else { return nil }
      func frame(_ place: Int, behind start: Int) -> Range<Int>? {
        guard let offset = Int(exactly: bytes.u64(place)), offset >= start,
          Int(bytes.u32(place + 8)) <= Int.max - offset
        else { return nil }
        return offset..<offset + Int(bytes.u32(place + 8))
      }
      var (older, number) = ([Live](), 0)
      for index in 0..<olderCount {
        let place = Self.headerLength + index * Self.liveLength
        let before = older.last?.frame.upperBound ?? KeySlots.length
        guard let range = frame(place, behind: before) else { return nil }
        let next = number + Int(bytes.u32(place + 12))
        older.append(Live(frame: range, pieces: number..<next))
        number = next
      }
      guard number + count == pieceCount else { return nil }
      var rows: [Row] = []
      for index in 0..<count {
        let place = start + index * Self.entryLength
        let before = rows.last?.frame.upperBound ?? KeySlots.length
        guard let range = frame(place, behind: before),
          range.count >= Piece.shortestFrame(of: Int(bytes.u32(place + 12)))
        else { return nil }
        let (key, nonce) = (place + 16, place + 16 + Piece.fileKeyLength)
        rows.append(
          (
            range, Int(bytes.u32(place + 12)),
            SecretBytes(copying: bytes.extracting(key..<nonce)),
            bytes.array(nonce..<nonce + AgePayload.nonceLength)
          ))
      }
      var keyCopies: [Int]?
      if bytes.count > end {
        let places = stride(from: end, to: bytes.count, by: 8).map { bytes.u64($0) }
        keyCopies = places.compactMap { Int(exactly: $0) }.filter { $0 >= KeySlots.length }
      }
      return (older, rows, plainEnd, keyCopies)
    }
    guard let read else { return nil }
    var plain = read.plainEnd - read.rows.reduce(0) { $0 + $1.count }
    guard plain >= 0 else { return nil }
    var pieces: [Piece] = []
    for row in read.rows {
      pieces.append(
        Piece(
          frame: row.frame, plain: plain..<plain + row.count, fileKey: row.fileKey,
          nonce: row.nonce))
      plain += row.count
    }
    (older, self.pieces, keyCopies) = (read.older, pieces, read.keyCopies)
  }

  /// The plaintext of a table.
  ///
  /// - Parameters:
  ///   - older: The older tables that count.
  ///   - pieces: The pieces from there on.
  ///   - keyCopies: Where key frames lie among the pieces; nil in the first version.
  ///   - identity: The archive's own.
  /// - Throws: `AgeError` if the system lacks what age needs.
  static func plaintext(
    _ older: ArraySlice<Live>, _ pieces: ArraySlice<Piece>, _ keyCopies: [Int]?,
    _ identity: AgeIdentity
  ) throws -> SecretBytes {
    let mark = try mark(identity)
    let count =
      headerLength + older.count * liveLength + pieces.count * entryLength
      + (keyCopies == nil ? 0 : keyCopiesLength)
    return unsafe SecretBytes(count: count) { target in
      var place = 0
      func append(_ value: some FixedWidthInteger) {
        for index in 0..<value.bitWidth / 8 {
          unsafe target[place + index] = UInt8(truncatingIfNeeded: value >> (8 * index))
        }
        place += value.bitWidth / 8
      }
      func append(_ frame: Range<Int>, _ count: Int) {
        append(UInt64(frame.lowerBound))
        append(UInt32(frame.count))
        append(UInt32(count))
      }
      mark.withBytes { mark in for index in mark.indices { append(mark[index]) } }
      append(UInt64((older.last?.pieces.upperBound ?? 0) + pieces.count))
      append(UInt64(pieces.last?.plain.upperBound ?? 0))
      append(UInt32(older.count))
      append(UInt32(pieces.count))
      for live in older { append(live.frame, live.pieces.count) }
      for piece in pieces {
        append(piece.frame, piece.plain.count)
        piece.fileKey.withBytes { key in for index in key.indices { append(key[index]) } }
        for byte in piece.nonce { append(byte) }
      }
      if let keyCopies {
        for number in 0..<mostKeyCopies {
          append(UInt64(number < keyCopies.count ? keyCopies[number] : 0))
        }
      }
    }
  }

  /// How many of the tables that count still count when this many pieces are added: a table counts
  /// as long as it describes at least twice as many as all that follow it, so that there are few,
  /// and each piece is described again only a few times.
  static func keptCount(_ live: [Live], adding count: Int) -> Int {
    var (kept, behind) = (live.count, count)
    while kept > 0, live[kept - 1].pieces.count < 2 * behind {
      behind += live[kept - 1].pieces.count
      kept -= 1
    }
    return kept
  }
}
