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
  name: "Benchmarks",
  platforms: [.macOS(.v26)],
  products: [
    .executable(name: "generate-repository", targets: ["GenerateRepository"]),
    .executable(name: "profile-inspect", targets: ["ProfileInspect"]),
    .executable(name: "parse-arguments", targets: ["ParseArguments"]),
  ],
  dependencies: [
    .package(name: "carpack", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    .executableTarget(
      name: "GenerateRepository",
      dependencies: [
        .product(name: "ATProtocol", package: "carpack"),
        .product(name: "IPLD", package: "carpack"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "ProfileInspect",
      dependencies: [
        .product(name: "ATProtocol", package: "carpack"),
        .product(name: "IPLD", package: "carpack"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "ParseArguments",
      dependencies: [.product(name: "ArgumentParser", package: "swift-argument-parser")],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
