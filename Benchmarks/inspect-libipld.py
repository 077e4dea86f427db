#!/usr/bin/env python3
"""What somebody would write in Python to check a CAR: every block hashed and decoded, and nothing else. inspect-libipld.py CAR"""

import hashlib
import sys

import libipld

with open(sys.argv[1], "rb") as file:
    content = file.read()
at, blocks, first = 0, 0, True
while at < len(content):
    length = shift = 0
    while True:
        byte = content[at]
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    section, at = content[at:at + length], at + length
    if first:
        first = False
        continue
    cid, body = section[:36], section[36:]
    if hashlib.sha256(body).digest() != cid[4:]:
        sys.exit("a block does not match its CID")
    libipld.decode_dag_cbor(body)
    blocks += 1
print(blocks)
