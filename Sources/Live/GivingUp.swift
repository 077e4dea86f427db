/// Does something, and cancels it after some time: it returns what it has by then.
///
/// - Parameters:
///   - limit: How long it may take.
///   - body: What is done; a cancellation ends it, and is not an error of its own.
/// - Returns: What `body` returns.
/// - Throws: `CancellationError` if the caller was cancelled; what `body` throws.
func givingUp<Value: Sendable>(
  after limit: Duration, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  let work = Task { try await body() }
  let timer = Task {
    try await Task.sleep(for: limit)
    work.cancel()
  }
  defer { timer.cancel() }
  let value = try await withTaskCancellationHandler {
    try await work.value
  } onCancel: {
    work.cancel()
  }
  try Task.checkCancellation()
  return value
}
