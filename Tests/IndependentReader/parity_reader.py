#!/usr/bin/env python3
"""Parity of carpack archives, from section 4.5 of Docs/FORMAT.md alone.

    parity_reader.py check ARCHIVE       whether the stored parity and checksums are those of the protected bytes; names the groups
    parity_reader.py heal ARCHIVE NEW    makes damaged blocks again that lie where they were written, into a new file
"""
import struct, sys

from carpack_reader import M, SKIPPABLE, xxh64

# The field of 256 elements.
LOG, EXP = [0] * 256, [0] * 510
value = 1
for power in range(255):
    EXP[power] = EXP[power + 255] = value
    LOG[value] = power
    value = value << 1 ^ (0x11D if value & 0x80 else 0)


def product(a, b):
    return EXP[LOG[a] + LOG[b]] if a and b else 0


def inverse(a):
    return EXP[255 - LOG[a]]


TIMES = [bytes(product(a, b) for b in range(256)) for a in range(256)]


def xor(a, b):
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).to_bytes(len(a), "little")


def coefficient(parity, row):
    return inverse((255 - parity) ^ row)


def parity_rows(data, count):
    rows = []
    for p in range(count):
        total = bytes(len(data[0]))
        for r, row in enumerate(data):
            if any(row):
                total = xor(total, row.translate(TIMES[coefficient(p, r)]))
        rows.append(total)
    return rows


def rebuilt(rows, k, lost):
    """Data rows with those that are lost made again, from k + m rows; None if too few are left."""
    missing = [r for r in lost if r < k]
    known = [p for p in range(len(rows) - k) if p + k not in lost][:len(missing)]
    if len(known) < len(missing):
        return None
    data = [bytes(len(rows[0])) if r in missing else rows[r] for r in range(k)]
    made = parity_rows(data, len(rows) - k) if missing else []
    sums = [xor(rows[k + p], made[p]) for p in known]
    matrix = [[coefficient(p, r) for r in missing] for p in known]
    for i in range(len(missing)):  # Gauss: a part of a Cauchy matrix has an inverse
        pivot = next(j for j in range(i, len(missing)) if matrix[j][i])
        matrix[i], matrix[pivot], sums[i], sums[pivot] = matrix[pivot], matrix[i], sums[pivot], sums[i]
        factor = inverse(matrix[i][i])
        matrix[i] = [product(factor, x) for x in matrix[i]]
        sums[i] = sums[i].translate(TIMES[factor])
        for j in range(len(missing)):
            factor = matrix[j][i]
            if j != i and factor:
                matrix[j] = [x ^ product(factor, y) for x, y in zip(matrix[j], matrix[i])]
                sums[j] = xor(sums[j], sums[i].translate(TIMES[factor]))
    for row, content in zip(missing, sums):
        data[row] = content
    return data


def checksum(block):
    total = 0
    for byte in block[:64]:
        total = (total * 0x9E3779B97F4A7C15 + byte) % (1 << 64)
    return total >> 32 << 32 | xxh64(block) & 0xFFFFFFFF


def up(a, b):
    return -(-a // b)


class Group:
    def __init__(self, page):
        bits, self.k, self.m, self.percent, self.number, self.footer, self.start, self.stop, self.place, self.mask = \
            struct.unpack_from("<BBBBIIQQQQ", page, 28)
        self.size = 1 << bits
        self.base = self.start >> bits << bits
        self.of_range = up(self.stop - self.base, self.size)
        self.n = self.of_range + up(self.footer, self.size)
        self.columns = up(self.n, self.k)
        self.sums = self.n + self.m * self.columns
        self.q = min(120, up(8 * self.sums, 4000))
        self.part = up(self.sums, self.q) * 8
        self.page = 72 + self.part + 16
        self.parity = self.place + self.q * self.page
        self.end = self.parity + 36 + self.m * self.columns * self.size + self.q * self.page

    def key(self):
        return self.k, self.m, self.start, self.stop, self.place, self.mask

    def lies(self, row, column):
        """Where a block lies, and the zeros before it; None for one of zeros that lies nowhere."""
        if row >= self.k:
            at = self.parity + 28 + ((row - self.k) * self.columns + column) * self.size
            return at, at + self.size, 0
        block = row * self.columns + column
        if block < self.of_range:
            at = self.base + block * self.size
            first = max(at, self.start)
            return first, min(at + self.size, self.stop), first - at
        if block < self.n:
            at = self.end + (block - self.of_range) * self.size
            return at, min(at + self.size, self.end + self.footer), 0
        return None

    def masked(self, content):
        return xor(content, (self.mask.to_bytes(8, "little") * up(len(content), 8))[:len(content)]) if self.mask else content


def groups(data):
    """The groups that count, each with its pages by their numbers."""
    found, at = {}, data.find(M)
    while at >= 0:
        start = at - 8
        if start >= 0 and data[start:at - 4] == SKIPPABLE and data[at + 16:at + 20] == b"\4\0\0\0":
            page = data[start:at + int.from_bytes(data[at - 4:at], "little")]
            if page[-8:] == xxh64(page[:-8]).to_bytes(8, "little") and int.from_bytes(page[-16:-8], "little") == start:
                group = Group(page)
                found.setdefault(group.key(), (group, {}))[1][group.number] = page[72:-16]
        at = data.find(M, at + 16)
    last = sorted((g for g, _ in found.values()), key=lambda g: -g.place)
    return [(g, pages) for g, pages in found.values()
            if not any(o.place > g.place and o.start <= g.start and g.stop <= o.stop for o in last)]


def table(group, pages):
    rows = [pages.get(i, bytes(group.part)) for i in range(2 * group.q)]
    parts = rebuilt(rows, group.q, [i for i in range(2 * group.q) if i not in pages])
    if parts is None:
        raise SystemExit("too few pages are left")
    return [int.from_bytes(group.masked(b"".join(parts)[8 * i:8 * i + 8]), "little") for i in range(group.sums)]


def block(data, group, row, column):
    place = group.lies(row, column)
    if place is None:
        return bytes(group.size)
    first, last, zeros = place
    content = bytes(zeros) + data[first:last]
    return content + bytes(group.size - len(content))


def main(verb, path, new=None):
    data = bytearray(open(path, "rb").read())
    healed = 0
    for group, pages in groups(bytes(data)):
        sums = table(group, pages)
        for column in range(group.columns):
            rows = [block(bytes(data), group, row, column) for row in range(group.k + group.m)]
            lost = []
            for row in range(group.k + group.m):
                number = row * group.columns + column if row < group.k else group.n + (row - group.k) * group.columns + column
                if group.lies(row, column) and checksum(rows[row]) != sums[number]:
                    lost.append(row)
            if verb == "check" and lost:
                raise SystemExit(f"column {column} of the group at {group.place} has damaged blocks: {lost}")
            plain = rows[:group.k] + [group.masked(row) for row in rows[group.k:]]
            made = rebuilt(plain, group.k, lost)
            if made is None:
                raise SystemExit(f"column {column} of the group at {group.place} cannot be healed: {lost}")
            if verb == "check" and parity_rows(made, group.m) != plain[group.k:]:
                raise SystemExit(f"column {column} of the group at {group.place} has other parity")
            for row in lost:
                if row < group.k:
                    first, last, zeros = group.lies(row, column)
                    data[first:last] = made[row][zeros:zeros + last - first]
                    healed += 1
        print(f"{group.start} {group.stop} {group.footer} {group.percent} {group.k} {group.m} {group.size}")
    if new:
        open(new, "wb").write(data)
        print(f"{healed} blocks healed")


if __name__ == "__main__":
    main(*sys.argv[1:])
