#!/usr/bin/env python3
"""Archives that must not look better than they are: forged signatures and logs, broken trees, lost blobs, rollbacks.

Usage: forgeries.py CARPACK FOLDER. The archives are written into the folder; each name says what is wrong.
"""
import base64
import json
import pathlib
import subprocess
import sys
from datetime import datetime, timedelta, timezone

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import archives
from archives import cbor, cid, fixtures

Key = fixtures.Key
START = datetime(2025, 3, 1, 8, 30, tzinfo=timezone.utc)
POST = "app.bsky.feed.post"


class Forger:
    """Writes one archive: the repository, the identity and what is wrong with them are its parts."""

    def __init__(self, command, folder, name, posts=40):
        self.command, self.folder, self.name = command, folder, name
        self.account = fixtures.Account(name, START)
        for number in range(posts):
            self.account.add(POST, {"text": f"post {number}", "langs": ["en"]})
        self.log = [self.entry(self.account.genesis, START)]
        self.document_key = self.account.key
        self.tree, self.sign = fixtures.tree, lambda unsigned: self.account.key.sign(unsigned)
        self.rev = None

    @staticmethod
    def entry(operation, moment, nullified=False):
        return {"operation": operation, "cid": str(cid(cbor(operation))), "nullified": nullified, "createdAt": fixtures.stamp(moment)}

    def operation(self, key, signer, previous=None):
        """An operation that gives the account another signing key."""
        previous = previous or self.log[-1]
        fields = {**self.account.genesis, "prev": previous["cid"], "verificationMethods": {"atproto": "did:key:" + key.multikey}}
        del fields["sig"]
        return dict(fields, sig=base64.urlsafe_b64encode(signer.sign(cbor(fields))).decode().rstrip("="))

    def blocks(self):
        """The blocks of the CAR, the commit first."""
        a = self.account
        entries = sorted((key, cid(block)) for key, block in a.records.items())
        contents = {cid(block): block for block in a.records.values()}
        blocks = []
        root = self.tree(entries, max(fixtures.layer(key) for key, _ in entries), blocks)
        self.revision = self.rev or fixtures.tid(a.later())
        unsigned = {"did": a.did, "rev": self.revision, "data": root, "prev": None, "version": 3}
        commit = cbor(dict(unsigned, sig=self.sign(cbor(unsigned))))
        found = {cid(commit): commit}
        for link, block in blocks:
            found.setdefault(link, contents[link] if block is None else block)
        return list(found.items())

    def car(self):
        """The CAR."""
        blocks = self.blocks()
        header = cbor({"roots": [blocks[0][0]], "version": 1})
        return fixtures.varint(len(header)) + header + b"".join(archives.section(*block) for block in blocks)

    def documents(self):
        """The DID document and the PLC log."""
        did = self.account.did
        documents = {"didDocument": {"id": did, "alsoKnownAs": [f"at://{self.account.handle}"], "verificationMethod": [
            {"id": did + "#atproto", "type": "Multikey", "controller": did, "publicKeyMultibase": self.document_key.multikey}], "service": []}}
        if self.log:
            documents["plcLog"] = [dict(entry, did=did) for entry in self.log]
        return {name: json.dumps(value).encode() for name, value in documents.items()}

    def forge(self, without=None, **changes):
        """Writes the archive by hand; `without` is the block that is left out."""
        blocks = self.blocks()
        if without is not None:
            del blocks[without]
        path = self.folder / f"{self.name}.car.zst"
        archives.write(path, blocks, self.account.did, self.documents(), rev=self.revision, **{"records": len(self.account.records), **changes})
        return path

    def pack(self, identity=True):
        """Has carpack make the archive."""
        part = lambda ending: self.folder / f"{self.name}{ending}"
        part(".car").write_bytes(self.car())
        options = []
        for name, content in (self.documents() if identity else {}).items():
            part(f".{name}").write_bytes(content)
            options += [{"didDocument": "--did-document", "plcLog": "--plc-log"}[name], part(f".{name}")]
        result = subprocess.run([self.command, "pack", "-q", part(".car"), *options, "-o", part(".car.zst")], capture_output=True, text=True)
        assert result.returncode in (0, 10, 12), f"{self.name}: {result.returncode} {result.stderr}"
        return part(".car.zst")


def tree_with(layer=fixtures.layer, shared=None):
    """A tree of other rules: of another layer for each key, or with prefixes that share less than they could."""
    def build(entries, height, blocks):
        here = [i for i, (key, _) in enumerate(entries) if layer(key) == height]
        under, place = [], len(blocks)
        part = lambda start, end: None if start == end else build(entries[start:end], height - 1, under)
        node = {"l": part(0, here[0] if here else len(entries)), "e": []}
        previous = b""
        for number, i in enumerate(here):
            key, value = entries[i]
            common = next((n for n, (x, y) in enumerate(zip(previous, key)) if x != y), min(len(previous), len(key)))
            common = common if shared is None else min(common, shared)
            under.append((value, None))
            following = here[number + 1] if number + 1 < len(here) else len(entries)
            node["e"].append({"p": common, "k": key[common:], "v": value, "t": part(i + 1, following)})
            previous = key
        block = cbor(node)
        blocks[place:place] = [(cid(block), block)] + under
        return cid(block)
    return lambda entries, _, blocks: build(entries, max(layer(key) for key, _ in entries), blocks)


def write(command, folder):
    """Writes all of them; returns their paths."""
    made = []
    new = lambda name, **options: Forger(command, folder, name, **options)
    add = lambda forger, **options: made.append(forger.pack(**options))
    forge = lambda forger, **changes: made.append(forger.forge(**changes))

    add(new("genuine"))
    one = new("other-key")
    one.sign = Key("mallory").sign
    add(one)
    one = new("zeros")
    one.sign = lambda _: bytes(64)
    add(one)
    one = new("high-s")
    def high(unsigned, key=one.account.key):
        made = key.sign(unsigned)
        return made[:32] + (fixtures.N - int.from_bytes(made[32:], "big")).to_bytes(32, "big")
    one.sign = high
    add(one)

    one = new("document-only")
    one.log = []
    add(one)
    one = new("document-of-another-key")
    one.log, one.document_key = [], Key("mallory")
    add(one)
    add(new("no-identity"), identity=False)

    one = new("log-of-another-account")
    one.log = [one.entry(fixtures.Account("mallory", START).genesis, START)]
    forge(one)
    one = new("unsigned-operation")
    mallory = Key("mallory")
    one.log.append(one.entry(one.operation(mallory, mallory), START + timedelta(hours=2)))
    one.sign = mallory.sign
    forge(one)
    one = new("changed-operation")
    one.log[0]["operation"] = dict(one.log[0]["operation"], alsoKnownAs=["at://mallory.example.com"])
    forge(one)

    rotation = lambda forger: Key(forger.name + ", rotation")
    one = new("former-key")
    one.log.append(one.entry(one.operation(Key("newer"), rotation(one)), START + timedelta(days=900)))
    add(one)
    one = new("expired-key")
    one.log.append(one.entry(one.operation(Key("newer"), rotation(one)), START + timedelta(hours=1)))
    add(one)
    one = new("later-key")
    one.log.append(one.entry(one.operation(Key("newer"), rotation(one)), START + timedelta(days=900)))
    one.sign = Key("newer").sign
    add(one)
    one = new("future-revision")
    one.rev = fixtures.tid(datetime(2199, 1, 1, tzinfo=timezone.utc))
    add(one)
    one = new("log-without-times")
    one.log.append(one.entry(one.operation(Key("newer"), rotation(one)), START + timedelta(hours=1)))
    one.sign = Key("newer").sign
    log = "\n".join(json.dumps(entry["operation"], indent=1) for entry in one.log).encode()
    one.documents = lambda: {"plcLog": log}
    add(one)

    # Written by hand: no carpack makes them.
    forge(new("genuine-by-hand"))
    one = new("short-signature")
    one.sign = lambda unsigned: one.account.key.sign(unsigned)[:63]
    forge(one)
    for name, changes in {"more-records": {"records": 41}, "fewer-records": {"records": 39}, "more-blobs": {"blobs": {"referenced": 1, "missing": 1}},
                          "incomplete-by-its-word": {"complete": False}, "another-rev": {"rev": "3lmfxnano6v2b"}}.items():
        one = new(name)
        if "rev" in changes:
            blocks = one.blocks()
            one.blocks = lambda: blocks
            one.revision = changes["rev"]
            changes = {}
        forge(one, **changes)
    one = new("wrong-layers")
    odd = sorted(one.account.records)[20]
    one.tree = tree_with(layer=lambda key: fixtures.layer(key) + (1 if key == odd else 0))
    forge(one)
    one = new("short-prefixes")
    one.tree = tree_with(shared=3)
    forge(one)
    one = new("unordered-keys")
    one.tree = lambda entries, height, blocks: fixtures.tree(entries[:9] + [entries[10], entries[9]] + entries[11:], height, blocks)
    forge(one)
    one = new("illegal-path")
    one.account.records["app.bsky.feed.post/no spaces".encode()] = cbor({"$type": POST, "text": "odd", "createdAt": "2025-03-02T00:00:00Z"})
    forge(one)
    forge(new("lost-record"), without=-1)
    forge(new("lost-root"), without=1)
    one = new("lost-record-by-its-word")
    forge(one, without=-1, complete=False)
    one = new("blob-that-only-the-manifest-has")
    picture = one.account.blob("gone.png", "image/png", fixtures.png(9, 9, lambda x, y: (x, y, 9)), kept=False)
    one.account.add(POST, {"text": "gone", "embed": {"$type": "app.bsky.embed.images", "images": [{"alt": "gone", "image": picture}]}})
    forge(one, blobs={"referenced": 1, "held": 1, "heldBytes": 90})

    one = new("missing-blob")
    picture = one.account.blob("gone.png", "image/png", fixtures.png(9, 9, lambda x, y: (x, y, 9)), kept=False)
    one.account.add(POST, {"text": "gone", "embed": {"$type": "app.bsky.embed.images", "images": [{"alt": "gone", "image": picture}]}})
    add(one)

    one = new("rollback")
    older = one.car()
    one.account.add(POST, {"text": "newer"})
    one.pack()
    (folder / "older.car").write_bytes(older)
    subprocess.run([command, "pack", "-q", folder / "older.car", "-o", folder / "rollback.car.zst"], capture_output=True)
    made.append(folder / "rollback.car.zst")
    one = new("fork")
    one.rev = fixtures.tid(START + timedelta(days=60))
    one.pack()
    one.account.add(POST, {"text": "another"})
    (folder / "fork.car").write_bytes(one.car())
    subprocess.run([command, "pack", "-q", folder / "fork.car", "-o", folder / "fork.car.zst"], capture_output=True)
    made.append(folder / "fork.car.zst")
    return made


if __name__ == "__main__":
    for path in write(pathlib.Path(sys.argv[1]).absolute(), pathlib.Path(sys.argv[2])):
        print(path)
