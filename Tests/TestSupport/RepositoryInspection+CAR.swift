internal import Archive
package import Repository

extension RepositoryInspection {
  /// What there is to say about a CAR in memory.
  package init(car: [UInt8], workers: Int? = nil) throws {
    self.init(of: try CARFile(MappedFile(copying: car), workers: workers), workers: workers)
  }
}
