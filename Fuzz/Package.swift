// swift-tools-version: 6.2
import PackageDescription

/// One executable a fuzzer.
///
/// libFuzzer brings the `main`, so they link with `--sanitize=fuzzer` only: see `run.sh`.
let fuzzers = [
  "FuzzCBOR", "FuzzCAR", "FuzzCARStream", "FuzzMSTNode", "FuzzFrameWalk", "FuzzFooter", "FuzzIndex",
  "FuzzDNS", "FuzzIdentity", "FuzzAnswer", "FuzzTOML", "FuzzProof",
]

let strict: [SwiftSetting] = [
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let products: [Target.Dependency] = [
  .product(name: "IPLD", package: "carpack"),
  .product(name: "ATProtocol", package: "carpack"),
  .product(name: "Archive", package: "carpack"),
  .product(name: "TOML", package: "carpack"),
  .product(name: "XRPC", package: "carpack"),
  .product(name: "SystemPackage", package: "swift-system"),
]

let package = Package(
  name: "Fuzz",
  platforms: [.macOS(.v26)],
  dependencies: [
    .package(name: "carpack", path: ".."),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
  ],
  targets: [
    .target(name: "FuzzSupport", dependencies: products, swiftSettings: strict)
  ]
    + fuzzers.map {
      .executableTarget(
        name: $0, dependencies: ["FuzzSupport"] + products,
        swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])])
    },
  swiftLanguageModes: [.v6]
)
