#!/bin/sh
# Installs the system libraries and programs that building and testing carpack needs, and only those that are missing.
# Says nothing, and asks no package manager anything, when all is there.
set -eu

has_program() { command -v "$1" >/dev/null 2>&1; }
has_library() { has_program pkg-config && pkg-config --exists "$1"; }

# Names, as this system calls them, of what is missing. Takes for each thing: how to see it, its name, its package.
missing_packages() {
  while read -r kind name package; do
    case $kind in
      program) has_program "$name" || echo "$package" ;;
      library) has_library "$name" || echo "$package" ;;
      file) [ -e "$name" ] || echo "$package" ;;
      modules) python3 -c "import $name" 2>/dev/null || echo "$package" ;; # a minimal python3 lacks some
    esac
  done | tr '\n' ' ' | sed 's/ *$//'
}

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

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif has_program sudo; then
    sudo "$@"
  else
    echo "install-dependencies: error: root is needed to run: $*" >&2
    echo "hint: run it as root, or install sudo" >&2
    return 1
  fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

install_debian() {
  missing=$(
    missing_packages <<'END'
program make make
program git git
program pkg-config pkg-config
program zstd zstd
modules argparse,hashlib,json,mmap,subprocess python3
library libzstd libzstd-dev
library zlib zlib1g-dev
library libcrypto libssl-dev
library libxxhash libxxhash-dev
library libcurl libcurl4-openssl-dev
file /etc/ssl/certs/ca-certificates.crt ca-certificates
file /usr/include/stdlib.h libc6-dev
file /usr/include/c++ libstdc++-12-dev
END
  )
  [ -n "$missing" ] || return 0
  echo "installing: $missing"
  # Package lists may be absent (a fresh system) or old: fetch them only when the first try fails.
  # shellcheck disable=SC2086
  if ! apt_install $missing >/dev/null 2>&1; then
    quietly as_root apt-get update
    # shellcheck disable=SC2086
    quietly apt_install $missing
  fi
}

install_macos() {
  missing=$(
    missing_packages <<'END'
program pkg-config pkgconf
program zstd zstd
modules argparse,hashlib,json,mmap,subprocess python3
library libzstd zstd
library libxxhash xxhash
END
  )
  # openssl@3 is never linked into the common prefix; SwiftPM finds it by its own name.
  [ -d "$(brew --prefix 2>/dev/null)/opt/openssl@3" ] || missing="$missing openssl@3"
  [ -n "$missing" ] || return 0
  if ! has_program brew; then
    echo "install-dependencies: error: missing: $missing" >&2
    echo "hint: install Homebrew (https://brew.sh), or these packages by other means" >&2
    return 1
  fi
  echo "installing: $missing"
  # shellcheck disable=SC2086
  quietly brew install $missing
}

if ! has_program swift; then
  echo "install-dependencies: error: there is no swift in PATH" >&2
  echo "hint: install a Swift 6.2 toolchain or newer: https://www.swift.org/install" >&2
  exit 1
fi

case $(uname -s) in
  Darwin) install_macos ;;
  *)
    if has_program apt-get; then
      install_debian
    elif ! { has_library libzstd && has_library zlib && has_library libcrypto && has_library libxxhash &&
      has_library libcurl && has_program zstd && has_program python3; }; then
      echo "install-dependencies: error: this script knows apt-get and brew only" >&2
      echo "hint: install zstd, python3, pkg-config and the development files of libzstd, zlib, libcrypto (OpenSSL 3), libxxhash and libcurl" >&2
      exit 1
    fi
    ;;
esac
