import Terminal
import Testing

@Suite struct `A word of a command line` {
  @Test(arguments: [
    ("a.car.zst", "a.car.zst"), ("s3://b/x-1.zst", "s3://b/x-1.zst"), ("", "''"),
    ("my archive", "'my archive'"), ("it's", #"'it'\''s'"#), ("$HOME", "'$HOME'"),
  ]) func `is in quotes, unless it needs none`(_ word: String, _ quoted: String) {
    #expect(word.shellWord == quoted)
  }
}
