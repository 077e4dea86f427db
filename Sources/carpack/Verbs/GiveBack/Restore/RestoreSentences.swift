internal import ATProtocol
internal import Restore

extension RestoreQuestion {
  /// The step that it is about, and what is going to happen, as a question.
  var asked: (step: RestoreCommand.Step, sentence: String) {
    switch self {
    case .identity:
      (
        .identity,
        "Send this operation? It decides where the account lives, and cannot be taken back"
      )
    case .rewriting(let count):
      (.rewrite, "Delete the records whose blobs the server lost (\(count)), and write them again?")
    case .signing:
      (
        .sign,
        "Write a record on the new server and delete it again, so that it signs the repository?"
      )
    case .writing(let written, let deleted):
      (.write, "Write \(written) records and delete \(deleted)?")
    case .activation: (.activate, "Activate the account on the new server?")
    case .deactivation: (.deactivateOld, "Deactivate the account on the old server?")
    case .deletion(let time):
      (.deleteOld, "Let the old server delete the account after \(time)?")
    }
  }
}
