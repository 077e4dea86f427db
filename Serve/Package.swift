// swift-tools-version: 6.2
import PackageDescription

/// The rules of the main package.
let strict: [SwiftSetting] = [
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error, .when(configuration: .debug)),
]

let package = Package(
  name: "Serve",
  platforms: [.macOS(.v26)],
  products: [
    .library(name: "Serve", targets: ["Serve"]),
    .executable(name: "carpack-serve", targets: ["carpack-serve"]),
  ],
  dependencies: [
    .package(name: "carpack", path: ".."),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    // What Hummingbird's interface is made of.
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    .target(
      name: "Serve",
      dependencies: [
        .product(name: "Archive", package: "carpack"),
        .product(name: "ATProtocol", package: "carpack"),
        .product(name: "Backup", package: "carpack"),
        .product(name: "IPLD", package: "carpack"),
        .product(name: "Viewer", package: "carpack"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    .target(
      name: "Tables",
      dependencies: [
        .product(name: "Archive", package: "carpack"),
        .product(name: "ATProtocol", package: "carpack"),
        .product(name: "Backup", package: "carpack"),
        .product(name: "IPLD", package: "carpack"),
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "carpack-serve",
      dependencies: [
        "Serve", "Tables",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
