internal import ArgumentParser

/// A verb: a command whose help is a page of `Manual/`.
protocol Verb: ParsableCommand {
  static var page: ManualPage { get }
}

extension Verb {
  static var configuration: CommandConfiguration { page.configuration }

  /// What is wrong with words for it, as a person reads it; nil if they can be parsed.
  static func fault(in words: [String]) -> String? {
    do {
      _ = try parseAsRoot(words)
      return nil
    } catch {
      return message(for: error)
    }
  }
}

/// The verbs, as `Carpack` lists and sets them before anything else is done.
enum Verbs {
  /// The verbs of the command, each with those below it.
  @TaskLocal static var all: [any Verb.Type] = []

  /// Those that have no others below them, and the words that name each.
  static var leaves: [(words: [String], verb: any Verb.Type)] {
    all.flatMap { verb in
      let below = verb.page.subcommands
      return below.isEmpty
        ? [([verb.page.name], verb)] : below.map { ([verb.page.name, $0.page.name], $0) }
    }
  }

  /// The verb that words begin with, and the words that name it: two if it is below another.
  static func named(by words: [String]) -> (words: [String], verb: any Verb.Type)? {
    guard let first = words.first, let verb = all.first(where: { $0.page.name == first }) else {
      return nil
    }
    guard !verb.page.subcommands.isEmpty else { return ([first], verb) }
    guard let second = words.dropFirst().first,
      let below = verb.page.subcommands.first(where: { $0.page.name == second })
    else { return nil }
    return ([first, second], below)
  }
}
