#!/usr/bin/env bash
# Whole commands against the programs they are to be measured by, CPU time in the same run: measure.sh COMMAND
#
# RECORDS=100000, MEDIA=500 (megabytes of images) and RUNS=3 (the best one counts) may be set. What is made stays in Benchmarks/data.
set -euo pipefail
command=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
records=${RECORDS:-100000}
media=${MEDIA:-500}
runs=${RUNS:-3}
TIMEFORMAT='%U %S'

for program in openssl zstd; do
  if ! command -v "$program" >/dev/null; then
    echo "measure: error: there is no $program to measure against" >&2
    exit 1
  fi
done

# The least CPU time of some runs, in seconds.
cost() {
  for _ in $(seq "$runs"); do
    { time "$@" >/dev/null 2>&1; } 2>&1
  done | awk '{ t = $1 + $2; if (NR == 1 || t < least) least = t } END { printf "%.3f", least }'
}

# NAME OURS THEIRS LIMIT: a line of the table.
compare() {
  awk -v name="$1" -v ours="$2" -v theirs="$3" -v limit="$4" \
    'BEGIN { printf "%-46s %8.3f s %8.3f s %7.2f ×   at most %s\n", name, ours, theirs, (theirs > 0 ? ours / theirs : 0), limit }'
}

mkdir -p data
car=data/$records.car
if [ ! -e "$car" ] || [ ! -d "data/media-$media" ]; then
  swift build -c release --product generate-repository
  generate=.build/release/generate-repository
  [ -e "$car" ] || "$generate" --records "$records" --seed 1 -o "$car"
  if [ ! -d "data/media-$media" ]; then
    # 50 kB an image on average, one to a post.
    "$generate" --records $((media * 20)) --seed 2 --posts 100 --images 100 --images-per-post 1 \
      --blobs "data/media-$media" -o "data/media-$media.car"
  fi
fi

rm -f data/*.car.zst
"$command" pack "$car" -o data/records.car.zst >/dev/null 2>&1 || [ $? -eq 10 ]
"$command" pack "data/media-$media.car" --blobs "data/media-$media" -o data/media.car.zst >/dev/null 2>&1
blob=$("$command" ls --blobs data/media.car.zst | awk 'NR == 1 { print $2 }')

printf '%-46s %10s %10s\n' "CPU time, the best of $runs" carpack other
hash=$(cost openssl dgst -sha256 "$car")
compare "inspect $records records : openssl sha256" "$(cost "$command" inspect "$car")" "$hash" 5
compare "pack $records records : zstd -3 -T1" \
  "$(cost "$command" pack --force "$car" -o data/records.car.zst)" "$(cost zstd -3 -T1 -qf "$car" -o data/other.zst)" 1.5
compare "verify $media MB of media : openssl sha256" \
  "$(cost "$command" verify data/media.car.zst)" "$(cost openssl dgst -sha256 data/media.car.zst)" 1.43
printf '%-46s %8.3f s\n' "cat of one blob among $((media * 20))" "$(cost "$command" cat data/media.car.zst "$blob")"

size() { wc -c <"$1" | tr -d ' '; }
zstd -19 --long=27 -qf "$car" -o data/other.zst
awk -v ours="$(size data/records.car.zst)" -v theirs="$(size data/other.zst)" \
  'BEGIN { printf "size of %s: %.1f %% over zstd -19 --long=27\n", "the records and their index", 100 * (ours / theirs - 1) }'
rm -f data/other.zst
