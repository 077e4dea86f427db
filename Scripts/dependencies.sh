#!/bin/sh
# Says which system packages carpack still needs, and installs them if that is wanted.
#
#   dependencies.sh check       succeeds silently if nothing is missing; else names it and fails
#   dependencies.sh install     says what is missing and what it would run, then asks
#   dependencies.sh install --yes   does not ask; CI=true has the same effect for root
#
# No package manager is called while nothing is missing.
set -eu

mode=${1:-check}
yes=${2:-}
[ "${YES:-}" = 1 ] && yes=--yes

# The words for the user go to standard error, as those of make do.
say() { printf '%s\n' "$*" >&2; }
fail() {
  say "dependencies: error: $1"
  shift
  for hint in "$@"; do say "hint: $hint"; done
  exit 1
}

has_program() { command -v "$1" >/dev/null 2>&1; }
has_library() { has_program pkg-config && pkg-config --exists "$1"; }

# Reads lines "KIND NAME PACKAGE PURPOSE…" and writes "PACKAGE PURPOSE…" for each thing that is not
# there.
missing() {
  while read -r kind name package purpose; do
    case $kind in
      program) has_program "$name" ;;
      library) has_library "$name" ;;
      file) [ -e "$name" ] ;;
      modules) python3 -c "import $name" 2>/dev/null ;; # a minimal python3 lacks some
      shared) ldconfig -p 2>/dev/null | grep -q "$name" || /sbin/ldconfig -p 2>/dev/null | grep -q "$name" ;;
      brewed) [ -d "$(brew --prefix 2>/dev/null)/opt/$name" ] ;; # never linked into the common prefix
    esac || printf '%s %s\n' "$package" "$purpose"
  done
}

missing_on_debian() {
  missing <<'END'
program make make runs the verbs of the Makefile
program git git fetches the Swift packages
program pkg-config pkg-config finds the libraries
library libzstd libzstd-dev compression
library zlib zlib1g-dev reads CARs that gzip compressed
library libxxhash libxxhash-dev checksums of stored frames
library libcrypto libssl-dev SHA-256 and signatures (headers)
library libcurl libcurl4-openssl-dev HTTP (headers)
file /usr/include/isa-l/erasure_code.h libisal-dev parity, from which archives heal themselves
shared libpq.so.5 libpq5 fleets, which are kept in PostgreSQL
library sqlite3 libsqlite3-dev databases, which carpack-serve writes
file /usr/include/stdlib.h libc6-dev headers of the C library
file /usr/include/c++ libstdc++-12-dev the C++ library, which Swift's runtime needs
file /etc/ssl/certs/ca-certificates.crt ca-certificates checks the certificates of servers
program zstd zstd the tests and the demonstration compare with it
program age age the tests of sealed archives compare with it
modules argparse,hashlib,json,mmap,subprocess python3 writes man pages and packages, and reads archives in the tests
END
}

missing_on_macos() {
  missing <<'END'
program pkg-config pkgconf finds the libraries
library libzstd zstd compression
library libxxhash xxhash checksums of stored frames
brewed openssl@3 openssl@3 SHA-256 and signatures
brewed isa-l isa-l parity, from which archives heal themselves
program zstd zstd the tests and the demonstration compare with it
program age age the tests of sealed archives compare with it
modules argparse,hashlib,json,mmap,subprocess python3 writes man pages and packages, and reads archives in the tests
END
}

# Runs a command, and shows what it said only if it fails.
quietly() {
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    rm -f "$log"
  else
    status=$?
    cat "$log" >&2
    rm -f "$log"
    return "$status"
  fi
}

# How root's commands are run by this user: nothing, "sudo", or "sudo -n" where nobody can type a
# password. Empty-handed, it says who could.
privilege() {
  if [ "$(id -u)" -eq 0 ]; then
    echo env
  elif ! has_program sudo; then
    fail "only root can install packages, and there is no sudo" "as root, run: $1"
  elif [ -t 0 ]; then
    echo sudo
  elif sudo -n true 2>/dev/null; then
    echo sudo -n
  else
    fail "sudo asks for a password, and there is no terminal to type it" "run: sudo $1"
  fi
}

install_on_debian() {
  as_root=$(privilege "apt-get install $*") || exit 1
  apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get"
  # The package lists of a fresh system are absent, and old ones name files that are gone: fetch
  # them only when the first try fails.
  # shellcheck disable=SC2086
  $apt install -y --no-install-recommends "$@" >/dev/null 2>&1 && return
  # shellcheck disable=SC2086
  quietly $apt update
  # shellcheck disable=SC2086
  quietly $apt install -y --no-install-recommends "$@"
}

install_on_macos() {
  has_program brew || fail "there is no Homebrew to install packages with" \
    "install it (https://brew.sh), or install these by other means: $*"
  quietly brew install "$@"
}

case $mode in check | install) ;; *) fail "usage: dependencies.sh check|install [--yes]" ;; esac
case $yes in '' | --yes) ;; *) fail "unknown option: $yes" "usage: dependencies.sh check|install [--yes]" ;; esac
[ "${CI:-}" = true ] && [ "$(id -u)" -eq 0 ] && yes=--yes

has_program swift || fail "swift is not installed, or not in PATH" \
  "install a Swift toolchain, 6.2 or newer: https://www.swift.org/install"

if [ "$(uname -s)" = Darwin ]; then
  system=macos install='brew install' list=$(missing_on_macos)
elif has_program apt-get; then
  system=debian install='apt-get install' list=$(missing_on_debian)
  if [ "$(id -u)" -ne 0 ] && has_program sudo; then install="sudo $install"; fi
else
  for library in libzstd zlib libxxhash libcrypto libcurl; do
    has_library "$library" || fail "$library is missing (or pkg-config, which finds it), and there is neither apt-get nor brew" \
      "install git, zstd, python3, pkg-config and the development files of libzstd, zlib, libxxhash, OpenSSL 3, libcurl, ISA-L and libstdc++"
  done
  for program in git zstd python3; do
    has_program "$program" || fail "$program is missing, and there is neither apt-get nor brew to install it with"
  done
  list=
fi

if [ -z "$list" ]; then
  [ "$mode" = check ] || say "dependencies: nothing is missing"
  exit 0
fi
# One thing may be needed for two reasons.
packages=$(printf '%s\n' "$list" | awk '!seen[$1]++ { printf "%s%s", separator, $1; separator = " " }')

if [ "$mode" = check ]; then
  fail "these packages are missing: $packages" \
    "\"make dependencies\" says what each is for and installs them; or run: $install $packages"
fi

say "These packages are missing:"
printf '%s\n' "$list" | awk '!seen[$1]++ { name = $1; sub(/^[^ ]+ /, ""); printf "  %-22s %s\n", name, $0 }' >&2
if [ "$yes" != --yes ]; then
  if ! [ -t 0 ]; then
    fail "nothing was installed: there is no terminal to ask" "run \"make dependencies YES=1\", or: $install $packages"
  fi
  printf 'Run "%s %s" now? [y/N] ' "$install" "$packages" >&2
  read -r answer || answer=
  case $answer in [yY] | [yY][eE][sS]) ;; *) fail "nothing was installed" ;; esac
fi
say "installing: $packages"
# shellcheck disable=SC2086
"install_on_$system" $packages || fail "they could not be installed" "run: $install $packages"
say "dependencies: installed"
