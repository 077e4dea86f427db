import CarpackKit

/// Prints the path of every record of an archive's newest snapshot, and returns how many there are.
func listRecords(of path: String) async throws -> Int {
  let archive = try Archive(path: path)
  var count = 0
  for try await record in try archive.snapshot().records {
    print(record.path)
    count += 1
  }
  return count
}
