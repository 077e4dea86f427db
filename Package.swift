// swift-tools-version: 6.2
import Foundation
import PackageDescription

/// Whether this is the optimised build for the suites, `make build`.
///
/// No warning passes it, and suites see internal names. A release build with another compiler is
/// not stopped by a new warning.
let isTested = Context.environment["CARPACK_TESTED"] != nil

let settingsOfTests: [SwiftSetting] =
  isTested
  ? [.treatAllWarnings(as: .error), .unsafeFlags(["-enable-testing"])]
  : [.treatAllWarnings(as: .error, .when(configuration: .debug))]

/// Every target is built under the same rules: Swift 6, strict memory safety (the word `unsafe`
/// marks each place that could break it), explicit import visibility, no warnings.
let strict: [SwiftSetting] =
  [
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  ] + settingsOfTests

#if os(macOS)
  let cryptoIsLinked = true
#else
  let cryptoIsLinked = false
#endif

/// Has the optimised command hold the C++ library, which Swift's runtime needs, where the system offers it as an archive.
///
/// To find and bind the shared one takes longer than most verbs do. The linker comes upon the script in Sources/StaticLibraries first.
let staticLibraries: [LinkerSetting] = {
  #if os(Linux)
    let manager = FileManager.default
    func contents(_ folder: String) -> [String] {
      // One that is not there has nothing in it.
      ((try? manager.contentsOfDirectory(atPath: folder)) ?? []).map { "\(folder)/\($0)" }
    }
    let folders = contents("/usr/lib/gcc").flatMap(contents)
    guard folders.contains(where: { manager.fileExists(atPath: "\($0)/libstdc++.a") }) else {
      return []
    }
    let scripts = "\(Context.packageDirectory)/Sources/StaticLibraries"
    return [.unsafeFlags(["-L\(scripts)"], .when(configuration: .release))]
  #else
    return []
  #endif
}()

let package = Package(
  name: "carpack",
  platforms: [.macOS(.v26)],
  products: [
    .library(name: "CarpackKit", targets: ["CarpackKit"]),
    .library(name: "IPLD", targets: ["IPLD"]),
    .library(name: "ATProtocol", targets: ["ATProtocol"]),
    .library(name: "Archive", targets: ["Archive"]),
    .library(name: "XRPC", targets: ["XRPC"]),
    .library(name: "ObjectStore", targets: ["ObjectStore"]),
    .library(name: "Fleet", targets: ["Fleet"]),
    .library(name: "TOML", targets: ["TOML"]),
    .library(name: "Viewer", targets: ["Viewer"]),
    .executable(name: "carpack", targets: ["carpack"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
  ],
  targets: [
    // C libraries, a module map and a shim each.
    .systemLibrary(
      name: "CZstd", pkgConfig: "libzstd",
      providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
    .systemLibrary(
      name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .systemLibrary(
      name: "CXXHash", pkgConfig: "libxxhash",
      providers: [.apt(["libxxhash-dev"]), .brew(["xxhash"])]),

    // Opened when first used, and therefore not linked: only their headers are needed to build. On macOS, OpenSSL lies where only
    // pkg-config knows, and is linked.
    .systemLibrary(
      name: "CCrypto", pkgConfig: cryptoIsLinked ? "libcrypto" : nil,
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(
      name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    // The system's DNS resolver.
    .systemLibrary(name: "CResolv"),
    // What glibc offers and Swift's module of it leaves out.
    .systemLibrary(name: "CGlibc"),
    // The arguments of the process, also where Swift does not find them.
    .target(name: "CArguments"),

    // SHA-256 of many messages, two at a time, where the processor has instructions for that.
    .target(name: "CSHA256"),

    // Has a thread that touches a page of an archive elsewhere wait until the page is there.
    .target(name: "CPager"),

    // The system's C library by one name, whichever it is.
    .target(name: "LibC", swiftSettings: strict),

    // bytes → blocks → repository; blocks ⇄ one file; the story; the command line.
    .target(
      name: "IPLD", dependencies: ["CCrypto", "CSHA256", "LibC"], swiftSettings: strict),
    .target(name: "ATProtocol", dependencies: ["CCrypto", "IPLD", "LibC"], swiftSettings: strict),
    .target(
      name: "XRPC", dependencies: ["ATProtocol", "CCurl", "CResolv", "IPLD", "LibC"],
      swiftSettings: strict),
    .target(
      name: "Archive",
      dependencies: [
        "IPLD", "LibC", "CGlibc", "CPager", "CZlib", "CZstd", "CXXHash",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Buckets of object stores.
    .target(
      name: "ObjectStore",
      dependencies: [
        "ATProtocol", "IPLD", "LibC", "XRPC",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Names and bytes on disk.
    .target(
      name: "Files",
      dependencies: [
        "Archive", "ATProtocol", "CGlibc", "IPLD", "LibC",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Who has the blocks of a repository, and folding over them.
    .target(
      name: "Repository",
      dependencies: [
        "Archive", "ATProtocol", "Files", "IPLD", "LibC",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // What an archive says of its snapshots.
    .target(
      name: "Snapshots",
      dependencies: [
        "Archive", "ATProtocol", "Files", "IPLD", "LibC", "Repository",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Archives elsewhere: ranges into storage.
    .target(
      name: "Remote",
      dependencies: [
        "Archive", "ATProtocol", "CGlibc", "Files", "IPLD", "LibC", "ObjectStore", "Snapshots",
        "XRPC",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Files into an archive.
    .target(
      name: "Packing",
      dependencies: [
        "Archive", "ATProtocol", "Files", "IPLD", "LibC", "Repository", "Snapshots",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Archives checked.
    .target(
      name: "Verification",
      dependencies: [
        "Archive", "ATProtocol", "Files", "IPLD", "LibC", "Repository", "Snapshots",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Archives into archives.
    .target(
      name: "Copying",
      dependencies: [
        "Archive", "ATProtocol", "Files", "IPLD", "LibC", "Repository", "Snapshots",
        "Verification", .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Archives into files.
    .target(
      name: "Extraction",
      dependencies: [
        "Archive", "ATProtocol", "Files", "IPLD", "LibC", "Repository", "Snapshots",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // A live account into its archive.
    .target(
      name: "Live",
      dependencies: [
        "Archive", "ATProtocol", "CGlibc", "Files", "IPLD", "LibC", "ObjectStore", "Remote",
        "Repository",
        "Snapshots", "Verification", "XRPC",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // An archive back onto a server.
    .target(
      name: "Restore",
      dependencies: [
        "Archive", "ATProtocol", "Files", "IPLD", "LibC", "Repository", "Snapshots", "XRPC",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Many accounts on many machines, by way of PostgreSQL, whose client library is opened when it is first used.
    .target(
      name: "Fleet",
      dependencies: [
        "ATProtocol", "Archive", "Copying", "Extraction", "Files", "Live", "Packing", "Remote",
        "Repository", "Restore", "Snapshots", "Verification", "IPLD", "LibC", "ObjectStore", "XRPC",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // A file of settings, read strictly.
    .target(name: "TOML", swiftSettings: strict),
    // The page that shows archives, as `make viewer` puts it together from Serve/Viewer.
    .target(name: "Viewer", dependencies: ["Archive", "ATProtocol"], swiftSettings: strict),
    // One import for all of them.
    .target(
      name: "CarpackKit",
      dependencies: [
        "Archive", "ATProtocol", "Copying", "Extraction", "Files", "Live", "Packing", "Remote",
        "Repository", "Restore", "Snapshots", "Verification", "IPLD", "LibC", "XRPC",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "carpack",
      dependencies: [
        "Archive", "ATProtocol", "Copying", "Extraction", "Files", "Live", "Packing", "Remote",
        "Repository", "Restore", "Snapshots", "Verification", "CArguments", "CGlibc", "Fleet",
        "IPLD", "LibC", "ObjectStore",
        "TOML",
        "Viewer", "XRPC",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict, linkerSettings: staticLibraries),

    // What the suites share: the corpus, temporary folders, running the built command.
    .target(
      name: "TestSupport", dependencies: ["ATProtocol", "Archive", "IPLD", "LibC", "Repository"],
      path: "Tests/TestSupport",
      swiftSettings: strict),
    // What disturbs an archive's writer, and looks at what it left.
    .target(
      name: "ArchiveTestSupport",
      dependencies: [
        "ATProtocol", "Archive", "IPLD", "LibC", "Snapshots", "TestSupport",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Tests/ArchiveTestSupport", swiftSettings: strict),
    // A server of this project's own that behaves as real ones were seen to, or worse; and the
    // program `stand-in` that is one.
    .target(
      name: "StandIn",
      dependencies: [
        "ATProtocol", "CCrypto", "IPLD", "LibC", "ObjectStore", "TestSupport", "XRPC",
      ],
      path: "Tests/StandIn",
      swiftSettings: strict, linkerSettings: [.linkedLibrary("crypto")]),
    .executableTarget(
      name: "stand-in",
      dependencies: [
        "StandIn", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/StandInProgram", swiftSettings: strict),
    .testTarget(
      name: "XRPCTests",
      dependencies: ["ATProtocol", "IPLD", "LibC", "StandIn", "TestSupport", "XRPC"],
      swiftSettings: strict),
    // With a PostgreSQL, where CARPACK_TEST_DATABASE names one.
    .testTarget(
      name: "FleetTests",
      dependencies: [
        "ATProtocol", "Copying", "Extraction", "Files", "Live", "Packing", "Remote", "Repository",
        "Restore", "Snapshots", "Verification", "Fleet", "IPLD", "LibC", "ObjectStore", "StandIn",
        "TestSupport", "XRPC",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ObjectStoreTests",
      dependencies: [
        "ATProtocol", "IPLD", "LibC", "ObjectStore", "StandIn", "TestSupport", "XRPC",
      ],
      swiftSettings: strict),
    // Backs up from the stand-in, and from real servers where they are installed.
    .testTarget(
      name: "NetworkTests",
      dependencies: [
        "ATProtocol", "Archive", "ArchiveTestSupport", "Copying", "Extraction", "Files", "Live",
        "Packing", "Remote",
        "Repository", "Restore", "Snapshots", "Verification", "IPLD", "LibC", "StandIn",
        "TestSupport",
        "XRPC",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    .testTarget(name: "TOMLTests", dependencies: ["TOML", "TestSupport"], swiftSettings: strict),
    // The programs of the documentation, which see what any other package sees.
    .target(
      name: "KitPrograms",
      dependencies: [
        "CarpackKit", .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Tests/KitPrograms", packageAccess: false, swiftSettings: strict),
    .testTarget(
      name: "KitTests",
      dependencies: [
        "ATProtocol", "Copying", "Extraction", "Files", "Live", "Packing", "Remote", "Repository",
        "Restore", "Snapshots", "Verification", "CarpackKit", "KitPrograms", "StandIn",
        "TestSupport", "XRPC", .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "IPLDTests", dependencies: ["IPLD", "LibC", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "ArchiveTests",
      dependencies: [
        "Archive", "ArchiveTestSupport", "IPLD", "LibC", "TestSupport",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ATProtocolTests",
      dependencies: [
        "ATProtocol", "Archive", "IPLD", "LibC", "Repository", "StandIn", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "BackupTests",
      dependencies: [
        "Archive", "ArchiveTestSupport", "ATProtocol", "Copying", "Extraction", "Files", "Live",
        "Packing", "Remote", "Repository", "Restore", "Snapshots", "Verification", "IPLD", "LibC",
        "StandIn", "TestSupport",
        "XRPC", .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Fails, cuts and kills in every place: what was committed has to survive. `make torture` runs them for longer.
    .testTarget(
      name: "TortureTests",
      dependencies: [
        "ATProtocol", "Archive", "ArchiveTestSupport", "Copying", "Extraction", "Files", "Live",
        "Packing", "Remote", "Repository", "Restore", "Snapshots", "Verification", "IPLD", "LibC",
        "TestSupport",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
    // Runs the built command on the sessions in Tests/Transcripts.
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "ATProtocol", "Archive", "ArchiveTestSupport", "IPLD", "LibC", "Repository", "Snapshots",
        "TestSupport",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)

// What only some builds need is declared for them alone, so that nobody else fetches or builds it.
// The settings of all other targets stay the same, so switching compiles nothing twice.

// The server of archives and the SQLite export: `make serve`.
if Context.environment["CARPACK_BUILD_SERVE"] != nil {
  package.products.append(.executable(name: "carpack-serve", targets: ["carpack-serve"]))
  package.dependencies += [
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    // What Hummingbird's interface is made of.
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ]
  package.targets += [
    // Archives over HTTP: XRPC, metrics, the page.
    .target(
      name: "Serve",
      dependencies: [
        "Archive", "ATProtocol", "Files", "IPLD", "Snapshots", "Viewer",
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Serve/Sources/Serve", swiftSettings: strict),
    // A snapshot's records as tables of SQLite.
    .target(
      name: "Tables",
      dependencies: [
        "Archive", "ATProtocol", "Extraction", "IPLD", "Snapshots",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Serve/Sources/Tables", swiftSettings: strict),
    .executableTarget(
      name: "carpack-serve",
      dependencies: ["Serve", "Tables", .product(name: "GRDB", package: "GRDB.swift")],
      path: "Serve/Sources/carpack-serve", swiftSettings: strict),
  ]
}

// One executable for each fuzzer: `make fuzz`. libFuzzer brings the `main`, so they link with
// `--sanitize=fuzzer` only.
if Context.environment["CARPACK_BUILD_FUZZ"] != nil {
  let fuzzed: [Target.Dependency] = [
    "Archive", "ATProtocol", "IPLD", "Repository", "Snapshots", "TOML", "Verification", "XRPC",
    .product(name: "SystemPackage", package: "swift-system"),
  ]
  package.targets.append(
    .target(
      name: "FuzzSupport", dependencies: fuzzed, path: "Fuzz/Sources/FuzzSupport",
      swiftSettings: strict))
  package.targets += [
    "FuzzAnswer", "FuzzCAR", "FuzzCARStream", "FuzzCBOR", "FuzzDNS", "FuzzFooter", "FuzzFrameWalk",
    "FuzzIdentity", "FuzzIndex", "FuzzMSTNode", "FuzzManifest", "FuzzProof", "FuzzTOML",
  ].map {
    .executableTarget(
      name: $0, dependencies: ["FuzzSupport"] + fuzzed, path: "Fuzz/Sources/\($0)",
      swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])])
  }
}

// Programs that make what is measured: `make bench`.
if Context.environment["CARPACK_BUILD_BENCH"] != nil {
  let arguments = Target.Dependency.product(
    name: "ArgumentParser", package: "swift-argument-parser")
  package.products += [
    .executable(name: "generate-repository", targets: ["GenerateRepository"]),
    .executable(name: "profile-inspect", targets: ["ProfileInspect"]),
    .executable(name: "parse-arguments", targets: ["ParseArguments"]),
  ]
  package.targets += [
    .executableTarget(
      name: "GenerateRepository",
      dependencies: [
        "ATProtocol", "Archive", "IPLD", "Repository", arguments,
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Benchmarks/Sources/GenerateRepository", swiftSettings: strict),
    .executableTarget(
      name: "ProfileInspect",
      dependencies: [
        "ATProtocol", "Archive", "IPLD", "Repository", arguments,
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Benchmarks/Sources/ProfileInspect", swiftSettings: strict),
    .executableTarget(
      name: "ParseArguments", dependencies: [arguments],
      path: "Benchmarks/Sources/ParseArguments", swiftSettings: strict),
  ]
}

// Only some of the suites, and what they need, where that is enough: CARPACK_SUITES="XRPCTests".
if let suites = Context.environment["CARPACK_SUITES"] {
  let wanted = suites.split(separator: " ").map(String.init)
  package.targets.removeAll { $0.type == .test && !wanted.contains($0.name) }
}

// The plugin that writes the documentation: `make docs`.
if Context.environment["CARPACK_DOCS"] != nil {
  package.dependencies.append(
    .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"))
}
