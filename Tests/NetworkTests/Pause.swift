import Foundation

/// Lets time go by.
func pause(_ seconds: Double) { Thread.sleep(forTimeInterval: seconds) }
