"""Writes archives by hand (Docs/FORMAT.md), so that they can say what no writer says: one snapshot, raw frames, a wide index."""
import hashlib
import importlib.util
import pathlib
import struct

ROOT = pathlib.Path(__file__).resolve().parents[3]


def module(name, path):
    specification = importlib.util.spec_from_file_location(name, ROOT / path)
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


fixtures = module("generate", "Fixtures/generate.py")
xxh64 = module("carpack_reader", "Tests/IndependentReader/carpack_reader.py").xxh64
cbor, cid, varint = fixtures.cbor, fixtures.cid, fixtures.varint
M = bytes.fromhex("F09F9A97F09F93A6FEC98AE5B1D79C83")


def raw_frame(content):
    """A data frame of raw blocks."""
    size = len(content)
    if size < 256:
        head = b"\x24" + bytes([size])
    elif size < 65792:
        head = b"\x64" + (size - 256).to_bytes(2, "little")
    else:
        head = b"\xa4" + size.to_bytes(4, "little")
    blocks = [content[at:at + (1 << 17)] for at in range(0, size, 1 << 17)]
    stored = b"".join((len(block) << 3 | (number == len(blocks) - 1)).to_bytes(3, "little") + block for number, block in enumerate(blocks))
    return b"\x28\xb5\x2f\xfd" + head + stored + (xxh64(content) & 0xffffffff).to_bytes(4, "little")


def skippable(kind, payload):
    frame = b"\x5c\x2a\x4d\x18" + (len(payload) + 28).to_bytes(4, "little") + M + kind.to_bytes(4, "little") + payload
    return frame + xxh64(frame).to_bytes(8, "little")


def section(link, body):
    return varint(len(link) + len(body)) + link + body


def write(path, car, did, documents={}, held=(), more=(), **changes):
    """Writes an archive of a CAR: [(CID, block)], the commit first; `more` are further blocks. `changes` go into the manifest, those of maps field by field."""
    header = cbor({"roots": [car[0][0]], "version": 1})
    header = varint(len(header)) + header
    stream = header + b"".join(section(*block) for block in car)
    others = [(cid(content, 0x55), content) for content in [*documents.values(), *held]] + list(more)
    records = changes.pop("records", 0)
    manifest = {
        "carpack": 1, "did": did, "handle": "alice.example.com", "pds": "https://pds.example.com", "rev": changes.pop("rev"),
        "commit": car[0][0], "prev": None, "createdAt": "2025-09-20T00:00:00Z", "tool": "carpack 0.1.0",
        "car": {"header": header, "bytes": len(stream), "sha256": hashlib.sha256(stream).digest(), "blocks": len(car),
                "order": {"kind": "absolute", "runs": varint(0) + varint(len(car))}},
        "counts": {"records": records, "nodes": len(car) - 1 - records, "blocks": len(car), "recordBlocks": records},
        "blobs": {"referenced": len(held), "held": len(held), "heldBytes": sum(map(len, held)), "missing": 0, "extras": 0, "extrasBytes": 0},
        "identity": {name: cid(content, 0x55) for name, content in documents.items()},
        "complete": True, "host": {"os": "Linux", "durationMs": 1},
    }
    for name, value in changes.items():
        manifest[name] = {**manifest[name], **value} if isinstance(value, dict) else value
    manifest = cbor(manifest)
    packs, sections = [], car + others
    for number, block in enumerate(sections):
        if not packs or len(packs[-1][1]) > 500_000:
            packs.append((number, b""))
        packs[-1] = (packs[-1][0], packs[-1][1] + section(*block))
    packs.append((len(sections), section(cid(manifest), manifest)))
    file, table = raw_frame(header), b""
    for first, content in packs:
        stored = raw_frame(content)
        table += struct.pack("<QQII", len(file), xxh64(stored), first, len(stored))
        file += stored
    links = [link for link, _ in sections] + [cid(manifest)]
    count, fan_bits = len(links), 0
    while count > 32 << fan_bits:
        fan_bits += 1
    entries = sorted((int.from_bytes(link[4:8], "big"), number) for number, link in enumerate(links))
    fan = [sum(key >> 32 - fan_bits <= i for key, _ in entries) if fan_bits else count for i in range(1 << fan_bits)]
    index = bytes([fan_bits, 0, 0, 0]) + struct.pack("<QII", 0, count, len(packs)) + struct.pack(f"<{len(fan)}I", *fan)
    index = skippable(1, index + b"".join(struct.pack("<II", key, number) for key, number in entries) + table)
    segment, file = len(file), file + index
    length = len(header) + sum(len(content) for _, content in packs)
    newest = struct.unpack("<Q", table[-24:-16])[0]
    footer = struct.pack("<HHQQQQQQQQ", 1, 0, 0, 0, 1, 0, count, length, newest, count - 1) + cid(manifest)[4:]
    footer += struct.pack("<QIIQ", segment, count, len(packs), xxh64(index[:-8])) + struct.pack("<Q", len(file))
    path.write_bytes(file + skippable(2, footer))
