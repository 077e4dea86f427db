#!/bin/sh
# Installs what `make bench` compares carpack with and what is not there yet: zip, restic, borg and
# strace by apt-get, libipld by pip. Asks before it does.
set -eu
packages=
for program in zip:zip restic:restic borg:borgbackup strace:strace; do
  command -v "${program%%:*}" >/dev/null 2>&1 || packages="$packages ${program##*:}"
done
libipld=
python3 -c 'import libipld' 2>/dev/null || libipld=yes
if [ -z "$packages$libipld" ]; then
  echo "install-peers: all of them are there"
  exit 0
fi
[ -z "$packages" ] || echo "apt-get install$packages"
[ -z "$libipld" ] || echo "python3 -m pip install --user libipld"
printf 'Do that? [y/N] '
read -r answer
[ "$answer" = y ] || exit 1
sudo=
[ "$(id -u)" -eq 0 ] || sudo=sudo
# shellcheck disable=SC2086
[ -z "$packages" ] || $sudo apt-get install -y --no-install-recommends $packages
[ -z "$libipld" ] || python3 -m pip install --user libipld
