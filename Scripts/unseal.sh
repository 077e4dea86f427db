#!/bin/sh
# Reads a sealed archive with the program age, od, tail and head: unseal.sh IDENTITY SEALED > PLAIN
# The format is in unseal.py. The identity may be sealed with a passphrase, which age asks for.
set -eu
identity=$1 sealed=$2 size=$(wc -c < "$2") key=
number() { od -An -tu4 -j "$1" -N 4 "$sealed" | tr -d ' '; } # little-endian, as this machine is
part() { tail -c +$(($1 + 1)) "$sealed" | head -c "$2"; }    # so many bytes from a place on
# The places of all frames: they have the same 16 bytes 8 bytes behind their beginning.
magic=$(printf '\360\237\232\227\360\237\224\222\376\323\214\341\266\365\236\205')
frames=$(LC_ALL=C grep -aobF "$magic" "$sealed" | cut -d: -f1)
start=$size
for found in $frames; do # Key frames hold age files: a list, and the archive's identity for each owner.
  slot=$((found - 8))
  if [ "$slot" -lt 0 ] || [ "$(number $((slot + 24)))" -ne 1 ]; then
    [ "$slot" -lt 0 ] || [ "$start" -lt "$size" ] || start=$slot
    continue
  fi
  place=$((slot + 44)) count=$(number $((slot + 40)))
  while [ -z "$key" ] && [ "$count" -gt 0 ] && [ "$place" -lt $((slot + 8180)) ]; do
    key=$(part $((place + 4)) "$(number $place)" | age -d -i "$identity" 2> /dev/null || :)
    place=$((place + 4 + $(number $place))) count=$((count - 1))
  done
done
case $key in AGE-SECRET-KEY-1*) ;; *) echo "no entry opens with this identity" >&2 && exit 1 ;; esac
piece=$(mktemp) && trap 'rm -f "$piece"' EXIT
place=$start
while [ "$place" -lt "$size" ]; do # Kind 2 is a piece: 44 bytes, an age file, 8 bytes.
  length=$(($(number $((place + 4))) + 8))
  if [ "$(number $((place + 24)))" -eq 2 ]; then
    part $((place + 44)) $((length - 52)) > "$piece"
    printf '%s\n' "$key" | age -d -i - "$piece"
  fi
  place=$((place + length))
done
