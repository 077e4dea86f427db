import Archive
import HTTPTypes
import Hummingbird
import IPLD
import NIOCore
import Snapshots
import SystemPackage
import Viewer

/// The page that shows archives, and the archives for it, under a secret path.
struct Pages: Sendable {
  let shelf: Shelf
  let budget: SendBudget
  /// The page.
  let page: [UInt8]
  /// What is in front of every path.
  let token: String

  /// Responds to a path below the token.
  func answer(_ path: Substring, _ request: Request) throws -> Response {
    let archives = shelf.archives
    if path.isEmpty, archives.count == 1, let only = archives.first {
      var headers = HTTPFields()
      headers[.location] = "view#url=archives/\(Self.escaped(only.address))"
      headers[.referrerPolicy] = "no-referrer"
      return Response(status: .seeOther, headers: headers)
    }
    if path.isEmpty {
      let list = Array(list(archives).utf8)
      return keptPrivate(.bytes(list, type: "text/html; charset=utf-8"))
    }
    if path == "view" { return keptPrivate(.bytes(page, type: "text/html; charset=utf-8")) }
    if path.hasPrefix("archives/"), let name = PercentEncoding.decode(path.dropFirst(9)),
      let archive = shelf.archive(at: name)
    {
      return try file(archive, request)
    }
    return .text("There is nothing here.\n", status: .notFound)
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
    var headers = HTTPFields()
    headers[.contentType] = "application/zstd"
    headers[.xContentTypeOptions] = "nosniff"
    headers[.eTag] = archive.tag
    let budget = budget
    if let far = archive.far {
      guard archive.isReadable else { throw XRPCFault.busy }
      return keptPrivate(
        .ranged(archive.length, request, headers) { range, writer in
          try await budget.send(Int(range.lowerBound)..<Int(range.upperBound), to: &writer) {
            part, buffer in
            let bytes = far.withBytes(reading: [part]) { $0.extracting(part).array }
            try far.checkFetched()
            buffer.writeBytes(bytes)
          }
        })
    }
    let descriptor = try OpenFile(archive.path)
    // Another file may have the name already, or this one other bytes: the server finds out within a
    // second.
    guard let found = ShelvedArchive.Identity(path: archive.path),
      archive.identity.isContinued(by: found), !archive.reader.isCutOff
    else { throw XRPCFault.busy }
    return keptPrivate(
      .ranged(archive.length, request, headers) { range, writer in
        try await budget.send(Int(range.lowerBound)..<Int(range.upperBound), to: &writer) {
          part, buffer in
          try descriptor.append(part, to: &buffer)
        }
      })
  }

  /// A page without script that names the archives.
  private func list(_ archives: [ShelvedArchive]) -> String {
    let items = archives.map { archive in
      let names = archive.history.newestOfAccounts.map { archive.history.name(of: $0.did) }
      let about = names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " …" : "")
      return "<li><a href=\"view#url=archives/\(Self.escaped(archive.address))\">"
        + "\(Self.html(archive.name))</a> <small>\(Self.html(about))</small></li>"
    }
    return """
      <!doctype html><html lang="en"><meta charset="utf-8"><title>carpack</title>
      <meta name="viewport" content="width=device-width">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
      <style>:root{color-scheme:light dark}body{font:1rem/1.6 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}small{opacity:.7}li{margin:.4rem 0}</style>
      <h1>Archives</h1><ul>\(items.joined())</ul></html>
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
