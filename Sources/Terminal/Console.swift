internal import ATProtocol
internal import IPLD
internal import LibC
internal import Synchronization
internal import SystemPackage

/// Where text goes: results to standard output, messages to standard error.
///
/// Results are gathered and handed to the system in large pieces.
package enum Console {
  private static let output = Mutex<[UInt8]>([])
  /// How many of the terminal's last lines show progress.
  private static let progressLines = Mutex(0)

  /// Whether standard error is a terminal.
  package static let isTerminal = isatty(2) == 1
  /// Whether somebody can be asked something.
  package static let canAsk = isTerminal && isatty(0) == 1
  /// Whether standard output is a terminal.
  package static let hasTerminalOutput = isatty(1) == 1
  private static let words = Host.arguments.prefix { $0 != "--" }

  /// Whether messages are JSON: known before the arguments are parsed, because errors in them
  /// are messages as well.
  package static let isJSON = words.contains("--json")
  /// Whether JSON is indented.
  package static let isPretty = words.contains("--pretty")

  private static let hasColour = isTerminal && !isColourUnwanted
  private static let isColourUnwanted = Host.environment("NO_COLOR") != nil || isDumb
  private static let isDumb = Host.environment("TERM")?.value == "dumb"
  /// Whether lines on standard error can be erased again.
  package static let canRedraw = isTerminal && !isDumb

  /// Opens something under the numbers of standard input, output and error that are closed, before
  /// anything else is.
  ///
  /// Otherwise the first file that is opened would get the number, and results would be written
  /// into it. What is opened is a folder, so that reading from it fails, and writing to it as to a
  /// closed descriptor.
  package static func occupyStandardDescriptors() {
    for descriptor in CInt(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
      _ = unsafe open("/", O_RDONLY)
    }
  }

  /// The stream to which text goes.
  package enum Stream {
    case output, error
  }

  /// Prints text that comes from the command itself, such as its help.
  package static func print(text: String) {
    let bytes = Array((text + "\n").utf8)
    print(bytes.span)
  }

  /// Prints a line of results.
  package static func print(_ line: String) {
    let bytes = Array((visible(line, keepingLines: false, on: .output) + "\n").utf8)
    print(bytes.span)
  }

  /// What stands in front of a line of results that says what changed, in a colour where results go
  /// to a terminal.
  package enum Sign: String {
    case plus = "+"
    case change = "~"
    case minus = "-"
  }

  private static let hasColouredOutput = hasTerminalOutput && !isColourUnwanted

  /// Prints a line of results after a sign.
  package static func print(_ sign: Sign, _ line: String) {
    let colour =
      switch sign {
      case .plus: 32
      case .change: 33
      case .minus: 31
      }
    let mark = hasColouredOutput ? "\u{1b}[\(colour)m\(sign.rawValue)\u{1b}[0m" : sign.rawValue
    let bytes = Array("\(mark) \(visible(line, keepingLines: false))\n".utf8)
    print(bytes.span)
  }

  /// Text that cannot control the terminal: records and archives may hold anything, and what they
  /// hold is shown.
  ///
  /// Control characters are written as escapes, except the colours that are set here, and line
  /// feeds where they are kept.
  ///
  /// - Parameters:
  ///   - text: what is to be shown.
  ///   - keepingLines: whether line feeds stay.
  ///   - stream: where it goes: colours that are set here are taken out again unless that is a
  ///     terminal.
  package static func visible(
    _ text: String, keepingLines: Bool, on stream: Stream = .error
  ) -> String {
    func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.isTerminalControl }
    guard text.mayRuleTerminal, text.unicodeScalars.contains(where: isControl) else { return text }
    var shown = ""
    var rest = text[...]
    while let scalar = rest.unicodeScalars.first {
      if let colour = colours.first(where: rest.hasPrefix) {
        if stream == .error || hasColouredOutput { shown += colour }
        rest.removeFirst(colour.count)
        continue
      }
      if isControl(scalar), !(keepingLines && scalar == "\n") {
        shown += scalar == "\n" ? "\\n" : "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        shown.unicodeScalars.append(scalar)
      }
      rest.unicodeScalars.removeFirst()
    }
    return shown
  }

  private static let colours =
    hasColour ? ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"] : []

  /// Prints bytes of results.
  package static func print(_ bytes: Span<UInt8>) {
    let bytes = bytes.array
    let isLarge = output.withLock { output in
      output += bytes
      return output.count >= 1 << 16
    }
    if isLarge { flush() }
  }

  /// Writes bytes of unknown content at once, unchanged, or to a terminal as text that cannot
  /// control it.
  ///
  /// - Parameters:
  ///   - forcesTerminal: whether a terminal gets them as they are, too.
  ///   - produce: Hands the bytes, piece by piece, to the sink it is given.
  /// - Throws: ``Failure`` for bytes that are not text, before any is written to a terminal; what
  ///   `produce` throws.
  package static func writeContent<Value>(
    forcesTerminal: Bool = false, _ produce: ((Span<UInt8>) throws -> Void) throws -> Value
  ) throws -> Value {
    guard hasTerminalOutput, !forcesTerminal else { return try produce { try write($0) } }
    var text = TerminalText()
    let value = try produce { bytes in
      if text.isEmpty, !TerminalText.isText(bytes) { try refuseTerminal() }
      let shown = text.append(bytes)
      try write(shown.span)
    }
    let rest = text.finish()
    try write(rest.span)
    return value
  }

  /// Refuses to write to a terminal what is not text.
  ///
  /// - Throws: ``Failure`` if standard output is a terminal.
  package static func refuseTerminal() throws {
    guard hasTerminalOutput else { return }
    throw Failure(
      "this is binary data, but standard output is a terminal",
      hint: "write it to a file with \"> FILE\"; --force-terminal writes it here anyway",
      status: .usage)
  }

  /// Writes bytes of results at once: for large results, and where the caller has to know that
  /// they arrived.
  package static func write(_ bytes: Span<UInt8>) throws {
    flush()
    do {
      try deliver(bytes, to: .standardOutput)
    } catch let error as Errno {
      throw Failure("could not write to standard output: \(error)", status: .ioError)
    }
  }

  /// How long a reader may take nothing after a signal has asked for an end, in milliseconds.
  private static let patience: CInt = 500
  /// Whether a reader has taken nothing for that long.
  private static let isAbandoned = Atomic<Bool>(false)

  /// Writes all of it.
  ///
  /// - Throws: `Errno`; ``ExitStatus`` of a signal that ends a task, and not the process, where
  ///   the reader takes nothing: a full pipe would keep the task from ending.
  private static func deliver(_ bytes: Span<UInt8>, to stream: FileDescriptor) throws {
    try unsafe bytes.withUnsafeBytes { bytes in
      var rest = unsafe bytes[...]
      while unsafe !rest.isEmpty, Interruption.isDeferred {
        try awaitReader(of: stream)
        // What is no longer than this fits into a pipe that has room.
        let piece = unsafe UnsafeRawBufferPointer(rebasing: rest.prefix(Int(PIPE_BUF)))
        unsafe rest = rest.dropFirst(try stream.write(piece))
      }
      _ = try unsafe stream.writeAll(rest)
    }
  }

  /// Waits until a stream takes something.
  private static func awaitReader(of stream: FileDescriptor) throws(ExitStatus) {
    while true {
      let status = Interruption.received
      let isHopeless = isAbandoned.load(ordering: .relaxed)
      var entry = pollfd(fd: stream.rawValue, events: CShort(POLLOUT), revents: 0)
      if unsafe poll(&entry, 1, isHopeless ? 0 : status == nil ? 100 : patience) > 0 { return }
      guard let status else { continue }
      isAbandoned.store(true, ordering: .relaxed)
      throw status
    }
  }

  /// Puts a line on standard error.
  package static func put(line: String) {
    endProgress()
    put(visible(line, keepingLines: true).withoutSecretKeys + "\n")
  }

  /// Shows the progress of long work, in lines that the next output erases.
  ///
  /// A line that is longer than the terminal is wide is cut off.
  package static func showProgress(_ lines: String...) { showProgress(lines) }

  /// Shows the progress of long work, in lines that the next output erases.
  package static func showProgress(_ lines: [String]) {
    let width = width
    let text = lines.map { String(visible($0, keepingLines: false).prefix(width - 1)) }
      .joined(separator: "\n")
    progressLines.withLock { count in
      put(erasing(count) + text)
      count = lines.count
    }
  }

  /// Erases the lines that show progress.
  package static func endProgress() {
    progressLines.withLock { count in
      if count > 0 { put(erasing(count)) }
      count = 0
    }
  }

  private static func erasing(_ count: Int) -> String {
    "\r\u{1b}[K" + String(repeating: "\u{1b}[1A\u{1b}[K", count: max(0, count - 1))
  }

  /// The width of the terminal, in characters.
  private static var width: Int {
    var size = winsize()
    guard unsafe ioctl(2, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 10 else { return 80 }
    return Int(size.ws_col)
  }

  /// Asks on the terminal for something that is not shown while it is typed; nil if there is no
  /// terminal to ask on.
  ///
  /// - Returns: What was typed, without the end of the line.
  package static func askSecret(_ prompt: String) -> String? {
    guard canAsk, let typed = unsafe getpass(prompt) else { return nil }
    defer { unsafe memset(typed, 0, strlen(typed)) }
    return unsafe String(cString: typed)
  }

  /// Asks on the terminal for a word; nil if there is no terminal to ask on, or nothing was typed.
  package static func ask(_ prompt: String) -> String? {
    guard canAsk else { return nil }
    endProgress()
    put(visible(prompt, keepingLines: false))
    let line = Interruption.endingAtOnce { readLine() }
    let typed = line?.split(separator: " ").joined(separator: " ") ?? ""
    return typed.isEmpty ? nil : typed
  }

  /// Asks on the terminal whether something may be done; false if there is none to ask on.
  package static func agrees(_ question: String) -> Bool {
    ["y", "yes"].contains(ask("\(question) [y/N] ")?.lowercased() ?? "")
  }

  /// Puts text on standard error.
  private static func put(_ text: String) {
    let bytes = Array(text.utf8)
    do {
      try deliver(bytes.span, to: .standardError)
    } catch {
      // There is nowhere left to say so; results and exit status still speak.
    }
  }

  /// Hands what was printed to the system.
  package static func flush() {
    endProgress()
    let bytes = output.withLock { output in
      defer { output.removeAll(keepingCapacity: true) }
      return output
    }
    guard !bytes.isEmpty else { return }
    do {
      try deliver(bytes.span, to: .standardOutput)
    } catch is ExitStatus {
      // Nothing reads it, and the signal's status is what the command ends with.
    } catch {
      put("carpack: error: could not write to standard output: \(error)\n")
      ExitStatus.ioError.leave()
    }
  }

  /// Red on a terminal.
  package static func red(_ text: String) -> String {
    hasColour ? "\u{1b}[31m\(text)\u{1b}[0m" : text
  }

  /// Yellow on a terminal.
  package static func yellow(_ text: String) -> String {
    hasColour ? "\u{1b}[33m\(text)\u{1b}[0m" : text
  }

  /// Green on a terminal.
  package static func green(_ text: String) -> String {
    hasColour ? "\u{1b}[32m\(text)\u{1b}[0m" : text
  }
}
