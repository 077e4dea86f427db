#!/usr/bin/env python3
"""Judges proofs of records by itself: from the specifications of AT Protocol's repositories and cryptography, and in
nothing from the rest of the project.

Takes one file, a list with a line for each proof: the CAR, the path and the did:key, tabs between them. Prints a line
for each: "record CID", "absent", or "invalid" and why.
"""
import hashlib
import sys

from carpack_reader import BASE58, Damaged, Link, cid_parts, cid_text, decode, hashes, varint

# p, a, b, n, the generator, by the first two bytes of a key
CURVES = {
    b"\xe7\x01": (2**256 - 2**32 - 977, 0, 7,
                  0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141,
                  (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
                   0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)),
    b"\x80\x24": (2**256 - 2**224 + 2**192 + 2**96 - 1, -3,
                  0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B,
                  0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
                  (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
                   0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)),
}


def add(one, other, p, a):
    """The sum of two points of a curve; None is the point at infinity."""
    if one is None or other is None:
        return one or other
    if one[0] == other[0]:
        if (one[1] + other[1]) % p == 0:
            return None
        slope = (3 * one[0] * one[0] + a) * pow(2 * one[1], -1, p)
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, p)
    x = (slope * slope - one[0] - other[0]) % p
    return x, (slope * (one[0] - x) - one[1]) % p


def multiply(factor, point, p, a):
    total = None
    while factor:
        if factor & 1:
            total = add(total, point, p, a)
        point, factor = add(point, point, p, a), factor >> 1
    return total


def is_signed(message, signature, key):
    """ECDSA over SHA-256, r and s of 32 bytes each, s in the lower half."""
    number = 0
    for char in key.removeprefix("did:key:z"):
        number = number * 58 + BASE58.index(char)
    raw = number.to_bytes(35, "big")
    p, a, b, n, generator = CURVES[raw[:2]]
    x = int.from_bytes(raw[3:], "big")
    y = pow(x**3 + a * x + b, (p + 1) // 4, p)
    if (y * y - x**3 - a * x - b) % p:
        return False
    y = y if y & 1 == raw[2] & 1 else p - y
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    if len(signature) != 64 or not 0 < r < n or not 0 < s <= n // 2:
        return False
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    inverse = pow(s, -1, n)
    point = add(multiply(digest * inverse % n, generator, p, a), multiply(r * inverse % n, (x, y), p, a), p, a)
    return point is not None and point[0] % n == r


def encode(value):
    """DAG-CBOR of what a commit is made of."""
    def head(major, number):
        if number < 24:
            return bytes([major << 5 | number])
        size = next(k for k in range(4) if number < 1 << (8 << k))
        return bytes([major << 5 | 24 + size]) + number.to_bytes(1 << size, "big")
    if value is None:
        return b"\xf6"
    if isinstance(value, Link):
        return b"\xd8\x2a" + head(2, len(value) + 1) + b"\0" + value
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, dict):
        keys = sorted(value, key=lambda k: (len(k.encode()), k.encode()))
        return head(5, len(keys)) + b"".join(encode(k) + encode(value[k]) for k in keys)
    raise Damaged("a commit holds what none has")


def layer(key):
    """Leading zeros of the key's SHA-256, in pairs of bits."""
    digest = int.from_bytes(hashlib.sha256(key).digest(), "big")
    return (256 - digest.bit_length()) // 2


def judge(car, path, key):
    size, at = varint(car, 0)
    header = decode(car[at:at + size])
    if header["version"] != 1 or len(header["roots"]) != 1:
        raise Damaged("it is no CAR with one root")
    at, blocks = at + size, {}
    while at < len(car):
        size, start = varint(car, at)
        at = start + size
        body = cid_parts(car, start)[0]
        if at > len(car) or body > at:
            raise Damaged("it is cut short")
        cid, block = bytes(car[start:body]), bytes(car[body:at])
        if not hashes(cid, block):
            raise Damaged(f"{cid_text(cid)} is another block")
        blocks[cid] = block
    commit = decode(blocks[header["roots"][0]])
    signature = commit.pop("sig")
    if not is_signed(encode(commit), signature, key):
        raise Damaged("the signature does not hold")
    wanted, node, low, high, below = path.encode(), commit["data"], b"", None, None
    while True:
        entries = decode(blocks[node])
        keys, child, previous = [], entries["l"], b""
        for entry in entries["e"]:
            previous = previous[:entry["p"]] + entry["k"]
            keys.append(previous)
        if sorted(set(keys)) != keys or keys and (keys[0] <= low or high is not None and keys[-1] >= high):
            raise Damaged("keys are not in their order")
        if len({layer(k) for k in keys}) > 1 or keys and below is not None and layer(keys[0]) != below:
            raise Damaged("a key is in another layer")
        below = layer(keys[0]) - 1 if keys else None if below is None else below - 1
        for k, entry in zip(keys, entries["e"]):
            if k == wanted:
                if not hashes(entry["v"], blocks[entry["v"]]):
                    raise Damaged("the record is another")
                return "record " + cid_text(entry["v"])
            if k > wanted:
                high = k
                break
            low, child = k, entry["t"]
        if child is None:
            return "absent"
        node = child


def main():
    for line in open(sys.argv[1]):
        file, path, key = line.rstrip("\n").split("\t")
        try:
            print(judge(open(file, "rb").read(), path, key))
        except (Damaged, KeyError, TypeError, ValueError, IndexError, OverflowError) as why:
            print("invalid", type(why).__name__, why)


if __name__ == "__main__":
    main()
