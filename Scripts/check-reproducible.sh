#!/bin/sh
# Builds the released command twice, in two folders of different names and depths, from what is committed, and compares the two.
# Looks into it for paths of this machine, and at its size.
set -eu
limit=20000000

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() {
  mkdir -p "$1"
  git archive HEAD | tar -x -C "$1"
  # Which versions of the Swift packages are built in is part of what goes in.
  [ ! -e Package.resolved ] || cp Package.resolved "$1"
  echo "building in $1"
  make -C "$1" release >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
}
keep() {
  cp "$1/$binary" ".build/reproducible/$2"
  (cd "$1/.build/release" && find . -name '*.o' -exec size {} + | LC_ALL=C sort -k 6) >".build/reproducible/$2.sizes"
}
binary=.build/release/carpack
one=$work/one/carpack
two="$work/another folder/with a longer name/carpack-source"
build "$one"
build "$two"

failed=0
sha256sum "$one/$binary" "$two/$binary" | sed "s|$work/||"
if cmp "$one/$binary" "$two/$binary"; then
  echo "the same bytes from both folders"
else
  # Kept, with what the compiler made of each module, to see where they differ.
  rm -rf .build/reproducible
  mkdir -p .build/reproducible
  keep "$one" one
  keep "$two" two
  diff .build/reproducible/one.sizes .build/reproducible/two.sizes >&2 || true
  echo "check-reproducible: error: they differ; both are in .build/reproducible" >&2
  failed=1
fi

for path in "$work" "$(pwd)" "${HOME:-/nowhere}"; do
  # A home folder of "/" is in every path.
  [ "${#path}" -gt 2 ] || continue
  if LC_ALL=C grep -a -o -F -m 3 "$path/" "$one/$binary"; then
    echo "check-reproducible: error: the path $path is inside" >&2
    failed=1
  fi
done

size=$(wc -c <"$one/$binary")
echo "$size bytes"
if [ "$size" -gt "$limit" ]; then
  echo "check-reproducible: error: it is larger than $limit bytes" >&2
  failed=1
fi
exit "$failed"
