internal import CResolv
internal import Dispatch
internal import IPLD
internal import Synchronization

/// The system's DNS resolver, which goes by `resolv.conf`.
///
/// The C function is `res_nquery`. It blocks, so each question has a thread of its own, which is
/// abandoned if it takes too long.
package struct SystemDNS: TXTResolver {
  /// How long an answer is waited for.
  package static let timeLimit: Duration = .seconds(5)
  /// How long one server of `resolv.conf` is given, in seconds.
  private static let serverSeconds: CInt = 2
  /// The longest answer that is read; a longer one is cut off, and is malformed then.
  private static let maximumAnswer = 1 << 16

  /// The resolver.
  package init() {}

  /// The TXT records of a name; as ``TXTResolver/records(of:)`` says.
  package func records(of name: String) async throws -> [String] {
    let answer = Awaited<[String]>()
    return try await answer.value(within: Self.timeLimit, else: DNSError.noAnswer) {
      DispatchQueue(label: "carpack.dns").async {
        answer.give(Result { () throws(DNSError) in try Self.query(name) }.mapError { $0 })
      }
    }
  }

  private static func query(_ name: String) throws(DNSError) -> [String] {
    // A name with a dot at its end is not looked for under the system's own domains.
    var message = [UInt8](repeating: 0, count: maximumAnswer)
    var error: CInt = 0
    let length = unsafe carpack_txt_query(
      name + ".", &message, CInt(message.count), serverSeconds, &error)
    guard length >= 0 else {
      switch error {
      case HOST_NOT_FOUND, NO_DATA: return []
      case TRY_AGAIN: throw .noAnswer
      default: throw .failed(code: 2)
      }
    }
    return try DNSMessage.txtRecords(in: message.span.extracting(first: Int(length)))
  }
}
