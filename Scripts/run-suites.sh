#!/usr/bin/env bash
# Runs the suites of .build/tests, in several processes at a time, since many tests wait for servers
# and programs:
#
#   run-suites.sh [REGULAR EXPRESSION]    all suites, or the tests that match
#   BESIDE="VERB …" run-suites.sh         all suites, and verbs of the Makefile at the same time
#   BEHIND="VERB …" run-suites.sh         … and verbs that begin when the suites that wait for servers
#                                         have ended: they would take the cores from these
#
# Each process runs the suites of some targets, and the last one all that the others leave out. What
# each said follows when it has ended; the last line has the number of tests of all together. Logs
# are in .build/tests/logs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What takes long, each by the beginning of its tests' names; what fits two belongs to the first.
# Those that wait for servers and programs come first, and a process has no more threads for them
# than there are cores. The others compute: they give way.
waiting=('^NetworkTests\.`A ' '^NetworkTests\.`(An|Backing) ' '^NetworkTests\.' '^FleetTests\.' '^CommandTests\.')
computing=('^ArchiveTests\.`A damaged ' '^SealingTests\.' '^TortureTests\.`An archive to which one thing ' '^TortureTests\.' '^BackupTests\.`A ' '^BackupTests\.')
parts=("${waiting[@]}" "${computing[@]}")
logs=.build/tests/logs
program=.build/tests/release/carpackPackageTests.xctest
# A build that runs beside makes the link .build/tests/release again, and for a moment nothing is
# there.
[ -z "${CARPACK_BIN:-}" ] || CARPACK_BIN=$(readlink -f "$CARPACK_BIN")

# All tests of a process would begin at once, and each then wait minutes for its turn while servers
# and deadlines of its own run: so many at a time.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=8
# Of each error that is thrown, the runner would keep a backtrace: suites that throw errors by the
# ten thousand would take three times as long.
export SWT_SWIFT_ERROR_BACKTRACING_ENABLED=0

# swift test would have all but one of them wait for its lock of the folder; the bundles of macOS
# are run by it alone.
run() {
  if [ -f "$program" ]; then
    nice -n "${niceness:-0}" "$program" --testing-library swift-testing "$@"
  else
    CARPACK_TESTED=1 CARPACK_BUILD_SERVE=1 "${SWIFT:-swift}" test -c release --scratch-path .build/tests --skip-build "$@"
  fi
}

rm -rf "$logs"
mkdir -p "$logs"
if [ $# -gt 0 ]; then
  run --filter "$1"
  exit
fi

beside=()
verbs=()
begin() {
  for verb in $1; do
    make "$verb" >"$logs/$verb.output" 2>&1 &
    beside+=($!)
    verbs+=("$verb")
  done
}
begin "${BESIDE:-}"
processes=()
begun='^$'
for number in "${!parts[@]}"; do
  [ "$number" -lt "${#waiting[@]}" ] || niceness=10
  run --filter "${parts[$number]}" --skip "$begun" >"$logs/$number.log" 2>&1 &
  processes+=($!)
  begun="$begun|${parts[$number]}"
done
run --skip "$begun" >"$logs/${#parts[@]}.log" 2>&1 &
processes+=($!)

failed=0
for number in "${!processes[@]}"; do
  [ "$number" -ne "${#waiting[@]}" ] || begin "${BEHIND:-}"
  wait "${processes[$number]}" || failed=1
  cat "$logs/$number.log"
done
for ((number = 0; number < ${#verbs[@]}; number++)); do
  wait "${beside[$number]}" || failed=1
  cat "$logs/${verbs[$number]}.output"
done

# Swift Testing's closing lines, told from the lines of the single tests by their words.
closing='Test run with [0-9]+ tests? .*(passed|failed) after'
if [ "$(grep -lE "$closing" "$logs"/*.log | wc -l)" -ne "${#processes[@]}" ]; then
  echo 'run-suites: error: a process has not come to its end' >&2
  failed=1
fi
count=$(grep -hoE "$closing" "$logs"/*.log | awk '{ sum += $4 } END { print sum + 0 }' || true)
word=passed
if [ "$failed" -ne 0 ]; then
  word=failed
  # What failed, once more: a reader of the end of a long log sees it.
  grep -hE -A 8 'recorded an issue|^error:|Fatal error' "$logs"/*.log | tail -n 80 || true
fi
echo "Test run with $count tests in ${#processes[@]} processes $word after $SECONDS seconds." | tee "$logs/summary"
exit "$failed"
