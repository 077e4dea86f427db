/// A server on loopback for tests.
public final class StandInServer: Sendable {}
