#!/usr/bin/env python3
"""Writes the made-up accounts beside it: repository CARs, blobs, DID documents. Python's standard library is all it needs.

Everything follows from the names in here, so the same bytes come out each time (the PNG images as zlib's compressor has them).
Nothing in it is anybody's: names, words and pictures were invented for this. The keys are derived from the account's name, and
the signatures are true ones (ECDSA on secp256k1, low S), so the accounts will also do where signatures are checked.
"""
import base64, hashlib, hmac, json, os, pathlib, random, shutil, struct, zlib
from datetime import datetime, timedelta, timezone

HERE = pathlib.Path(__file__).resolve().parent


# DAG-CBOR and CIDs

class Link(bytes):
    "A CID in binary form."

    def __str__(self):
        return "b" + base64.b32encode(self).decode().lower().rstrip("=")


def cid(content, codec=0x71):
    return Link(bytes([1, codec, 0x12, 0x20]) + hashlib.sha256(content).digest())


def head(major, value):
    if value < 24:
        return bytes([major << 5 | value])
    for extra, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if value < 1 << 8 * width:
            return bytes([major << 5 | extra]) + value.to_bytes(width, "big")


def cbor(value):
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, Link):
        return b"\xd8\x2a" + head(2, len(value) + 1) + b"\0" + value
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, (list, tuple)):
        return head(4, len(value)) + b"".join(map(cbor, value))
    keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
    return head(5, len(keys)) + b"".join(cbor(key) + cbor(value[key]) for key in keys)


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


# Keys and signatures: secp256k1 as SEC 2 has it, the nonce from the key and the digest

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
     0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)


def plus(a, b):
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    if a == b:
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P) % P
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P) % P
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(k, point):
    total = None
    while k:
        if k & 1:
            total = plus(total, point)
        point = plus(point, point)
        k >>= 1
    return total


class Key:
    def __init__(self, name):
        self.secret = int.from_bytes(hashlib.sha256(b"carpack fixture: " + name.encode()).digest(), "big") % (N - 1) + 1

    def sign(self, content):
        digest = hashlib.sha256(content).digest()
        nonce = hmac.new(self.secret.to_bytes(32, "big"), digest, hashlib.sha256).digest()
        k = int.from_bytes(nonce, "big") % (N - 1) + 1
        r = times(k, G)[0] % N
        s = pow(k, -1, N) * (int.from_bytes(digest, "big") + r * self.secret) % N
        return r.to_bytes(32, "big") + min(s, N - s).to_bytes(32, "big")

    @property
    def multikey(self):
        x, y = times(self.secret, G)
        number = int.from_bytes(b"\xe7\x01" + bytes([2 + y % 2]) + x.to_bytes(32, "big"), "big")
        text = ""
        while number:
            number, digit = divmod(number, 58)
            text = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[digit] + text
        return "z" + text


# The tree: one layer per node, keys compressed against their neighbour

def layer(key):
    bits = int.from_bytes(hashlib.sha256(key).digest(), "big")
    return (256 - bits.bit_length()) // 2


def tree(entries, height, blocks):
    "The CID of the node over `entries` [(key, CID)] at `height`; the blocks, each node before what is under it, go to `blocks`."
    here = [i for i, (key, _) in enumerate(entries) if layer(key) == height]
    under = []  # blocks of the parts, in order
    place = len(blocks)

    def part(start, end):
        if start == end:
            return None
        return tree(entries[start:end], height - 1, under)

    node = {"l": part(0, here[0] if here else len(entries)), "e": []}
    previous = b""
    for number, i in enumerate(here):
        key, value = entries[i]
        shared = len(os.path.commonprefix([previous, key]))
        under.append((value, None))
        following = here[number + 1] if number + 1 < len(here) else len(entries)
        node["e"].append({"p": shared, "k": key[shared:], "v": value, "t": part(i + 1, following)})
        previous = key
    block = cbor(node)
    blocks[place:place] = [(cid(block), block)] + under
    return cid(block)


# Accounts

def tid(moment, clock=7):
    value = int(moment.timestamp() * 1_000_000) << 10 | clock
    return "".join("234567abcdefghijklmnopqrstuvwxyz"[value >> shift & 31] for shift in range(60, -5, -5))


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


class Account:
    def __init__(self, name, start):
        self.name, self.handle, self.key = name, f"{name}.example.com", Key(name)
        self.random = random.Random(f"carpack fixture: {name}")
        self.moment = start
        self.records, self.files = {}, {}
        genesis = {
            "type": "plc_operation", "prev": None,
            "rotationKeys": ["did:key:" + Key(name + ", rotation").multikey],
            "verificationMethods": {"atproto": "did:key:" + self.key.multikey},
            "alsoKnownAs": ["at://" + self.handle],
            "services": {"atproto_pds": {"type": "AtprotoPersonalDataServer", "endpoint": "https://pds.example.com"}},
        }
        signature = Key(name + ", rotation").sign(cbor(genesis))
        self.genesis = dict(genesis, sig=base64.urlsafe_b64encode(signature).decode().rstrip("="))
        self.created = stamp(start)
        digest = hashlib.sha256(cbor(self.genesis)).digest()
        self.did = "did:plc:" + base64.b32encode(digest).decode().lower()[:24]

    def later(self):
        "Some hours on."
        self.moment += timedelta(microseconds=self.random.randrange(3 * 3_600_000_000, 70 * 3_600_000_000))
        return self.moment

    def add(self, collection, value, rkey=None):
        "Puts a record down; returns a strong reference to it."
        moment = self.later()
        rkey = rkey or tid(moment)
        block = cbor({"$type": collection, "createdAt": stamp(moment), **value})
        self.records[f"{collection}/{rkey}".encode()] = block
        return {"uri": f"at://{self.did}/{collection}/{rkey}", "cid": str(cid(block))}

    def blob(self, file, mime, content, kept=True):
        "Puts a blob down; returns what a record says about it."
        if kept:
            self.files[file] = content
        return {"$type": "blob", "ref": cid(content, 0x55), "mimeType": mime, "size": len(content)}

    def delete(self, reference):
        "Deletes the record that a strong reference names."
        del self.records[reference["uri"].removeprefix(f"at://{self.did}/").encode()]

    def write_car(self, file):
        "Writes the repository as it is now."
        entries = sorted((key, cid(block)) for key, block in self.records.items())
        contents = {cid(block): block for block in self.records.values()}
        blocks = []
        root = tree(entries, max(layer(key) for key, _ in entries), blocks)
        commit = {"did": self.did, "rev": tid(self.later()), "data": root, "prev": None, "version": 3}
        commit = cbor(dict(commit, sig=self.key.sign(cbor(commit))))
        header = cbor({"roots": [cid(commit)], "version": 1})
        with open(file, "wb") as car:
            car.write(varint(len(header)) + header)
            seen = set()
            for name, block in [(cid(commit), commit)] + blocks:
                if name not in seen:
                    block = contents[name] if block is None else block
                    car.write(varint(len(name) + len(block)) + name + block)
                    seen.add(name)

    def write(self):
        folder = HERE / self.name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "blobs").mkdir(parents=True)
        self.write_car(folder / f"{self.name}.car")
        for file, content in self.files.items():
            (folder / "blobs" / file).write_bytes(content)
        document = {
            "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
            "id": self.did, "alsoKnownAs": ["at://" + self.handle],
            "verificationMethod": [{"id": self.did + "#atproto", "type": "Multikey", "controller": self.did,
                                    "publicKeyMultibase": self.key.multikey}],
            "service": [{"id": "#atproto_pds", "type": "AtprotoPersonalDataServer",
                         "serviceEndpoint": "https://pds.example.com"}],
        }
        log = [{"did": self.did, "operation": self.genesis, "cid": str(cid(cbor(self.genesis))), "nullified": False,
                "createdAt": self.created}]
        for file, value in ((DID_DOCUMENT, document), (PLC_LOG, log)):
            (folder / file).write_text(json.dumps(value, indent=2) + "\n")
        print(f"{self.name}: {self.did}, {len(self.records)} records, {len(self.files)} blobs here")


# Pictures

def png(width, height, colour):
    "An image whose pixels are `colour(x, y)`, red, green and blue."
    rows = b"".join(b"\0" + b"".join(bytes(colour(x, y)) for x in range(width)) for y in range(height))

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def jpeg(columns, rows, grey):
    """A mosaic of 8 × 8 pixel squares, `grey(x, y)` from 0 to 255.

    Each block has its mean and nothing else, so two Huffman tables do: the differences of means (Annex K), and "end of block".
    """
    lengths = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    codes, code, symbol = {}, 0, 0
    for length, count in enumerate(lengths, 1):
        for _ in range(count):
            codes[symbol] = format(code, f"0{length}b")
            code, symbol = code + 1, symbol + 1
        code <<= 1
    bits, previous = [], 0
    for y in range(rows):
        for x in range(columns):
            mean = grey(x, y) - 128
            difference, previous = mean - previous, mean
            size = abs(difference).bit_length()
            bits.append(codes[size])
            if size:
                bits.append(format(difference if difference > 0 else difference + (1 << size) - 1, f"0{size}b"))
            bits.append("0")  # end of block
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    scan = bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8)).replace(b"\xff", b"\xff\0")

    def segment(marker, content):
        return struct.pack(">BBH", 255, marker, len(content) + 2) + content

    return (b"\xff\xd8" + segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0") + segment(0xDB, b"\0" + b"\x08" * 64)
            + segment(0xC0, struct.pack(">BHHB", 8, rows * 8, columns * 8, 1) + b"\1\x11\0")
            + segment(0xC4, b"\0" + bytes(lengths) + bytes(range(12)))
            + segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\0")
            + segment(0xDA, b"\1\1\0\0\x3f\0") + scan + b"\xff\xd9")


def svg(random):
    "A map of garden beds."
    beds = "\n".join(
        f'  <rect x="{60 * (i % 8) + 8}" y="{60 * (i // 8) + 8}" width="{random.randrange(30, 50)}" '
        f'height="{random.randrange(30, 50)}" rx="6" fill="hsl({random.randrange(70, 150)} 45% {random.randrange(35, 70)}%)"/>'
        for i in range(40))
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 300">\n{beds}\n</svg>\n'.encode()


# Alice keeps a garden

PLANTS = "beans chard garlic kale leeks lettuce onions peas potatoes radishes spinach tomatoes".split()
WEATHER = ["rain all night", "first frost", "a warm wind", "fog until noon", "dry for three weeks", "thunder at four"]
REMARKS = ["The {p} are up.", "Sowed {p} after {w}.", "Slugs found the {p} again. Noted for next year: copper tape.",
           "{w}, and the {p} stand it better than I do.", "Gave away half of the {p}. Nobody wants the other half.",
           "Moved the {p} next to the {q}. We shall see who wins.", "Harvest: one basket of {p}, two of {q}.",
           "Does anybody else sing to their {p}? 🌱", "Gärtnern heißt warten. Die {p} wissen es."]


def alice():
    a = Account("alice", datetime(2025, 3, 1, 8, 30, tzinfo=timezone.utc))
    r = a.random
    strangers = ["did:plc:" + "".join(r.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(24)) for _ in range(8)]

    def remark():
        p, q = r.sample(PLANTS, 2)
        text = r.choice(REMARKS).format(p=p, q=q, w=r.choice(WEATHER))
        return text[0].upper() + text[1:]

    def elsewhere():
        "A strong reference to somebody's post."
        moment = a.moment - timedelta(hours=r.randrange(1, 40))
        return {"uri": f"at://{r.choice(strangers)}/app.bsky.feed.post/{tid(moment)}",
                "cid": str(cid(r.getrandbits(256).to_bytes(32, "big")))}

    def post(text=None, **more):
        return a.add("app.bsky.feed.post", {"text": text or remark(), "langs": ["en"], **more})

    def images(*blobs):
        return {"$type": "app.bsky.embed.images",
                "images": [{"alt": alt, "image": blob, "aspectRatio": {"width": w, "height": h}}
                           for alt, w, h, blob in blobs]}

    avatar = a.blob("me in the sun.png", "image/png", png(
        96, 96, lambda x, y: (250, 200, 60) if (x - 48) ** 2 + (y - 48) ** 2 < 1300 else (90 + y, 150 + y // 2, 220)))
    banner = a.blob("hills.jpg", "image/jpeg", jpeg(
        90, 30, lambda x, y: 60 + 4 * y if y > 14 + 6 * abs((x % 24) - 12) / 12 else 235 - 2 * y))
    a.add("app.bsky.actor.profile", {"displayName": "Alice", "description": "Beans, mostly.", "avatar": avatar,
                                     "banner": banner}, rkey="self")
    # The shape that blobs had in 2022.
    old = a.blob("old-shed.jpg", "image/jpeg", jpeg(40, 30, lambda x, y: (x * 37 + y * 91) % 120 + 60))
    post("This is the shed. It came with the garden.", embed=images(
        ("a grey shed", 320, 240, {"cid": str(old["ref"]), "mimeType": "image/jpeg"})))
    own = [post() for _ in range(6)]
    noise = [bytes(r.getrandbits(8) for _ in range(3)) for _ in range(160 * 150)]
    own.append(post("Soil, very near. The camera is not what it was.", embed=images(
        ("soil", 160, 150, a.blob("DSC_0417.png", "image/png", png(160, 150, lambda x, y: noise[160 * y + x]))))))
    for number, phase in enumerate(r.sample(range(1, 9), 4)):
        picture = jpeg(48, 36, lambda x, y: (x * x // phase + y * y) % 200 + 28)
        own.append(post(embed=images(("a bed, from above", 384, 288, a.blob(f"bed {number}.jpg", "image/jpeg", picture)))))
    own.append(post("The plan for this year, and last year's sun.", embed=images(
        ("a plan of forty beds", 480, 300, a.blob("plan.svg", "image/svg+xml", svg(r))),
        ("the sun", 96, 96, avatar))))
    for _ in range(5):
        other = elsewhere()
        post(reply={"root": other, "parent": other})
    for _ in range(14):
        a.add("app.bsky.feed.like", {"subject": elsewhere()})
    for subject in strangers:
        a.add("app.bsky.graph.follow", {"subject": subject})
    for subject in (elsewhere(), own[0], elsewhere()):
        a.add("app.bsky.feed.repost", {"subject": subject})
    lines = [f"- {stamp(a.moment + timedelta(days=7 * week))[:10]}: {remark()}" for week in range(40)]
    diary = a.blob("diary.md", "text/markdown", ("# A year of beans\n\n" + "\n".join(lines) + "\n").encode())
    a.add("com.example.garden.diary", {"title": "A year of beans", "pages": [{"kind": "notes", "file": diary}],
                                       "checksum": hashlib.sha256(b"beans").digest()})
    a.write()
    # Some weeks on: two posts are gone, one of them with its picture, and there is something new.
    a.delete(own[2])
    a.delete(own[7])
    post("Everything is under fleece now. See you in spring.")
    a.add("app.bsky.feed.like", {"subject": elsewhere()})
    a.write_car(HERE / a.name / "alice-later.car")


def bob():
    "Three records; one of the two blobs was lost."
    b = Account("bob", datetime(2025, 9, 12, 17, 5, tzinfo=timezone.utc))
    kept = b.blob("square.png", "image/png", png(16, 16, lambda x, y: (40, 90, 200)))
    lost = b.blob("gone.jpg", "image/jpeg", jpeg(8, 8, lambda x, y: 8 * x + y), kept=False)
    b.add("app.bsky.actor.profile", {"displayName": "Bob", "avatar": kept}, rkey="self")
    b.add("app.bsky.feed.post", {"text": "hello", "langs": ["en"]})
    b.add("app.bsky.feed.post", {"text": "This picture is on no server any more.", "langs": ["en"], "embed": {
        "$type": "app.bsky.embed.images", "images": [{"alt": "stripes", "image": lost}]}})
    b.write()


# As `carpack extract` calls them.
DID_DOCUMENT, PLC_LOG = "did-document.json", "plc-audit-log.json"

if __name__ == "__main__":
    alice()
    bob()
