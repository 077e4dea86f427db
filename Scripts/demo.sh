#!/bin/sh
# The main job from end to end, on the account in Fixtures/alice: demo.sh COMMAND STAND-IN
# First from a server, the stand-in of the tests on loopback; then from files.
# Run from the top folder; what it makes stays in .build/demo.
set -eu
command=$1
stand_in=$2
account=Fixtures/alice
out=.build/demo
# The user's own configuration does not count.
export XDG_CONFIG_HOME="$PWD/$out/no-configuration"

show() {
  printf '\n$ %s\n' "$*"
  if [ "$1" = carpack ]; then
    shift
    "$command" "$@" 2>&1
  else
    "$@" 2>&1
  fi
}

say() { printf '\n# %s\n' "$*"; }

rm -rf "$out"
mkdir -p "$out"

# Every answer takes a third of a second, so that there is time to interrupt.
"$stand_in" serve --fixture "$account" --latency 300 --log "$out/requests.jsonl" --ready-file "$out/url" >"$out/server.txt" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
wait_for() {
  tries=0
  until eval "$1"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 1200 ] || ! kill -0 "$server" 2>/dev/null; then
      echo "demo: error: waited in vain for: $1" >&2
      exit 1
    fi
    sleep 0.05
  done
}
delivered() { grep -c '"delivered":true.*getBlob' "$out/requests.jsonl" || true; }
wait_for '[ -s "$out/url" ]'
url=$(cat "$out/url")
CARPACK_PLC_URL=$url
CARPACK_HANDLE_RESOLVER=$url
export CARPACK_PLC_URL CARPACK_HANDLE_RESOLVER

say "A server on loopback has the account of alice.example.com. Back it up, and be killed in the middle of it."
printf '\n$ carpack backup alice.example.com -o %s\n' "$out/live.car.zst"
"$command" backup alice.example.com --connections 1 -o "$out/live.car.zst" 2>&1 &
backup=$!
wait_for '[ "$(delivered)" -ge 5 ]'
kill -9 "$backup"
wait "$backup" 2>/dev/null || true
say "Killed after $(delivered) of 10 blobs. The same command goes on."
show carpack backup alice.example.com --connections 4 -o "$out/live.car.zst"
twice=$(sed -n 's/.*"delivered":true.*getBlob.*"cid":"\([a-z0-9]*\)".*/\1/p' "$out/requests.jsonl" | sort | uniq -d | wc -l)
if [ "$twice" -ne 0 ] || [ "$(delivered)" -ne 10 ]; then
  echo "demo: error: the server has given out $(delivered) blobs, $twice of them twice" >&2
  exit 1
fi
say "The server's log: $(delivered) blobs given out, none of them twice."

say "Nothing has changed: two requests, and nothing is written."
show carpack backup "$(sed -n 's/^alice.example.com //p' "$out/server.txt")" -o "$out/live.car.zst"

say "Some weeks later: two posts are gone, and there are new ones. Only what is new is fetched."
"$stand_in" control "$url" advance >/dev/null
show carpack backup alice.example.com -o "$out/live.car.zst"
show carpack log "$out/live.car.zst"
show carpack verify "$out/live.car.zst"
kill "$server"
wait "$server" 2>/dev/null || true
trap - EXIT

say "A repository, as a server sends it: is it whole, and what is in it?"
show carpack inspect "$account/alice.car"

say "Pack it with its blobs, whatever their files are called."
show ls "$account/blobs"
show carpack pack "$account/alice.car" --blobs "$account/blobs" --did-document "$account/did-document.json" \
  -o "$out/alice.car.zst"

say "What is that file?"
show carpack info "$out/alice.car.zst"
show carpack ls --blobs "$out/alice.car.zst"

say "Hash everything in it again."
show carpack verify "$out/alice.car.zst"

say "One record, without unpacking."
show carpack cat "$out/alice.car.zst" app.bsky.actor.profile/self

say "Everything back."
show carpack extract "$out/alice.car.zst" --all -d "$out/alice"
did=$(basename "$out"/alice/did:*)
show ls "$out/alice/$did" "$out/alice/$did/blobs"

say "The CAR is the one that went in, bit for bit; so is every blob."
show cmp "$account/alice.car" "$(ls "$out/alice/$did"/*.car)"
show zstd -qt "$out/alice.car.zst"
same=0
for blob in "$account"/blobs/*; do
  for copy in "$out/alice/$did/blobs"/*; do
    if cmp -s "$blob" "$copy"; then
      same=$((same + 1))
      continue 2
    fi
  done
  echo "demo: error: $blob did not come back" >&2
  exit 1
done
say "$same blobs came back as they went in."

say "Some weeks later: two posts are gone, and there are new ones. What is new is appended."
show carpack pack "$account/alice-later.car" -o "$out/alice.car.zst"
show carpack log "$out/alice.car.zst"
show carpack diff "$out/alice.car.zst"

say "What was deleted is still there."
gone=$("$command" diff "$out/alice.car.zst" | sed -n 's/^- \(app.bsky.feed.post[^ ]*\)$/\1/p' | head -n 1)
show carpack cat --at 1 "$out/alice.car.zst" "$gone"
show carpack extract -q --at 1 --car "$out/alice.car.zst" -d "$out/then"
show cmp "$account/alice.car" "$(ls "$out"/then/*/*.car)"
show carpack verify "$out/alice.car.zst"
say "Now the worst. An account on a server of which nobody knows how long it will last, and another server."
rm -f "$out/url"
"$stand_in" serve --accounts 1 --posts 20 --blobs 8 --second-server --ready-file "$out/url" >"$out/servers.txt" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
wait_for '[ -s "$out/url" ]'
wait_for 'grep -q "^second" "$out/servers.txt"'
url=$(cat "$out/url")
did=$(sed -n 's/^account-0.example.com //p' "$out/servers.txt")
second=$(sed -n 's/^second //p' "$out/servers.txt")
CARPACK_PLC_URL=$(sed -n 's/^directory //p' "$out/servers.txt")
CARPACK_HANDLE_RESOLVER=$url
CARPACK_PASSWORD=hunter2-hunter2
CARPACK_NEW_PASSWORD=correct-horse-battery
export CARPACK_PASSWORD CARPACK_NEW_PASSWORD

say "While it lives: a key of your own, which the server adds to the account with a code that it sends by mail."
show carpack recovery-key new -o "$out/own.key"
"$command" recovery-key add "$out/own.key" "$did" --login --yes identity >/dev/null 2>&1 || true
show carpack recovery-key add "$out/own.key" "$did" --login \
  --mail-code "$("$stand_in" control "$url" "mail?did=$did")" --yes identity
show carpack backup "$did" -o "$out/moving.car.zst"

say "The server is gone, with everything on it. What is left: the archive, and the key."
"$stand_in" control "$url" "status?did=$did&status=deleted" >/dev/null
show carpack restore "$out/moving.car.zst" --to "$second" --recovery-key "$out/own.key" \
  --email a@example.com --handle alice.second.example --yes identity --yes activate
CARPACK_HANDLE_RESOLVER=$second
show carpack resolve "$did"
kill "$server"
wait "$server" 2>/dev/null || true
trap - EXIT
say "All records as a database, and the page that shows them."
show carpack export "$out/live.car.zst" --sqlite "$out/live.db"
say "The files are in $out. In a browser: $command view $out/live.car.zst"
