internal import ATProtocol
package import HTTP
package import IPLD

/// `com.atproto.repo.uploadBlob`: a blob for records to refer to.
///
/// The server keeps the media type of the first upload of the same bytes.
package struct UploadBlob: XRPCUpload {
  /// Its name.
  package var nsid: String { "com.atproto.repo.uploadBlob" }
  /// Five minutes: a server may have to hand a video on to where it keeps them.
  package static let patience = 300

  /// The bytes.
  package var body: RequestBody
  /// The media type that records name.
  package var contentType: String

  /// Sends a blob.
  package init(_ body: RequestBody, contentType: String) {
    self.body = body
    self.contentType = contentType
  }

  /// The CID that an answer gives for what was sent.
  ///
  /// - Throws: ``AnswerFault`` if it gives none.
  package static func cid(in answer: [UInt8]) throws(AnswerFault) -> CID {
    let json: IPLDValue
    do throws(JSONError) {
      json = try DataModelJSON.decode(answer)
    } catch {
      throw AnswerFault("it is not JSON: \(error)")
    }
    guard case .link(let cid)? = json["blob"]?["ref"] else {
      throw AnswerFault("it names no blob")
    }
    return cid
  }
}
