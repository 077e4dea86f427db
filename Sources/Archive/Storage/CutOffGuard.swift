internal import LibC
internal import Synchronization

/// Keeps a process alive that reads a mapped file while another program truncates it.
///
/// The system sends SIGBUS to a thread that touches a page that the file no longer has, or that
/// its disk cannot read. Where the guard is installed, the rest of that mapping reads as
/// zeros from then on, and ``MappedFile/checkFetched()`` throws.
///
/// 1. The handler takes no lock and allocates nothing.
/// 2. An entry is never freed, only used again: the handler may look at it at any time.
package enum CutOffGuard {
  /// A mapping that is guarded.
  @safe
  struct Entry: ~Copyable {
    /// Where it begins; 0 if the entry is free.
    let start = Atomic<UInt>(0)
    let end = Atomic<UInt>(0)
    /// Whether some of it was missing when it was touched.
    let isCutOff = Atomic<Bool>(false)
    /// Where the last eight bytes lie that have to stay, and what they are; 0 if that is not known.
    let lastPlace = Atomic<UInt>(0)
    let lastBytes = Atomic<UInt64>(0)
    /// The entry that was made before.
    let next: Pointer?
  }

  typealias Pointer = UnsafeMutablePointer<Entry>

  private static let isInstalled = Atomic<Bool>(false)
  /// The address of the newest entry.
  private static let newest = Atomic<UInt>(0)
  /// Entries are made and claimed one at a time.
  private static let turn = Mutex(())

  /// Guards the files that are mapped by their names from now on.
  ///
  /// SIGBUS elsewhere ends the process as it does without a guard.
  package static func install() {
    var action = sigaction()
    action.sa_flags = CInt(SA_SIGINFO)
    #if canImport(Darwin)
      unsafe action.__sigaction_u.__sa_sigaction = { _, info, _ in
        unsafe CutOffGuard.handle(UInt(bitPattern: info?.pointee.si_addr))
      }
    #else
      unsafe action.__sigaction_handler.sa_sigaction = { _, info, _ in
        unsafe CutOffGuard.handle(UInt(bitPattern: info?.pointee._sifields._sigfault.si_addr))
      }
    #endif
    unsafe sigaction(SIGBUS, &action, nil)
    isInstalled.store(true, ordering: .relaxed)
  }

  private static func handle(_ place: UInt) {
    var entry = unsafe Pointer(bitPattern: newest.load(ordering: .acquiring))
    while let found = unsafe entry {
      let start = unsafe found.pointee.start.load(ordering: .acquiring)
      let end = unsafe found.pointee.end.load(ordering: .relaxed)
      if start != 0, start <= place, place < end {
        unsafe found.pointee.isCutOff.store(true, ordering: .releasing)
        let page = place & ~UInt(getpagesize() - 1)
        if SystemCalls.mapZeros(over: page, length: Int(end - page)) { return }
        break
      }
      unsafe entry = found.pointee.next
    }
    // The instruction is done again, and ends the process.
    signal(SIGBUS, SIG_DFL)
  }

  /// Guards a mapping; nil if no guard is installed.
  static func add(_ address: UnsafeRawPointer?, length: Int) -> Pointer? {
    guard isInstalled.load(ordering: .relaxed), let address = unsafe address else { return nil }
    return unsafe turn.withLock { _ in
      let first = unsafe Pointer(bitPattern: newest.load(ordering: .relaxed))
      var entry = unsafe first
      while let used = unsafe entry, unsafe used.pointee.start.load(ordering: .relaxed) != 0 {
        unsafe entry = used.pointee.next
      }
      let claimed: Pointer
      if let free = unsafe entry {
        unsafe claimed = free
      } else {
        unsafe claimed = .allocate(capacity: 1)
        unsafe claimed.initialize(to: Entry(next: first))
        newest.store(UInt(bitPattern: claimed), ordering: .releasing)
      }
      let start = UInt(bitPattern: address)
      unsafe claimed.pointee.isCutOff.store(false, ordering: .relaxed)
      unsafe claimed.pointee.lastPlace.store(0, ordering: .relaxed)
      unsafe claimed.pointee.end.store(start + UInt(length), ordering: .relaxed)
      unsafe claimed.pointee.start.store(start, ordering: .releasing)
      return unsafe claimed
    }
  }

  /// Notes that a mapping counts as cut off unless it has these last eight bytes.
  static func keep(_ entry: Pointer, _ place: UnsafeRawPointer) {
    let bytes = unsafe place.loadUnaligned(as: UInt64.self)
    unsafe entry.pointee.lastBytes.store(bytes, ordering: .relaxed)
    unsafe entry.pointee.lastPlace.store(UInt(bitPattern: place), ordering: .releasing)
  }

  /// Whether a mapped file has been truncated.
  ///
  /// What is cut off of the page in which a file ends reads as zeros, without a signal. So the end
  /// is examined.
  static func isCutOff(_ entry: Pointer) -> Bool {
    let place = unsafe entry.pointee.lastPlace.load(ordering: .acquiring)
    if let end = unsafe UnsafeRawPointer(bitPattern: place),
      unsafe end.loadUnaligned(as: UInt64.self)
        != entry.pointee.lastBytes.load(ordering: .relaxed)
    {
      return true
    }
    return unsafe entry.pointee.isCutOff.load(ordering: .acquiring)
  }
}
