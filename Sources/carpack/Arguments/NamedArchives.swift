internal import Archive
internal import Files
internal import Remote
internal import Reports
internal import Snapshots
internal import Terminal

/// Archives that were named: files and addresses, and folders and prefixes to look for archives in.
struct NamedArchives {
  let paths: [String]
  let limits: ArchiveLimits
  /// How to reach remote archives; nil if only local ones are read.
  var store: StoreArguments?

  /// Whether one archive was named, so that messages need not name it.
  var isOne: Bool {
    paths.count == 1 && !BlobFolder.isFolder(paths[0]) && !RemoteArchive.isFolder(paths[0])
  }

  /// The files: those that are named, and those in folders whose names end in `.car.zst`, in the
  /// order of their paths; the same applies to objects under a prefix.
  ///
  /// A folder that cannot be read, or that has none and is one of several, is reported, and the
  /// others are still searched.
  ///
  /// - Returns: the files, and the result of the search.
  /// - Throws: ``Failure`` for a single folder without one.
  func files() throws -> ([String], Outcomes) {
    var outcomes = Outcomes()
    let files = try paths.flatMap { path in
      let isFar = RemoteArchive.isFolder(path)
      guard isFar || BlobFolder.isFolder(path) else { return [path] }
      var isRead = true
      func note(_ error: any Error) {
        let failure = Failure(error)
        failure.say()
        outcomes.add(failure.status)
        isRead = false
      }
      let found = try isFar ? objects(under: path, note) : archives(in: path, note)
      if found.isEmpty, isRead {
        let failure = Failure("\(path) holds no archive (*.car.zst)", status: .noInput, at: path)
        guard paths.count > 1 else { throw failure }
        note(failure)
      }
      return found
    }
    return (files, outcomes)
  }

  private func archives(in path: String, _ note: (any Error) -> Void) throws -> [String] {
    let folder = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    return try ArchiveFolder.archives(in: folder) { note($0) }
  }

  private func objects(under prefix: String, _ note: (any Error) -> Void) throws -> [String] {
    guard let store else { throw Elsewhere.refusal(of: prefix, "this command reads only files") }
    do {
      return try RemoteArchive.archives(
        in: prefix, store.options, network: StoreArguments.network())
    } catch let error where Failure.isOurs(error) {
      note(error)
      return []
    }
  }

  /// Looks at each of them.
  ///
  /// An error with one of several is reported, and does not keep the others from being looked
  /// at.
  ///
  /// - Parameter look: Returns the verdict on an archive.
  /// - Returns: The worst of all, and how many had each result.
  func each(_ look: (OpenedArchive) throws -> ExitStatus) throws -> Outcomes {
    try each(opening: { file in
      let opened = try OpenedArchive(file, limits, store)
      return try opened.checkingFetched { try look(opened) }
    })
  }

  /// Does the same with each file that is to be opened otherwise.
  func each(opening look: (String) throws -> ExitStatus) throws -> Outcomes {
    let (files, searched) = try files()
    return try each(files: files, after: searched, look)
  }

  /// Does the same with these files.
  func each(
    files: [String], after searched: Outcomes = Outcomes(), _ look: (String) throws -> ExitStatus
  ) throws -> Outcomes {
    var outcomes = searched
    for file in files {
      guard !isOne else {
        let name = file == "-" ? InputFile.standardInputName : RemoteArchive.shown(file)
        outcomes.add(try Failure.naming(name) { try look(file) })
        continue
      }
      try Subject.$current.withValue(RemoteArchive.shown(file)) {
        do {
          outcomes.add(try look(file))
        } catch let status as ExitStatus where status != .interrupted {
          outcomes.add(status)
        } catch let error where Failure.isOurs(error) {
          let failure = Failure(error).of(RemoteArchive.shown(file))
          failure.say()
          outcomes.add(failure.status)
        }
      }
    }
    return outcomes
  }

  /// The result for several archives.
  struct Outcomes {
    private var statuses: [ExitStatus] = []

    mutating func add(_ status: ExitStatus) { statuses.append(status) }

    /// The worst exit status of all.
    var worst: ExitStatus { .worst(statuses) }

    /// Prints how many had each result, if there are several.
    ///
    /// - Parameter good: what those are with which nothing is wrong.
    func say(_ common: CommonOptions, good: String = "in order") {
      guard statuses.count > 1, !Console.isJSON else { return }
      let named: [(ExitStatus, String)] = [
        (.success, good), (.incomplete, "incomplete"), (.damaged, "damaged"),
        (.notGenuine, "not genuine"),
      ]
      var counts = named.map { status, word in (statuses.count { $0 == status }, word) }
      counts.append((statuses.count - counts.reduce(0) { $0 + $1.0 }, "not read"))
      let parts = counts.filter { $0.0 > 0 }.map { "\(Quantity.grouped($0.0)) \($0.1)" }
      common.say("\(Quantity.count(statuses.count, "archive")): \(parts.joined(separator: ", "))")
    }

    /// Ends the command with the worst.
    func finish(_ common: CommonOptions, good: String = "in order") throws {
      say(common, good: good)
      if worst != .success { throw worst }
    }
  }
}
