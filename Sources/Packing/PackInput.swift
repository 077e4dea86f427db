internal import ATProtocol
package import Files
internal import IPLD
internal import LibC
package import Snapshots
internal import SystemPackage

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// What is packed: a CAR, or the folder of an account with one CAR in it.
package struct PackInput {
  /// The CAR.
  package var car: InputFile
  /// Where blobs may be.
  package let folders: [BlobFolder]
  /// What the folder says about the account.
  package let facts: AccountFacts

  /// Finds the CAR and what belongs to it.
  ///
  /// - Parameters:
  ///   - argument: a CAR, `-` for standard input, or a folder.
  ///   - blobFolders: further folders that may hold blobs.
  /// - Throws: ``BackupError``.
  package init(_ argument: String, blobFolders: [String]) throws {
    let given = blobFolders.map { BlobFolder($0) }
    guard argument != "-", BlobFolder.isFolder(argument) else {
      car = try InputFile(argument, isReadAtOnce: true)
      folders = given
      facts = AccountFacts()
      return
    }
    let folder = BlobFolder(argument, isAccountFolder: true)
    let cars = try folder.cars()
    guard cars.count == 1, let path = cars.first else {
      throw BackupError.carsInFolder(argument, cars)
    }
    car = try InputFile(path, isReadAtOnce: true)
    folders = [folder] + given
    facts = try Self.facts(beside: path)
  }

  /// The parts of `backup-metadata.json` that are of use when it is packed again.
  private struct Metadata: Decodable {
    var handle: String?
    var pds: String?
  }

  /// What is in a file about the account.
  ///
  /// - Throws: ``BackupError`` for one that cannot be read, or is too long.
  package static func document(_ path: String) throws -> [UInt8] {
    let file = try InputFile(path)
    guard file.count <= AccountFacts.maximumDocument else {
      throw BackupError.malformedDocument("\(path) is over \(AccountFacts.maximumDocument) bytes")
    }
    return file.withBytes { $0.array }
  }

  private static func facts(beside car: String) throws -> AccountFacts {
    var facts = AccountFacts()
    let folder = FilePath(car).removingLastComponent()
    func document(_ name: String) throws -> [UInt8]? {
      let path = folder.appending(name).string
      return unsafe access(path, F_OK) == 0 ? try Self.document(path) : nil
    }
    facts.didDocument = try document(FileNaming.didDocument)
    facts.plcLog = try document(FileNaming.plcLog)
    if let bytes = try document(FileNaming.metadata) {
      do {
        let metadata = try JSONDecoder().decode(Metadata.self, from: Data(bytes))
        facts.handle = try metadata.handle.map { text throws in try Handle(text) }
        facts.pds = metadata.pds
      } catch {
        throw BackupError.malformedDocument(
          "\(folder.appending(FileNaming.metadata)) is not what carpack writes: \(error)")
      }
    }
    return facts
  }
}
