package import Archive
package import IPLD

/// What is found out about a CAR on another core while it is inspected on this one: its digest, and
/// which of its sections an archive has already.
///
/// Nothing is believed of the CAR here: what is wrong with it, the inspection says.
package struct CARLookahead: Sendable {
  /// The SHA-256 of all of it.
  package let sha256: SHA256Digest
  /// The ordinal of each of its sections in the archive, `UInt64.max` for those that are not there;
  /// or why that is not known.
  package let ordinals: Result<[UInt64], any Error>

  /// Looks at a CAR.
  ///
  /// - Parameters:
  ///   - car: the file it is in.
  ///   - payload: where in it.
  ///   - archive: the archive; nil for a new one, which has nothing.
  package init(_ car: MappedFile, payload: Range<Int>, archive: ArchiveReader?) {
    sha256 = car.withBytes { SHA256.digest(of: $0.extracting(payload)) }
    ordinals = Result {
      // In an archive without a footer nothing is committed, so no number is sure to stay.
      guard let archive, archive.generation.number > 0 else { return [] }
      let places = car.withBytes { bytes in Self.places(in: bytes, payload) }
      return try archive.ordinals(places.count, workers: 1) { index in
        car.withBytes { bytes in
          var place = places[index]
          do throws(CIDError) {
            return try CID(bytes, at: &place)
          } catch {
            preconditionFailure("the places are of other bytes")
          }
        }
      }
    }
  }

  /// Where the CID of each section stands, up to the first that cannot be read.
  private static func places(in bytes: Span<UInt8>, _ payload: Range<Int>) -> [Int] {
    var places: [Int] = []
    do throws(CARError) {
      let header = try CARHeader(bytes, at: payload.lowerBound)
      var cursor = CARCursor(header: header, payload: payload)
      while let (section, _) = try cursor.next(in: bytes) {
        places.append(section.cidRange.lowerBound)
      }
    } catch {
      // The inspection comes to the same place, and tells.
    }
    return places
  }
}
