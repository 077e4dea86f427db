internal import CCurl
internal import LibC

/// The functions that libcurl calls, all on the thread on which it works.
///
/// The context of the callbacks about addresses is an ``AddressCheck``, that of the others a
/// ``CurlTransfer``.
enum CurlCallbacks {
  /// `CURLOPT_HEADERFUNCTION`: one line.
  static let head: curl_write_callback = { data, size, count, context in
    guard let transfer: CurlTransfer = unsafe object(context) else { return 0 }
    let line = unsafe bytes(data, size * count)
    return unsafe transfer.takeLine(line.span) ? size * count : 0
  }

  /// `CURLOPT_WRITEFUNCTION`: a piece of the body, decompressed.
  static let body: curl_write_callback = { data, size, count, context in
    guard let transfer: CurlTransfer = unsafe object(context) else { return 0 }
    let piece = unsafe bytes(data, size * count)
    return unsafe transfer.takeBody(piece.span) ? size * count : Int(CURL_WRITEFUNC_PAUSE)
  }

  /// `CURLOPT_READFUNCTION`: the next piece of what is sent along.
  static let read: curl_read_callback = { data, size, count, context in
    let transfer: CurlTransfer? = unsafe object(context)
    let buffer = unsafe UnsafeMutableRawBufferPointer(start: data, count: size * count)
    return unsafe transfer?.giveBody(into: buffer) ?? Int(CURL_READFUNC_ABORT)
  }

  /// `CURLOPT_SEEKFUNCTION`: the request is sent again on another connection.
  static let seek: curl_seek_callback = { context, offset, origin in
    guard let transfer: CurlTransfer = unsafe object(context), origin == SEEK_SET, offset >= 0
    else { return CURL_SEEKFUNC_FAIL }
    transfer.rewindBody(to: UInt64(offset))
    return CURL_SEEKFUNC_OK
  }

  /// `CURLOPT_OPENSOCKETFUNCTION`: the address is known, and nothing has been sent to it.
  static let openSocket: curl_opensocket_callback = { context, purpose, address in
    guard let check: AddressCheck = unsafe object(context), let wanted = unsafe address?.pointee,
      let ip = unsafe IPAddress(
        family: wanted.family, socketAddress: carpack_socket_address(address)),
      check.permits(ip)
    else { return CURL_SOCKET_BAD }
    #if canImport(Darwin)
      let descriptor = socket(wanted.family, wanted.socktype, wanted.protocol)
      if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
      return descriptor
    #else
      let type = wanted.socktype | Int32(SOCK_CLOEXEC.rawValue)
      return socket(wanted.family, type, wanted.protocol)
    #endif
  }

  /// `CURLOPT_PREREQFUNCTION`: there is a connection, perhaps one that another request had opened
  /// under another rule.
  static let beforeRequest: curl_prereq_callback = { context, remote, _, _, _ in
    guard let check: AddressCheck = unsafe object(context), let remote = unsafe remote,
      let ip = unsafe IPAddress(String(cString: remote)), check.permits(ip)
    else { return CInt(CURL_PREREQFUNC_ABORT) }
    return CInt(CURL_PREREQFUNC_OK)
  }

  /// The object that libcurl was given as a context.
  private static func object<Object: AnyObject>(_ context: UnsafeMutableRawPointer?) -> Object? {
    unsafe context.map { unsafe Unmanaged.fromOpaque($0).takeUnretainedValue() }
  }

  private static func bytes(_ data: UnsafeMutablePointer<CChar>?, _ count: Int)
    -> UnsafeBufferPointer<UInt8>
  {
    unsafe UnsafeRawBufferPointer(start: data, count: count).assumingMemoryBound(to: UInt8.self)
  }
}
