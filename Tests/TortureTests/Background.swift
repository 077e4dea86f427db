import Dispatch
import Foundation
import Synchronization

/// Work that runs while something else is done, on threads of its own, as it waits for other
/// processes.
final class Background: Sendable {
  private let group = DispatchGroup()
  private let state = Mutex<(results: [Int32], errors: [String])>(([], []))

  /// Begins `count` pieces of work, each of which is given its number and answers an exit status.
  init(_ count: Int = 1, _ work: @escaping @Sendable (Int) throws -> Int32) {
    for number in 0..<count {
      group.enter()
      // Not a queue's threads, of which there are no more than cores.
      Thread.detachNewThread {
        self.perform(number, work)
        self.group.leave()
      }
    }
  }

  private func perform(_ number: Int, _ work: (Int) throws -> Int32) {
    do {
      let result = try work(number)
      state.withLock { $0.results.append(result) }
    } catch {
      state.withLock { $0.errors.append("\(error)") }
    }
  }

  /// Whether all of it is done.
  var isOver: Bool { group.wait(timeout: .now()) == .success }

  /// The exit statuses of the pieces that did not fail, when all of it is done.
  var results: [Int32] {
    group.wait()
    return state.withLock { $0.results }
  }

  /// The errors of those that did.
  var errors: [String] {
    group.wait()
    return state.withLock { $0.errors }
  }
}
