#!/bin/sh
# Checks how programs for Linux are linked: check-hardening.sh PROGRAM …
# Position-independent; all symbols bound at the start, and their table read-only from then on; no
# stack that can be executed; no code that is relocated; no folder of libraries of their own.
set -eu
failed=0
for program; do
  header=$(readelf -hW "$program") segments=$(readelf -lW "$program") dynamic=$(readelf -dW "$program")
  # NAME, then a command that succeeds if it is so.
  expect() {
    name=$1
    shift
    "$@" && return
    echo "check-hardening: error: $program: $name" >&2
    failed=1
  }
  has() { printf '%s\n' "$1" | grep -Eq "$2"; }
  lacks() { ! has "$1" "$2"; }
  expect 'it is not position-independent' has "$header" 'Type: +DYN'
  expect 'it does not say that it is position-independent' has "$dynamic" 'FLAGS_1.*PIE'
  expect 'no part of it is read-only after relocation' has "$segments" 'GNU_RELRO'
  expect 'symbols are bound lazily' has "$dynamic" 'FLAGS_1.*NOW|BIND_NOW'
  expect 'the stack can be executed' has "$segments" 'GNU_STACK.* RW +'
  expect 'code is relocated' lacks "$dynamic" 'TEXTREL'
  expect 'it looks for libraries in folders of its own' lacks "$dynamic" 'R(UN)?PATH'
  expect 'a segment can be written and executed' lacks "$segments" 'LOAD.* RWE'
done
exit "$failed"
