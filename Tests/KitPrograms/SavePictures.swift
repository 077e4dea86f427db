import CarpackKit
import Foundation

/// Writes the pictures of an archive into a folder, and returns which of them the archive lacks.
func savePictures(of path: String, into folder: String) throws -> [CID] {
  let snapshot = try Archive(path: path).snapshot()
  var missing: [CID] = []
  for blob in try snapshot.blobs() where blob.mimeType?.hasPrefix("image/") == true {
    if let bytes = try snapshot.blob(blob.cid) {
      try Data(bytes).write(to: URL(filePath: "\(folder)/\(blob.cid)"))
    } else {
      missing.append(blob.cid)
    }
  }
  return missing
}
