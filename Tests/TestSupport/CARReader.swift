package import IPLD

/// Reads a CAR block by block while it arrives, a second time beside ``CARCursor`` and
/// ``CARStreamChecker``, which are compared with it.
///
/// Pull blocks with ``next()``; the reader calls its source for more bytes only when it has to, so
/// back-pressure is built in. Each block is checked against its CID unless `verifying` is false. A
/// CAR of version 2 is recognised and its inner CAR read. Only bytes that have arrived are held, at
/// most one section and one chunk of them.
///
/// Invariants:
/// 1. `next()` answers nil at the clean end only: a CAR that is cut short throws.
/// 2. After it has thrown, it throws the same error again.
package struct CARReader<SourceError: Error> {
  /// The source gave out, or what it gave is not a CAR.
  package enum Failure: Error {
    /// The bytes break a rule.
    case car(CARError)
    /// The source's own error.
    case source(SourceError)
  }

  private enum Inner {
    /// The start has not been looked at yet.
    case undecided
    /// So many bytes go by before the inner CAR begins, and this many belong to it.
    case skipping(Int, then: Int)
    /// In the CAR, with this many bytes of it still to come; nil when it goes to the end of the
    /// input.
    case reading(remaining: Int?)
  }

  /// The header, once ``next()`` has been called or ``readHeader()``.
  package private(set) var header: CARHeader?

  private let limits: CARLimits
  private let verifying: Bool
  private let pull: () throws(SourceError) -> [UInt8]?
  private var buffer: [UInt8] = []
  /// Where in `buffer` the next section starts.
  private var position = 0
  /// How many bytes of the input lie before `buffer`.
  private var consumed = 0
  private var inner = Inner.undecided
  private var sourceIsAtEnd = false
  private var failure: Failure?

  /// A reader of a source that gives chunks of any size, and nil at its end.
  package init(
    limits: CARLimits = .streaming, verifying: Bool = true,
    pulling pull: @escaping () throws(SourceError) -> [UInt8]?
  ) {
    self.limits = limits
    self.verifying = verifying
    self.pull = pull
  }

  /// Reads the header, if it has not been read.
  ///
  /// - Throws: ``Failure``.
  @discardableResult
  package mutating func readHeader() throws(Failure) -> CARHeader {
    if let header { return header }
    if let failure { throw failure }
    do throws(Failure) {
      try findCAR()
      while true {
        do throws(CARError) {
          let header = try CARHeader(buffer.span.extracting(available), limits: limits)
          self.header = header
          advance(header.length)
          return header
        } catch {
          guard error.reason == .truncatedHeader else {
            throw Failure.car(CARError(error.reason, offset: consumed + position + error.offset))
          }
          guard try fill() else {
            throw Failure.car(CARError(.truncatedHeader, offset: consumed + available.upperBound))
          }
        }
      }
    } catch {
      failure = error
      throw error
    }
  }

  /// The next block, or nil at the clean end.
  ///
  /// - Throws: ``Failure``.
  package mutating func next() throws(Failure) -> Block? {
    try readHeader()
    if let failure { throw failure }
    do throws(Failure) {
      return try readBlock()
    } catch {
      failure = error
      throw error
    }
  }

  /// Where, in `buffer`, lie the bytes that have arrived and belong to the CAR.
  private var available: Range<Int> {
    var end = buffer.count
    if case .reading(let remaining?) = inner { end = position + min(end - position, remaining) }
    return position..<end
  }

  private mutating func readBlock() throws(Failure) -> Block? {
    while true {
      if available.isEmpty {
        guard try fill() else {
          // A CAR of version 2 has said how long it is.
          if case .reading(let remaining?) = inner, remaining > 0 {
            throw Failure.car(CARError(.truncatedSection, offset: consumed + position))
          }
          return nil
        }
        continue
      }
      do throws(CARError) {
        return try readSection()
      } catch {
        guard error.reason == .truncatedSection else {
          throw Failure.car(CARError(error.reason, offset: consumed + position + error.offset))
        }
        guard try fill() else {
          throw Failure.car(CARError(.truncatedSection, offset: consumed + position))
        }
      }
    }
  }

  private mutating func readSection() throws(CARError) -> Block? {
    guard let (block, length) = try firstBlock() else { return nil }
    advance(length)
    return block
  }

  private func firstBlock() throws(CARError) -> (Block, length: Int)? {
    let bytes = buffer.span.extracting(available)
    var cursor = CARCursor(payload: 0..<bytes.count, limits: limits)
    guard let (section, cid) = try cursor.next(in: bytes) else { return nil }
    let body = bytes.extracting(section.bodyRange)
    if verifying, cid.verify(body) == .mismatch {
      throw CARError(.contentMismatch(cid), offset: section.start)
    }
    return (Block(cid: cid, bytes: body.array), section.end)
  }

  private mutating func advance(_ count: Int) {
    position += count
    if case .reading(let remaining?) = inner { inner = .reading(remaining: remaining - count) }
  }

  /// Recognises a CAR of version 2 and goes to the CAR inside it.
  private mutating func findCAR() throws(Failure) {
    let pragma = CARVersion2.pragma
    while buffer.count < pragma.count, pragma.starts(with: buffer), try fill() {}
    guard buffer.starts(with: pragma) else {
      inner = .reading(remaining: nil)
      return
    }
    while buffer.count < CARVersion2.headerLength, try fill() {}
    do throws(CARError) {
      let (start, length) = try CARVersion2.innerLocation(buffer.span)
      inner = .skipping(Int(start), then: Int(length))
    } catch {
      throw Failure.car(error)
    }
    while case .skipping(let count, let length) = inner {
      let step = min(count, buffer.count - position)
      position += step
      inner = step == count ? .reading(remaining: length) : .skipping(count - step, then: length)
      if step < count, try !fill() {
        throw Failure.car(CARError(.truncatedHeader, offset: consumed + buffer.count))
      }
    }
  }

  /// Fetches another chunk; false when there is none, or when the CAR inside a CAR of version 2 has
  /// arrived whole.
  private mutating func fill() throws(Failure) -> Bool {
    if case .reading(let remaining?) = inner, buffer.count - position >= remaining { return false }
    guard !sourceIsAtEnd else { return false }
    let chunk: [UInt8]?
    do throws(SourceError) {
      chunk = try pull()
    } catch {
      throw Failure.source(error)
    }
    guard let chunk else {
      sourceIsAtEnd = true
      return false
    }
    consumed += position
    buffer.removeFirst(position)
    position = 0
    buffer.append(contentsOf: chunk)
    return true
  }
}

extension CARReader.Failure: CustomStringConvertible {
  /// What a person reads.
  package var description: String {
    switch self {
    case .car(let error): "\(error)"
    case .source(let error): "\(error)"
    }
  }
}
