import CarpackKit

/// Says in a sentence whether a CAR is a whole repository.
func check(_ path: String) throws -> String {
  let car = try CAR.verify(path)
  guard car.isWellFormed, let commit = car.commit else { return "\(path) is damaged" }
  let blobs = car.blobs.entries.count
  return car.isComplete
    ? "\(commit.did): all \(car.recordCount) records; they refer to \(blobs) blobs"
    : "\(commit.did): \(car.missingRecordCount) records are missing"
}
