internal import ATProtocol
internal import Archive
internal import Files
internal import HTTP
internal import Snapshots
internal import SystemPackage
internal import XRPC

extension BlobListing {
  /// The longest page that the lexicon allows.
  static let pageLength = 1000
  /// How many entries of a page are read: some servers treat the limit as a hint.
  static let maximumPage = 4 * pageLength
  /// The longest cursor that is sent back, in bytes: it becomes a part of a URL.
  static let maximumCursor = 4096
  /// How many blobs are listed at most beside twice as many as records refer to.
  ///
  /// A server lists references, and perhaps uploads that no record has taken up. A list that
  /// continues is one that has no end, and each of its blobs would be requested.
  static let maximumSurplus = 10_000

  /// Requests all pages.
  ///
  /// A page that cannot be fetched ends the list: earlier pages are kept, and ``fault`` says why
  /// the list is incomplete.
  ///
  /// - Parameters:
  ///   - referenced: how many blobs records refer to; nil if that is not known.
  ///   - page: called with how many blobs there are so far.
  /// - Throws: `CancellationError`.
  static func gather(
    of did: DID, from client: XRPCClient, referenced: Int?, page: @Sendable (Int) -> Void
  ) async throws -> BlobListing {
    var listing = BlobListing()
    var cursor: String?
    let maximumCount = referenced.map { 2 * $0 + maximumSurplus } ?? 20_000_000
    while true {
      let output: BlobPage
      do {
        output = try await client.call(.listBlobs(did, limit: pageLength, cursor: cursor))
      } catch {
        guard let kind = ListFault(error) else { throw error }
        (listing.fault, listing.failure) = (kind, ("\(error)", error))
        return listing
      }
      let countBefore = listing.list.count
      for cid in output.cids.prefix(maximumPage) { listing.known.insert(cid) }
      listing.malformedCount += output.malformed.count
      page(listing.list.count)
      if let text = Self.excess(of: output) {
        listing.fault = ListFault(reason: .malformed, status: nil, isTransient: false)
        listing.failure = (text, nil)
        return listing
      }
      let isLonger = listing.list.count > countBefore
      guard isLonger, listing.list.count < maximumCount else {
        // Some lists end with their last entry once more; one that begins again is of a server that
        // does not know how to continue.
        listing.isDoubtful = isLonger || output.cids.contains { "\($0)" != cursor }
        return listing
      }
      if let next = output.cursor, !next.isEmpty {
        cursor = next
      } else {
        guard output.cids.count >= pageLength, let last = output.cids.last else { return listing }
        // The reference server's cursor is the last CID, and others that forget to name one may
        // still know it.
        cursor = "\(last)"
      }
    }
  }

  /// Which limit a page exceeds; nil if none.
  private static func excess(of page: BlobPage) -> String? {
    let count = page.cids.count + page.malformed.count
    if count > maximumPage {
      return "a page has \(count) entries, and at most \(pageLength) were asked for"
    }
    if let length = page.cursor?.utf8.count, length > maximumCursor {
      return "the cursor for the next page has \(length) bytes"
    }
    return nil
  }
}

extension BlobFailure {
  /// What an error means for the blob; nil if it is about more than one blob: about the archive, or
  /// the whole run.
  init?(_ error: any Error) {
    switch error {
    case let error as XRPCError: self.init(error)
    case let error as TransportError:
      // All of the account waits for the host.
      if case .postponed = error.reason { return nil }
      self.init(error)
    case BackupError.blobTooLarge(let limit):
      self.init(reason: .tooLarge, status: nil)
      explanation = "longer than \(limit) bytes"
    case let error as ArchiveError:
      switch error.reason {
      case .contentMismatch, .lengthMismatch: self.init(reason: .mismatch, status: nil)
      case .system(_, let code) where Self.isLackOfRoom(code):
        self.init(reason: .noRoom, status: nil)
      default: return nil
      }
    case BackupError.system(_, let code) where Self.isLackOfRoom(code):
      self.init(reason: .noRoom, status: nil)
    default: return nil
    }
  }

  /// Whether there may be room for a smaller blob where there was none for this one.
  private static func isLackOfRoom(_ code: CInt) -> Bool {
    [Errno.noSpace, .diskQuotaExceeded, .fileTooLarge].contains(Errno(rawValue: code))
  }

  private init(_ error: XRPCError) {
    let reason: BlobLedger.Reason =
      switch error.status {
      case 429: .rateLimited
      case 500...: .serverError
      case 404, 410: .notFound
      // The reference server's words for a blob that it does not have are "InvalidRequest" and
      // "Blob not found".
      case 400 where error.name == "BlobNotFound" || error.name == "InvalidRequest": .notFound
      default: .refused
      }
    self.init(reason: reason, status: error.status)
    namesLogin = ["AuthMissing", "AuthRequired", "RepoDeactivated"].contains(error.name)
  }

  private init(_ error: TransportError) {
    let reason: BlobLedger.Reason =
      switch error.reason {
      case .refusedAddress, .refusedRedirect, .tooManyRedirects, .unusableURL: .hostileRedirect
      case .tooLong: .tooLarge
      case .overloaded: .rateLimited
      default: .noAnswer
      }
    self.init(reason: reason, status: nil)
    explanation = error.what
    switch error.reason {
    case .stalled, .tooSlow: isStall = true
    default: break
    }
  }
}

extension ListFault {
  /// What an error means for a list of blobs; nil if it is about more than the list.
  init?(_ error: any Error) {
    guard let failure = BlobFailure(error) else { return nil }
    let answer = error as? XRPCError
    guard let isTransient = answer?.isTransient ?? (error as? TransportError)?.isTransient
    else { return nil }
    self.init(
      reason: answer?.fault == nil ? failure.reason : .malformed, status: failure.status,
      isTransient: isTransient)
  }
}
