package import IPLD

/// Decides which snapshots of an interrupted write count, before its footer is written.
///
/// - Parameters:
///   - adopted: The archive with those sections of the tail that are adopted, under the ordinals
///     that they get.
///   - newest: The manifest that becomes the newest unless something else is chosen; nil if there
///     is none.
/// - Throws: What reading throws; nothing of the tail has been changed then.
/// - Returns: What is appended to the tail, manifests behind all else, and the newest manifest: one
///   of these, of the tail, or the newest that is committed. Nil to leave everything as it is.
package typealias TailChoice = (_ adopted: ArchiveReader, _ newest: CID?) throws -> (
  sections: [Block], head: CID
)?
