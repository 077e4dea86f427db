import Foundation
import TestSupport
import Testing

/// Commands whose every line of output has to be as `Docs/JSON.md` has it; they build upon each
/// other.
private let commands = [
  "pack repo.car --blobs some --handle alice.test -o a.car.zst --json",
  "pack repo.car --blobs lies -o lies.car.zst --json",
  "pack later.car --blobs blobs --extras -o a.car.zst --json",
  "pack later.car -o a.car.zst --json",
  "pack neighbour.car --into a.car.zst --json",
  "pack cut-record.car -o odd.car.zst --json",
  "pack incomplete.car -o incomplete.car.zst --json",
  "pack text -o x.car.zst --json",
  "inspect repo.car --json", "inspect --records --blobs wild.car --json", "inspect old.car --json",
  "inspect flipped.car --json", "inspect cut.car --json", "inspect partial.car --json",
  "inspect odd.car --json", "inspect empty --json", "inspect a.car.zst --json",
  "info a.car.zst odd.car.zst incomplete.car.zst --json", "info --at 1 a.car.zst --json",
  "info nowhere --json", "info repo.car --json", "info --at tomorrow a.car.zst --json",
  "status . --json", "status . --max-age 1s --json", "status nowhere --json",
  "log a.car.zst --json", "log a.car.zst app.bsky.feed.post/photo --json",
  "log a.car.zst x.y.z/n --json",
  "ls a.car.zst --json", "ls --snapshots a.car.zst --json",
  "ls --missing incomplete.car.zst --json",
  "cat a.car.zst app.bsky.feed.post --account alice.test --json",
  "cat odd.car.zst a.b.c --json", "cat incomplete.car.zst app.bsky.feed.post --json",
  "cat a.car.zst x.y.z --json",
  "find number . --json", "find nothing-there . --json",
  "stats a.car.zst incomplete.car.zst --json", "export a.car.zst --csv tables --json",
  "export incomplete.car.zst --csv tables --json",
  "diff a.car.zst 1 2 --json", "diff incomplete.car.zst --json",
  "missing a.car.zst --json", "missing --at 1 a.car.zst --json",
  "missing a.car.zst --accept all --reason lost --json", "missing a.car.zst --json",
  "missing a.car.zst --reconsider all --json", "missing a.car.zst --accept all --json",
  "verify a.car.zst odd.car.zst incomplete.car.zst --json", "verify --quick a.car.zst --json",
  "extract a.car.zst --account did:plc:z72i7hdynmk6r22z27h6tvur -d out --json",
  "extract incomplete.car.zst -d out --json", "extract a.car.zst x.y.z/n -d out --json",
  "prune a.car.zst --keep-last 1 --dry-run --json", "prune a.car.zst --keep-last 1 --json",
  "compact a.car.zst --json", "compact a.car.zst --json",
  "compact a.car.zst -o small.car.zst --json",
  "merge a.car.zst lies.car.zst -o all.car.zst --json", "merge a.car.zst -o a.car.zst --json",
  "repair a.car.zst --json", "verify broken.car.zst --json", "info broken.car.zst --json",
  "ls broken.car.zst --json", "repair broken.car.zst --json",
  "repair broken.car.zst -o saved.car.zst --json",
  "config --json", "resolve alice --json", "resolve alice.invalid --json", "backup alice --json",
  "backup alice.invalid --json", "backup alice.invalid bob.invalid -o out/ --json",
  "fill nowhere.car.zst --json", "frobnicate --json", "info --json",
  "verify --quick --cars x --json",
]

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `JSON on standard output and standard error` {
  @Test func `is what the schemas say, of every verb and every mistake`() throws {
    let folder = try TemporaryFolder()
    try CommandFixture.write(to: folder)
    let command = try Command(in: folder)
    for line in commands {
      if line == "verify broken.car.zst --json" {
        _ = try command.run(
          "cp a.car.zst broken.car.zst; printf x | dd of=broken.car.zst bs=1 seek=672 conv=notrunc")
      }
      let result = try command.run("carpack \(line)")
      let faults = OutputSchema.faults(in: result.text) + OutputSchema.faults(in: result.errors)
      #expect(faults.isEmpty, "carpack \(line)")
      #expect(result.status == 0 || !(result.text + result.errors).isEmpty, "carpack \(line)")
    }
  }

  @Test func `is indented with --pretty, and the same`() throws {
    let folder = try TemporaryFolder()
    try CommandFixture.write(to: folder)
    let command = try Command(in: folder)
    let line = try command.run("carpack inspect repo.car --json").output
    let pretty = try command.run("carpack inspect repo.car --json --pretty").output
    #expect(pretty.count > line.count)
    let objects = try [line, pretty].map {
      try JSONSerialization.jsonObject(with: Data($0)) as? NSDictionary
    }
    #expect(objects[0] != nil && objects[0] == objects[1])
  }

  @Test func `is documented in one place`() throws {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    let root = Command.packageRoot
    let result = try command.run(
      "mkdir -p Docs/schemas && carpack ---schemas Docs && diff -r Docs/schemas \(root)/Docs/schemas && diff Docs/JSON.md \(root)/Docs/JSON.md"
    )
    #expect(result.status == 0, "run `make schemas`: \(result.text)")
  }

  @Test(arguments: [
    (#"{"schema":"carpack.find"}"#, "is not there"),
    (#"{"schema":"carpack.nothing"}"#, "nothing"), (#"{"a":1}"#, "no schema"), ("text", "JSON"),
    (#"{"schema":"carpack.message","version":1,"kind":"x","file":null,"text":"t"}"#, "is none of"),
    (
      #"{"schema":"carpack.message","version":"1","kind":"note","file":null,"text":"t"}"#,
      "not integer"
    ),
    (
      #"{"schema":"carpack.message","version":1,"kind":"note","file":null,"text":"t","x":1}"#,
      "not documented"
    ),
  ]) func `is refused by the schemas where it is something else`(line: String, fault: String) {
    let faults = OutputSchema.faults(in: line)
    #expect(!faults.isEmpty, "\(fault)")
  }
}
