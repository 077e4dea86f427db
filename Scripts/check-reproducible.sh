#!/bin/sh
# Builds what is committed twice, in two folders of different names and depths, and compares byte
# for byte: the command and the server; then, made in both of the same programs, the tarball, the
# list of what is inside, and the Debian package where what makes it is installed. Looks into the
# two programs for paths of this machine, at how they are linked, and at their sizes.
#
#   check-reproducible.sh               builds both
#   check-reproducible.sh ONE ANOTHER   compares two folders that were built; the programs of ONE are copied to ANOTHER
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

packages='tarball sbom'
if command -v dpkg-shlibdeps >/dev/null; then packages="$packages deb"; fi
# A folder of sources tells neither.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
DEB_MAINTAINER=${DEB_MAINTAINER:-$(git log -1 --format='%an <%ae>')}
export SOURCE_DATE_EPOCH DEB_MAINTAINER

fetch() {
  mkdir -p "$1"
  git archive HEAD | tar -x -C "$1"
  # Which versions of the Swift packages are built in is part of what goes in.
  [ ! -e Package.resolved ] || cp Package.resolved "$1"
}
# FOLDER VERB …
in_folder() {
  folder=$1
  shift
  echo "make $* in $folder"
  make -C "$folder" "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
}

if [ $# -eq 2 ]; then
  one=$1 two=$2
else
  one=$work/one/carpack
  two="$work/another folder/with a longer name/carpack-source"
  for folder in "$one" "$two"; do
    fetch "$folder"
    in_folder "$folder" release serve
  done
fi

failed=0
fail() {
  echo "check-reproducible: error: $1" >&2
  failed=1
}

# NAME
compare() {
  name=$1
  if cmp "$one/$name" "$two/$name"; then
    sha256sum "$one/$name" | sed "s|  .*|  $name, the same bytes from both folders|"
    return
  fi
  fail "$name differs; both are in .build/reproducible"
  # Kept, with what the compiler made of each module, to see where they differ.
  mkdir -p .build/reproducible
  for side in one two; do
    eval "folder=\$$side"
    cp "$folder/$name" ".build/reproducible/$side-${name##*/}"
    (cd "$folder/.build/release" && find . -name '*.o' -exec size {} + | LC_ALL=C sort -k 6) >".build/reproducible/$side.sizes"
  done
  diff .build/reproducible/one.sizes .build/reproducible/two.sizes >&2 || true
}
for program in carpack carpack-serve; do compare ".build/release/$program"; done
for program in carpack carpack-serve; do cp "$one/.build/release/$program" "$two/.build/release/$program"; done
for folder in "$one" "$two"; do
  rm -rf "$folder/.build/dist"
  # shellcheck disable=SC2086
  in_folder "$folder" BUILT=1 $packages
done
for file in "$one"/.build/dist/*; do compare ".build/dist/${file##*/}"; done

# NAME LIMIT
examine() {
  for path in "$one" "$work" "$(pwd)" "${HOME:-/nowhere}"; do
    # A home folder of "/" is in every path.
    [ "${#path}" -gt 2 ] || continue
    if LC_ALL=C grep -a -o -F -m 3 "$path/" "$one/.build/release/$1"; then fail "the path $path is inside $1"; fi
  done
  size=$(wc -c <"$one/.build/release/$1")
  echo "$1: $size bytes"
  [ "$size" -le "$2" ] || fail "$1 is larger than $2 bytes"
}
if [ "$(uname -s)" = Linux ]; then
  Scripts/check-hardening.sh "$one/.build/release/carpack" "$one/.build/release/carpack-serve" || failed=1
fi
examine carpack 25000000
examine carpack-serve 30000000
exit "$failed"
