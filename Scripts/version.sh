#!/bin/sh
# The version of the command: version.sh. Of a Debian package of it: version.sh debian, which says
# also which commit, unless that has the version's tag.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^ *static let version = "\(.*\)"$/\1/p' Sources/carpack/CommandLine/Program.swift)
[ -n "$version" ] || {
  echo "version: error: there is no version in Sources/carpack/CommandLine/Program.swift" >&2
  exit 1
}
if [ "${1:-}" = debian ]; then
  if ! git describe --exact-match --match "v$version" HEAD >/dev/null 2>&1 && commit=$(git rev-parse --short=7 HEAD 2>/dev/null); then
    # "~" sorts before the version itself.
    version="$version~git$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d).$commit"
  fi
  version="$version-1"
fi
echo "$version"
