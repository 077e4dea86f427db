internal import Files
package import Repository

/// Repositories as servers export them, `NAME.car`.
public enum CAR {
  /// Checks a CAR: every hash, the commit, the whole tree, and which blobs its records refer to.
  ///
  /// - Parameter path: the file.
  /// - Returns: what it holds and everything that is wrong; `isWellFormed` and `isComplete` sum
  ///   that up. `commit` and the account's key tell whether the account signed it.
  /// - Throws: `BackupError` for a file that cannot be read; `CARError` for one that does not begin
  ///   as a CAR does.
  public static func verify(_ path: String) throws -> RepositoryInspection {
    RepositoryInspection(of: try CARFile(InputFile(path).mapped))
  }
}
