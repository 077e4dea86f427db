internal import Synchronization

/// Encoders or decoders at rest: never more than threads that use one at a time.
final class Pool<Element: Sendable>: Sendable {
  private let idle = Mutex<[Element]>([])
  private let make: @Sendable () -> Element

  init(_ make: @escaping @Sendable () -> Element) { self.make = make }

  /// Lends one to `body`.
  func with<Value, Failure: Error>(_ body: (Element) throws(Failure) -> Value) throws(Failure)
    -> Value
  {
    let element = idle.withLock { $0.popLast() } ?? make()
    defer { idle.withLock { $0.append(element) } }
    return try body(element)
  }
}
