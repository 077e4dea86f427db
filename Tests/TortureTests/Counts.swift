/// What was done to archives, for the line that says so.
struct Counts: CustomStringConvertible {
  var faults = 0
  var losses = 0
  var recoveries = 0
  var adopted: UInt64 = 0

  mutating func add(_ aftermath: Aftermath) {
    faults += aftermath.faultCount
    losses += aftermath.lossCount
    recoveries += aftermath.recoveryCount
    adopted += aftermath.adoptedCount
  }

  var description: String {
    "\(faults) faults injected, the power lost \(losses) times, \(recoveries) recoveries that took over \(adopted) sections"
  }
}
