#!/bin/sh
# Writes the inputs that the fuzzers begin with into Fuzz/corpus/, from the folder that
# CARPACK_CORPUS names. Without it there are only the few that are made out of nothing.
#
#   Fuzz/seed.sh [FUZZER...]
set -eu
cd "$(dirname "$0")"
built=../.build/fuzz/release
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(ls Sources | grep -v FuzzSupport)
for fuzzer in "$@"; do
  mkdir -p "corpus/$fuzzer"
  CARPACK_SEEDS="corpus/$fuzzer" "$built/$fuzzer"
done
