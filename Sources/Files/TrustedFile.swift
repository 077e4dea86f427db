internal import LibC
package import SystemPackage

/// A file that decides what is run: read only if no one but the user and root can have written it.
///
/// The file and its folder belong to the user or root, and neither group nor others may write to
/// them. In no folder on the way there, the way of symbolic links included, can others put
/// something else in its place. Therefore what was checked is what is opened.
package enum TrustedFile {
  /// Why a file is not read.
  package enum Fault: Error {
    /// It is something other than a file.
    case notAFile
    /// It, or a folder on the way there, belongs to another user.
    case belongsToAnother(String)
    /// It, or a folder on the way there, may be written to by others.
    case writableByOthers(String)
    /// A system call failed.
    case unreadable(Errno)
  }

  /// How many symbolic links are followed, as Linux does.
  private static let maximumLinks = 40

  /// Reads a file.
  ///
  /// - Returns: Its bytes, one more than `limit` if it is longer; nil if there is none.
  package static func read(_ path: String, limit: Int) throws(Fault) -> [UInt8]? {
    // Without a file it does not matter what others could do to the folders.
    guard unsafe access(path, F_OK) == 0, let place = try resolved(path) else { return nil }
    let descriptor = unsafe open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw .unreadable(Errno(rawValue: errno)) }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .unreadable(Errno(rawValue: errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw .notAFile
    }
    try check(status, place, isFolder: false)
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    var count = 0
    while count < bytes.count {
      let step = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe Self.read(descriptor, UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
      }
      guard step >= 0 else { throw .unreadable(Errno(rawValue: errno)) }
      if step == 0 { break }
      count += step
    }
    return Array(bytes.prefix(count))
  }

  private static func read(_ descriptor: CInt, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    unsafe LibC.read(descriptor, buffer.baseAddress, buffer.count)
  }

  /// The path without symbolic links, every folder on the way checked; nil if it leads nowhere.
  private static func resolved(_ path: String) throws(Fault) -> String? {
    var pending = Array(path.split(separator: "/").reversed())
    var real = ""
    var links = 0
    var root = stat()
    guard unsafe lstat("/", &root) == 0 else { return nil }
    while let name = pending.popLast() {
      if name == "." { continue }
      if name == ".." {
        real = String(real[..<(real.lastIndex(of: "/") ?? real.startIndex)])
        continue
      }
      let place = "\(real)/\(name)"
      var status = stat()
      // Not there, or where the user may not look: then nothing of it is the user's.
      guard unsafe lstat(place, &status) == 0 else { return nil }
      switch status.st_mode & S_IFMT {
      case S_IFLNK:
        links += 1
        guard links <= maximumLinks, let target = target(of: place) else { return nil }
        // In a folder such as /tmp it may be someone else's.
        guard isTrusted(status.st_uid) || status.st_uid == root.st_uid else {
          throw .belongsToAnother(place)
        }
        if target.hasPrefix("/") { real = "" }
        pending += target.split(separator: "/").reversed()
      case S_IFDIR:
        if pending.count > 1 { try checkAncestor(status, place, root: root.st_uid) }
        if pending.count == 1 {
          try checkFolder(status, place, holding: pending[0], root: root.st_uid)
        }
        real = place
      default:
        return pending.isEmpty ? place : nil
      }
    }
    return real.isEmpty ? "/" : real
  }

  /// Checks what may be the folder of the file, or of a link that leads on from there.
  private static func checkFolder(
    _ status: stat, _ place: String, holding name: Substring, root: uid_t
  ) throws(Fault) {
    var entry = stat()
    guard unsafe lstat("\(place)/\(name)", &entry) == 0, name != "..", name != "." else { return }
    if entry.st_mode & S_IFMT == S_IFREG {
      try check(status, place, isFolder: true)
    } else {
      try checkAncestor(status, place, root: root)
    }
  }

  /// Checks a folder on the way: no one else can put another in the place of what is in it.
  ///
  /// Where a service sees no other users than its own, root goes by the same number as they do:
  /// that of `/`.
  private static func checkAncestor(_ status: stat, _ place: String, root: uid_t) throws(Fault) {
    guard isTrusted(status.st_uid) || status.st_uid == root else {
      throw .belongsToAnother(place)
    }
    // Where the sticky bit is set, as on /tmp, everyone may move only what is their own.
    guard status.st_mode & 0o022 == 0 || status.st_mode & S_ISVTX != 0 else {
      throw .writableByOthers(place)
    }
  }

  private static func check(_ status: stat, _ place: String, isFolder: Bool) throws(Fault) {
    guard isTrusted(status.st_uid) else {
      throw .belongsToAnother(place)
    }
    guard status.st_mode & 0o022 == 0 else {
      throw .writableByOthers(place)
    }
  }

  private static func isTrusted(_ owner: uid_t) -> Bool { owner == 0 || owner == geteuid() }

  private static func target(of link: String) -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink(link, &buffer, buffer.count)
    guard count > 0, count < buffer.count else { return nil }
    return String(validating: buffer.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
