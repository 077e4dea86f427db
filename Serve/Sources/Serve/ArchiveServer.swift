import Archive
import Files
import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle
import Snapshots
import UnixSignals
import Viewer

/// Serves archives over HTTP until it is told to stop.
package struct ArchiveServer {
  private static let maximumConnections = 1024
  private static let maximumHeader = 32 << 10
  private static let idleSeconds: Int64 = 60
  /// How long answers that are being sent have to end, once the process is told to.
  static let grace: Duration = .seconds(10)

  private let options: ServerOptions
  private let shelf: Shelf
  private let log: AccessLog?

  /// A server of what the options name.
  ///
  /// - Throws: `SelectionError` for a selector that is none; an error of the system if the access
  ///   log cannot be opened; ``Nothing`` if there is no archive that can be read.
  package init(_ options: ServerOptions) throws {
    self.options = options
    let selector = try options.snapshot.map { try SnapshotSelector($0) } ?? .latest
    shelf = Shelf(
      options.paths, selector, ArchiveLimits(allowsLarge: options.allowsLarge),
      say: { Announcement.warn($0) })
    shelf.refresh()
    log = try options.log.map { try AccessLog($0) }
    // A folder may get its first archive later.
    guard !shelf.archives.isEmpty || options.paths.contains(where: BlobFolder.isFolder) else {
      throw Nothing()
    }
  }

  /// There is no archive that can be read.
  package struct Nothing: Error {}

  /// Serves until the process is told to end, and then ends what is being answered.
  ///
  /// - Throws: if the address cannot be bound to.
  package func run() async throws {
    let token = Announcement.newToken()
    let budget = SendBudget()
    let pages = Pages(
      shelf: shelf, budget: budget, page: try ViewerPage.html(), token: token)
    let endpoints = Endpoints(
      shelf: shelf, repositories: Repositories(), budget: budget,
      directory: Directory(shelf: shelf, impersonates: options.impersonates), options: options)
    var logger = Logger(label: "carpack")
    logger.logLevel = .critical
    let (options, shelf) = (options, shelf)
    let hosts = BoundHosts()
    let responder = Responder(
      endpoints: endpoints, pages: pages, hosts: hosts, options: options,
      metrics: options.hasMetrics ? Metrics() : nil, log: log)
    var decoder = HTTP1Channel.Configuration.DecoderConfiguration()
    decoder.maxHeaderFieldSize = Self.maximumHeader
    decoder.maxHeaderListSize = Self.maximumHeader
    decoder.maxHeaderFieldCount = 100
    let application = Application(
      responder: responder,
      server: .http1(
        configuration: .init(
          additionalChannelHandlers: [
            IdleStateHandler(allTimeout: StalledConnections.limit), StalledConnections(),
          ],
          idleTimeout: .seconds(Self.idleSeconds), httpDecoderConfiguration: decoder)),
      configuration: ApplicationConfiguration(
        address: .hostname(options.host, port: options.port),
        availableConnectionsDelegate: MaximumAvailableConnections(
          Self.maximumConnections, logger: logger)),
      services: [Watch(shelf: shelf)],
      onServerRunning: { channel in
        let port = channel.localAddress?.port ?? options.port
        hosts.bind(HostRule(host: options.host, port: port, names: options.hostnames))
        Announcement(options, shelf, port: port, token: token).say()
      },
      logger: logger)
    try await application.runService(gracefulShutdownSignals: [.sigterm, .sigint])
  }
}

/// Looks at the archives again, every second.
private struct Watch: Service {
  let shelf: Shelf

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          try await Task.sleep(for: .seconds(1))
        } catch {
          return
        }
        shelf.refresh()
      }
    }
    // A reader that takes nothing must not keep the process from ending.
    Task.detached {
      try await Task.sleep(for: ArchiveServer.grace)
      exit(0)
    }
  }
}
