"""Repositories for the tests of the page: any records, in a tree as it has to be, in a CAR. Nobody has signed them."""
import base64
import hashlib
import struct


class Link(bytes):
    """A binary CID."""


def cbor(value):
    """DAG-CBOR."""
    def head(major, number):
        if number < 24:
            return bytes([major << 5 | number])
        size = next(k for k in range(4) if number < 1 << (8 << k))
        return bytes([major << 5 | 24 + size]) + number.to_bytes(1 << size, "big")
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", False: b"\xf4", True: b"\xf5"}[value]
    if isinstance(value, Link):
        return b"\xd8\x2a" + head(2, len(value) + 1) + b"\0" + value
    if isinstance(value, int):
        return head(1, -1 - value) if value < 0 else head(0, value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
    return head(5, len(keys)) + b"".join(cbor(key) + cbor(value[key]) for key in keys)


def cid(block, codec=0x71):
    return Link(bytes([1, codec, 0x12, 0x20]) + hashlib.sha256(block).digest())


def text(link):
    return "b" + base64.b32encode(link).decode().rstrip("=").lower()


def blob(content, type):
    """What a record says of a blob."""
    return {"$type": "blob", "ref": cid(content, 0x55), "mimeType": type, "size": len(content)}


def layer(key):
    digest = int.from_bytes(hashlib.sha256(key).digest(), "big")
    return (256 - digest.bit_length()) // 2


def tree(leaves, height, blocks):
    """The link to the node over sorted (key, link) at this height; None for none."""
    if not leaves:
        return None
    here = [i for i, (key, _) in enumerate(leaves) if layer(key) == height]
    parts, start = [], 0
    for i in [*here, len(leaves)]:
        parts.append(tree(leaves[start:i], height - 1, blocks) if height else None)
        start = i + 1
    entries, before = [], b""
    for i, below in zip(here, parts[1:]):
        key, link = leaves[i]
        shared = next((n for n, (x, y) in enumerate(zip(before, key)) if x != y), min(len(before), len(key)))
        entries.append({"p": shared, "k": key[shared:], "v": link, "t": below})
        before = key
    node = cbor({"l": parts[0], "e": entries})
    blocks[cid(node)] = node
    return cid(node)


def repository(records, did="did:plc:ewvi7nxzyoun6zhxrhs64oiz", rev="3lscuqc52or2x"):
    """The CAR of a repository with these records: path to value."""
    blocks, leaves = {}, []
    for path, value in sorted(records.items(), key=lambda item: item[0].encode()):
        block = cbor(value)
        blocks[cid(block)] = block
        leaves.append((path.encode(), cid(block)))
    nodes = {}
    root = tree(leaves, max((layer(key) for key, _ in leaves), default=0), nodes)
    if root is None:
        node = cbor({"l": None, "e": []})
        nodes[root := cid(node)] = node
    commit = cbor({"did": did, "version": 3, "rev": rev, "prev": None, "data": root, "sig": bytes(64)})

    def section(link, block):
        length, out = len(link) + len(block), bytearray()
        while length > 127:
            out.append(length & 127 | 128)
            length >>= 7
        return bytes(out) + bytes([length]) + link + block
    header = cbor({"version": 1, "roots": [cid(commit)]})
    everything = {cid(commit): commit, **nodes, **blocks}
    return section(b"", header) + b"".join(section(link, block) for link, block in everything.items())
