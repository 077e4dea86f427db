#!/bin/sh
# Makes a compressed tar file of what `make install` has put into a folder:
# build-tarball.sh FOLDER OUTPUT-FOLDER
# With SOURCE_DATE_EPOCH set, the same input gives the same bytes. It takes GNU tar.
set -eu
stage=$1
output=$2
cd "$(dirname "$0")/.."

tar=tar
if command -v gtar >/dev/null; then tar=gtar; fi
"$tar" --version 2>/dev/null | grep -q GNU || {
  echo "build-tarball: error: GNU tar is missing" >&2
  echo "hint: brew install gnu-tar" >&2
  exit 1
}
system=$(uname -s | tr '[:upper:]' '[:lower:]')
name=carpack-$(Scripts/version.sh)-$system-$(uname -m)
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
mkdir -p "$output" "$stage"

cp LICENSE README.md CHANGELOG.md SECURITY.md "$stage"
mkdir -p "$stage/Docs"
cp Docs/*.md Docs/*.svg Docs/*.png Docs/*.py "$stage/Docs"
cp -R Packaging/launchd Packaging/cron "$stage/share/"
find "$stage" -type d -exec chmod 755 {} +
find "$stage" -type f ! -path '*/bin/*' -exec chmod 644 {} +
"$tar" --sort=name --format=ustar --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
  --transform "s|^\.|$name|" -C "$stage" -cf - . | gzip -9n >"$output/$name.tar.gz"
echo "$output/$name.tar.gz"
