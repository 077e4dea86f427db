internal import ATProtocol
internal import HTTP
internal import IPLD
internal import Snapshots
internal import XRPC

/// What the server keeps for the account's owner alone, asked for as the owner.
///
/// 1. What is not given is no error: servers differ, and an app password may not read
///    conversations. A login that is refused is one.
/// 2. What came earlier stays until something whole takes its place.
extension BackupRun {
  /// How long an answer in JSON may be, in bytes.
  private static let maximumObject = 4 << 20
  /// How long an answer in lines may be, in bytes.
  private static let maximumLines = 1 << 30
  /// How many pages of a kind are asked for at most.
  private static let maximumPages = 2000

  /// Asks for everything.
  ///
  /// - Throws: `CancellationError`; ``BackupError`` if there is no room for what comes.
  func fetchPrivateData() async throws -> ReceivedPrivateData {
    // What is damaged in the archive has to come again.
    let earlier = try base?.readable { try $0.privateData() }
    var received = try ReceivedPrivateData(of: identity.did, in: target.folder, after: earlier)
    for kind in OwnerData.Kind.allCases {
      observer(.progress(BackupProgress(.privateData)))
      var entry = PrivateData.Entry(kind.rawValue, at: options.now())
      var failure: (kind: PrivateData.Fault.Kind, why: String)?
      do {
        if kind.isObject {
          try await fetchPages(kind, into: &entry, &received)
        } else {
          try await fetchLines(kind, into: &entry, &received)
        }
      } catch let error as XRPCError where error.endpoint == kind.rawValue {
        let isRefused = error.fault == nil && !error.isTransient
        failure = (isRefused ? .notGiven : .notFetched, "\(error)")
      } catch let error as TransportError {
        failure = (.notFetched, "\(error)")
      } catch let error as AnswerFault {
        let why = "\(kind.rawValue): the answer is not what it should be (\(error.what))"
        failure = (.notFetched, why)
      }
      if let (kind, why) = failure {
        entry.fault = PrivateData.Fault(entry.answers.isEmpty ? kind : .notWhole, why)
      }
      received.take(entry)
    }
    if !received.notGiven.isEmpty {
      warn(
        "the server does not give this private data: \(received.notGiven.joined(separator: ", "))")
    }
    for text in received.failures { warn("private data is not whole: \(text)") }
    return received
  }

  private func fetchPages(
    _ kind: OwnerData.Kind, into entry: inout PrivateData.Entry,
    _ received: inout ReceivedPrivateData
  ) async throws {
    var cursor: String?
    var seen: Set<String> = []
    repeat {
      let call = OwnerData(kind, cursor: cursor)
      let (body, contentType) = try await client.stream(call) { response in
        (
          try await response.body.collect(
            upTo: Self.maximumObject, of: client.service + "/xrpc/" + call.nsid),
          response["content-type"]
        )
      }
      let page = kind.isPaged ? try Self.page(body) : nil
      if page == nil { try Self.checkObject(body) }
      // A list ends with an empty page, or one without a cursor.
      if cursor != nil, page?.isEmpty == true { return }
      entry.contentType = contentType
      entry.byteCount += UInt64(body.count)
      entry.answers.append(try await received.spool(body))
      cursor = page?.cursor
      if let cursor {
        guard seen.insert(cursor).inserted, entry.answers.count < Self.maximumPages else {
          throw AnswerFault("its pages have no end")
        }
      }
    } while cursor != nil
  }

  /// What of a page tells how the list goes on, and whether it lists nothing.
  private static func page(_ body: [UInt8]) throws -> (cursor: String?, isEmpty: Bool) {
    let answer: Answer
    do throws(JSONError) { answer = Answer(try DataModelJSON.decode(body)) } catch {
      throw AnswerFault("it is not JSON: \(error)")
    }
    guard let fields = answer.json.map?.entries else { throw AnswerFault("it is no JSON object") }
    let lists = fields.compactMap(\.value.array)
    let cursor = try answer.cursor().flatMap { $0.isEmpty ? nil : $0 }
    return (cursor, !lists.isEmpty && lists.allSatisfy(\.isEmpty))
  }

  /// Refuses the page of a proxy; what an object says is the owner's, whatever it is.
  private static func checkObject(_ body: [UInt8]) throws {
    let blanks: Set<UInt8> = [0x20, 0x09, 0x0a, 0x0d]
    guard body.first(where: { !blanks.contains($0) }) == UInt8(ascii: "{"),
      body.last(where: { !blanks.contains($0) }) == UInt8(ascii: "}")
    else { throw AnswerFault("it is no JSON object") }
  }

  private func fetchLines(
    _ kind: OwnerData.Kind, into entry: inout PrivateData.Entry,
    _ received: inout ReceivedPrivateData
  ) async throws {
    let begin = received
    let (answer, count, contentType) = try await client.stream(OwnerData(kind)) { response in
      // An answer that broke off comes again from its beginning.
      try received.goBack(to: begin)
      guard response["content-type"]?.lowercased().hasPrefix("text/html") != true else {
        throw AnswerFault("it is a page")
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
    (entry.contentType, entry.byteCount, entry.answers) = (contentType, count, [answer])
  }
}
