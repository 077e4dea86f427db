package import Files
package import ObjectStore
package import XRPC

extension InputFile {
  /// Opens an archive that lies elsewhere: its end is fetched, and the rest when it is read.
  ///
  /// - Parameters:
  ///   - address: where it lies.
  ///   - store: how stores are asked.
  ///   - network: what the user set about the network.
  /// - Throws: what ``FarArchive/open(_:_:network:)`` throws.
  package convenience init(far address: String, _ store: StoreOptions, network: NetworkOptions)
    throws
  {
    self.init(
      try FarArchive.open(address, store, network: network), named: FarArchive.shown(address))
  }
}
