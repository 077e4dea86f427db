internal import LibC

/// Tells work that blocks, on whatever thread, that its result is no longer wanted.
///
/// A task knows whether it was cancelled, but what it has done in a queue, and on several cores
/// there, is not a task. So ``onOwnQueue(_:)``, ``Parallel`` and ``Meanwhile`` pass on how to ask.
package final class Stopping: Sendable {
  /// Whether the work was stopped.
  private let isAsked: @Sendable () -> Bool

  /// A way to ask.
  package init(_ isAsked: @escaping @Sendable () -> Bool) { self.isAsked = isAsked }

  /// Ends work whose result is no longer wanted.
  ///
  /// - Throws: `CancellationError` if it was stopped, or the task that does it is cancelled.
  package static func check() throws {
    if Task.isCancelled || current?.isAsked() ?? false { throw CancellationError() }
  }

  /// How work on this thread checks whether to stop; nil if that was not set.
  static var current: Stopping? {
    unsafe pthread_getspecific(key).map {
      unsafe Unmanaged<Stopping>.fromOpaque($0).takeUnretainedValue()
    }
  }

  /// Does work that asks in this way, on this thread.
  ///
  /// A value of a task would not do: on the threads of `concurrentPerform` one of them is the
  /// task's, and the others are not.
  package static func passing<Value>(
    _ stopping: Stopping?, to work: () throws -> Value
  ) rethrows -> Value {
    let before = unsafe pthread_getspecific(key)
    // It is kept as long as the work takes, so that the thread need not own it.
    unsafe pthread_setspecific(key, stopping.map { unsafe Unmanaged.passUnretained($0).toOpaque() })
    defer { unsafe pthread_setspecific(key, before) }
    return try withExtendedLifetime(stopping, work)
  }

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let code = unsafe pthread_key_create(&key, nil)
    precondition(code == 0, "could not create a key for thread-local storage")
    return key
  }()
}
