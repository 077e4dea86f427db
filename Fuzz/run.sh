#!/bin/sh
# Builds the fuzzers, seeds them and runs each for some seconds, 600 by default, as many at a time
# as there are cores.
#
#   Fuzz/run.sh [SECONDS [FUZZER...]]
#
# A log of each is in Fuzz/logs/, and the input that ended one in Fuzz/finds/; the status is 1 if
# there is any.
set -eu
cd "$(dirname "$0")"
seconds=${1:-600}
[ $# -eq 0 ] || shift
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(ls Sources | grep -v FuzzSupport)

# The flag has to come from SwiftPM. Optimised code traps as debug code does and runs many times as
# often; testing is enabled so that the fuzzers reach what the package keeps to itself.
for fuzzer in "$@"; do
  CARPACK_BUILD_FUZZ=1 swift build -c release --sanitize=fuzzer -Xswiftc -enable-testing \
    --package-path .. --scratch-path ../.build/fuzz --product "$fuzzer"
done
./seed.sh "$@"
printf '%s\n' "$@" |
  xargs -P "$(getconf _NPROCESSORS_ONLN)" -I FUZZER ./one.sh FUZZER "$seconds"

status=0
for fuzzer in "$@"; do
  echo "$fuzzer"
  grep 'cov: ' "logs/$fuzzer.log" | tail -n 1
  grep -E '^stat::(number_of_executed_units|average_exec|peak_rss_mb)' "logs/$fuzzer.log" || true
  if ls "finds/$fuzzer"-* 2>/dev/null; then status=1; fi
done
exit $status
