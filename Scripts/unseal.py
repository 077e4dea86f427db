#!/usr/bin/env python3
"""Reads a sealed archive with an age identity and nothing else of this project.

    unseal.py IDENTITY-FILE SEALED PLAIN

It needs `pip install pyrage`, or any other library for age v1. All numbers are little-endian.

A sealed archive is a row of frames (FORMAT 9):

    offset  size
         0     4  5D 2A 4D 18
         4     4  the length of what follows
         8    16  the magic
        24     4  the kind: 1 keys, 2 a piece, 3 a table, 4 a replacement, 5 void
        28    16  by kind
        44     …  by kind; of a piece, an age file
    last 8     8  XXH64, which this script leaves to age: it finds damage itself
"""
import re, struct, sys
import pyrage
from pyrage import x25519

identity_file, sealed_file, plain_file = sys.argv[1:]
lines = open(identity_file).read().split("\n")
owner = [x25519.Identity.from_str(line) for line in lines if line.startswith("AGE-SECRET-KEY-1")]
sealed = open(sealed_file, "rb").read()
magic = bytes.fromhex("f09f9a97f09f9492fed38ce1b6f59e85")
frames = [found.start() - 8 for found in re.finditer(re.escape(magic), sealed) if found.start() >= 8]


def number(place):
    return struct.unpack_from("<I", sealed, place)[0]


def archive_key():
    """The archive's own identity, which is an age file for each owner in each key frame: two at the
    beginning, and some among the pieces."""
    for slot in frames:
        if slot + 8192 > len(sealed) or number(slot + 24) != 1:
            continue
        place = slot + 44
        for _ in range(number(slot + 40)):
            entry = sealed[place + 4 : place + 4 + number(place)]
            place += 4 + len(entry)
            try:
                return x25519.Identity.from_str(pyrage.decrypt(entry, owner).decode().strip())
            except (pyrage.DecryptError, ValueError):
                pass  # It is the list of the owners, or of another owner, or damaged.
    sys.exit("no key frame opens with this identity")


key = archive_key()
with open(plain_file, "wb") as plain:
    # Behind the key frames, which may not lie where they should.
    place = next((frame for frame in frames if number(frame + 24) != 1), len(sealed))
    while place < len(sealed):
        end = place + 8 + number(place + 4)
        if sealed[place + 8 : place + 24] != magic or end > len(sealed):
            sys.exit(f"no whole frame begins at byte {place}: a write that was not finished, or damage")
        if number(place + 24) == 2:
            plain.write(pyrage.decrypt(sealed[place + 44 : end - 8], [key]))
        place = end
