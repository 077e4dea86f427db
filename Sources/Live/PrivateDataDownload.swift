internal import ATProtocol
internal import Files
internal import HTTP
internal import IPLD
internal import Snapshots
internal import XRPC

/// Downloads one kind of private data from the server.
struct PrivateDataDownload: Sendable {
  let client: XRPCClient
  /// What has arrived of all kinds.
  var received: ReceivedPrivateData
  /// What has arrived of this kind.
  var entry: PrivateData.Entry

  /// How long an answer in JSON may be, in bytes.
  private static let maximumObject = 4 << 20
  /// How long an answer in lines may be, in bytes.
  private static let maximumLines = 1 << 30
  /// How many entries of a kind are read at most.
  private static let maximumEntries = 200_000

  /// Requests a kind, and gives up after some time.
  ///
  /// - Returns: all that has arrived, and what went wrong with this kind.
  /// - Throws: `CancellationError`; ``BackupError`` if there is no room for what arrives.
  func fetched(_ kind: OwnerData, within limit: Duration) async throws -> ReceivedPrivateData {
    try await givingUp(after: limit) {
      var download = self
      try await download.fetch(kind)
      return download.received
    }
  }

  /// Requests a kind; only a lack of room is an error.
  private mutating func fetch(_ kind: OwnerData) async throws {
    do {
      if kind.isObject { try await fetchPages(kind) } else { try await fetchLines(kind) }
    } catch let error as BackupError {
      throw error
    } catch {
      let (fault, why) = Self.fault(kind, error)
      entry.fault = PrivateData.Fault(entry.answers.isEmpty ? fault : .notWhole, why)
    }
    received.take(entry)
  }

  /// What an error means for a kind, and the reason in words.
  private static func fault(_ kind: OwnerData, _ error: any Error) -> (
    PrivateData.Fault.Kind, String
  ) {
    switch error {
    case let error as XRPCError where error.endpoint == kind.rawValue:
      let isRefused = error.fault == nil && !error.mayPass
      return (isRefused ? .notGiven : .notFetched, "\(error)")
    case let error as AnswerFault:
      return (
        .notFetched, "\(kind.rawValue): the answer is malformed (\(error.what))"
      )
    case is BrokenList: return (.notFetched, "\(error)")
    case is CancellationError:
      return (.notFetched, "\(kind.rawValue): it took too long")
    default: return (.notFetched, "\(kind.rawValue): \(error)")
    }
  }

  private mutating func fetchPages(_ kind: OwnerData) async throws {
    var pages = Pages(of: kind.rawValue, at: client.service, limit: Self.maximumEntries) {
      [client] cursor in
      let call = XRPCCall.ownerData(kind, cursor: cursor)
      let page = try await client.stream(call) { response in
        (
          body: try await response.body.collect(
            upTo: Self.maximumObject, of: client.service + "/xrpc/" + call.nsid),
          contentType: response["content-type"]
        )
      }
      return (page, try Self.place(of: page.body, isPage: kind.isPaged))
    }
    while let page = try await pages.next() {
      // An empty page says something only of a list that is empty.
      guard entry.answers.isEmpty || pages.hasEntries else { continue }
      entry.contentType = page.contentType
      entry.byteCount += UInt64(page.body.count)
      entry.answers.append(try await received.spool(page.body))
    }
  }

  /// The place of a page in its list; what does not come in pages is a page of one entry.
  private static func place(of body: [UInt8], isPage: Bool) throws -> PagePlace {
    guard isPage else {
      try checkObject(body)
      return PagePlace([body], cursor: nil)
    }
    let answer: Answer
    do throws(JSONError) { answer = Answer(try DataModelJSON.decode(body)) } catch {
      throw AnswerFault("it is not JSON: \(error)")
    }
    guard let fields = answer.json.map?.entries else {
      throw AnswerFault("it is not a JSON object")
    }
    let lists = fields.compactMap(\.value.array)
    // Whatever an object without a list is, it is not an empty page.
    return PagePlace(
      lists.isEmpty ? [answer.json] : lists.flatMap(\.self), cursor: try answer.cursor())
  }

  /// Refuses the HTML page of a proxy; any JSON object is accepted as the owner's.
  private static func checkObject(_ body: [UInt8]) throws {
    let blanks: Set<UInt8> = [0x20, 0x09, 0x0a, 0x0d]
    guard body.first(where: { !blanks.contains($0) }) == UInt8(ascii: "{"),
      body.last(where: { !blanks.contains($0) }) == UInt8(ascii: "}")
    else { throw AnswerFault("it is not a JSON object") }
  }

  private mutating func fetchLines(_ kind: OwnerData) async throws {
    let begin = received
    var received = received
    let (answer, count, contentType) = try await client.stream(.ownerData(kind)) { response in
      // An answer that broke off comes again from its beginning.
      try received.goBack(to: begin)
      guard response["content-type"]?.lowercased().hasPrefix("text/html") != true else {
        throw AnswerFault("it is an HTML page")
      }
      var (answer, piece, count): ([CID], [UInt8], UInt64) = ([], [], 0)
      for try await bytes in response.body {
        count += UInt64(bytes.count)
        guard count <= Self.maximumLines else {
          throw AnswerFault("it is longer than \(Self.maximumLines) bytes")
        }
        piece += bytes
        guard piece.count >= PrivateData.maximumPiece else { continue }
        let end = piece.count / PrivateData.maximumPiece * PrivateData.maximumPiece
        answer += try await received.spool(Array(piece[..<end]))
        piece.removeFirst(end)
      }
      return (answer + (try await received.spool(piece)), count, response["content-type"])
    }
    self.received = received
    (entry.contentType, entry.byteCount, entry.answers) = (contentType, count, [answer])
  }
}
