#!/bin/sh
# Installs a release of carpack, which needs no compiler:
#   CARPACK_TARBALL=https://…/carpack-0.2.0-linux-x86_64.tar.gz CARPACK_SHA256=… sh install.sh
# Without CARPACK_SHA256 the digest is taken from SHA256SUMS beside the tarball, which guards
# against a broken download only. PREFIX is where it goes (default: ~/.local).
set -eu
address=${CARPACK_TARBALL:?is to be the address of a tarball}
prefix=${PREFIX:-$HOME/.local}
name=${address##*/}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

get() { curl -fsSL --proto '=https,http' --retry 2 -o "$work/$1" "${address%/*}/$1"; }
digest=${CARPACK_SHA256:-$(get SHA256SUMS && awk -v name="$name" '$2 == name { print $1 }' "$work/SHA256SUMS")}
get "$name"
found=$({ sha256sum "$work/$name" 2>/dev/null || shasum -a 256 "$work/$name"; } | cut -d ' ' -f 1)
if [ -z "$digest" ] || [ "$found" != "$digest" ]; then
  echo "install: error: $name is $found, not ${digest:-in SHA256SUMS}; nothing was installed" >&2
  exit 1
fi
mkdir "$work/carpack"
tar -xzf "$work/$name" -C "$work/carpack" --strip-components 1
mkdir -p "$prefix/share/doc/carpack"
cp -R "$work/carpack/bin" "$work/carpack/share" "$prefix"
cp -R "$work/carpack/Docs" "$work/carpack/README.md" "$prefix/share/doc/carpack"
"$prefix/bin/carpack" --version
case ":$PATH:" in *":$prefix/bin:"*) ;; *) echo "install: $prefix/bin is not in PATH" >&2 ;; esac
