import Foundation
import TestSupport
import Testing

/// The names of the transcripts.
private let transcripts: [String] = {
  let names = try? FileManager.default.contentsOfDirectory(
    atPath: "\(Command.packageRoot)/Tests/Transcripts")
  return (names ?? []).filter { $0.hasSuffix(".txt") }.sorted()
}()

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A session on the command line` {
  @Test(arguments: transcripts) func `goes as the transcript has it`(name: String) throws {
    let text = try String(
      contentsOfFile: "\(Command.packageRoot)/Tests/Transcripts/\(name)", encoding: .utf8)
    let folder = try TemporaryFolder()
    try CommandFixture.write(to: folder)
    let command = try Command(in: folder)
    for step in Transcript(text).steps {
      let result = try command.run(step.command)
      let isAsExpected =
        result.status == step.status && Transcript.matches(step.output, result.text)
        && Transcript.matches(step.errors, result.errors)
      if !isAsExpected {
        Issue.record(
          """
          \(name):\(step.line): $ \(step.command)
          \(result.text)\(result.errors.split(separator: "\n").map { "! \($0)\n" }.joined())\
          ? \(result.status)
          """)
      }
    }
  }

  @Test func `is there to be tested`() { #expect(transcripts.count >= 8) }
}
