import CarpackKit

func printPaths(of path: String) async throws {
  for try await record in try Archive(path: path).snapshot().records { print(record.path) }
}
