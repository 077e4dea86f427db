#!/bin/sh
# Runs one fuzzer that has been built and seeded: Fuzz/one.sh FUZZER SECONDS
set -eu
cd "$(dirname "$0")"
fuzzer=$1
mkdir -p finds logs
case $fuzzer in
  FuzzCAR | FuzzCARStream) length=65536 ;;
  FuzzFrameWalk | FuzzIndex) length=8192 ;;
  FuzzFooter | FuzzDNS) length=2048 ;;
  *) length=16384 ;;
esac
# Swift's backtracer would take the signal, and libFuzzer would write no file.
export SWIFT_BACKTRACE=enable=no
# The archive fuzzer writes a file for every input.
if [ -d /dev/shm ]; then export TMPDIR="${TMPDIR:-/dev/shm}"; fi
../.build/fuzz/release/"$fuzzer" -max_total_time="$2" -timeout=5 -rss_limit_mb=512 -max_len="$length" \
  -print_final_stats=1 -artifact_prefix="finds/$fuzzer-" "corpus/$fuzzer" >"logs/$fuzzer.log" 2>&1 ||
  echo "$fuzzer found something: see Fuzz/logs/$fuzzer.log"
