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
  /// How many blobs are listed at most beside twice as many as records refer to.
  ///
  /// A server lists references, and perhaps uploads that no record has taken up. A list that
  /// continues is one that has no end, and each of its blobs would be requested.
  static let maximumSurplus = 10_000

  /// Requests all pages.
  ///
  /// A page that cannot be fetched ends the list, as does one behind which the list broke off:
  /// earlier pages are kept, and ``fault`` says why the list is incomplete.
  ///
  /// - Parameters:
  ///   - referenced: how many blobs records refer to; nil if that is not known.
  ///   - progress: called after each page with how many blobs there are so far.
  /// - Throws: `CancellationError`.
  static func gather(
    of did: DID, from client: XRPCClient, referenced: Int?, progress: @Sendable (Int) -> Void
  ) async throws -> BlobListing {
    var listing = BlobListing()
    var pages = client.pages(
      limit: referenced.map { 2 * $0 + maximumSurplus } ?? 20_000_000, by: { $0 }
    ) { .listBlobs(did, limit: pageLength, cursor: $0) }
    do {
      while let page = try await pages.next() {
        for cid in page.entries { listing.known.insert(cid) }
        listing.malformedCount += page.malformed.count
        progress(listing.list.count)
      }
    } catch {
      guard let fault = ListFault(error) else { throw error }
      (listing.fault, listing.failure) = (fault, error)
    }
    return listing
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
    guard !error.isPage else {
      self.init(reason: .noAnswer, status: nil)
      explanation = "a page for a browser stands before the server (status \(error.status))"
      return
    }
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
    if error is BrokenList {
      self.init(reason: .tooLarge, status: nil, isTransient: false)
      return
    }
    guard let failure = BlobFailure(error) else { return nil }
    // Others, such as a lack of room, are not about the list.
    guard error is any NetworkFault else { return nil }
    self.init(
      reason: (error as? XRPCError)?.fault == nil ? failure.reason : .malformed,
      status: failure.status, isTransient: error.mayPass)
  }
}
