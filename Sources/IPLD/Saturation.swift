/// Arithmetic on numbers that a file gives: what is more than a number can be is the greatest there
/// is.
extension FixedWidthInteger where Self: UnsignedInteger {
  /// The sum, or the greatest number there is.
  @inlinable
  package func addingSaturated(_ other: Self) -> Self {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }

  /// The product, or the greatest number there is.
  @inlinable
  package func multipliedSaturated(by other: Self) -> Self {
    let (product, overflow) = multipliedReportingOverflow(by: other)
    return overflow ? .max : product
  }
}
