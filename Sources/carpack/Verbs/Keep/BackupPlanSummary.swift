internal import ATProtocol
internal import IPLD
internal import Live

/// What a backup would do, as a person reads it.
struct BackupPlanSummary {
  private let plan: BackupPlan

  init(_ plan: BackupPlan) { self.plan = plan }

  /// Prints it: one line, or all that there is to say.
  func print(isShort: Bool) {
    guard !isShort else {
      let rest = plan.repository == .recent ? "" : "; blobs: \(blobs)"
      Console.print("\(plan.name): repository: \(repository)\(rest)")
      return
    }
    Console.print("\(plan.name): \(plan.exists ? "exists" : "would be new")")
    let name = plan.handle.map { "\($0) (\(plan.did))" } ?? plan.did.text
    Console.print("  \(name)\(plan.server.map { ", from \($0)" } ?? "")")
    Console.print("  repository: \(repository)")
    guard plan.repository != .recent else { return }
    Console.print("  blobs: \(blobs)")
  }

  private var repository: String {
    let held = plan.heldRevision.map { " (\($0))" } ?? ""
    switch plan.repository {
    case .first: return "all of it; its size is known once it is fetched"
    case .unchanged: return "unchanged\(held)"
    case .changed:
      return
        "what changed\(plan.heldRevision.map { " since \($0)" } ?? "")\(plan.newestRevision.map { ", to \($0)" } ?? "")"
    case .unknown: return "the server does not say whether it changed\(held)"
    case .recent: return "recent, nothing is asked\(held)"
    }
  }

  private var blobs: String {
    let blobs = plan.blobs
    var text = blobs.listed.map { "\(Quantity.grouped($0)) listed, " } ?? ""
    text += "\(Quantity.grouped(blobs.wanted)) to fetch"
    guard blobs.wanted > 0 else { return text }
    let sized = blobs.wanted - blobs.unsized
    if sized == 0 { return text + ", of unknown size" }
    text += ", \(Quantity.bytes(blobs.declaredBytes)) declared"
    return blobs.unsized == 0
      ? text : text + " and \(Quantity.grouped(blobs.unsized)) of unknown size"
  }
}
