internal import ATProtocol
internal import LibC
internal import Terminal

/// The answer to a shell that completes a command line.
///
/// The scripts of ``CompletionScript`` call `carpack ---complete`. It writes one line that says
/// which files fit, if any (see ``CompletionAnswer/Files``), then one candidate a line, with a tab
/// before its description.
///
/// It says nothing else, changes nothing, and ends after two seconds of computing, whatever the
/// archive is.
package enum Completion {
  /// The first argument of such a call.
  ///
  /// No shell makes it by accident.
  package static let word = "---complete"
  /// How many seconds of computing an answer may take: a user does not wait longer for a Tab.
  private static let computing: rlim_t = 2
  /// How many seconds it may take altogether, on a machine that is busy or waits for a disk.
  private static let altogether: CUnsignedInt = 10

  /// Prints the completions for these arguments, and ends the process.
  ///
  /// - Parameter describe: How the command describes itself.
  package static func answer(_ arguments: [String], in describe: () -> String) -> Never {
    silence()
    if let line = CompletionLine(arguments) {
      let answer = CommandTree(describe()).map { CompletionRequest(line, in: $0).answer }
      Console.print(text: (answer ?? CompletionAnswer()).text(for: line))
      Console.flush()
    }
    exit(0)
  }

  /// Discards what goes to standard error, and ends the process in time.
  private static func silence() {
    let nowhere = unsafe open("/dev/null", O_WRONLY)
    if nowhere >= 0 { _ = dup2(nowhere, 2) }
    for end in [SIGALRM, SIGXCPU] { signal(end) { _ in _exit(0) } }
    _ = alarm(altogether)
    #if canImport(Glibc)
      let time = __rlimit_resource_t(RLIMIT_CPU.rawValue)
    #else
      let time = RLIMIT_CPU
    #endif
    var limit = rlimit(rlim_cur: computing, rlim_max: computing + 1)
    _ = unsafe setrlimit(time, &limit)
  }
}

/// The completions for a word.
struct CompletionAnswer: Equatable {
  /// The files that the shell offers.
  enum Files: Equatable {
    case none
    case folders
    /// Files with one of these suffixes, and folders on the way to them; all files if there is no
    /// suffix.
    case files(suffixes: [String])

    fileprivate var text: String {
      switch self {
      case .none: "none"
      case .folders: "folders"
      case .files(let suffixes): (["files"] + suffixes.map { ".\($0)" }).joined(separator: " ")
      }
    }
  }

  /// A candidate.
  struct Candidate: Equatable {
    let text: String
    var description = ""
  }

  var files = Files.none
  var candidates: [Candidate] = []

  /// The answer in the form that the scripts read.
  func text(for line: CompletionLine) -> String {
    var lines = [files.text]
    for candidate in candidates {
      guard candidate.text.hasPrefix(line.current), candidate.isHarmless else { continue }
      let text = candidate.text.dropFirst(line.replacedFrom)
      let description = line.showsDescriptions ? candidate.description.filter(\.isHarmless) : ""
      lines.append(description.isEmpty ? String(text) : "\(text)\t\(description)")
    }
    return lines.joined(separator: "\n")
  }
}

extension CompletionAnswer.Candidate {
  /// Whether a shell can insert it unquoted.
  ///
  /// Many candidates come from archives, and an archive may hold anything, even `$(…)`.
  fileprivate var isHarmless: Bool {
    text.first != "~"
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: "-._:~/@%+,=".utf8.contains(byte)
        }
      }
  }
}

extension Character {
  /// Whether it is not a control character, and so stays on its line.
  fileprivate var isHarmless: Bool { !unicodeScalars.contains(where: \.isTerminalControl) }
}
