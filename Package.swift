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

/// Settings of what runs once or mostly waits.
///
/// In the build for the suites, to optimise it takes longer than it saves. What is released is
/// optimised.
///
/// Its interface is written while it is compiled, as that of optimised modules: not by a second
/// compiler that expands all macros again.
let unoptimised: [SwiftSetting] =
  isTested ? [.unsafeFlags(["-Onone", "-no-emit-module-separately-wmo"])] : []

#if os(macOS)
  let cryptoIsLinked = true
#else
  let cryptoIsLinked = false
#endif

/// Has the optimised command hold the C++ library, which Swift's runtime needs, where the system
/// offers it as an archive.
///
/// To find and bind the shared one takes longer than most verbs do. The linker comes upon the
/// script in Sources/StaticLibraries first.
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

/// Paths, descriptors and errors of the system.
let paths = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let arguments = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser")

/// What everything that knows archives may know; what may also know what they say; and all rooms of
/// which a backup is made.
let base: [Target.Dependency] = ["Archive", "ATProtocol", "IPLD", "LibC", paths]
let snapshots: [Target.Dependency] = base + ["Files", "Repository", "Snapshots"]
let backup: [Target.Dependency] =
  snapshots + [
    "Copying", "Extraction", "HTTP", "Live", "Packing", "Remote", "Restore", "Verification", "XRPC",
  ]

extension Target {
  /// A library, with what it may know.
  static func room(
    _ name: String, _ known: [Dependency] = [], path: String? = nil, mostlyWaits: Bool = false
  ) -> Target {
    .target(
      name: name, dependencies: known, path: path,
      swiftSettings: strict + (mostlyWaits ? unoptimised : []))
  }

  /// A suite of tests.
  static func suite(_ name: String, _ known: [Dependency], isOptimised: Bool = false) -> Target {
    .testTarget(
      name: name, dependencies: known + ["TestSupport"],
      swiftSettings: strict + (isOptimised ? [] : unoptimised))
  }
}

let package = Package(
  name: "carpack",
  platforms: [.macOS(.v26)],
  products: [
    .library(name: "CarpackKit", targets: ["CarpackKit"]),
    .library(name: "IPLD", targets: ["IPLD"]),
    .library(name: "ATProtocol", targets: ["ATProtocol"]),
    .library(name: "Archive", targets: ["Archive"]),
    .library(name: "HTTP", targets: ["HTTP"]),
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

    // Opened when first used, and therefore not linked: only their headers are needed to build. On
    // macOS, OpenSSL lies where only pkg-config knows, and is linked.
    .systemLibrary(
      name: "CCrypto", pkgConfig: cryptoIsLinked ? "libcrypto" : nil,
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(
      name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .systemLibrary(
      name: "CISAL", providers: [.apt(["libisal-dev"]), .brew(["isa-l"])]),
    // The system's DNS resolver.
    .systemLibrary(name: "CResolv"),
    // What glibc offers and Swift's module of it leaves out.
    .systemLibrary(name: "CGlibc"),
    // The arguments of the process, also where Swift does not find them.
    .target(name: "CArguments"),

    // SHA-256 of many messages, two at a time, where the processor has instructions for that.
    .target(name: "CSHA256"),

    // The system's C library by one name, whichever it is.
    .room("LibC"),

    // bytes → blocks → repository; blocks ⇄ one file.
    .room("IPLD", ["CCrypto", "CSHA256", "LibC"]),
    .room("ATProtocol", ["CCrypto", "IPLD", "LibC"]),
    // Bytes that are sealed, in the format age v1. Knows neither archives nor accounts.
    .room("Age", ["CCrypto", "LibC"]),
    .room(
      "Archive", ["IPLD", "LibC", "CGlibc", "CISAL", "CZlib", "CZstd", "CXXHash", paths]),
    // Archives that are sealed with age, under the engine.
    .room("Sealing", ["Age", "Archive", "CGlibc", "IPLD", "LibC", paths]),
    // Servers, the methods that they are asked for, and buckets of object stores.
    .room("HTTP", ["ATProtocol", "CCrypto", "CCurl", "IPLD", "LibC"], mostlyWaits: true),
    .room("XRPC", ["ATProtocol", "CResolv", "HTTP", "IPLD", "LibC"], mostlyWaits: true),
    .room("ObjectStore", ["ATProtocol", "HTTP", "IPLD", "LibC", paths], mostlyWaits: true),

    // Names and bytes on disk.
    .room("Files", base + ["CGlibc"]),
    // Who has the blocks of a repository, and folding over them.
    .room("Repository", base + ["Files"]),
    // What an archive says of its snapshots.
    .room("Snapshots", base + ["Files", "Repository"]),
    // Archives elsewhere: ranges into storage.
    .room("Remote", base + ["CGlibc", "Files", "HTTP", "ObjectStore", "Snapshots"]),
    // Files into an archive.
    .room("Packing", snapshots),
    // Archives checked.
    .room("Verification", snapshots),
    // Archives into archives.
    .room("Copying", snapshots + ["Verification"]),
    // Archives into files.
    .room("Extraction", snapshots),
    // A live account into its archive.
    .room(
      "Live", snapshots + ["CGlibc", "HTTP", "ObjectStore", "Remote", "Verification", "XRPC"],
      mostlyWaits: true),
    // An archive back onto a server.
    .room("Restore", snapshots + ["HTTP", "XRPC"], mostlyWaits: true),
    // Statements and their answers, by PostgreSQL's client library, which is opened when it is
    // first used.
    .room("Postgres", ["IPLD", "LibC"]),
    // What a running program tells a scraper.
    .room("Scraping", ["Files", "HTTP", "LibC"]),
    // Many accounts on many machines, by way of PostgreSQL.
    .room("Fleet", backup + ["ObjectStore", "Postgres"], mostlyWaits: true),

    // A file of settings, read strictly.
    .room("TOML"),
    // Words, tables and progress for people; and reports for scripts.
    .room("Terminal", ["ATProtocol", "CArguments", "CGlibc", "Files", "IPLD", "LibC", paths]),
    .room("Reports", ["ATProtocol", "Files", "IPLD", "Terminal", paths]),
    // What each error of the rooms above means to the one who asked.
    .room("Failures", backup + ["Age", "ObjectStore", "Postgres", "Sealing", "Terminal"]),
    // What opens sealed archives in a run, and what seals new ones.
    .room("Keys", ["Age", "Archive", "Files", "LibC", "Sealing", "Terminal", paths]),
    // What follows a backup: a health check, and programs that are run.
    .room(
      "Notifications",
      ["ATProtocol", "Files", "HTTP", "IPLD", "LibC", "Reports", "Terminal", paths]),
    // What a shell offers at a word of a command line, by what the verbs and an archive say.
    .target(
      name: "Completions", dependencies: snapshots + ["Terminal"],
      resources: [.embedInCode("Scripts")], swiftSettings: strict),
    // The page that shows archives, as `make viewer` puts it together from Serve/Viewer.
    .room("Viewer", ["Archive", "ATProtocol", "Files"]),
    // One import for all of them.
    .room("CarpackKit", backup),
    .executableTarget(
      name: "carpack",
      dependencies: backup + [
        "Age", "CGlibc", "Completions", "Failures", "Fleet", "Keys", "Notifications",
        "ObjectStore", "Reports", "Scraping", "Sealing", "TOML", "Terminal", "Viewer", arguments,
      ],
      // What verbs say of themselves.
      resources: [.embedInCode("Manual"), .embedInCode("Units")],
      swiftSettings: strict + unoptimised, linkerSettings: staticLibraries),

    // What the suites share: the corpus, temporary folders, running the built command.
    .room(
      "TestSupport", ["ATProtocol", "Archive", "IPLD", "LibC", "Repository"],
      path: "Tests/TestSupport"),
    // What disturbs an archive's writer, and looks at what it left.
    .room(
      "ArchiveTestSupport", snapshots + ["Age", "Sealing", "TestSupport"],
      path: "Tests/ArchiveTestSupport"),
    // A server of this project's own that behaves as real ones were seen to, or worse; and the
    // program `stand-in` that is one.
    .target(
      name: "StandIn",
      dependencies: [
        "ATProtocol", "CCrypto", "HTTP", "IPLD", "LibC", "ObjectStore", "TestSupport", "XRPC",
      ],
      path: "Tests/StandIn", swiftSettings: strict + unoptimised,
      linkerSettings: [.linkedLibrary("crypto")]),
    .executableTarget(
      name: "stand-in", dependencies: ["StandIn", arguments], path: "Tests/StandInProgram",
      swiftSettings: strict),
    // The programs of the documentation, which see what any other package sees. They import
    // CarpackKit alone; the rooms are named here because what is compiled again follows from it.
    .target(
      name: "KitPrograms", dependencies: backup + ["CarpackKit"], path: "Tests/KitPrograms",
      packageAccess: false, swiftSettings: strict),

    .suite("IPLDTests", ["IPLD", "LibC"]),
    .suite("AgeTests", ["Age", "CZlib", "IPLD"]),
    .suite("ATProtocolTests", ["ATProtocol", "Archive", "IPLD", "LibC", "Repository", "StandIn"]),
    .suite(
      "ArchiveTests", ["Archive", "ArchiveTestSupport", "IPLD", "LibC", paths], isOptimised: true),
    // Cuts, loses power, flips and forges under an archive that is sealed.
    .suite(
      "SealingTests",
      ["Age", "Archive", "ArchiveTestSupport", "IPLD", "LibC", "Sealing", paths], isOptimised: true),
    .suite("XRPCTests", ["ATProtocol", "HTTP", "IPLD", "LibC", "StandIn", "XRPC"]),
    .suite(
      "ObjectStoreTests",
      ["Archive", "ATProtocol", "HTTP", "IPLD", "LibC", "ObjectStore", "Remote", "StandIn"]),
    .suite("TOMLTests", ["TOML"]),
    .suite("BackupTests", backup + ["ArchiveTestSupport", "StandIn"]),
    .suite("KitTests", backup + ["CarpackKit", "KitPrograms", "StandIn"]),
    // Backs up from the stand-in, and from real servers where they are installed.
    .suite("NetworkTests", backup + ["ArchiveTestSupport", "StandIn"]),
    // With a PostgreSQL, where CARPACK_TEST_DATABASE names one.
    .suite("FleetTests", backup + ["Fleet", "Scraping", "ObjectStore", "Postgres", "StandIn"]),
    // Fails, cuts and kills in every place: what was committed has to survive. `make torture` runs
    // them for longer.
    .suite(
      "TortureTests", backup + ["Age", "ArchiveTestSupport", "Failures", "Sealing", "Terminal"],
      isOptimised: true),
    // Runs the built command on the sessions in Tests/Transcripts.
    .suite("CommandTests", snapshots + ["ArchiveTestSupport", "Keys", "Terminal"]),
  ],
  swiftLanguageModes: [.v6]
)

// What only some builds need is declared for them alone, so that nobody else fetches or builds it.
// The settings of all other targets stay the same, so switching compiles nothing twice.

// The server of archives and the SQLite export: `make serve`.
//
// Its versions are exact, so that every build of a release holds the same ones.
if Context.environment["CARPACK_BUILD_SERVE"] != nil {
  package.products.append(.executable(name: "carpack-serve", targets: ["carpack-serve"]))
  package.dependencies += [
    .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2")
  ]
  package.targets += [
    .systemLibrary(
      name: "CSQLite", path: "Serve/Sources/CSQLite", providers: [.apt(["libsqlite3-dev"])]),
    // Databases of SQLite, as far as they are needed here.
    .room("SQLite", ["CSQLite"], path: "Serve/Sources/SQLite"),
    // Archives over HTTP: XRPC, metrics, the page.
    .room(
      "Serve",
      [
        "Archive", "ATProtocol", "Files", "HTTP", "IPLD", "LibC", "ObjectStore", "Remote",
        "Snapshots", "Terminal", "Viewer", paths,
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      path: "Serve/Sources/Serve", mostlyWaits: true),
    // A snapshot's records as tables of SQLite.
    .room(
      "Tables",
      [
        "Archive", "ATProtocol", "Extraction", "Files", "IPLD", "LibC", "SQLite", "Snapshots",
        "Terminal", paths,
      ],
      path: "Serve/Sources/Tables"),
    .executableTarget(
      name: "carpack-serve",
      dependencies: [
        "Failures", "Keys", "LibC", "SQLite", "Serve", "Tables", "Terminal", paths,
      ],
      path: "Serve/Sources/carpack-serve", swiftSettings: strict),
  ]
}

// One executable for each fuzzer: `make fuzz`. libFuzzer brings the `main`, so they link with
// `--sanitize=fuzzer` only.
if Context.environment["CARPACK_BUILD_FUZZ"] != nil {
  let fuzzed: [Target.Dependency] = [
    "Archive", "ATProtocol", "HTTP", "IPLD", "Repository", "Snapshots", "TOML", "Verification",
    "XRPC", paths,
  ]
  package.targets.append(.room("FuzzSupport", fuzzed, path: "Fuzz/Sources/FuzzSupport"))
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
  package.products += [
    .executable(name: "generate-repository", targets: ["GenerateRepository"]),
    .executable(name: "profile-inspect", targets: ["ProfileInspect"]),
    .executable(name: "parse-arguments", targets: ["ParseArguments"]),
  ]
  let measured: [Target.Dependency] = [
    "ATProtocol", "Archive", "IPLD", "Repository", arguments, paths,
  ]
  package.targets += [
    ("GenerateRepository", measured), ("ProfileInspect", measured), ("ParseArguments", [arguments]),
  ].map { name, known in
    .executableTarget(
      name: name, dependencies: known, path: "Benchmarks/Sources/\(name)", swiftSettings: strict)
  }
}

// Only some of the suites, and what they need, where that is enough: CARPACK_SUITES="XRPCTests".
if let suites = Context.environment["CARPACK_SUITES"] {
  let wanted = suites.split(separator: " ").map(String.init)
  package.targets.removeAll { $0.type == .test && !wanted.contains($0.name) }
}

// The plugin that writes the documentation: `make docs`.
if Context.environment["CARPACK_DOCS"] != nil {
  package.dependencies.append(
    .package(url: "https://github.com/swiftlang/swift-docc-plugin", exact: "1.5.0"))
}
