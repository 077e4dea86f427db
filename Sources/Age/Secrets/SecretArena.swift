internal import LibC
internal import Synchronization

/// Memory for secrets: anonymous mappings that are kept out of swap and of core dumps, as far as
/// the system lets a process have that.
///
/// A secret of up to 128 bytes takes a slot of a shared region, so that a key costs no system call;
/// a longer one has a mapping of its own.
///
/// 1. Memory that is handed out is zero: a mapping is when it is made, and a slot is wiped when it
///    is returned.
/// 2. A slot has one owner, or lies in `free`.
/// 3. Regions are never unmapped: there are as many as the most slots that were in use at once
///    take.
package enum SecretArena {
  /// The length of a slot in bytes: the text of an identity has 74.
  static let slotLength = 128
  /// How many bytes are mapped for slots at a time.
  ///
  /// The limit on locked memory (`RLIMIT_MEMLOCK`) is 64 KiB where it is lowest.
  private static let regionLength = 1 << 14

  /// A piece of secret memory.
  @safe struct Piece: @unchecked Sendable {
    let memory: UnsafeMutableRawPointer
    /// How many bytes it has: a slot's, or whole pages.
    let capacity: Int
  }

  private static let free = Mutex<[Piece]>([])

  /// Zeroed memory for `count` bytes, which belongs to the caller until it is returned.
  ///
  /// A process that gets no memory ends, as it does anywhere in Swift.
  static func allocate(_ count: Int) -> Piece {
    guard count <= slotLength else { return map(count) }
    return free.withLock { free in
      if let piece = free.popLast() { return piece }
      let region = map(regionLength)
      for offset in stride(from: slotLength, to: region.capacity, by: slotLength) {
        unsafe free.append(Piece(memory: region.memory + offset, capacity: slotLength))
      }
      return unsafe Piece(memory: region.memory, capacity: slotLength)
    }
  }

  /// Wipes memory and frees it.
  static func release(_ piece: Piece) {
    unsafe wipe(UnsafeMutableRawBufferPointer(start: piece.memory, count: piece.capacity))
    guard piece.capacity > slotLength else { return free.withLock { $0.append(piece) } }
    // Unmapping unlocks. It fails for nothing that was mapped.
    unsafe munmap(piece.memory, piece.capacity)
  }

  /// Overwrites memory in a way that the compiler does not leave out: `explicit_bzero`, `memset_s`.
  package static func wipe(_ memory: UnsafeMutableRawBufferPointer) {
    guard let start = memory.baseAddress else { return }
    #if canImport(Darwin)
      unsafe memset_s(start, memory.count, 0, memory.count)
    #else
      unsafe explicit_bzero(start, memory.count)
    #endif
  }

  /// Whole pages from the system: `mmap`, `mlock`, `madvise`.
  private static func map(_ count: Int) -> Piece {
    let page = Int(getpagesize())
    let length = (count + page - 1) / page * page
    let memory = unsafe mmap(
      nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let memory = unsafe memory, unsafe memory != MAP_FAILED else {
      fatalError("out of memory")
    }
    // Where the system refuses either, the secret is as safe as it would be on the heap.
    unsafe mlock(memory, length)
    #if os(Linux)
      unsafe madvise(memory, length, CInt(MADV_DONTDUMP))
    #endif
    return unsafe Piece(memory: memory, capacity: length)
  }
}
