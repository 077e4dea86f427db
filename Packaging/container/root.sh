#!/bin/sh
# Puts into a folder all that carpack needs to run with nothing else around it:
# root.sh COMMAND SERVER FOLDER
# The command and carpack-serve, the libraries that they are linked to, those that they open
# (libcurl, libcrypto, libpq, ISA-L) with theirs, and certificates.
set -eu
command=$1
server=$2
root=$3

fail() {
  echo "root: error: $1" >&2
  exit 1
}

mkdir -p "$root/usr/bin" "$root/etc/ssl/certs" "$root/data"
# Temporary files are written here if nothing else is said.
mkdir -m 1777 "$root/tmp"
# Repositories are laid out here.
mkdir -p "$root/var" && mkdir -m 1777 "$root/var/tmp"
cp "$command" "$root/usr/bin/carpack"
cp "$server" "$root/usr/bin/carpack-serve"

# Where a library lies that is opened by its name.
opened() {
  found=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }')
  [ -n "$found" ] || fail "$1 is not installed"
  echo "$found"
}
curl=$(opened libcurl.so.4)
crypto=$(opened libcrypto.so.3)
postgres=$(opened libpq.so.5)
parity=$(opened libisal.so.2)

# Each is copied under the name that the loader looks for.
{
  ldd "$command" "$server" "$curl" "$crypto" "$postgres" "$parity" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// && $2 ~ /^\(0x/ { print $1 }'
  printf '%s\n' "$curl" "$crypto" "$postgres" "$parity"
} | sort -u | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done

cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
# The resolver and the user that the image runs as.
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
printf 'carpack:x:65532:65532::/data:/sbin/nologin\n' >"$root/etc/passwd"
printf 'carpack:x:65532:\n' >"$root/etc/group"
chmod 1777 "$root/data"
find "$root" -type f | sed "s|^$root||" | LC_ALL=C sort
