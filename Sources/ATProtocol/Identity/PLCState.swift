package import IPLD

/// What an operation of a PLC log says of an account: who may change it, its names, its keys, its
/// servers.
///
/// Everything is kept, unknown entries included, so that the next operation changes only what it is
/// meant to change.
package struct PLCState: Hashable, Sendable {
  /// The keys that may sign what follows, in the order of their authority, as `did:key:…`.
  package var rotationKeys: [String]
  /// Its names, the first that is a handle being the one it goes by: `at://alice.example.com`.
  package var alsoKnownAs: [String]
  /// Its keys by their names, as `did:key:…`; `atproto` signs the repository.
  package var verificationMethods: [String: String]
  /// Its servers by their names; `atproto_pds` keeps the repository.
  package var services: [String: Service]

  /// A server.
  package struct Service: Hashable, Sendable {
    /// Its type, such as `AtprotoPersonalDataServer`.
    package var type: String
    /// Its URL.
    package var endpoint: String

    /// A server.
    package init(type: String, endpoint: String) {
      self.type = type
      self.endpoint = endpoint
    }

    /// A personal data server.
    package static func pds(_ endpoint: String) -> Service {
      Service(type: "AtprotoPersonalDataServer", endpoint: endpoint)
    }
  }

  /// The name of the key that signs the repository.
  package static let signingKeyName = "atproto"
  /// The name of the server that keeps the repository.
  package static let pdsName = "atproto_pds"

  /// What an operation of the log says; nil for a tombstone, or what is not an operation.
  ///
  /// An operation of 2022 is read as the directory reads it.
  package init?(_ operation: IPLDValue) {
    switch operation["type"]?.string {
    case "create":
      guard let key = operation["signingKey"]?.string,
        let recovery = operation["recoveryKey"]?.string, let handle = operation["handle"]?.string,
        let service = operation["service"]?.string
      else { return nil }
      rotationKeys = [recovery, key]
      alsoKnownAs = [handle.hasPrefix("at://") ? handle : "at://" + handle]
      verificationMethods = [Self.signingKeyName: key]
      let endpoint = service.contains("://") ? service : "https://" + service
      services = [Self.pdsName: .pds(endpoint)]
    case "plc_operation":
      guard let state = Self(fields: operation) else { return nil }
      self = state
    default: return nil
    }
  }

  /// What the four fields say; nil if one is missing or malformed.
  private init?(fields: IPLDValue) {
    guard let keys = fields["rotationKeys"]?.array, let names = fields["alsoKnownAs"]?.array,
      let methods = fields["verificationMethods"]?.map, let services = fields["services"]?.map
    else { return nil }
    rotationKeys = keys.compactMap(\.string)
    alsoKnownAs = names.compactMap(\.string)
    verificationMethods = [:]
    for entry in methods.entries { verificationMethods[entry.key] = entry.value.string }
    self.services = [:]
    for entry in services.entries {
      guard let type = entry.value["type"]?.string, let endpoint = entry.value["endpoint"]?.string
      else { return nil }
      self.services[entry.key] = Service(type: type, endpoint: endpoint)
    }
    guard rotationKeys.count == keys.count, alsoKnownAs.count == names.count,
      verificationMethods.count == methods.keys.count
    else { return nil }
  }

  /// The four fields as an operation has them.
  package var fields: IPLDMap {
    var methods: IPLDMap = [:]
    for (name, key) in verificationMethods { methods[name] = .string(key) }
    var services: IPLDMap = [:]
    for (name, service) in self.services {
      let fields: IPLDMap = ["type": .string(service.type), "endpoint": .string(service.endpoint)]
      services[name] = .map(fields)
    }
    return [
      "rotationKeys": .array(rotationKeys.map { .string($0) }),
      "alsoKnownAs": .array(alsoKnownAs.map { .string($0) }),
      "verificationMethods": .map(methods), "services": .map(services),
    ]
  }

  /// The server that keeps the repository.
  package var pds: String? { services[Self.pdsName]?.endpoint }
  /// The key that signs the repository.
  package var signingKey: String? { verificationMethods[Self.signingKeyName] }
}

extension PLCState {
  /// The differences to another state, a line for each change.
  package func changes(to other: PLCState) -> [String] {
    var lines: [String] = []
    func compare(_ what: String, _ old: [String], _ new: [String]) {
      for item in old where !new.contains(item) { lines.append("- \(what) \(item)") }
      for item in new where !old.contains(item) { lines.append("+ \(what) \(item)") }
      if old != new, Set(old) == Set(new) { lines.append("~ \(what) in another order") }
    }
    compare("rotation key", rotationKeys, other.rotationKeys)
    compare("name", alsoKnownAs, other.alsoKnownAs)
    func list(_ keys: [String: String]) -> [String] {
      keys.map { "\($0.key) \($0.value)" }.sorted()
    }
    compare("key", list(verificationMethods), list(other.verificationMethods))
    compare(
      "server", list(services.mapValues(\.endpoint)), list(other.services.mapValues(\.endpoint)))
    return lines
  }
}

/// What an operation must contain so that a server can act for an account.
package struct PLCCredentials: Hashable, Sendable {
  /// The account's name on the server; nil if the server recommends none.
  package var handle: String?
  /// The key with which it signs the repository.
  package var signingKey: String
  /// The keys with which it signs operations.
  package var rotationKeys: [String]
  /// The server.
  package var pds: PLCState.Service

  /// Reads what a server recommends; nil if something necessary is missing.
  package init?(_ json: IPLDValue) {
    guard let key = json["verificationMethods"]?[PLCState.signingKeyName]?.string,
      let service = json["services"]?[PLCState.pdsName], let type = service["type"]?.string,
      let endpoint = service["endpoint"]?.string
    else { return nil }
    handle = json["alsoKnownAs"]?.array?.compactMap(\.string).first { $0.hasPrefix("at://") }
    signingKey = key
    rotationKeys = (json["rotationKeys"]?.array ?? []).compactMap(\.string)
    pds = PLCState.Service(type: type, endpoint: endpoint)
  }
}

extension PLCState {
  /// The state after a move to a server, in which nothing else is lost.
  ///
  /// The server's rotation keys come after the owner's, which stay above every server's, and before
  /// those of the server that the account leaves.
  ///
  /// - Parameters:
  ///   - credentials: what the server recommends.
  ///   - owners: the keys that are the owner's, and no server's.
  ///   - former: the handle that is given up; it is replaced where it stands.
  package func moved(to credentials: PLCCredentials, owners: Set<String>, givingUp former: String?)
    -> PLCState
  {
    var state = self
    let new = credentials.rotationKeys
    var seen: Set<String> = []
    let keys =
      rotationKeys.filter { owners.contains($0) } + new.filter { !owners.contains($0) }
      + rotationKeys.filter { !owners.contains($0) && !new.contains($0) }
    // The directory takes a key twice, and the specification forbids it.
    state.rotationKeys = keys.filter { seen.insert($0).inserted }
    state.verificationMethods[Self.signingKeyName] = credentials.signingKey
    state.services[Self.pdsName] = credentials.pds
    if let handle = credentials.handle {
      state.alsoKnownAs.removeAll { $0 == handle || $0 == former }
      state.alsoKnownAs.insert(handle, at: 0)
    }
    return state
  }
}
