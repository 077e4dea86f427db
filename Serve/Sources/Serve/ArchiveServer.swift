import Archive
import Dispatch
import Files
import NIOCore
import Remote
import Snapshots
import SystemPackage
import Terminal
import Viewer

/// Serves archives over HTTP until it is stopped.
package struct ArchiveServer {
  private let options: ServerOptions
  private let shelf: Shelf
  private let log: AccessLog?

  /// A server of the archives that the options name.
  ///
  /// - Throws: `SelectionError` for a selector that is malformed; an error of the system if the
  ///   access log cannot be opened; `Failure` if there is no archive that can be read.
  package init(_ options: ServerOptions) throws {
    CutOffGuard.install()
    self.options = options
    let selector = try options.snapshot.map { try SnapshotSelector($0) } ?? .latest
    shelf = Shelf(
      options.paths, options.farArchives, selector,
      ArchiveLimits(allowsLarge: options.allowsLarge),
      say: { Announcement.warn($0) })
    shelf.refresh()
    log = try options.log.map { try AccessLog($0) }
    // A folder may get its first archive later.
    func isFolder(_ path: String) -> Bool {
      BlobFolder.isFolder(path) || RemoteArchive.isFolder(path)
    }
    guard
      !shelf.archives.isEmpty || !options.cars.isEmpty || options.paths.contains(where: isFolder)
    else {
      throw Failure("found no archive that can be read", status: .noInput)
    }
  }

  /// Serves until a signal ends the process, and then ends what is being sent, as far as
  /// ``PromptEnd`` lets it.
  ///
  /// - Returns: the exit status: that of the signal.
  /// - Throws: `Failure` if the address cannot be bound to.
  package func run() async throws -> CInt {
    let token = Announcement.newToken()
    let threads = WorkThreads()
    let budget = SendBudget(threads)
    let pages = Pages(
      shelf: shelf, cars: options.cars.map { OfferedCAR($0) }, budget: budget,
      page: try ViewerPage.html(), token: token)
    let endpoints = Endpoints(
      shelf: shelf, threads: threads, repositories: Repositories(on: threads), budget: budget,
      directory: Directory(shelf: shelf, impersonates: options.impersonates), options: options)
    let (options, shelf) = (options, shelf)
    let hosts = BoundHosts()
    let responder = Responder(
      endpoints: endpoints, pages: pages, hosts: hosts,
      origins: OriginRule(allowed: options.allowedOrigins), options: options,
      metrics: options.hasMetrics ? Metrics() : nil, log: log)
    let server = HTTPServer(host: options.host, port: options.port) { request, client in
      await responder.respond(to: request, from: client)
    }
    let listening = DispatchGroup()
    listening.enter()
    let serving = Task {
      async let _: Void = Self.watch(shelf, on: threads)
      try await server.run { port in
        hosts.bind(HostRule(host: options.host, port: port, names: options.hostnames))
        // A program that reads the announcement may end the server at once.
        _ = listening.wait(timeout: .now() + .seconds(10))
        Announcement(options, shelf, port: port, token: token).say()
      }
    }
    let end = PromptEnd(listening) { serving.cancel() }
    do {
      try await serving.value
    } catch {
      throw failure(error)
    }
    return end.cancel()
  }

  /// Looks at the archives again, every second, until the task is cancelled.
  private static func watch(_ shelf: Shelf, on threads: WorkThreads) async {
    while !Task.isCancelled {
      do {
        try await Task.sleep(for: .seconds(1))
        try await threads.run("refresh") { _ = shelf.refresh() }
      } catch is WorkThreads.Busy {
        // Files are examined when there is time.
      } catch {
        return
      }
    }
  }

  /// Why the server cannot listen, in words for people: the network library names its own
  /// functions.
  private func failure(_ error: any Error) -> Failure {
    let (host, port) = (options.host, options.port)
    let code = (error as? IOError).map { Errno(rawValue: $0.errnoCode) }
    if code == .addressInUse {
      return Failure(
        "port \(port) of \(host) is taken", hint: "choose another with --bind PORT",
        status: .cannotCreate)
    }
    if code == .addressNotAvailable || error is SocketAddressError.UnknownHost {
      return Failure(
        "\(host) is not an address of this machine",
        hint: "--bind takes an address, a port, or both", status: .usage)
    }
    return Failure("\(host):\(port): \(code?.description ?? "\(error)")", status: .failure)
  }
}
