#!/usr/bin/env bash
# Backups from a server on loopback, against curl and against themselves, in the same run:
# network.sh COMMAND STAND-IN
#
# BLOBS=2000, ROUNDS=5 (the median counts), SERIAL=100 (how many blobs come one at a time) and
# FOLDER=Benchmarks/data may be set: there
# is what is made, two gigabytes at the most, and it is deleted.
set -euo pipefail
command=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
stand_in=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
cd "$(dirname "${BASH_SOURCE[0]}")"
blobs=${BLOBS:-2000}
rounds=${ROUNDS:-5}
serial=${SERIAL:-100}
size=300000
out=${FOLDER:-$PWD/data}/carpack-network
# The user's own configuration does not count.
export LC_ALL=C XDG_CONFIG_HOME=$out/no-configuration
TIMEFORMAT=%R

time=/usr/bin/time
for program in curl "$time"; do
  if ! command -v "$program" >/dev/null; then
    echo "network: error: there is no $program to measure with" >&2
    exit 1
  fi
done

server=
stop() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
  fi
}
trap 'stop; rm -rf "$out"' EXIT

# Starts the stand-in with one account, as the options say.
serve() {
  stop
  rm -rf "$out"
  mkdir -p "$out"
  touch "$out/server"
  "$stand_in" serve --accounts 1 "$@" >"$out/server" &
  server=$!
  until did=$(sed -n 's/^account-0.example.com //p' "$out/server") && [ -n "$did" ]; do
    kill -0 "$server"
    sleep 0.05
  done
  url=$(head -n 1 "$out/server")
  export CARPACK_PLC_URL=$url CARPACK_HANDLE_RESOLVER=$url
}

backup() {
  "$command" backup -q account-0.example.com --connections "$1" -o "$out/live.car.zst"
}

# All blobs of the account, page by page, as curl wants to be told.
list() {
  local cursor='' page
  while true; do
    page=$(curl -sS --fail "$url/xrpc/com.atproto.sync.listBlobs?did=$did&limit=1000$cursor")
    grep -o 'bafkrei[a-z2-7]*' <<<"${page%%]*}" |
      sed "s|.*|url = \"$url/xrpc/com.atproto.sync.getBlob?did=$did\&cid=&\"\noutput = \"$out/files/&\"|"
    cursor=$(sed -n 's/.*"cursor": *"\([^"]*\)".*/\&cursor=\1/p' <<<"$page")
    if [ -z "$cursor" ] || ! grep -q bafkrei <<<"${page%%]*}"; then break; fi
  done
}

# The same blobs, each into a file.
fetch() {
  mkdir "$out/files"
  curl -sS --fail --parallel --parallel-max 16 --config "$out/list" 2>"$out/errors" || cat "$out/errors" >&2
}

# The seconds that something takes.
exec 3>&2
seconds() {
  rm -rf "$out/files" "$out/live.car.zst"
  { time "$@" >/dev/null 2>&3; } 2>&1
}

median() { sort -n | awk '{ t[NR] = $1 } END { print (t[int((NR + 1) / 2)] + t[int(NR / 2) + 1]) / 2 }'; }

serve --blobs "$blobs" --blob-size "$size"
list >"$out/list"
for _ in $(seq "$rounds"); do
  seconds backup 16 >>"$out/ours"
  seconds fetch >>"$out/theirs"
done
if [ "$(ls "$out/files" | wc -l)" -ne "$blobs" ]; then
  echo "network: error: curl has not fetched all of the $blobs blobs" >&2
  exit 1
fi
awk -v n="$blobs" -v ours="$(median <"$out/ours")" -v theirs="$(median <"$out/theirs")" 'BEGIN {
  printf "%d blobs of 300 kB, no latency: %.3f s; curl into files: %.3f s; %.2f ×   at most 1.5\n", n, ours, theirs, ours / theirs }'

# All of them one at a time would take minutes: it is some of them, without what a backup of none
# takes, and counted up.
serve --latency 50 --blobs "$blobs" --blob-size "$size"
many=$(seconds backup 16)
serve --latency 50 --blobs "$serial" --blob-size "$size"
some=$(seconds backup 1)
serve --latency 50
none=$(seconds backup 1)
awk -v n="$blobs" -v m="$serial" -v many="$many" -v some="$some" -v none="$none" 'BEGIN {
  one = none + (some - none) * n / m
  printf "%d blobs of 300 kB, 50 ms latency: %.3f s; with one connection: %.1f s; %.1f ×   at least 12\n", n, many, one, one / many }'

# What the kernel has counted for a backup: the most memory, in KiB, and what was written to the
# disk, in blocks of 512 bytes.
count() {
  "$time" -f '%M %O' -o "$out/counted" "$command" backup -q account-0.example.com -o "$out/live.car.zst"
  read -r memory blocks <"$out/counted"
  awk -v name="$1" -v memory="$memory" -v blocks="$blocks" -v size="$(wc -c <"$out/live.car.zst")" 'BEGIN {
    printf "600 MB in blobs of up to %s: %.1f MiB of memory   at most 64", name, memory / 1024
    if (blocks > 0) printf "; %.3f bytes written for one of the archive", 512 * blocks / size
    print "" }'
}

# What is longer than 4 MiB, and comes while the archive is being written to, is written twice.
serve --blobs 100 --blob-size "$size" --large 140x4000000 --large 10x1000000
count "4 MB"
serve --blobs 80 --blob-size "$size" --large 19x4000000 --large 1x200000000 --large 1x300000000
count "300 MB"
