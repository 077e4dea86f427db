#!/usr/bin/env python3
"""An independent reader for carpack archives (NAME.car.zst), written from Docs/FORMAT.md alone.

It follows that document section by section, shares no code with the rest of the project, and needs nothing but
Python 3.9 and the `zstd` program. Where it and the document disagree, one of them is wrong. `list` reads only what
it needs (of a large section its first frame); `verify` reads and checks everything.

Exit status: 0 if all is well; 1 if the file or what was asked for is damaged or absent (details on stderr); 2 for wrong usage.
"""
import argparse
import base64
import bisect
import collections
import hashlib
import itertools
import json
import mmap
import os
import re
import struct
import subprocess
import sys

M = bytes.fromhex("F09F9A97F09F93A6FEC98AE5B1D79C83")           # section 3.3
DATA, SKIPPABLE = b"\x28\xB5\x2F\xFD", b"\x5C\x2A\x4D\x18"       # section 2
VOID, REPAIRED = b"\x50\x2A\x4D\x18", 1                           # sections 4.3 and 5.2
UNDIGESTED, PACKED = 1 << 1, 1 << 2
MAX_CONTENT, CHUNK, LARGE = (4 << 20) + 2093, 4 << 20, 1 << 16

Frame = collections.namedtuple("Frame", "offset length kind size whole")         # kind None: a data frame
Section = collections.namedtuple("Section", "ordinal cid length start frames")   # frames: (offset, length, XXH64 or None)
Segment = collections.namedtuple("Segment", "offset base n form a b w k marks entries table ordinals length")
Footer = collections.namedtuple("Footer", "offset end generation previous sections stream manifest live required")


class Damaged(Exception):
    """Something in the file does not hold."""


def note(text):
    print("carpack_reader: " + text, file=sys.stderr)


# Section 1: words and conventions

def xxh64(data):
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5, mask = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5, (1 << 64) - 1

    def turn(x, r):
        return (x << r | x >> (64 - r)) & mask

    def mix(acc, lane):
        acc = (acc + lane * p2) & mask
        return (acc << 31 | acc >> 33) * p1 & mask

    at, h = len(data) & ~31, p5
    if at:
        a, b, c, d = (p1 + p2) & mask, p2, 0, -p1 & mask
        for w, x, y, z in struct.iter_unpack("<4Q", data[:at]):
            a, b, c, d = mix(a, w), mix(b, x), mix(c, y), mix(d, z)
        h = turn(a, 1) + turn(b, 7) + turn(c, 12) + turn(d, 18)
        for acc in (a, b, c, d):
            h = ((h ^ mix(0, acc)) * p1 + p4) & mask
    h = (h + len(data)) & mask
    while at + 8 <= len(data):
        h = (turn(h ^ mix(0, int.from_bytes(data[at:at + 8], "little")), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= len(data):
        h = (turn(h ^ int.from_bytes(data[at:at + 4], "little") * p1 & mask, 23) * p2 + p3) & mask
        at += 4
    for byte in data[at:]:
        h = turn(h ^ byte * p5 & mask, 11) * p1 & mask
    h = (h ^ h >> 33) * p2 & mask
    h = (h ^ h >> 29) * p3 & mask
    return h ^ h >> 32


def varint(data, at):
    value = 0
    for i in range(9):
        if at + i >= len(data):
            break
        value |= (data[at + i] & 127) << 7 * i
        if data[at + i] < 128:
            if i and not data[at + i]:
                break
            return value, at + i + 1
    raise Damaged("a varint does not hold")


def to_varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def cid_parts(data, at=0):
    """(end, hash function, digest) of the binary CID at an offset."""
    if data[at:at + 2] == b"\x12\x20":
        code, size, start = 0x12, 32, at + 2
    else:
        version, start = varint(data, at)
        _, start = varint(data, start)
        code, start = varint(data, start)
        size, start = varint(data, start)
        if version != 1:
            raise Damaged("a CID is of an unknown version")
    if size > 2048 or start + size > len(data):
        raise Damaged("a CID does not hold")
    return start + size, code, bytes(data[start:start + size])


BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def cid_text(cid):
    if cid[0] != 0x12:
        return "b" + base64.b32encode(cid).decode().rstrip("=").lower()
    number, text = int.from_bytes(cid, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = BASE58[digit] + text
    return text


def cid_from_text(text):
    try:
        if text.startswith("b"):
            cid = base64.b32decode(text[1:].upper() + "=" * (-(len(text) - 1) % 8))
        else:
            number = 0
            for char in text:
                number = number * 58 + BASE58.index(char)
            cid = number.to_bytes(34, "big")
        if cid_parts(cid)[0] == len(cid):
            return cid
    except (ValueError, OverflowError, Damaged):
        pass
    raise Damaged(f"{text} is not a CID")


def hashes(cid, body):
    """Whether the body is the one the CID names; None if that cannot be told."""
    _, code, digest = cid_parts(cid)
    if code == 0x12 and len(digest) == 32:
        return hashlib.sha256(body).digest() == digest
    return body == digest if code == 0 else None


def sections_of(content):
    """(CID, where the body begins, its length) of each section that begins in a frame, as far as they hold."""
    found, at = [], 0
    try:
        while at < len(content):
            length, start = varint(content, at)
            body = cid_parts(content, start)[0]
            at = start + length
            if body > at or found and (at > len(content) or at - body >= LARGE):
                break
            found.append((bytes(content[start:body]), body, at - body))
    except Damaged:
        pass
    return found


# Section 7.1: inside a frame that does not hold

LINK, USUAL = b"\xD8\x2A\x58\x25\x00", re.compile(rb"\x01[\x55\x71]\x12\x20", re.S)


def raw_content(stored):
    """The content of a raw frame whatever its headers say, or None if it has not the length of one."""
    for header, least, most in ((6, 1, 255), (7, 256, 65791), (9, 65792, MAX_CONTENT)):
        content, at, end = bytearray(), header, len(stored) - 4
        while at + 3 < end:
            start = at + 3
            cut = stored.find(M[:8], start, min(start + (1 << 17), end))
            while cut >= 0 and stored[cut + 11:cut + 19] != M[8:]:
                cut = stored.find(M[:8], cut + 1, min(start + (1 << 17), end))
            at = cut + 8 if cut >= 0 else min(start + (1 << 17), end)
            content += stored[start:at]
        if least <= len(content) <= most:
            return bytes(content)
    return None


def left_of(content):
    """(CID, where the body begins, its length) of each section in damaged content that hashes to its CID."""
    found, behind = sections_of(content), 0
    found = [one for one in found if hashes(one[0], content[one[1]:one[1] + one[2]])]
    places = [m.start() for m in USUAL.finditer(content) if content[max(0, m.start() - 5):m.start()] != LINK]

    def ends(at):
        for width in range(1, 5):
            try:
                length, start = varint(content, at - width) if at >= width else (0, -1)
                if start == at and 36 <= length <= len(content) - at:
                    yield width, at + length
            except Damaged:
                pass

    for at, following in zip(places, places[1:] + [None]):
        if at < behind:
            continue
        cid = content[at:at + 36]
        for end in [end for _, end in ends(at)] + [following - width for width, _ in ends(following or 0)] + [len(content)]:
            if end >= at + 36 and hashes(cid, content[at + 36:end]):
                found.append((cid, at + 36, end - at - 36))
                behind = end
                break
    return sorted(set(found), key=lambda one: one[1])


# Section 3: data frames

def inflate(stored, option="--check"):
    """The content of one frame, or None if it does not hold; with --no-check as much of it as can be had."""
    done = subprocess.run(["zstd", "-dcq", option], input=stored, capture_output=True)
    return None if done.returncode and option == "--check" else done.stdout


def frame_count(size):
    """How many frames a section takes."""
    return max(1, -(-size // CHUNK)) if size >= LARGE else 1


def large_sizes(start, size):
    """The content sizes of the frames of a large section."""
    return [min(CHUNK, size - i) + (0 if i else start) for i in range(0, size, CHUNK)]


# Section 4.1: the index segment

def key(cid):
    """The key of a section, as a number of 256 bits."""
    _, code, digest = cid_parts(cid)
    if code != 0x12 or len(digest) != 32:
        digest = hashlib.sha256(cid).digest()
    return int.from_bytes(digest, "big")


def kept_bits(form, ordinal):
    """K(o): how many bits of its key the entry of a section keeps."""
    return 32 if form == 0 else 28 if ordinal < 1 << 18 else min(48, 12 + ordinal.bit_length())


def blocks(texts):
    """Bits, each a character and the first the first, in blocks."""
    text = "".join(texts)
    return b"".join(int(text[i:i + 127][::-1], 2).to_bytes(16, "little") for i in range(0, len(text), 127))


def bits_of(number, count):
    """The bits of a number, the lowest first."""
    return format(number, f"0{count}b")[::-1] if count else ""


class Archive:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.path.getsize(path) else b""
        self.problems, self.cache, self.kept, self.segments = [], {}, {}, []
        self.found = None                               # the sections found by a walk; None while the index serves
        self.footer = self.find_footer()
        self.end = self.footer.end if self.footer else len(self.data)      # the committed length
        self.repaired = bool(self.footer and self.footer.required & REPAIRED)
        try:
            self.load_index()
        except Damaged as why:
            self.problem(f"{why}; walking the frames")
            self.found = list(self.walk())
            self.numbered = {s.ordinal: s for s in self.found}

    def problem(self, text):
        self.problems.append(text)
        note(text)

    def frame_at(self, at, end):
        """The frame at an offset, by its form and, for a skippable one, its checksum: sections 3.1 and 4."""
        data, magic, head = self.data, self.data[at:at + 4], self.data[at + 4:at + 9]
        if magic == SKIPPABLE and at + 36 <= end and data[at + 8:at + 24] == M:
            length, kind = int.from_bytes(head[:4], "little") + 8, struct.unpack_from("<I", data, at + 24)[0]
            stored = data[at:at + length] if 36 <= length <= end - at else b""
            if stored and stored[-8:] == xxh64(stored[:-8]).to_bytes(8, "little"):
                return Frame(at, length, kind, 0, True)
        if magic == VOID and at + 8 <= end:
            length = int.from_bytes(head[:4], "little") + 8
            stored = data[at:at + length] if length <= end - at else b""
            if length >= 16 and stored[-8:] == xxh64(stored[:-8]).to_bytes(8, "little") or stored[8:] == bytes(length - 8) != b"":
                return Frame(at, length, VOID, 0, True)
        width = {0x24: 1, 0x64: 2, 0xA4: 4}.get(head[0]) if magic == DATA and len(head) == 5 else None
        if width:
            size = int.from_bytes(data[at + 5:at + 5 + width], "little") + (256 if width == 2 else 0)
            p, last = at + 5 + width, not 0 < size <= MAX_CONTENT or width == 4 and size <= 65791
            while not last and p + 3 <= end:
                block = int.from_bytes(data[p:p + 3], "little")
                last, kind, length = block & 1, block >> 1 & 3, block >> 3
                if kind == 3 or length > 1 << 17:
                    break
                p += 3 + (1 if kind == 1 else length)
                if last and p + 4 <= end:
                    return Frame(at, p + 4 - at, None, size, True)
        raise Damaged(f"no frame holds at {at}")

    def content(self, offset, length, xxh=None):
        """(content, sections, whether it holds) of a data frame; of a damaged one what can be had."""
        if offset not in self.cache:
            stored = self.data[offset:offset + min(length, MAX_CONTENT + 1024)]
            content, whole = inflate(stored), xxh is None or xxh64(stored) == xxh
            if content is None:
                content, whole = inflate(stored, "--no-check")[:MAX_CONTENT], False
                raw = raw_content(stored[:length])
                if raw and (xxh64(raw) & 0xFFFFFFFF == int.from_bytes(stored[length - 4:length], "little")
                            or len(left_of(raw)) > len(left_of(content))):
                    content = raw
            self.cache[offset] = content, sections_of(content), whole
            if len(self.cache) > 64:
                del self.cache[next(iter(self.cache))]
        return self.cache[offset]

    # Section 4.1: the index segment

    def segment_at(self, at):
        frame = self.frame_at(at, self.end)
        a, form, zero, base, n, m = struct.unpack_from("<BBHQII", self.data[at:at + frame.length].ljust(48), 28)
        if frame.kind != 1 or form > 1 or zero or a > 24 or not n:
            raise Damaged(f"no index segment holds at {at}")
        w, k = (n - 1).bit_length(), kept_bits(form, base + n - 1)
        b, marks = min(w, 28), at + 48 + (4 << a)
        entries = marks + (-(-(n + (1 << b)) // 127) * 16 if form else 0)
        rest = entries + (-(-n * (k - b + w) // 127) * 16 if form else 8 * n)
        if rest + 24 * m + 8 != at + frame.length or form and a != max(0, b - 9):
            raise Damaged(f"no index segment holds at {at}")
        table = list(struct.iter_unpack("<QQII", self.data[rest:at + frame.length - 8]))
        return Segment(at, base, n, form, a, b, w, k, marks, entries, table, [row[2] for row in table], frame.length)

    def bits(self, start, at, count):
        """`count` bits from number `at` on, of blocks at an offset."""
        first, value = at // 127, 0
        for i in range(first, -(-(at + count) // 127)):
            value |= (int.from_bytes(self.data[start + 16 * i:start + 16 * i + 16], "little") & (1 << 127) - 1) << 127 * (i - first)
        return value >> at % 127 & (1 << count) - 1

    def entries(self, s, lead):
        """(kept bits, K(o), ordinal) of the entries whose first a bits are these."""
        low, high = struct.unpack_from("<II", self.data, s.offset + 44 + 4 * lead)
        low, high = low if lead else 0, min(high, s.n)
        if s.form == 0:
            for i in range(low, high):
                kept, ordinal = struct.unpack_from("<II", self.data, s.entries + 8 * i)
                yield kept, 32, s.base + ordinal
            return
        width = 1 << s.b - s.a
        marks = bits_of(self.bits(s.marks, lead * width + low, width + high - low), width + high - low).split("0")
        i, size = low, s.k - s.b + s.w
        for bucket, ones in enumerate(marks[:width], lead * width):
            for _ in ones:
                number = self.bits(s.entries, i * size, size)
                i, ordinal = i + 1, s.base + (number & (1 << s.w) - 1)
                count = kept_bits(s.form, ordinal)
                yield (bucket << s.k - s.b | number >> s.w) >> s.k - count, count, ordinal

    def index_of(self, s, sections):
        """Fan-out, marks and entries as they have to be in a segment of these sections."""
        entries = []
        for t in sections:
            count = kept_bits(s.form, t.ordinal)
            entries.append((key(t.cid) >> 256 - count << s.k - count, t.ordinal - s.base))
        entries.sort()
        leads = collections.Counter(kept >> s.k - s.a for kept, _ in entries)
        parts = [struct.pack("<I", i) for i in itertools.accumulate(leads[i] for i in range(1 << s.a))]
        if s.form == 0:
            return parts + [struct.pack("<II", *entry) for entry in entries]
        buckets = collections.Counter(kept >> s.k - s.b for kept, _ in entries)
        parts.append(blocks("1" * buckets[i] + "0" for i in range(1 << s.b)))
        parts.append(blocks(bits_of(n, s.w) + bits_of(kept & (1 << s.k - s.b) - 1, s.k - s.b) for kept, n in entries))
        return parts

    def load_index(self):
        """Sections 4.2 and 5: the live segments the footer names, which cover all ordinals."""
        covered = 0
        for offset, n, m, xxh in self.footer.live if self.footer else []:
            s = self.segment_at(offset)
            own = s.base, s.n, len(s.table), self.data[offset + s.length - 8:offset + s.length], s.form
            if own != (covered, n, m, xxh, 1 if self.footer.required & PACKED else 0):
                raise Damaged(f"the index segment at {offset} is not the one the footer names")
            self.segments.append(s)
            covered += n
        if not self.footer or covered != self.footer.sections:
            raise Damaged("the index does not cover the file")

    def candidates(self, cid):
        """The sections that may have a CID."""
        if self.found is not None:
            yield from (s for s in self.found if s.cid == cid)
        for s in self.segments if self.found is None else []:
            for kept, count, ordinal in self.entries(s, key(cid) >> 256 - s.a):
                if kept == key(cid) >> 256 - count:
                    try:
                        yield self.locate(ordinal)
                    except Damaged as why:
                        self.problem(str(why))

    def locate(self, ordinal):
        """The section with an ordinal."""
        if self.found is not None:
            if ordinal in self.numbered:
                return self.numbered[ordinal]
            raise Damaged(f"section {ordinal} is lost")
        for s in self.segments:
            if s.base <= ordinal < s.base + s.n:
                i = bisect.bisect_right(s.ordinals, ordinal - s.base) - 1       # the last frame not after it …
                i = bisect.bisect_left(s.ordinals, s.ordinals[i])               # … or the first of a large section
                offset, xxh, first, length = s.table[i]
                content, inside, whole = self.content(offset, length, xxh)
                if not whole and (left := self.left(s, ordinal, offset, content)):
                    return Section(ordinal, *left, [(offset, length, xxh)])
                if not 0 <= ordinal - s.base - first < len(inside):
                    raise Damaged(f"section {ordinal} is lost: the frame at {offset} is damaged")
                cid, start, size = inside[ordinal - s.base - first]
                frames = [(row[0], row[3], row[1]) for row in s.table[i:i + frame_count(size)]]
                return Section(ordinal, cid, size, start, frames)
        raise Damaged(f"section {ordinal} is not there")

    def left(self, s, ordinal, offset, content):
        """(CID, length, where the body begins) of what is left of a section, by the bits kept of its key."""
        if s.offset not in self.kept:
            self.kept[s.offset] = {o: (kept, count) for lead in range(1 << s.a) for kept, count, o in self.entries(s, lead)}
        kept, count = self.kept[s.offset].get(ordinal, (None, 0))
        if (offset, len(content)) not in self.kept:
            self.kept[offset, len(content)] = left_of(content)
        for cid, start, size in self.kept[offset, len(content)]:
            if key(cid) >> 256 - count == kept:
                return cid, size, start
        return None

    def number(self, ordinal):
        """The section that an ordinal means: section 5.2."""
        try:
            section = self.locate(ordinal)
            self.read(section)
            return section
        except Damaged:
            later = self.later(ordinal) if self.repaired and self.found is None else ()
            for other in later:
                try:
                    section = self.locate(other)
                    self.read(section)
                    return section
                except Damaged:
                    continue
            raise

    def later(self, ordinal):
        """The ordinals behind this one whose keys begin with the bits kept of its own, the last first."""
        entries = [entry for s in self.segments for lead in range(1 << s.a) for entry in self.entries(s, lead)]
        own, known = next((entry[:2] for entry in entries if entry[2] == ordinal), (0, 0))
        if own == (1 << known) - 1:
            return []
        return sorted((n for kept, count, n in entries if n > ordinal and kept >> count - known == own), reverse=True)

    def read(self, section):
        """The body of a section, checked."""
        parts = [self.content(*frame) for frame in section.frames]
        body = b"".join([parts[0][0][section.start:]] + [p[0] for p in parts[1:]])[:section.length]
        good = hashes(section.cid, body)
        if len(body) != section.length or good is False or good is None and not all(whole for _, _, whole in parts):
            raise Damaged(f"section {section.ordinal}, {cid_text(section.cid)}, is damaged")
        return body

    def body(self, cid):
        """Section 5, "One section"."""
        for section in self.candidates(cid):
            if section.cid == cid:
                try:
                    return self.read(section)
                except Damaged as why:
                    self.problem(str(why))
        raise Damaged(f"{cid_text(cid)} is not in " + ("what is left of the file" if self.problems else "the file"))

    def listing(self):
        """All sections that can be had, in order."""
        yield from self.found or []
        for ordinal in range(self.footer.sections if self.found is None else 0):
            try:
                section = self.locate(ordinal)
                if not self.content(*section.frames[0])[2]:
                    self.read(section)
                yield section
            except Damaged as why:
                self.problem(str(why))

    # Section 4.2: the footer

    def footer_at(self, at):
        try:
            frame = self.frame_at(at, len(self.data))
        except Damaged:
            return None
        count, rest = divmod(frame.length - 144, 24)
        if frame.kind != 2 or rest or not 0 <= count <= 16:
            return None
        end = at + frame.length
        if int.from_bytes(self.data[end - 16:end - 8], "little") != at:
            return None
        major, _, required, _, generation, previous, sections, stream, offset, ordinal, digest = \
            struct.unpack_from("<HH8Q32s", self.data, at + 28)
        if major != 1 or required & ~(REPAIRED | UNDIGESTED | PACKED):
            sys.exit(f"carpack_reader: this reader knows version 1 and features 0 to 2, not {major} and {required:#x}")
        live = list(struct.iter_unpack("<QII8s", self.data[at + 128:end - 16]))
        cid = b"\x01\x71\x12\x20" + digest if offset else b""
        return Footer(at, end, generation, previous, sections, stream, (offset, ordinal, cid), live, required)

    # Section 5: opening

    def find_footer(self):
        own, at = int.from_bytes(self.data[-16:-8], "little"), len(self.data)
        footer = self.footer_at(own) if own < len(self.data) else None
        if footer and footer.end != len(self.data):
            footer = None
        while not footer:
            at = self.data.rfind(M, 0, at)
            if at < 8:
                self.problem("no footer holds: nothing was committed, or the end is lost")
                return None
            footer = self.footer_at(at - 8)
        if footer.end != len(self.data):
            tail = len(self.data) - footer.end
            self.problem(f"{tail} bytes after generation {footer.generation} are not committed")
        return footer

    # Section 6: manifests

    def manifest(self, number=None):
        """The newest manifest, or the one with a number: 0 the newest, 1 the one before it, and so on."""
        for cid, manifest in self.manifests() if number is not None else []:
            if number == 0:
                return manifest
            number -= 1
        if number is not None:
            raise Damaged("there are not so many manifests")
        if self.footer:
            if not self.footer.manifest[2]:
                raise Damaged("there is no manifest")
            return decode(self.body(self.footer.manifest[2]))
        for s in reversed(self.found):
            if s.cid[:2] == b"\x01\x71" and len(self.content(*s.frames[0])[1]) == 1:
                value = decode(self.read(s))
                if isinstance(value, dict) and "carpack" in value:
                    note("this is the last manifest found; no footer vouches for it")
                    return value
        raise Damaged("no manifest was found")

    def manifests(self):
        """(CID, manifest) of every snapshot, the newest first: along `prev`."""
        cid = self.footer.manifest[2] if self.footer else b""
        while cid:
            manifest = decode(self.body(cid))
            yield cid, manifest
            cid = manifest["prev"]

    def order(self, manifest):
        """The ordinals of the sections of a manifest's CAR: section 6.1."""
        chain, ordinals = [manifest["car"]], []
        while chain[-1]["order"]["kind"] == "relative":
            if len(chain) > 31:
                raise Damaged("too many orders are relative to one another")
            chain.append(decode(self.body(chain[-1]["order"]["base"]))["car"])
        for car in reversed(chain):
            order, base, ordinals = car["order"], ordinals, []
            if order["kind"] not in ("absolute", "relative"):
                raise Damaged("the order of the CAR is of an unknown kind")
            runs = order["runs"] if "runs" in order else b"".join(self.body(page) for page in order["pages"])
            expected = at = 0
            while at < len(runs):
                start, at = varint(runs, at)
                length, at = varint(runs, at)
                first = expected + (start >> 1 ^ -(start & 1))
                expected = first + length
                if first < 0 or length < 1 or len(ordinals) + length > car["blocks"]:
                    raise Damaged("the order of the CAR does not hold")
                ordinals += range(first, expected) if order["kind"] == "absolute" else \
                    (base[p] if p < len(base) else order["first"] + p - len(base) for p in range(first, expected))
            if len(ordinals) != car["blocks"]:
                raise Damaged("the order of the CAR has the wrong length")
        return ordinals

    def rebuild_car(self, out, number=None):
        manifest = self.manifest(number)
        car, digest, size = manifest["car"], hashlib.sha256(), 0
        with open(out + ".partial", "wb") as file:
            for ordinal in [None] + self.order(manifest):
                piece = car["header"]
                if ordinal is not None:
                    s = self.number(ordinal)
                    piece = to_varint(len(s.cid) + s.length) + s.cid + self.read(s)
                digest.update(piece)
                size += file.write(piece)
        if size != car["bytes"] or digest.digest() != car.get("sha256", digest.digest()):
            raise Damaged(f"the CAR put together, {out}.partial, is not the one that came in")
        if "since" in manifest.get("fetched", {}):
            with open(out + ".partial", "wb") as file:
                file.write(car["header"])
                for s, body in self.canonical(manifest):
                    file.write(to_varint(len(s.cid) + s.length) + s.cid + body)
        os.replace(out + ".partial", out)

    def canonical(self, manifest):
        """The sections of a manifest's CAR in canonical order, and their bodies: section 6.1."""
        sections = {s.cid: s for s in map(self.number, self.order(manifest))}
        waiting, done = [(manifest["commit"], "commit")], set()
        while waiting:
            cid, kind = waiting.pop()
            if cid is None or cid in done:
                continue
            done.add(cid)
            if cid not in sections:
                raise Damaged("the CAR lacks a block of the tree")
            body = self.read(sections[cid])
            yield sections[cid], body
            if kind == "commit":
                waiting.append((decode(body)["data"], "node"))
            elif kind == "node":
                node = decode(body)
                below = [(node["l"], "node")]
                for entry in node["e"]:
                    below += [(entry["v"], "record"), (entry["t"], "node")]
                waiting += reversed(below)

    # Section 7: a damaged or unfinished file

    def all_frames(self, known):
        """The frames by a forward walk; kind "gap" is what holds no frame."""
        at = 0
        while at < self.end:
            length = known.get(at, (0, 0, 0, 0))[3]
            try:
                frame = self.frame_at(at, self.end)
                length = length or frame.length
                if frame.kind is None and not self.content(at, frame.length)[2]:
                    raise Damaged(f"the frame at {at} does not decompress, or its checksum is wrong")
                yield frame
            except Damaged as why:
                self.problem(str(why))
                follows = self.data[at + length:at + length + 4] in (DATA, SKIPPABLE, VOID) or at + length == self.end
                if not length or not follows:
                    length = self.next_frame(at) - at
                yield Frame(at, length, None if self.data[at:at + 4] == DATA else "gap", 0, False)
                at += length
            else:
                at += frame.length

    def next_frame(self, at):
        for match in re.finditer(re.escape(DATA) + b"|" + re.escape(SKIPPABLE), memoryview(self.data)[at + 1:self.end]):
            try:
                frame = self.frame_at(at + 1 + match.start(), self.end)
                if frame.kind is not None or inflate(self.data[frame.offset:frame.offset + frame.length]) is not None:
                    return frame.offset
            except Damaged:
                pass
        return self.end

    def walk(self):
        """The sections that hash to their CIDs, by a forward walk; without ordinal where it is not certain."""
        known, at = {}, self.data.find(M, 0, self.end)       # what the segments, live or dead, say of data frames
        while at >= 0:
            try:
                s = self.segment_at(at - 8)
                for i, (offset, xxh, first, length) in enumerate(s.table):
                    known[offset] = xxh, s.base + first, i > 0 and first == s.ordinals[i - 1], length
            except Damaged:
                pass
            at = self.data.find(M, at + 1, self.end)
        self.frames = frames = list(self.all_frames(known))
        ordinal, skip = 0, 0
        for i, f in enumerate(frames):
            if skip or f.kind is not None or f.offset == 0:
                skip, ordinal = max(0, skip - 1), ordinal if f.whole else None
                continue
            if ordinal is None and f.whole and f.offset in known:
                xxh, number, continues, _ = known[f.offset]
                if xxh == xxh64(self.data[f.offset:f.offset + f.length]):
                    if continues:
                        continue
                    ordinal = number
            content, inside, _ = self.content(f.offset, f.length)
            for cid, start, size in inside:
                run = frames[i:i + frame_count(size)]
                section = Section(ordinal, cid, size, start, [(g.offset, g.length, None) for g in run])
                try:
                    sizes = [g.size for g in run if g.kind is None]
                    if size >= LARGE and sizes != large_sizes(start, size):
                        raise Damaged(f"{cid_text(cid)} lacks frames")
                    self.read(section)
                    if ordinal is None and hashes(cid, b"") is None:
                        raise Damaged(f"{cid_text(cid)} cannot be told from chance")
                    yield section
                    skip = len(run) - 1
                except Damaged as why:
                    self.problem(str(why))
                    ordinal = None
                ordinal = None if ordinal is None else ordinal + 1
            if not inside or sum(inside[-1][1:]) != len(content) and inside[-1][2] < LARGE or not f.whole:
                self.problem(f"the frame at {f.offset} holds other things than whole sections")
                ordinal = None

    def verify(self):
        """Everything, against a forward walk."""
        before, ends, table, sums = len(self.problems), [], [], {}
        sections = list(self.walk())
        if len(self.problems) > before or not self.frames:
            raise Damaged(f"{len(sections)} sections are whole; as others are damaged, the index is not compared")
        for s in sections:
            ends.append(s.frames[-1][0])
            table += [(f[0], f[1], s.ordinal) for f in s.frames if not table or f[0] != table[-1][0]]
            if hashes(s.cid, b"") is None:
                note(f"{cid_text(s.cid)} has a hash this reader does not know; its body is not checked")
        heads = {(s.frames[0][0], s.ordinal, s.cid) for s in sections} | {(0, 0, b"")}
        header, stream, generation, previous = self.content(0, self.frames[0].length)[0], 0, 0, 0
        if varint(header, 0)[0] != len(header) - varint(header, 0)[1]:
            self.problem("the first frame is not a CAR header")
        for f in self.frames:
            stream += f.size
            if f.kind == 2:
                footer, generation = self.footer_at(f.offset), generation + 1
                counted = generation, previous, bisect.bisect(ends, f.offset), stream
                # Before the last footer of a repaired file, what does not agree counts no more.
                counts = not self.repaired or f.offset + f.length == self.end
                if counts and (not footer or footer[2:6] != counted or footer.manifest not in heads):
                    self.problem(f"the footer at {f.offset} contradicts the frames")
                previous = f.offset
            if f.kind == 1:
                s = self.segment_at(f.offset)
                covered = {t.ordinal: t for t in sections if t.ordinal is not None and s.base <= t.ordinal < s.base + s.n}
                parts = self.index_of(s, covered.values())
                for offset, length, ordinal in table:
                    if ordinal in covered:
                        if offset not in sums:
                            sums[offset] = xxh64(self.data[offset:offset + length])
                        parts.append(struct.pack("<QQII", offset, sums[offset], ordinal - s.base, length))
                if b"".join(parts) != self.data[s.offset + 48:s.offset + s.length - 8]:
                    self.problem(f"the index segment at {s.offset} does not agree with the frames")
        marks = re.findall(re.escape(M), memoryview(self.data)[:self.end])
        if not self.repaired and len(marks) != sum(f.kind is not None for f in self.frames):
            self.problem("M occurs elsewhere than in skippable frames")
        if len({s.cid for s in sections}) != len(sections):
            self.problem("a CID occurs in two sections")
        print(f"{len(sections)} sections, {generation} generations, {len(self.problems)} problems")


# DAG-CBOR, and JSON to show it

class Link(bytes):
    pass


def decode(data):
    def item(at):
        major, info = data[at] >> 5, data[at] & 31
        at += 1
        if major == 7:
            if info == 27:
                return struct.unpack_from(">d", data, at)[0], at + 8
            return {20: False, 21: True, 22: None}[info], at
        size = 1 << info - 24 if info > 23 else 0
        value, at = int.from_bytes(data[at:at + size], "big") if size else info, at + size
        if info > 27 or at > len(data):
            raise ValueError
        if major < 2:
            return -1 - value if major else value, at
        if major < 4:
            raw, at = data[at:at + value], at + value
            return raw.decode() if major == 3 else raw, at
        if major == 6:
            link, at = item(at)
            if value != 42 or link[0] != 0:
                raise ValueError
            return Link(link[1:]), at
        flat = []
        for _ in range(value * (major - 3)):
            element, at = item(at)
            flat.append(element)
        return flat if major == 4 else dict(zip(flat[::2], flat[1::2])), at
    try:
        value, end = item(0)
        if end == len(data):
            return value
    except (ValueError, LookupError, TypeError, struct.error, RecursionError):
        pass
    raise Damaged("a block is not DAG-CBOR")


def plain(value):
    if isinstance(value, Link):
        return {"$link": cid_text(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode().rstrip("=")}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def show(value, **options):
    print(json.dumps(plain(value), ensure_ascii=False, **options))


def main():
    parser = argparse.ArgumentParser(description="Reads carpack archives by Docs/FORMAT.md.")
    parser.add_argument("command", choices=["list", "walk", "log", "blob", "snapshot", "car", "missing", "extras", "private", "verify"])
    parser.add_argument("file")
    parser.add_argument("argument", nargs="?", help="blob: a CID; car: the file to write; private: a method")
    parser.add_argument("--json", action="store_true", help="list: one JSON object per line")
    parser.add_argument("--back", type=int, metavar="N", help="snapshot, car, missing, extras, private: N snapshots before the newest")
    args = parser.parse_args()
    if (args.argument is not None) != (args.command in ("blob", "car", "private")):
        parser.error(f"{args.command} takes {'one more argument' if args.argument is None else 'no further argument'}")
    try:
        archive = Archive(args.file)
        if args.command == "walk":
            # Every section that is intact, wherever it lies, whatever footers and indexes say.
            archive.end = len(archive.data)
            for section in archive.walk():
                print(cid_text(section.cid))
        if args.command == "list":
            for s in archive.listing():
                if args.json:
                    show({"ordinal": s.ordinal, "cid": cid_text(s.cid), "length": s.length})
                else:
                    print("-" if s.ordinal is None else s.ordinal, cid_text(s.cid), s.length)
        elif args.command == "blob":
            sys.stdout.buffer.write(archive.body(cid_from_text(args.argument)))
            return 0
        elif args.command == "snapshot":
            show(archive.manifest(args.back), indent=2)
        elif args.command == "car":
            archive.rebuild_car(args.argument, args.back)
        elif args.command == "private":
            manifest = archive.manifest(args.back)
            data = decode(archive.body(manifest["private"]))
            if data["did"] != manifest["did"]:
                raise Damaged("the private data is another account's")
            for entry in data["carpackPrivate"]:
                for piece in [p for a in entry["answers"] for p in a if entry["endpoint"] == args.argument]:
                    sys.stdout.buffer.write(decode(archive.body(piece))["carpackPrivate"])
            return 0
        elif args.command == "log":
            for cid, manifest in archive.manifests():
                print(cid_text(cid), manifest["createdAt"], manifest["did"], manifest.get("rev", "-"))
        elif args.command == "verify":
            archive.verify()
        else:
            for page in archive.manifest(args.back).get(args.command, []):
                for entry in decode(archive.body(page)):
                    show(entry) if args.command == "missing" else print(cid_text(entry))
        return 1 if archive.problems else 0
    except (Damaged, OSError) as why:
        note(str(why))
    except (KeyError, TypeError, AttributeError, IndexError):
        note("a manifest or the index is not what it should be")
    return 1


if __name__ == "__main__":
    sys.exit(main())
