#!/bin/sh
# Writes the inputs that the fuzzers begin with into Fuzz/corpus/, from the folder that CARPACK_CORPUS names. Without it
# there are only the few that are made out of nothing.
#
#   Fuzz/seed.sh [FUZZER...]
set -eu
cd "$(dirname "$0")"
built=.build/release
[ $# -gt 0 ] || set -- FuzzCBOR FuzzCAR FuzzCARStream FuzzMSTNode FuzzFrameWalk FuzzFooter FuzzIndex \
  FuzzDNS FuzzIdentity FuzzAnswer FuzzTOML FuzzProof
for fuzzer in "$@"; do
  mkdir -p "corpus/$fuzzer"
  CARPACK_SEEDS="corpus/$fuzzer" "$built/$fuzzer"
done
