/// What a repository may be.
package enum RepositoryLimits {
  /// The longest block: a commit, a tree node or a record, in bytes.
  ///
  /// It is kept where repositories come in, from servers and from files, so that whoever needs one
  /// block whole can hold it in memory. Archives of earlier versions may have longer ones: they are
  /// read in pieces, and where one is needed whole, that is what the error says.
  package static let block = 64 << 20
}
