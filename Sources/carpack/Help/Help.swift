/// The texts of `--help` that verbs have in common.
enum Help {
  /// Variables that a verb looks at.
  enum Variables {
    /// Those of a verb that reads no configuration.
    case terminal
    /// Those of every other verb.
    case common
    /// Those of a verb that writes archives, too.
    case writing
    /// Those of a verb that asks servers, too.
    case network
    /// Those of a verb that signs what it wrote, too.
    case signing
    /// Those of a verb that gives an account back to a server.
    case restoring
    /// Those of a verb that sends archives elsewhere or fetches them.
    case store
    /// Those of a verb of a fleet.
    case fleet
    /// Those of a verb that goes on as carpack-serve.
    case serving

    fileprivate var lines: [String] {
      let terminal = [
        "NO_COLOR                 no colours, if it has text",
        "TERM=dumb                no colours and no progress",
      ]
      let common =
        terminal + [
          "XDG_CONFIG_HOME          where carpack/config.toml is, else ~/.config"
        ]
      let writing = [
        "SOURCE_DATE_EPOCH        the time to write, in seconds since 1970"
      ]
      let network = [
        "CARPACK_PDS_URL          as --pds", "CARPACK_PLC_URL          as --plc",
        "CARPACK_HANDLE_RESOLVER  as --resolver", "CARPACK_DNS_URL          as --dns",
        "CARPACK_CA_FILE          as --ca-file", "CARPACK_PINS             as --pin",
        "CARPACK_APP_PASSWORD     the app password for --login",
        "HTTPS_PROXY, NO_PROXY    the proxy, and the hosts to reach without it",
      ]
      let signing = [
        "CARPACK_KEY_PASSPHRASE   the passphrase of the key for --sign-head"
      ]
      let restoring = [
        "CARPACK_PASSWORD         the account's own password for --login",
        "CARPACK_NEW_PASSWORD     the password on the new server",
        "CARPACK_KEY_PASSPHRASE   the passphrase of a key file",
      ]
      let serving = [
        "CARPACK_SERVE            where the program carpack-serve is, if not beside this one",
        "TMPDIR                   where repositories are laid out, else /var/tmp",
      ]
      let store = [
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE,",
        "AWS_REGION, AWS_ENDPOINT_URL  as Amazon's tools have them",
        "CARPACK_CA_FILE          the certificates to trust, instead of the system's",
        "XDG_CACHE_HOME           where it is noted that something is sent, else ~/.cache",
        "TMPDIR                   where what is fetched is kept meanwhile, else /var/tmp",
      ]
      let fleet = [
        "CARPACK_DATABASE         as --database",
        "PGPASSWORD, PGPASSFILE, PGSSLMODE  as PostgreSQL's tools have them",
      ]
      return switch self {
      case .terminal: terminal
      case .common: common
      case .writing: common + writing
      case .network: common + writing + network
      case .signing: common + writing + network + signing
      case .restoring:
        common + writing + network.filter { !$0.hasPrefix("CARPACK_APP_PASSWORD") } + restoring
      case .store: common + store
      case .fleet: common + fleet + store + network
      case .serving: common + serving
      }
    }
  }

  /// How long a line of an example may be: a terminal's 80 columns less what stands in front.
  private static let maximumLine = 76

  /// An example as lines that can be copied: one that is too long goes on behind a backslash.
  private static func lines(_ example: String) -> [String] {
    var lines: [String] = []
    var line = " "
    var isQuoted = false
    for word in example.split(separator: " ") {
      defer { if !word.count(where: { $0 == "\"" }).isMultiple(of: 2) { isQuoted.toggle() } }
      if !isQuoted, line.count + word.count + 3 > maximumLine {
        lines.append(line + " \\")
        line = "     "
      }
      line += " \(word)"
    }
    return lines + [line]
  }

  /// What stands below the abstract of a verb: the text, examples and the environment.
  static func discussion(
    _ text: String, examples: [String], environment: Variables = .common
  ) -> String {
    ([text, "", "EXAMPLES"] + examples.flatMap(lines) + ["", "ENVIRONMENT"]
      + environment.lines.map { "  \($0)" }).joined(separator: "\n")
  }
}
