import Archive
import IPLD
import NIOCore
import NIOHTTP1
import Snapshots
import SystemPackage
import Viewer

/// The page that shows archives and repositories, and the files that it reads, under a secret path.
struct Pages: Sendable {
  let shelf: Shelf
  let cars: [OfferedCAR]
  let budget: SendBudget
  /// The page.
  let page: [UInt8]
  /// What is in front of every path.
  let token: String

  /// Responds to a path below the token.
  func answer(_ path: Substring, _ request: Request) throws -> Response {
    if path.isEmpty {
      let items = items
      if items.count == 1 {
        var headers = HTTPHeaders()
        headers[.location] = Self.view(items)
        headers[.referrerPolicy] = "no-referrer"
        return Response(status: .seeOther, headers: headers)
      }
      return keptPrivate(.bytes(Array(Self.list(items).utf8), type: "text/html; charset=utf-8"))
    }
    if path == "view" { return keptPrivate(.bytes(page, type: "text/html; charset=utf-8")) }
    if path.hasPrefix("archives/"), let address = PercentEncoding.decode(path.dropFirst(9)) {
      if let archive = shelf.archive(at: address) { return try file(archive, request) }
      if let car = cars.first(where: { $0.address == address }) { return try file(car, request) }
    }
    return .text("Not found.\n", status: .notFound)
  }

  /// Marks a response that other pages must not read, and caches not keep.
  private func keptPrivate(_ response: Response) -> Response {
    var response = response
    response.headers[.cacheControl] = "no-store"
    response.headers[.referrerPolicy] = "no-referrer"
    response.headers[.crossOriginResourcePolicy] = "same-origin"
    response.headers[.xFrameOptions] = "DENY"
    return response
  }

  private func file(_ archive: ShelvedArchive, _ request: Request) throws -> Response {
    var headers = HTTPHeaders()
    headers[.contentType] = "application/zstd"
    headers[.xContentTypeOptions] = "nosniff"
    headers[.eTag] = archive.tag
    let budget = budget
    if let far = archive.far {
      guard archive.isReadable else { throw XRPCFault.busy }
      return keptPrivate(
        .ranged(archive.length, request, headers) { range, writer in
          try await budget.send(Int(range.lowerBound)..<Int(range.upperBound), to: writer) {
            part, buffer in
            let bytes = far.withBytes(reading: [part]) { $0.extracting(part).array }
            try far.checkFetched()
            buffer.writeBytes(bytes)
          }
        })
    }
    let descriptor = try OpenFile(archive.path)
    // Another file may have the name already, or this one other bytes: the server finds out within
    // a second.
    guard let found = ShelvedArchive.Identity(path: archive.path),
      archive.identity.isContinued(by: found), !archive.reader.isCutOff
    else { throw XRPCFault.busy }
    return file(descriptor, archive.length, request, headers)
  }

  private func file(_ car: OfferedCAR, _ request: Request) throws -> Response {
    let descriptor = try OpenFile(car.path)
    guard let (length, tag) = car.current else { throw XRPCFault.busy }
    var headers = HTTPHeaders()
    headers[.contentType] = "application/octet-stream"
    headers[.xContentTypeOptions] = "nosniff"
    headers[.eTag] = tag
    return file(descriptor, length, request, headers)
  }

  private func file(
    _ descriptor: OpenFile, _ length: UInt64, _ request: Request, _ headers: HTTPHeaders
  ) -> Response {
    let budget = budget
    return keptPrivate(
      .ranged(length, request, headers) { range, writer in
        try await budget.send(Int(range.lowerBound)..<Int(range.upperBound), to: writer) {
          part, buffer in
          try descriptor.append(part, to: &buffer)
        }
      })
  }

  /// A file that the page shows.
  private typealias Item = (address: String, name: String, about: String)

  private var items: [Item] {
    let archives = shelf.archives.map { archive -> Item in
      let names = archive.history.newestOfAccounts.map { archive.history.name(of: $0.did) }
      let about = names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " …" : "")
      return (archive.address, archive.name, about)
    }
    return archives + cars.map { ($0.address, $0.name, "") }
  }

  /// How many files the page opens at once.
  private static let mostTogether = 20

  /// The address of the page that shows some files.
  private static func view(_ items: [Item]) -> String {
    "view#" + items.map { "url=archives/\(escaped($0.address))" }.joined(separator: "&")
  }

  /// A page without script that names the files.
  private static func list(_ all: [Item]) -> String {
    let items = all.map { item in
      "<li><a href=\"\(html(view([item])))\">\(html(item.name))</a> <small>\(html(item.about))</small></li>"
    }
    let together =
      (2...mostTogether).contains(all.count)
      ? "<p><a href=\"\(html(view(all)))\">All of them together</a></p>" : ""
    return """
      <!doctype html><html lang="en"><meta charset="utf-8"><title>carpack</title>
      <meta name="viewport" content="width=device-width">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
      <style>:root{color-scheme:light dark}body{font:1rem/1.6 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}small{opacity:.7}li{margin:.4rem 0}</style>
      <h1>Archives</h1><ul>\(items.joined())</ul>\(together)</html>
      """
  }

  private static func html(_ text: String) -> String {
    var safe = ""
    for character in text.unicodeScalars {
      switch character {
      case "&": safe += "&amp;"
      case "<": safe += "&lt;"
      case ">": safe += "&gt;"
      case "\"": safe += "&quot;"
      default: safe.unicodeScalars.append(character)
      }
    }
    return safe
  }

  private static func escaped(_ name: String) -> String {
    name.utf8.map { byte in
      let isPlain =
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
        || byte == UInt8(ascii: "_")
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
      return isPlain
        ? String(UnicodeScalar(byte))
        : "%" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }.joined()
  }
}

/// A file that is read at any place, and closed after its last reader.
private final class OpenFile: Sendable {
  private let descriptor: SystemPackage.FileDescriptor

  init(_ path: String) throws {
    descriptor = try SystemPackage.FileDescriptor.open(
      SystemPackage.FilePath(path), .readOnly, options: [.closeOnExec])
  }

  deinit {
    // It was only read.
    _ = try? descriptor.close()
  }

  /// Appends bytes of the file.
  func append(_ range: Range<Int>, to buffer: inout ByteBuffer) throws {
    var place = range.lowerBound
    while place < range.upperBound {
      let count = try unsafe buffer.writeWithUnsafeMutableBytes(
        minimumWritableBytes: range.upperBound - place
      ) { space in
        let wanted = unsafe UnsafeMutableRawBufferPointer(
          rebasing: space[0..<range.upperBound - place])
        return try unsafe descriptor.read(fromAbsoluteOffset: Int64(place), into: wanted)
      }
      guard count > 0 else { throw ArchiveError(.truncated, offset: UInt64(place)) }
      place += count
    }
  }
}
