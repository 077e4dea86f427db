package import HTTP

/// A page of a list.
package struct ListPage<Entry: Hashable & Sendable>: Sendable, Equatable {
  /// What it lists.
  package var entries: [Entry]
  /// The entries that are not valid, as they stand there.
  package var malformed: [String] = []
  /// Where the list continues; nil at its end.
  package var cursor: String?
}

extension XRPCClient {
  /// The pages of a list.
  ///
  /// - Parameters:
  ///   - limit: with how many entries the list is not read on.
  ///   - identity: what makes two entries the same.
  ///   - request: makes a call; nil for one of this client.
  ///   - query: the call for the page at a cursor.
  package func pages<Entry>(
    limit: Int, by identity: @escaping @Sendable (Entry) -> some Hashable & Sendable,
    through request: (@Sendable (XRPCQuery<ListPage<Entry>>) async throws -> ListPage<Entry>)? =
      nil,
    _ query: @escaping @Sendable (_ cursor: String?) -> XRPCQuery<ListPage<Entry>>
  ) -> Pages<ListPage<Entry>> {
    let request = request ?? { try await call($0) }
    return Pages(of: query(nil).call.nsid, at: service, limit: limit) { cursor in
      let page = try await request(query(cursor))
      return (
        page,
        PagePlace(page.entries.map(identity), malformed: page.malformed, cursor: page.cursor)
      )
    }
  }
}
