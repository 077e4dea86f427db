#!/bin/sh
# Makes a Debian package of what `make install` has put into a folder:
# build-deb.sh FOLDER OUTPUT-FOLDER
# With SOURCE_DATE_EPOCH set, the same input gives the same bytes.
# DEB_MAINTAINER="NAME <ADDRESS>" says who makes it; else it is the author of the last commit.
set -eu
stage=$1
output=$2
cd "$(dirname "$0")/.."

for program in dpkg-deb dpkg-shlibdeps readelf; do
  command -v "$program" >/dev/null || {
    echo "build-deb: error: $program is missing" >&2
    echo "hint: apt-get install dpkg-dev binutils" >&2
    exit 1
  }
done

epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
version=$(Scripts/version.sh debian)
architecture=$(dpkg --print-architecture)
maintainer=${DEB_MAINTAINER:-$(git log -1 --format='%an <%ae>')}
documents=$stage/usr/share/doc/carpack

mkdir -p "$documents" "$stage/DEBIAN"
find "$stage/usr/share/man" -name '*.[15]' -exec gzip -9nf {} +
Scripts/debian-changelog.py "$version" "$maintainer" "$epoch" <CHANGELOG.md | gzip -9n >"$documents/changelog.Debian.gz"
gzip -9n <CHANGELOG.md >"$documents/changelog.gz"
cp README.md "$documents/README.md"
mkdir -p "$documents/Docs"
cp Docs/*.md Docs/*.svg Docs/*.png Docs/*.py "$documents/Docs"
{
  cat Packaging/debian/copyright.in
  sed -n '/^Permission/,$p' LICENSE | sed 's/^$/./; s/^/ /'
} >"$documents/copyright"

# What the command is linked to, with the versions that it needs. dpkg-shlibdeps wants a source
# package around it.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
mkdir "$source/debian"
sed '/^#/d' Packaging/debian/control.in | sed "s|@ARCHITECTURE@|$architecture|" >"$source/debian/control"
programs=$(cd "$stage/usr/bin" && pwd)
libraries=$(cd "$source" && dpkg-shlibdeps -O -e"$programs/carpack" -e"$programs/carpack-serve" | sed -n 's/^shlibs:Depends=//p')
[ -n "$libraries" ] || {
  echo "build-deb: error: dpkg-shlibdeps found no libraries" >&2
  exit 1
}
# Packed relocations are read from glibc 2.36 on, which no symbol tells.
if readelf -V "$stage/usr/bin/carpack" | grep -q GLIBC_ABI_DT_RELR; then
  libraries=$(echo "$libraries" | sed 's/libc6 ([^)]*)/libc6 (>= 2.36)/')
fi

size=$(du -k -s --apparent-size --exclude=DEBIAN "$stage" | cut -f 1)
sed -n '/^Package:/,$p' Packaging/debian/control.in | sed '/^#/d' |
  sed "s|@ARCHITECTURE@|$architecture|; s|@LIBRARIES@|$libraries|" |
  awk -v version="$version" -v maintainer="$maintainer" -v size="$size" '
    { print }
    /^Package:/ {
      print "Version: " version
      print "Section: net\nPriority: optional"
      print "Maintainer: " maintainer
      print "Installed-Size: " size
    }' >"$stage/DEBIAN/control"
(cd "$stage" && find usr lib -type f 2>/dev/null | LC_ALL=C sort | xargs md5sum) >"$stage/DEBIAN/md5sums"

find "$stage" -type d -exec chmod 755 {} +
find "$stage" -type f ! -path '*/bin/*' -exec chmod 644 {} +
find "$stage" -exec touch -h -d "@$epoch" {} +
mkdir -p "$output"
package=$output/carpack_${version}_$architecture.deb
SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz --build "$stage" "$package" >/dev/null
echo "$package"

if command -v lintian >/dev/null; then
  # Not for Debian's own archive: no bug of Debian asked for it.
  lintian --fail-on error --suppress-tags initial-upload-closes-no-bugs "$package"
else
  echo "lintian is not installed: the package is not checked (apt-get install lintian)" >&2
fi
