#!/usr/bin/env python3
"""Reads a carpack archive (NAME.car.zst) when carpack is gone. Written from FORMAT.md; numbers are its sections.

    python3 reader.py ARCHIVE              lists the snapshots, the newest last
    python3 reader.py ARCHIVE FOLDER [N]   writes snapshot N (the newest, if N is not given) into a new folder:
                                           repo.car, records/COLLECTION/KEY.json, blobs/CID

It needs Python 3.8 and the program `zstd`, and reads whole, undamaged archives: every block is compared with its CID.
It checks no signature. Of a sealed archive (9), unseal.py beside carpack's sources makes a plain one first.
"""
import base64
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

M = bytes.fromhex("F09F9A97F09F93A6FEC98AE5B1D79C83")  # 3.3
SKIPPABLE, REPAIRED, KNOWN = bytes.fromhex("5C2A4D18"), 1, 7  # 4, 4.2


def xxh64(data):  # 1
    p1, p2, p3, p4, p5 = 11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261
    mask = (1 << 64) - 1
    turn = lambda x, n: (x << n | x >> 64 - n) & mask
    mix = lambda acc, lane: turn((acc + lane * p2) & mask, 31) * p1 & mask
    at, h = len(data) & ~31, p5
    if at:
        v = [p1 + p2 & mask, p2, 0, -p1 & mask]
        for lanes in struct.iter_unpack("<4Q", data[:at]):
            v = [mix(acc, lane) for acc, lane in zip(v, lanes)]
        h = sum(turn(acc, n) for acc, n in zip(v, (1, 7, 12, 18))) & mask
        for acc in v:
            h = ((h ^ mix(0, acc)) * p1 + p4) & mask
    h = h + len(data) & mask
    while at + 8 <= len(data):
        h = (turn(h ^ mix(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= len(data):
        h = (turn(h ^ struct.unpack_from("<I", data, at)[0] * p1 & mask, 23) * p2 + p3) & mask
        at += 4
    for byte in data[at:]:
        h = turn(h ^ byte * p5 & mask, 11) * p1 & mask
    h = (h ^ h >> 33) * p2 & mask
    h = (h ^ h >> 29) * p3 & mask
    return h ^ h >> 32


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def cid_end(data, at):  # 1
    if data[at:at + 2] == b"\x12\x20":
        return at + 34
    for _ in range(3):  # version, codec, hash function
        _, at = varint(data, at)
    length, at = varint(data, at)
    return at + length


class Link(bytes):
    """A CID in binary form."""

    def __str__(self):
        if self[:2] == b"\x12\x20":
            number, text = int.from_bytes(self, "big"), ""
            while number:
                number, digit = divmod(number, 58)
                text = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[digit] + text
            return text
        return "b" + base64.b32encode(self).decode().lower().rstrip("=")

    def holds(self, body):
        start = 0 if self[:2] == b"\x12\x20" else varint(self, varint(self, 1)[1])[1] - 1
        return self[start] != 0x12 or hashlib.sha256(body).digest() == self[-32:]


def cbor(data, at=0):
    """A DAG-CBOR value, and where it ends; nesting is as deep as records are: 256 levels."""
    kind, size = data[at] >> 5, data[at] & 31
    at += 1
    if kind == 7:
        if size == 27:
            return struct.unpack_from(">d", data, at)[0], at + 8
        return {20: False, 21: True, 22: None}[size], at
    if size >= 24:
        width = 1 << size - 24
        size, at = int.from_bytes(data[at:at + width], "big"), at + width
    if kind in (0, 1):
        return size if kind == 0 else -1 - size, at
    if kind in (2, 3):
        raw = bytes(data[at:at + size])
        return raw if kind == 2 else raw.decode(), at + size
    if kind == 6:
        value, at = cbor(data, at)
        return Link(value[1:]), at
    items = []
    for _ in range(size * (kind - 3)):
        value, at = cbor(data, at)
        items.append(value)
    return (items if kind == 4 else dict(zip(items[::2], items[1::2]))), at


def as_json(value):
    if isinstance(value, Link):
        return {"$link": str(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode().rstrip("=")}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return {key: as_json(item) for key, item in value.items()} if isinstance(value, dict) else value


class Archive:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.file = file.read()
        footer = self.footer()  # 5
        major, _, required, _, generation, _, self.count, _, _, _ = struct.unpack_from("<HH8Q", self.file, footer + 28)
        if major != 1 or required & ~KNOWN:
            sys.exit("this archive needs a newer reader")
        self.head = Link(b"\x01\x71\x12\x20" + self.file[footer + 96:footer + 128])
        length = struct.unpack_from("<I", self.file, footer + 4)[0] + 8
        frames = []
        for at in range(footer + 128, footer + length - 16, 24):  # 4.2: live segments
            frames += self.frames(struct.unpack_from("<Q", self.file, at)[0])
        self.content = tempfile.TemporaryFile()
        with tempfile.TemporaryFile() as stored:
            for _, offset, size in frames:
                stored.write(self.file[offset:offset + size])
            stored.seek(0)
            subprocess.run(["zstd", "-dcq"], stdin=stored, stdout=self.content, check=True)
        self.places, self.known = {}, {}  # by ordinal, and by CID: where the body is, and its length
        at = 0
        for number, (ordinal, offset, _) in enumerate(frames):
            if number and frames[number - 1][0] == ordinal:
                continue  # 4.1: a continuation frame
            last = next((number for number in range(number + 1, len(frames)) if frames[number][0] != ordinal), len(frames))
            end = at + sum(self.content_size(frame[1]) for frame in frames[number:last])
            while at < end:
                head = os.pread(self.content.fileno(), 4096, at)
                size, start = varint(head, 0)
                body = cid_end(head, start)
                place = (Link(head[start:body]), at + body, size - (body - start))
                self.places[ordinal] = self.known[place[0]] = place
                ordinal, at = ordinal + 1, at + start + size

    def footer(self):
        at = len(self.file)
        while True:
            at = self.file.rfind(M, 0, at)
            if at < 8:
                sys.exit("this is no carpack archive, or its end is lost")
            start, length = at - 8, 8 + int.from_bytes(self.file[at - 4:at], "little")
            frame = self.file[start:start + length]
            if frame[:4] == SKIPPABLE and frame[24:28] == b"\2\0\0\0" and len(frame) == length >= 144:
                if struct.unpack("<QQ", frame[-16:]) == (start, xxh64(frame[:-8])):
                    return start

    def frames(self, at):
        """The frame table of an index segment (4.1): ordinal, offset, length."""
        length, = struct.unpack_from("<I", self.file, at + 4)
        base, _, count = struct.unpack_from("<QII", self.file, at + 32)
        table = at + 8 + length - 8 - 24 * count
        for offset, _, ordinal, size in struct.iter_unpack("<QQII", self.file[table:table + 24 * count]):
            yield base + ordinal, offset, size

    def content_size(self, at):  # 3.1
        form = self.file[at + 4] >> 6
        return int.from_bytes(self.file[at + 5:at + 5 + (1, 2, 4)[form]], "little") + (256 if form == 1 else 0)

    def body(self, cid):
        if cid[:2] == b"\x01\x55" and cid[2] == 0 or cid[:3] == b"\x01\x71\x00":
            return bytes(cid[4:])  # the digest of an identity CID is the content
        _, at, size = self.known[cid]
        body = os.pread(self.content.fileno(), size, at)
        if not cid.holds(body):
            sys.exit(f"{cid} is damaged")
        return body

    def value(self, cid):
        return cbor(self.body(cid))[0]

    def snapshots(self):  # 6: a chain of manifests, the newest last
        chain, cid = [], self.head if any(self.head[4:]) else None
        while cid:
            chain.append(self.value(cid))
            cid = chain[-1]["prev"]
        return chain[::-1]

    def order(self, manifest):
        """The ordinals of the sections of a CAR, in their order (6.1)."""
        order = manifest["car"]["order"]
        runs = order["runs"] if "runs" in order else b"".join(map(self.body, order["pages"]))
        base = self.order(self.value(order["base"])) if order["kind"] == "relative" else None
        at, expected = 0, 0
        ordinals = []
        while at < len(runs):
            step, at = varint(runs, at)
            length, at = varint(runs, at)
            start = expected + (step >> 1 if step % 2 == 0 else -(step + 1 >> 1))
            expected = start + length
            for place in range(start, expected):
                ordinals.append(place if base is None else base[place] if place < len(base) else order["first"] + place - len(base))
        return ordinals

    def tree(self, manifest):
        """The blocks in canonical order, and the records by path (6.1, Appendix A)."""
        order, records = [manifest["commit"]], {}
        pending = [(self.value(manifest["commit"])["data"], None)]
        seen = set()
        while pending:
            cid, path = pending.pop()
            if cid not in seen:
                order.append(cid)
            seen.add(cid)
            if path is not None:
                records[path] = cid
                continue
            node, key, children = self.value(cid), b"", []
            if node["l"]:
                children.append((node["l"], None))
            for entry in node["e"]:
                key = key[:entry["p"]] + entry["k"]
                children.append((entry["v"], key.decode()))
                if entry["t"]:
                    children.append((entry["t"], None))
            pending += reversed(children)
        return order, records

    def car(self, manifest):
        car = manifest["car"]
        if "since" in manifest.get("fetched", {}):
            cids = self.tree(manifest)[0]
        else:
            cids = [self.places[ordinal][0] for ordinal in self.order(manifest)]
        yield car["header"]
        for cid in cids:
            body = self.body(cid)
            size, head = len(cid) + len(body), b""
            while size >= 128:
                head, size = head + bytes([size & 127 | 128]), size >> 7
            yield head + bytes([size]) + cid + body


def blobs(value):  # Appendix A
    if isinstance(value, dict):
        if value.get("$type") == "blob" and isinstance(value.get("ref"), Link):
            yield value["ref"]
        if set(value) == {"cid", "mimeType"} and str(value["cid"])[:1] == "b":
            yield Link(base64.b32decode(value["cid"][1:].upper() + "=" * (-(len(value["cid"]) - 1) % 8)))
        for item in value.values():
            yield from blobs(item)
    elif isinstance(value, list):
        for item in value:
            yield from blobs(item)


def write(folder, path, chunks):
    target = os.path.join(folder, *(part.replace(os.sep, "_") for part in path))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "xb") as file:
        file.writelines(chunks)


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    archive = Archive(sys.argv[1])
    snapshots = archive.snapshots()
    if len(sys.argv) == 2:
        for number, manifest in enumerate(snapshots, 1):
            print(number, manifest["did"], manifest["rev"], manifest["createdAt"], f"{manifest['counts']['records']} records")
        return
    manifest, folder = snapshots[int(sys.argv[3]) - 1 if len(sys.argv) == 4 else -1], sys.argv[2]
    os.mkdir(folder)
    digest = hashlib.sha256()
    with open(os.path.join(folder, "repo.car"), "xb") as file:
        for chunk in archive.car(manifest):
            digest.update(chunk)
            file.write(chunk)
    if "sha256" in manifest["car"] and "since" not in manifest.get("fetched", {}) and digest.digest() != manifest["car"]["sha256"]:
        sys.exit("the CAR is not the one that came in")
    wanted = {}
    for path, cid in archive.tree(manifest)[1].items():
        record = archive.value(cid)
        write(folder, ["records", *(path + ".json").split("/", 1)], [json.dumps(as_json(record), ensure_ascii=False, indent=2).encode() + b"\n"])
        wanted.update(dict.fromkeys(blobs(record)))
    held = [cid for cid in wanted if cid in archive.known]
    for cid in held:
        write(folder, ["blobs", str(cid)], [archive.body(cid)])
    print(f"{len(archive.tree(manifest)[1])} records, {len(held)} of {len(wanted)} blobs")


if __name__ == "__main__":
    main()
