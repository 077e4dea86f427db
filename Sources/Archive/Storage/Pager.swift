internal import CPager
internal import Dispatch
internal import LibC
internal import Synchronization
internal import SystemPackage

/// Brings pages of files that lie elsewhere when they are touched.
///
/// A thread that touches a page which may not be touched is stopped by the system, and a handler
/// asks here. It waits until the page is there, and touches it again. So everything that reads an
/// archive reads one that lies elsewhere, too, and cannot read what has not come.
///
/// Fetching is done by a thread of its own: it may take locks and memory, which a handler may not.
enum Pager {
  /// Whose windows there are, and where.
  private static let windows = Mutex<[CInt: (file: FetchedFile, place: Range<UInt>)]>([:])

  private static let failure: CInt = {
    let code = carpack_pager_open()
    guard code == 0 else { return code }
    DispatchQueue(label: "pager").async { serve() }
    return 0
  }()

  /// Begins to catch what threads touch.
  ///
  /// - Throws: ``FetchFailure`` if the system does not let it.
  static func open() throws {
    guard failure == 0 else {
      throw FetchFailure(.noRoom, "could not read in place: \(Errno(rawValue: failure))")
    }
  }

  private static func serve() {
    var fault = carpack_page_fault()
    // An error means that the pipe is gone, and with it the process.
    while unsafe carpack_pager_next(&fault) == 0 {
      let address = UInt(fault.address)
      let window = windows.withLock { windows in
        windows.values.first { $0.place.contains(address) }
      }
      window?.file.bring(address, in: window?.place ?? 0..<0)
      carpack_pager_answer(fault)
    }
  }

  /// Answers for a window from now on.
  static func add(_ file: FetchedFile, _ number: CInt, _ place: Range<UInt>) {
    windows.withLock { $0[number] = (file, place) }
  }

  /// Answers for it no longer.
  static func remove(_ number: CInt) {
    carpack_pager_remove(number)
    windows.withLock { $0[number] = nil }
  }
}
