#!/bin/sh
# The main job from end to end, on the account in Fixtures/alice: demo.sh COMMAND
# Run from the top folder; what it makes stays in .build/demo.
set -eu
command=$1
account=Fixtures/alice
out=.build/demo

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
say "The files are in $out."
