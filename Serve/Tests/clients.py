#!/usr/bin/env python3
"""Tests of `carpack serve` with clients of its kind: plain HTTP, carpack itself, and, where it is installed, PyPI's atproto.

Usage: clients.py CARPACK CARPACK_SERVE
"""
import concurrent.futures
import contextlib
import gzip
import html
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Serve/Viewer/tests"))
import repositories
FIXTURES = ROOT / "Fixtures"
ALICE = "did:plc:w3pvxhp5ga2ax32lkbfrxakv"
tests, notes = [], []


def test(function):
    """A test is a function whose name is a sentence."""
    tests.append(function)
    return function


def carpack(*arguments, status=0):
    result = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT)
    assert result.returncode == status, f"{arguments}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout


class Server:
    """`carpack serve` or `carpack view`, while it runs."""

    def __init__(self, *arguments, verb="serve"):
        words = [COMMAND, verb, *map(str, arguments), "--json", "--bind", "127.0.0.1:0"] + (["--no-browser"] if verb == "view" else [])
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.start = json.loads(line)
        self.page = urllib.parse.urlsplit(self.start["page"])
        self.host, self.port = self.page.hostname, self.page.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends it as a service manager would."""
        if self.process.stdout.closed:
            return self.process.returncode
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        self.talk = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode

    def ask(self, path, method="GET", body=None, host=None, **headers):
        """The status, the headers and the body of an answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers["Host"] = host or f"{self.host}:{self.port}"
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        found = answer.status, dict((name.lower(), value) for name, value in answer.getheaders()), answer.read()
        connection.close()
        return found

    def xrpc(self, method, status=200, **parameters):
        found, headers, body = self.ask(f"/xrpc/{method}?{urllib.parse.urlencode(parameters, doseq=True)}")
        assert found == status, f"{method} {parameters}: {found} {body[:300]}"
        return json.loads(body) if headers["content-type"].startswith("application/json") else body

    def archive_path(self, name):
        """The path of an archive on the page."""
        status, headers, body = self.ask(self.page.path)
        found = re.search(r"#url=(archives/\w{8}/" + re.escape(name) + ")", headers.get("location", "") + body.decode())
        return self.page.path + found[1]

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


def archive(folder, name="alice"):
    """The archive of a fixture account; Alice's has two snapshots."""
    path = pathlib.Path(folder) / f"{name}.example.com.car.zst"
    account = FIXTURES / name
    carpack("pack", account / f"{name}.car", "--blobs", account / "blobs", "--did-document", account / "did-document.json",
            "--plc-log", account / "plc-audit-log.json", "-o", path, "-q", status=10 if name == "bob" else 0)
    if name == "alice":
        carpack("pack", account / "alice-later.car", "-o", path, "-q")
    return path


@contextlib.contextmanager
def serving(*options, names=("alice", "bob"), verb="serve"):
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            archive(folder, name)
        with Server(folder, *options, verb=verb) as server:
            server.folder = pathlib.Path(folder)
            yield server


def sections(car):
    """The roots' bytes and the blocks of a CAR."""
    def varint(place):
        value = shift = 0
        while True:
            byte = car[place]
            value |= (byte & 127) << shift
            place, shift = place + 1, shift + 7
            if byte < 128:
                return value, place
    length, place = varint(0)
    header, place = car[place:place + length], place + length
    blocks = {}
    while place < len(car):
        length, place = varint(place)
        blocks[car[place:place + 36]] = car[place + 36:place + length]
        place += length
    return header, blocks


@test
def a_repository_is_given_bit_for_bit():
    with serving() as server:
        for name in ("alice", "bob"):
            did = server.xrpc("com.atproto.identity.resolveHandle", handle=f"{name}.example.com")["did"]
            car = server.xrpc("com.atproto.sync.getRepo", did=did)
            wanted = "alice-later.car" if name == "alice" else "bob.car"
            assert car == (FIXTURES / name / wanted).read_bytes()


@test
def what_changed_since_a_snapshot_that_is_there_is_all_that_a_client_lacks():
    with serving() as server:
        history = [json.loads(line) for line in carpack("log", "--json", server.folder / "alice.example.com.car.zst").splitlines()]
        revs = {entry["number"]: entry["rev"] for entry in history if "number" in entry}
        _, old = sections((FIXTURES / "alice/alice.car").read_bytes())
        header, whole = sections((FIXTURES / "alice/alice-later.car").read_bytes())
        found, changes = sections(server.xrpc("com.atproto.sync.getRepo", did=ALICE, since=revs[1]))
        assert found == header
        assert changes == {cid: body for cid, body in whole.items() if cid not in old}
        assert sections(server.xrpc("com.atproto.sync.getRepo", did=ALICE, since=revs[2]))[1] == {}
        assert sections(server.xrpc("com.atproto.sync.getRepo", did=ALICE, since="3aaaaaaaaaa22"))[1] == whole


@test
def at_serves_an_older_snapshot():
    with serving("--at", "1", names=("alice",)) as server:
        assert server.xrpc("com.atproto.sync.getRepo", did=ALICE) == (FIXTURES / "alice/alice.car").read_bytes()


@test
def records_are_listed_newest_first_in_pages_and_the_other_way_round():
    with serving() as server:
        described = server.xrpc("com.atproto.repo.describeRepo", repo="alice.example.com")
        assert described["did"] == ALICE and described["handleIsCorrect"] is True
        listed = carpack("ls", "--json", "--records", server.folder / "alice.example.com.car.zst")
        paths = sorted(record["path"] for record in map(json.loads, listed.splitlines()) if "path" in record)
        assert described["collections"] == sorted({path.split("/")[0] for path in paths})
        for collection in described["collections"]:
            wanted = [path.split("/")[1] for path in paths if path.startswith(f"{collection}/")]
            for reverse in (False, True):
                keys, cursor = [], None
                while True:
                    more = {"cursor": cursor} if cursor else {}
                    page = server.xrpc("com.atproto.repo.listRecords", repo=ALICE, collection=collection, limit=3,
                                       reverse=str(reverse).lower(), **more)
                    keys += [record["uri"].rsplit("/", 1)[1] for record in page["records"]]
                    cursor = page.get("cursor")
                    if not cursor:
                        break
                assert keys == (wanted if reverse else wanted[::-1])
        record = server.xrpc("com.atproto.repo.getRecord", repo=ALICE, collection="app.bsky.actor.profile", rkey="self")
        given = json.loads(carpack("cat", server.folder / "alice.example.com.car.zst", "app.bsky.actor.profile/self"))
        assert record["value"] == given and record["uri"] == f"at://{ALICE}/app.bsky.actor.profile/self"


@test
def blobs_have_their_bytes_their_types_and_their_ranges():
    with serving() as server:
        cids, cursor = [], None
        while True:
            page = server.xrpc("com.atproto.sync.listBlobs", did=ALICE, limit=2, **({"cursor": cursor} if cursor else {}))
            cids += page["cids"]
            cursor = page.get("cursor")
            if not cursor:
                break
        assert len(cids) == len(set(cids)) == 9
        for cid in cids:
            address = f"/xrpc/com.atproto.sync.getBlob?did={ALICE}&cid={cid}"
            wanted = subprocess.run([COMMAND, "cat", server.folder / "alice.example.com.car.zst", cid],
                                    capture_output=True, check=True).stdout
            status, headers, body = server.ask(address)
            assert (status, body) == (200, wanted)
            assert headers["etag"] == f'"{cid}"' and "immutable" in headers["cache-control"]
            assert headers["x-content-type-options"] == "nosniff" and "sandbox" in headers["content-security-policy"]
            assert headers["content-disposition"] == f'attachment; filename="{cid}"'
            for text, part in [("bytes=0-0", wanted[:1]), ("bytes=10-19", wanted[10:20]), ("bytes=-7", wanted[-7:]),
                               (f"bytes={len(wanted) - 3}-", wanted[-3:]), (f"bytes=5-{10 ** 30}", None)]:
                status, headers, body = server.ask(address, Range=text)
                if part is None:
                    assert status in (200, 206)
                else:
                    assert (status, body) == (206, part), text
                    assert headers["content-length"] == str(len(part))
            status, headers, body = server.ask(address, Range=f"bytes={len(wanted)}-")
            assert (status, body, headers["content-range"]) == (416, b"", f"bytes */{len(wanted)}")
            assert server.ask(address, If_None_Match=f'"{cid}"')[0] == 304
            status, headers, body = server.ask(address, method="HEAD")
            assert (status, body, headers["content-length"]) == (200, b"", str(len(wanted)))


@test
def blobs_are_given_under_their_own_account_only():
    with serving() as server:
        bob = server.xrpc("com.atproto.identity.resolveHandle", handle="bob.example.com")["did"]
        foreign = server.xrpc("com.atproto.sync.listBlobs", did=bob)["cids"][0]
        assert server.xrpc("com.atproto.sync.getBlob", 400, did=ALICE, cid=foreign)["error"] == "BlobNotFound"
        commit = server.xrpc("com.atproto.sync.getLatestCommit", did=ALICE)["cid"]
        assert server.xrpc("com.atproto.sync.getBlob", 400, did=ALICE, cid=commit)["error"] == "BlobNotFound"


@test
def proofs_are_of_presence_and_of_absence():
    with serving() as server, tempfile.TemporaryDirectory() as folder:
        for path in ("app.bsky.actor.profile/self", "app.bsky.feed.post/never"):
            collection, key = path.split("/")
            proof = pathlib.Path(folder) / "proof.car"
            proof.write_bytes(server.xrpc("com.atproto.sync.getRecord", did=ALICE, collection=collection, rkey=key))
            told = carpack("verify-proof", proof, "--record", path, "--identity", FIXTURES / "alice/plc-audit-log.json", "--json")
            assert (json.loads(told)["cid"] is None) == (key == "never") and json.loads(told)["signed"], told


@test
def blocks_are_given_by_their_cids():
    with serving() as server:
        commit = server.xrpc("com.atproto.sync.getLatestCommit", did=ALICE)["cid"]
        blocks = sections(server.xrpc("com.atproto.sync.getBlocks", did=ALICE, cids=[commit]))[1]
        assert len(blocks) == 1
        blob = server.xrpc("com.atproto.sync.listBlobs", did=ALICE)["cids"][0]
        assert server.xrpc("com.atproto.sync.getBlocks", 400, did=ALICE, cids=[commit, blob])["error"] == "BlockNotFound"


def holed(folder, missing):
    """The archive of a repository that came without these of its blocks: paths of records, or "node" for a tree node."""
    records = {f"app.bsky.feed.post/3k{n:05}": {"$type": "app.bsky.feed.post", "text": f"post {n}"} for n in range(60)}
    records |= {f"polka.post/{n}": {"text": f"dot {n}"} for n in range(3)}
    car = repositories.repository(records)
    header, blocks = sections(car)
    gone = {repositories.cid(repositories.cbor(records[path])) for path in missing if path in records}
    if "node" in missing:
        nodes = [cid for cid, body in blocks.items() if body[:3] == b"\xa2ae"]
        gone.add(nodes[-1])
    path = pathlib.Path(folder) / "holed.car"
    varint = lambda n: bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7])
    path.write_bytes(varint(len(header)) + header + b"".join(
        varint(len(cid) + len(body)) + cid + body for cid, body in blocks.items() if cid not in gone))
    archive = pathlib.Path(folder) / "holed.car.zst"
    carpack("pack", path, "-o", archive, "-q", status=10 if gone else 0)
    path.unlink()
    return archive, {repositories.text(cid) for cid in gone}


HOLED = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"


@test
def what_is_missing_is_named_and_never_left_out():
    with tempfile.TemporaryDirectory() as folder:
        archive, (lost,) = holed(folder, ["polka.post/1"])
        with Server(folder) as server:
            for method, parameters in [("repo.listRecords", {"repo": HOLED, "collection": "polka.post"}),
                                       ("repo.getRecord", {"repo": HOLED, "collection": "polka.post", "rkey": "1"}),
                                       ("sync.getRecord", {"did": HOLED, "collection": "polka.post", "rkey": "1"})]:
                told = server.xrpc(f"com.atproto.{method}", 400, **parameters)
                assert told["error"] == "BlockNotFound" and lost in told["message"], told
                assert method.startswith("sync") or "polka.post/1" in told["message"], told
            # What lies around it can be had.
            page = server.xrpc("com.atproto.repo.listRecords", repo=HOLED, collection="polka.post", cursor="1")
            assert [record["uri"] for record in page["records"]] == [f"at://{HOLED}/polka.post/0"]
            assert len(server.xrpc("com.atproto.repo.listRecords", repo=HOLED, collection="app.bsky.feed.post")["records"]) == 50
    with tempfile.TemporaryDirectory() as folder:
        archive, (lost,) = holed(folder, ["node"])
        listed = carpack("ls", "--records", archive, status=10)
        below = [path for path in (f"app.bsky.feed.post/3k{n:05}" for n in range(60)) if path not in listed]
        assert below
        with Server(folder) as server:
            collection, key = below[0].split("/")
            for method, parameters in [("repo.describeRepo", {"repo": HOLED}), ("repo.listRecords", {"repo": HOLED, "collection": collection, "limit": 100}),
                                       ("repo.getRecord", {"repo": HOLED, "collection": collection, "rkey": key}),
                                       ("sync.getRecord", {"did": HOLED, "collection": collection, "rkey": key})]:
                told = server.xrpc(f"com.atproto.{method}", 400, **parameters)
                assert told["error"] == "BlockNotFound" and lost in told["message"], told


@test
def a_collection_that_is_no_nsid_is_served_as_any():
    with tempfile.TemporaryDirectory() as folder:
        holed(folder, [])
        with Server(folder) as server:
            assert "polka.post" in server.xrpc("com.atproto.repo.describeRepo", repo=HOLED)["collections"]
            assert len(server.xrpc("com.atproto.repo.listRecords", repo=HOLED, collection="polka.post")["records"]) == 3
            assert server.xrpc("com.atproto.repo.getRecord", repo=HOLED, collection="polka.post", rkey="2")["value"] == {"text": "dot 2"}
            proof = pathlib.Path(folder) / "proof.car"
            proof.write_bytes(server.xrpc("com.atproto.sync.getRecord", did=HOLED, collection="polka.post", rkey="2"))
            assert json.loads(carpack("verify-proof", proof, "--record", "polka.post/2", "--json", status=10))["cid"]
            for collection in ("polka post", "polka", "..", "a/b", "x" * 1100):
                told = server.xrpc("com.atproto.repo.listRecords", 200 if collection == "polka" else 400, repo=HOLED, collection=collection)
                assert told.get("records", []) == [], told


@test
def a_log_without_times_proves_keys_and_is_served_as_what_it_is():
    audit = json.loads((FIXTURES / "alice/plc-audit-log.json").read_text())
    operations = [entry["operation"] for entry in audit if not entry["nullified"]]
    forms = {"log": json.dumps(operations), "goat": "".join(json.dumps(one, indent=2) + "\n" for one in operations)}
    for form, text in forms.items():
        for before in ([], ["--plc-log", FIXTURES / "alice/plc-audit-log.json"]):
            with tempfile.TemporaryDirectory() as folder:
                log, path = pathlib.Path(folder) / "log.json", pathlib.Path(folder) / "alice.car.zst"
                log.write_text(text)
                blobs = ["--blobs", FIXTURES / "alice/blobs", "-q", "-o", path]
                if before:
                    carpack("pack", FIXTURES / "alice/alice.car", *before, *blobs)
                carpack("pack", FIXTURES / "alice/alice-later.car", "--plc-log", log, *blobs)
                # An older log that has the operations and their times still says what it said.
                assert ("a time that the PLC log does not give" in carpack("verify", path)) == (not before), form
                told = json.loads(carpack("identity", "--json", path))
                times = [entry["createdAt"].replace(".000", "") if before else None for entry in audit]
                assert told["proven"] and not told["faults"] and [one["receivedAt"] for one in told["operations"]] == times, told
                with Server(folder) as server:
                    assert json.loads(server.ask(f"/did/{ALICE}/log")[2]) == operations
                    assert server.ask(f"/did/{ALICE}/log/audit")[0] == 404
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log.json"
        log.write_text(json.dumps([dict(operations[0], sig=operations[0]["sig"][::-1])]))
        carpack("pack", FIXTURES / "alice/alice.car", "--plc-log", log, "-o", pathlib.Path(folder) / "x.car.zst", status=12)
        log.write_text(forms["goat"] * 2)
        carpack("pack", FIXTURES / "alice/alice.car", "--plc-log", log, "-o", pathlib.Path(folder) / "x.car.zst", status=12)


@test
def errors_have_the_names_of_the_lexicons():
    with serving() as server:
        stranger = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
        for method, parameters, name in [
                ("com.atproto.sync.getRepo", {"did": stranger}, "RepoNotFound"),
                ("com.atproto.sync.getRepo", {}, "InvalidRequest"),
                ("com.atproto.sync.getLatestCommit", {"did": "nonsense"}, "InvalidRequest"),
                ("com.atproto.sync.getBlob", {"did": ALICE, "cid": "nonsense"}, "InvalidRequest"),
                ("com.atproto.repo.getRecord", {"repo": ALICE, "collection": "a.b.c", "rkey": "x"}, "RecordNotFound"),
                ("com.atproto.repo.listRecords", {"repo": ALICE, "collection": "..", "limit": 1}, "InvalidRequest"),
                ("com.atproto.repo.listRecords", {"repo": ALICE, "collection": "a.b.c", "limit": "x"}, "InvalidRequest"),
                ("com.atproto.identity.resolveHandle", {"handle": "no.example.com"}, "HandleNotFound")]:
            assert server.xrpc(method, 400, **parameters)["error"] == name, method


@test
def writing_and_logging_in_are_refused_and_nothing_of_it_is_kept():
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "access.log"
        with serving("--log", log) as server:
            for method in ("com.atproto.server.createSession", "com.atproto.repo.createRecord", "com.atproto.sync.getRepo"):
                status, _, body = server.ask(f"/xrpc/{method}", "POST", body=b'{"password":"hunter2"}')
                assert status == 501 and json.loads(body)["error"] == "MethodNotImplemented"
            assert server.ask("/xrpc/app.bsky.feed.getTimeline")[0] == 501
            assert server.ask(server.page.path)[0] == 200
            assert server.stop() == 143
            lines = log.read_text()
            assert "hunter2" not in lines and "hunter2" not in server.talk
            assert server.page.path.strip("/") not in lines and "/TOKEN/" in lines
            assert len(lines.splitlines()) == 5


@test
def other_websites_cannot_read_the_archive():
    with serving() as server:
        path = f"/xrpc/com.atproto.sync.getRepo?did={ALICE}"
        for host in ("evil.example.com", f"evil.example.com:{server.port}", "127.0.0.1:1", "alice.example.com"):
            assert server.ask(path, host=host)[0] == 421, host
        assert server.ask(path, host=f"localhost:{server.port}")[0] == 200
        assert server.ask(path)[1]["access-control-allow-origin"] == "*"
        status, headers, _ = server.ask(path, "OPTIONS", Origin="https://x.example", Access_Control_Request_Method="GET")
        assert status == 204 and headers["access-control-allow-methods"]
        path = server.archive_path("alice.example.com.car.zst").removeprefix(server.page.path)
        for name in (path, "view", ""):
            status, headers, _ = server.ask(server.page.path + name)
            assert status == 200 and "access-control-allow-origin" not in headers and headers["cache-control"] == "no-store"
            assert server.ask("/" + name)[0] in (200, 404) if not name else server.ask("/" + name)[0] == 404
            other = "1" if server.page.path[1] == "0" else "0"
            assert server.ask(f"/{other}" + server.page.path[2:] + name)[0] == 404
        for name in ("archives/..%2f..%2fetc%2fpasswd", "archives/../../etc/passwd", "archives/", "archives/x.car.zst"):
            assert server.ask(server.page.path + name)[0] == 404, name


@contextlib.contextmanager
def serving_sealed(*options, others=()):
    with tempfile.TemporaryDirectory() as folder:
        key, plain = pathlib.Path(folder) / "key.age", archive(folder)
        (pathlib.Path(folder) / "served").mkdir()
        recipient = carpack("key", "new", "-o", key, "-q").strip()
        carpack("seal", plain, "-o", pathlib.Path(folder) / "served/alice.car.zst", "-r", recipient, "-q")
        for name in others:
            archive(pathlib.Path(folder) / "served", name)
        with Server(pathlib.Path(folder) / "served", "--age-identity", key, *options) as server:
            yield server


def cors(server, origin="https://x.example", method="GET"):
    _, headers, _ = server.ask(f"/xrpc/com.atproto.sync.getLatestCommit?did={ALICE}", method, Origin=origin)
    names = ("access-control-allow-origin", "cross-origin-resource-policy", "vary")
    return tuple(headers.get(name) for name in names)


@test
def what_is_sealed_is_not_for_other_websites_unless_they_are_named():
    with serving_sealed() as server:
        assert server.xrpc("com.atproto.sync.getLatestCommit", did=ALICE)["rev"]
        for method in ("GET", "HEAD", "OPTIONS"):
            assert cors(server, method=method) == (None, "same-origin", "Origin"), method
    with serving_sealed(others=["bob"]) as server:
        assert cors(server)[0] is None
    with serving_sealed("--allow-origin", "https://x.example", "--allow-origin", "https://y.example:8443") as server:
        assert cors(server)[0] == "https://x.example"
        assert cors(server, "https://y.example:8443", "OPTIONS")[0] == "https://y.example:8443"
        for origin in ("https://z.example", "http://x.example", "https://x.example:8443", "null", "*"):
            assert cors(server, origin) == (None, "same-origin", "Origin"), origin
    with serving_sealed("--allow-origin", "*") as server:
        assert cors(server) == ("*", None, None)


@test
def the_start_says_which_websites_may_read_where_not_all_may():
    def websites(folder, *options):
        command = [COMMAND, "serve", folder, "--bind", "127.0.0.1:0", *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            lines = [process.stderr.readline() for _ in range(4)]
            process.terminate()
        return [line.removeprefix("carpack: ").strip() for line in lines if "website" in line]

    with tempfile.TemporaryDirectory() as folder:
        plain, sealed = archive(folder), pathlib.Path(folder) / "sealed"
        recipient = carpack("key", "new", "-o", f"{folder}/key.age", "-q").strip()
        carpack("seal", plain, "-o", sealed, "-r", recipient, "-q")
        key = "--age-identity", f"{folder}/key.age"
        assert websites(plain) == []
        assert websites(plain, "--allow-origin", "https://x.example") == ["of websites, only https://x.example may read it"]
        assert websites(sealed, *key) == ["an archive is sealed, so no website may read it; --allow-origin names one that may"]
        assert websites(sealed, *key, "--allow-origin", "*") == ["all websites in a browser here may read it, sealed archives too"]


@test
def websites_that_are_named_are_the_only_ones_for_plain_archives_too():
    with serving() as server:
        assert cors(server) == ("*", None, None)
    with serving("--allow-origin", "https://x.example") as server:
        assert cors(server)[0] == "https://x.example"
        assert cors(server, "https://z.example")[0] is None


@test
def a_handle_leads_to_its_did_by_the_name_of_the_host():
    with serving() as server:
        status, _, body = server.ask("/.well-known/atproto-did", host="alice.example.com")
        assert (status, body.decode()) == (200, ALICE)
        assert server.ask("/.well-known/atproto-did", host="carol.example.com")[0] == 404


@test
def view_serves_the_page_and_the_archive_and_nothing_else():
    with serving(names=("alice",), verb="view") as server:
        status, headers, _ = server.ask(server.page.path)
        assert status == 303 and headers["location"].startswith("view#url=archives/")
        path = server.archive_path("alice.example.com.car.zst")
        page = server.ask(server.page.path + "view")[2]
        assert page == subprocess.run([COMMAND, "view", "--page", "-"], capture_output=True, check=True).stdout
        wanted = (server.folder / "alice.example.com.car.zst").read_bytes()
        status, headers, body = server.ask(path)
        assert (status, body) == (200, wanted)
        status, _, body = server.ask(path, Range="bytes=-64")
        assert (status, body) == (206, wanted[-64:])
        assert server.ask(path, If_None_Match=headers["etag"])[0] == 304
        for path in ("/xrpc/_health", "/did/" + ALICE, "/metrics", "/.well-known/atproto-did", "/"):
            assert server.ask(path)[0] == 404, path
        assert server.start["pds"] is None


@test
def the_browser_that_view_opens_gets_the_address_and_nothing_of_carpacks():
    with tempfile.TemporaryDirectory() as folder:
        browser, said = pathlib.Path(folder) / "browser", pathlib.Path(folder) / "said"
        browser.write_text(f"#!/bin/sh\n(echo $1; env; ls -l /proc/self/fd) > {said}.part; mv {said}.part {said}\n")
        browser.chmod(0o700)
        environment = ENVIRONMENT | {"BROWSER": str(browser), "CARPACK_PASSWORD": "secret"}
        words = [COMMAND, "view", FIXTURES / "alice/alice.car", "--json", "--bind", "127.0.0.1:0"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
            page = json.loads(process.stdout.readline())["page"]
            for _ in range(600):
                if said.exists():
                    break
                time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
        lines = said.read_text().splitlines()
        assert lines[0] == page, lines
        assert not any(line.startswith("CARPACK_") for line in lines), lines
        files = [line.split(" -> ")[1] for line in lines if " -> " in line]
        assert files and not any(file.startswith("socket:") or file.endswith(".car") for file in files), files


@test
def view_gives_the_page_repositories_as_cars_and_several_files_together():
    car = FIXTURES / "alice/alice.car"
    with tempfile.TemporaryDirectory() as folder:
        packed = pathlib.Path(folder) / "export.car.gz"
        packed.write_bytes(gzip.compress(car.read_bytes()))
        with Server(car, verb="view") as server:
            assert server.ask(server.page.path)[1]["location"].endswith("/alice.car")
            path = server.archive_path("alice.car")
            status, headers, body = server.ask(path)
            assert (status, body) == (200, car.read_bytes())
            assert server.ask(path, Range="bytes=0-9")[2] == car.read_bytes()[:10]
            assert server.ask(path, If_None_Match=headers["etag"])[0] == 304
        with Server(archive(folder), packed, verb="view") as server:
            listed = server.ask(server.page.path)[2].decode()
            together = re.search(r'href="(view#url=[^"]+)">All of them together', listed)[1]
            assert [name.rsplit("/", 1)[1] for name in html.unescape(together).split("&url=")] == ["alice.example.com.car.zst", "export.car.gz"]
            assert server.ask(server.archive_path("export.car.gz"))[2] == packed.read_bytes()
            packed.write_bytes(gzip.compress(b"other"))
            assert server.ask(server.archive_path("export.car.gz"))[2] == packed.read_bytes()
            packed.unlink()
            assert server.ask(server.page.path + "archives/none")[0] == 404
        result = subprocess.run([COMMAND, "view", FIXTURES / "alice/did-document.json", "--no-browser"], capture_output=True, text=True)
        assert result.returncode not in (0, 130), result
    refused = subprocess.run([COMMAND, "serve", car], capture_output=True, text=True)
    assert refused.returncode == 64 and "is a CAR" in refused.stderr, refused


@test
def documents_name_this_server_only_where_that_is_wanted():
    with serving() as server:
        document = json.loads((FIXTURES / "alice/did-document.json").read_bytes())
        assert json.loads(server.ask(f"/did/{ALICE}")[2]) == document
        log = json.loads((FIXTURES / "alice/plc-audit-log.json").read_bytes())
        assert json.loads(server.ask(f"/did/{ALICE}/log/audit")[2]) == log
        assert json.loads(server.ask(f"/did/{ALICE}/log")[2]) == [entry["operation"] for entry in log if not entry["nullified"]]
        assert server.ask("/did/did:plc:aaaaaaaaaaaaaaaaaaaaaaaa")[0] == 404
        # Official resolvers put the DID behind the host, as it is or escaped.
        for path in (f"/{ALICE}", "/" + ALICE.replace(":", "%3A")):
            assert json.loads(server.ask(path)[2]) == document, path
        assert json.loads(server.ask(f"/{ALICE}/log/audit")[2]) == log
        assert server.ask("/did:plc:aaaaaaaaaaaaaaaaaaaaaaaa")[0] == 404
        for query in (f"repo={ALICE}&collection=app.bsky.feed.post&limit=101", "repo=did:plc:&collection=app.bsky.feed.post"):
            status, _, body = server.ask(f"/xrpc/com.atproto.repo.listRecords?{query}")[:3]
            assert status == 400 and json.loads(body)["error"] == "InvalidRequest", (query, status, body)
    with serving("--impersonate") as server:
        changed = json.loads(server.ask(f"/did/{ALICE}")[2])
        assert changed["service"][0]["serviceEndpoint"] == f"http://127.0.0.1:{server.port}"
        assert changed["verificationMethod"] == document["verificationMethod"]
        assert json.loads(server.ask(f"/did/{ALICE}/log/audit")[2]) == log


@test
def carpack_backs_up_from_it_all_that_there_is():
    with serving("--impersonate") as server, tempfile.TemporaryDirectory() as folder:
        origin, copy = f"http://127.0.0.1:{server.port}", pathlib.Path(folder) / "copy.car.zst"
        carpack("backup", "alice.example.com", "--plc", f"{origin}/did", "--resolver", origin, "-o", copy, "-q")
        out = pathlib.Path(folder) / "out"
        carpack("extract", copy, "--all", "-d", out, "-q")
        car, = out.glob("*/*.car")
        assert car.read_bytes() == (FIXTURES / "alice/alice-later.car").read_bytes()
        assert len(list(out.glob("*/blobs/*"))) == 9


@test
def carpack_says_what_the_directory_of_an_archive_lacks():
    audit = json.loads((FIXTURES / "alice/plc-audit-log.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        log, path, copy = (pathlib.Path(folder) / name for name in ("log.json", "alice.car.zst", "copy.car.zst"))
        log.write_text(json.dumps([entry["operation"] for entry in audit if not entry["nullified"]]))
        documents = ["--did-document", FIXTURES / "alice/did-document.json", "--plc-log", log]
        for given, status, words in (documents, 0, "has no PLC audit log of"), ([], 69, f"{ALICE} was not found"):
            carpack("pack", FIXTURES / "alice/alice-later.car", "--blobs", FIXTURES / "alice/blobs", *given, "-q", "--force", "-o", path)
            with Server(path, "--impersonate") as server:
                origin = f"http://127.0.0.1:{server.port}"
                line = [COMMAND, "backup", ALICE, "--plc", f"{origin}/did", "--resolver", origin, "-o", copy]
                told = subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT)
            assert told.returncode == status and words in told.stderr, told
            if status == 0:
                out = pathlib.Path(folder) / "out"
                carpack("extract", copy, "--metadata", "-d", out, "-q")
                kept, = out.glob("*/plc-audit-log.json")
                assert json.loads(kept.read_text()) == json.loads(log.read_text()), "the log without times is kept"
            copy.unlink(missing_ok=True)


@test
def the_sdk_reads_profile_records_repository_and_blobs():
    try:
        import atproto
    except ImportError:
        notes.append("PyPI's atproto is not installed: the SDK was not tried")
        return
    with serving("--impersonate") as server:
        client = atproto.Client(f"http://127.0.0.1:{server.port}/xrpc")
        models = atproto.models
        assert client.com.atproto.server.describe_server().did == f"did:web:127.0.0.1%3A{server.port}"
        profile = client.com.atproto.repo.get_record(
            models.ComAtprotoRepoGetRecord.Params(repo=ALICE, collection="app.bsky.actor.profile", rkey="self"))
        assert profile.value.display_name
        posts, cursor = [], None
        while True:
            page = client.com.atproto.repo.list_records(
                models.ComAtprotoRepoListRecords.Params(repo=ALICE, collection="app.bsky.feed.post", limit=5, cursor=cursor))
            posts += page.records
            cursor = page.cursor
            if not cursor:
                break
        assert len(posts) == 17 and all(post.value.text is not None for post in posts)
        car = atproto.CAR.from_bytes(client.com.atproto.sync.get_repo(models.ComAtprotoSyncGetRepo.Params(did=ALICE)))
        assert len(car.blocks) == 62
        cids = client.com.atproto.sync.list_blobs(models.ComAtprotoSyncListBlobs.Params(did=ALICE)).cids
        for cid in cids:
            data = client.com.atproto.sync.get_blob(models.ComAtprotoSyncGetBlob.Params(did=ALICE, cid=cid))
            wanted = subprocess.run([COMMAND, "cat", server.folder / "alice.example.com.car.zst", cid], capture_output=True, check=True)
            assert data == wanted.stdout
        resolver = atproto.IdResolver(plc_url=f"http://127.0.0.1:{server.port}/did")
        assert resolver.did.resolve(ALICE).get_pds_endpoint() == f"http://127.0.0.1:{server.port}"


class Bucket(http.server.ThreadingHTTPServer):
    """An object store with one bucket, as far as reading takes it; it counts the bytes that it gives."""
    daemon_threads = True

    def __init__(self, objects):
        super().__init__(("127.0.0.1", 0), BucketRequest)
        self.objects, self.given, self.fails = objects, 0, False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def options(self):
        return "--endpoint-url", f"http://127.0.0.1:{self.server_port}", "--unsigned"


class BucketRequest(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        bucket = self.server
        place = urllib.parse.urlsplit(self.path)
        query, key = dict(urllib.parse.parse_qsl(place.query)), urllib.parse.unquote(place.path)[len("/archives/"):]
        if bucket.fails:
            return self.reply(503)
        if not key:
            found = "".join(f"<Contents><Key>{name}</Key><ETag>&quot;{len(content)}&quot;</ETag><Size>{len(content)}</Size></Contents>"
                            for name, content in sorted(bucket.objects.items()) if name.startswith(query.get("prefix", "")))
            return self.reply(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode(),
                              Content_Type="application/xml")
        content = bucket.objects.get(key)
        if content is None:
            return self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>", Content_Type="application/xml")
        size, tag = len(content), f'"{len(content)}"'
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        start, end = 0, size
        if wanted and wanted[1]:
            start, end = int(wanted[1]), min(size, int(wanted[2] or size - 1) + 1)
        elif wanted:
            start = max(0, size - int(wanted[2]))
        bucket.given += end - start
        self.reply(206 if wanted else 200, content[start:end], ETag=tag, Accept_Ranges="bytes",
                   **({"Content_Range": f"bytes {start}-{end - 1}/{size}"} if wanted else {}))


@contextlib.contextmanager
def bucket_of_accounts():
    """A bucket with Alice, Bob, and an account with a blob of 8 MB; and that blob."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "blobs").mkdir()
        content = random.Random(1).randbytes(8_000_000)
        (folder / "blobs/0").write_bytes(content)
        link = repositories.blob(content, "video/mp4")
        pack(folder / "large.car.zst", {"app.bsky.feed.post/3lkxag2qhdc2b": {"text": "a film", "video": link}},
             "did:plc:" + "l" * 24, "--blobs", folder / "blobs")
        paths = [archive(folder, "alice"), archive(folder, "bob"), folder / "large.car.zst"]
        yield Bucket({f"pds/{path.name}": path.read_bytes() for path in paths}), content, repositories.text(link["ref"])


@test
def a_buckets_prefix_is_served_and_only_what_is_wanted_is_fetched():
    with bucket_of_accounts() as (bucket, content, cid), Server("s3://archives/pds/", *bucket.options) as server:
        listed = {repo["did"] for repo in server.xrpc("com.atproto.sync.listRepos")["repos"]}
        assert len(listed) == 3 and ALICE in listed
        assert server.xrpc("com.atproto.sync.getRepo", did=ALICE) == (FIXTURES / "alice/alice-later.car").read_bytes()
        did = "did:plc:" + "l" * 24
        assert server.xrpc("com.atproto.repo.listRecords", repo=did, collection="app.bsky.feed.post")["records"]
        assert bucket.given < 3_000_000, bucket.given
        assert server.xrpc("com.atproto.sync.getBlob", did=did, cid=cid) == content
        # The page reads the archive by ranges, through the server.
        path = server.archive_path("large.car.zst")
        whole = bucket.objects["pds/large.car.zst"]
        status, headers, body = server.ask(path, Range="bytes=1000000-1000999")
        assert status == 206 and body == whole[1_000_000:1_001_000]
        assert headers["content-range"] == f"bytes 1000000-1000999/{len(whole)}"


@test
def a_bucket_that_fails_gives_errors_and_never_a_wrong_byte_and_is_read_again_later():
    with bucket_of_accounts() as (bucket, content, cid), Server("s3://archives/pds/large.car.zst", *bucket.options) as server:
        did = "did:plc:" + "l" * 24
        bucket.fails = True
        path = f"/xrpc/com.atproto.sync.getBlob?did={did}&cid={cid}"
        try:
            status, _, body = server.ask(path)
            assert status >= 500, status
        except http.client.IncompleteRead:
            pass
        bucket.fails = False
        for _ in range(300):
            try:
                status, _, body = server.ask(path)
            except http.client.IncompleteRead:
                status = 0
            if status == 200:
                break
            time.sleep(0.1)
        assert status == 200 and body == content


@test
def view_shows_the_archives_of_a_bucket():
    with bucket_of_accounts() as (bucket, _, _), Server("s3://archives/pds/", *bucket.options, verb="view") as server:
        path = server.archive_path("alice.example.com.car.zst")
        assert server.ask(path)[2] == bucket.objects["pds/alice.example.com.car.zst"]


@test
def it_stands_for_a_server_that_is_gone_under_its_name():
    with serving("--impersonate", "--hostname", "https://pds.example.com") as server:
        name = {"host": "pds.example.com"}
        status, headers, body = server.ask("/xrpc/com.atproto.server.describeServer", **name)
        described = json.loads(body)
        assert status == 200 and described["did"] == "did:web:pds.example.com" and described["inviteCodeRequired"]
        assert described["archive"]["readOnly"] is True and described["archive"]["newest"]
        document = json.loads(server.ask(f"/did/{ALICE}", **name)[2])
        assert document["service"][0]["serviceEndpoint"] == "https://pds.example.com"
        status, _, body = server.ask(
            f"/xrpc/com.atproto.repo.getRecord?repo={ALICE}&collection=app.bsky.actor.profile&rkey=self", **name)
        assert status == 200 and json.loads(body)["value"]["$type"] == "app.bsky.actor.profile"
        assert server.ask("/.well-known/atproto-did", host="alice.example.com")[2].decode() == ALICE
        for method in ("com.atproto.server.createSession", "com.atproto.repo.createRecord"):
            status, _, body = server.ask(f"/xrpc/{method}", "POST", b"{}", Content_Type="application/json", **name)
            assert status == 501 and json.loads(body)["error"] == "MethodNotImplemented"


@test
def new_archives_and_new_snapshots_appear_while_it_runs():
    with tempfile.TemporaryDirectory() as folder, Server(folder) as server:
        def heads():
            return {repo["did"]: repo["head"] for repo in server.xrpc("com.atproto.sync.listRepos")["repos"]}

        def wait(condition):
            for _ in range(200):
                if condition():
                    return
                time.sleep(0.1)
            raise AssertionError("it did not appear")
        assert heads() == {}
        path = pathlib.Path(folder) / "alice.car.zst"
        carpack("pack", FIXTURES / "alice/alice.car", "-o", path, "-q", status=10)
        wait(lambda: ALICE in heads())
        first = heads()[ALICE]
        carpack("pack", FIXTURES / "alice/alice-later.car", "-o", path, "-q", status=10)
        wait(lambda: heads()[ALICE] != first)
        assert server.xrpc("com.atproto.sync.getRepo", did=ALICE) == (FIXTURES / "alice/alice-later.car").read_bytes()
        (pathlib.Path(folder) / "broken.car.zst").write_bytes(b"not an archive" * 99)
        time.sleep(1.5)
        assert list(heads()) == [ALICE]
        path.unlink()
        wait(lambda: heads() == {})


@test
def damage_is_an_error_and_never_a_wrong_byte():
    with tempfile.TemporaryDirectory() as folder:
        path = archive(folder)
        content = path.read_bytes()
        blobs = {cid: subprocess.run([COMMAND, "cat", path, cid], capture_output=True, check=True).stdout
                 for cid in json.loads("[" + ",".join(f'"{json.loads(line)["cid"]}"' for line in
                                       carpack("ls", "--json", "--blobs", path).splitlines()
                                       if json.loads(line).get("cid") and json.loads(line).get("state", "held") == "held") + "]")}
        car = (FIXTURES / "alice/alice-later.car").read_bytes()
        seen = set()
        for place in range(200, len(content) - 200, len(content) // 12):
            damaged = bytearray(content)
            damaged[place] ^= 0x5a
            path.write_bytes(damaged)
            try:
                server = Server(folder)
            except AssertionError:
                continue
            with server:
                status, _, body = server.ask(f"/xrpc/com.atproto.sync.getRepo?did={ALICE}")
                assert status != 200 or body == car
                seen.add(status)
                for cid, wanted in blobs.items():
                    try:
                        status, _, body = server.ask(f"/xrpc/com.atproto.sync.getBlob?did={ALICE}&cid={cid}")
                    except http.client.IncompleteRead:
                        continue
                    assert status != 200 or body == wanted
                    seen.add(status)
                assert server.process.poll() is None
        assert 500 in seen and 200 in seen, seen


@test
def five_hundred_connections_at_once_are_served_in_a_hundred_mebibytes():
    with tempfile.TemporaryDirectory() as folder:
        blobs = pathlib.Path(folder) / "blobs"
        shutil.copytree(FIXTURES / "alice/blobs", blobs)
        path = pathlib.Path(folder) / "alice.car.zst"
        carpack("pack", FIXTURES / "alice/alice.car", "--blobs", blobs, "-o", path, "-q")
        with Server(path) as server:
            cid = max(server.xrpc("com.atproto.sync.listBlobs", did=ALICE)["cids"])
            request = (f"GET /xrpc/com.atproto.sync.getRepo?did={ALICE} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
                       f"GET /xrpc/com.atproto.sync.getBlob?did={ALICE}&cid={cid} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n").encode()
            sockets = [socket.create_connection((server.host, server.port), timeout=30) for _ in range(500)]
            for one in sockets:
                one.sendall(request)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                beginnings = list(pool.map(lambda one: one.recv(12), sockets))
            assert all(one == b"HTTP/1.1 200" for one in beginnings)
            assert server.memory() < 100 << 20, server.memory()
            assert server.ask("/xrpc/_health")[0] == 200
            for one in sockets:
                one.close()


@contextlib.contextmanager
def serving_blobs(*contents):
    """A server of an account with these blobs, its archive, and the path of each blob."""
    links = [repositories.blob(content, "video/mp4") for content in contents]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "blobs").mkdir()
        for number, content in enumerate(contents):
            with (folder / f"blobs/{number}").open("wb") as file:
                # Zeros take no room.
                file.write(content.rstrip(b"\0"))
                file.truncate(len(content))
        pack(folder / "a.car.zst", {f"app.bsky.feed.post/{number}": {"video": link} for number, link in enumerate(links)}, ALICE,
             "--blobs", folder / "blobs")
        with Server(folder, "--metrics", "--allow-large") as server:
            yield server, folder / "a.car.zst", [
                f"/xrpc/com.atproto.sync.getBlob?did={ALICE}&cid={repositories.text(link['ref'])}" for link in links]


def pack(path, records, did, *options):
    car = path.with_suffix(".car")
    car.write_bytes(repositories.repository(records, did=did))
    carpack("pack", car, "-o", path, "-q", *options)
    content = car.read_bytes()
    car.unlink()
    return content


def large_accounts(folder, count, content):
    """Archives of accounts that take a while to lay out: the paths of their repositories, and these."""
    found = {}
    for number in range(count):
        did = f"did:plc:{'abcdefgh'[number] * 24}"
        records = {f"app.bsky.feed.post/{key}": {"text": content(number, key)} for key in range(80)}
        found[f"/xrpc/com.atproto.sync.getRepo?did={did}"] = pack(pathlib.Path(folder) / f"{number}.car.zst", records, did)
    return found


def asking(server, path, window=4096, **headers):
    """A connection that has asked, and has read nothing; no more than the window is on its way."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    one.settimeout(120)
    one.connect((server.host, server.port))
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{more}\r\n".encode())
    return one


def answer(one):
    """The status, the headers and the body of the answer that comes on a connection."""
    found = http.client.HTTPResponse(one)
    found.begin()
    return found.status, dict((name.lower(), value) for name, value in found.getheaders()), found.read()


def jobs(server):
    """What the counters say of jobs: running, waiting, refused_total, abandoned_total."""
    return {name: int(value) for name, value in re.findall(r"^carpack_jobs_(\w+) (\d+)$", server.ask("/metrics")[2].decode(), re.M)}


def wait_for(server, condition):
    """The first counters of jobs for which a condition holds."""
    for _ in range(6000):
        found = jobs(server)
        if condition(found):
            return found
        time.sleep(0.01)
    raise AssertionError(found)


JOBS_AT_A_TIME = min(8, max(2, os.cpu_count()))


@test
def five_hundred_readers_of_a_cold_blob_share_one_job():
    content = bytes(256 << 20) + b"end"
    with serving_blobs(content) as (server, _, [path]):
        sockets = [asking(server, path, Range="bytes=-4") for _ in range(500)]
        for one in sockets:
            status, _, body = answer(one)
            assert (status, body) == (206, b"\0end"), (status, body)
            one.close()
        assert jobs(server)["refused_total"] == 0


@test
def while_repositories_are_laid_out_small_requests_are_answered():
    with tempfile.TemporaryDirectory() as folder:
        cars = large_accounts(folder, 8, lambda number, key: f"{number} {key} " + "x" * 300_000)
        for count in (2, 8):
            archives = [pathlib.Path(folder) / f"{number}.car.zst" for number in range(count)]
            with Server(*archives, "--metrics") as server:
                sockets = [asking(server, path, 1 << 20) for path in list(cars)[:count]]
                seen = [0]
                while not select.select(sockets, [], [], 0)[0]:
                    seen.append(jobs(server)["running"])
                    assert server.ask("/xrpc/_health")[0] == 200
                assert max(seen) == min(count, JOBS_AT_A_TIME), seen
                with concurrent.futures.ThreadPoolExecutor(count) as pool:
                    for (status, _, body), wanted in zip(pool.map(answer, sockets), cars.values()):
                        assert status == 200 and body == wanted
                for one in sockets:
                    one.close()


@test
def no_more_jobs_wait_than_may_and_none_is_done_for_nobody():
    small = [os.urandom(1000) for _ in range(80)]
    slow = [bytes((512 << 20) + number) for number in range(JOBS_AT_A_TIME)]

    @contextlib.contextmanager
    def busy(server):
        """While as many slow jobs run as may, which end well."""
        server.xrpc("com.atproto.sync.listBlobs", did=ALICE)
        sockets = [asking(server, path, Range="bytes=0-9") for path in paths[len(small):]]
        wait_for(server, lambda jobs: jobs["running"] == JOBS_AT_A_TIME)
        yield
        assert [answer(one)[0] for one in sockets] == [206] * len(slow)
        for one in sockets:
            one.close()

    with serving_blobs(*small, *slow) as (server, archive, paths):
        with busy(server):
            sockets = [asking(server, path) for path in paths[:len(small)]]
            # One of those that wait may be a look at the files.
            found = wait_for(server, lambda jobs: jobs["waiting"] + jobs["refused_total"] >= len(small))
            assert found["waiting"] == 64 and found["refused_total"] >= 16, found
            refused = 0
            for one, content in zip(sockets, small):
                status, headers, body = answer(one)
                assert (status, body) == (200, content) or (status, headers["retry-after"]) == (503, "5"), (status, headers)
                refused += status == 503
                one.close()
            assert refused in (16, 17), refused
        for path, content in zip(paths, small):
            assert server.ask(path)[2] == content

        with Server(archive, "--metrics", "--allow-large") as server:
            with busy(server):
                gone = [asking(server, path) for path in paths[:21]]
                # Of two who wait for the same, one goes.
                stays = asking(server, paths[20])
                wait_for(server, lambda jobs: jobs["waiting"] >= 21)
                for one in gone:
                    one.close()
                status, _, body = answer(stays)
                assert (status, body) == (200, small[20])
                stays.close()
            found = wait_for(server, lambda jobs: jobs["running"] == jobs["waiting"] == 0)
            assert 0 < found["abandoned_total"] <= 20, found


@test
def a_file_that_is_cut_off_under_readers_costs_them_and_not_the_server():
    content = os.urandom(40 << 20)
    with serving_blobs(content) as (server, path, [blob]):
        archive(path.parent, "bob")
        for _ in range(600):
            if len(server.xrpc("com.atproto.sync.listRepos")["repos"]) == 2:
                break
            time.sleep(0.1)
        bob = server.xrpc("com.atproto.identity.resolveHandle", handle="bob.example.com")["did"]
        page, whole, times = server.archive_path(path.name), path.read_bytes(), path.stat()
        with asking(server, blob) as one, asking(server, page) as other:
            assert one.recv(12) == other.recv(12) == b"HTTP/1.1 200"
            os.truncate(path, 1 << 20)
            for reader in (one, other):
                length = 0
                with contextlib.suppress(ConnectionError):
                    while piece := reader.recv(1 << 20):
                        length += len(piece)
                assert length < len(content), length
        # Whatever is answered of what is left: the server is there.
        for path_of_request in (blob, page):
            with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
                status, _, body = server.ask(path_of_request)
                assert status != 200 or body in (content, whole[:1 << 20])
        assert server.xrpc("com.atproto.sync.getRepo", did=bob) == (FIXTURES / "bob/bob.car").read_bytes()
        # The same file again, as old as before.
        with path.open("r+b") as file:
            file.write(whole)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        for _ in range(600):
            with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
                if server.ask(blob)[2] == content:
                    break
            time.sleep(0.1)
        else:
            raise AssertionError("the file is not read again")
        assert len(server.xrpc("com.atproto.sync.listBlobs", did=ALICE)["cids"]) == 1
        assert server.process.poll() is None


@test
def a_file_that_is_cut_off_while_it_is_laid_out_costs_that_request():
    statuses = set()
    with tempfile.TemporaryDirectory() as folder:
        archive(folder)
        (request, car), = large_accounts(folder, 1, lambda number, key: os.urandom(500_000)).items()
        path = pathlib.Path(folder) / "0.car.zst"
        whole = path.read_bytes()
        for milliseconds in (0, 5, 10, 20, 30, 40, 60, 80, 120):
            with Server(folder) as server, asking(server, request, 1 << 20) as one:
                time.sleep(milliseconds / 1000)
                os.truncate(path, 1000)
                try:
                    status, _, body = answer(one)
                except (http.client.HTTPException, ConnectionError):
                    status = None
                assert status == 200 and body == car or status in (None, 500, 503), status
                statuses.add(status)
                assert server.xrpc("com.atproto.sync.getRepo", did=ALICE) == (FIXTURES / "alice/alice-later.car").read_bytes()
                assert server.process.poll() is None
            path.write_bytes(whole)
    assert 500 in statuses, statuses


@test
def a_reader_that_takes_nothing_does_not_keep_it():
    for number in (signal.SIGTERM, signal.SIGINT):
        with serving_blobs(os.urandom(10 << 20)) as (server, _, [path]), asking(server, path) as reader:
            assert reader.recv(12) == b"HTTP/1.1 200"
            start = time.monotonic()
            server.process.send_signal(number)
            assert server.process.wait(15) == 128 + number
            notes.append(f"{number.name} and a reader that takes nothing: {time.monotonic() - start:.2f} s")


@test
def a_second_signal_ends_it_at_once():
    for _ in range(10):
        with serving_blobs(os.urandom(10 << 20)) as (server, _, [path]), asking(server, path) as reader:
            assert reader.recv(12) == b"HTTP/1.1 200"
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            if server.process.poll() is not None:
                continue  # This machine was too busy to send a second one in time.
            start = time.monotonic()
            server.process.send_signal(signal.SIGINT)
            # After the first alone it would be 143.
            if server.process.wait(15) == 130:
                notes.append(f"a second signal: {time.monotonic() - start:.2f} s")
                return
    raise AssertionError("the second signal did not end it")


@test
def ranges_are_given_on_condition_that_nothing_has_changed():
    with serving(names=("alice",)) as server:
        path = server.folder / "alice.example.com.car.zst"
        page = server.archive_path(path.name)
        blob = server.xrpc("com.atproto.sync.listBlobs", did=ALICE)["cids"][0]
        for asked in (page, f"/xrpc/com.atproto.sync.getRepo?did={ALICE}", f"/xrpc/com.atproto.sync.getBlob?did={ALICE}&cid={blob}"):
            tag = server.ask(asked)[1]["etag"]
            assert re.fullmatch('"[^"]+"', tag), tag
            for condition in (tag, "*", f'"other", {tag}'):
                assert server.ask(asked, Range="bytes=0-9", If_Match=condition)[0] == 206, condition
            for condition in ('"other"', f"W/{tag}"):
                status, _, body = server.ask(asked, Range="bytes=0-9", If_Match=condition)
                assert (status, body) == (412, b""), condition
            for condition in (tag, f"W/{tag}", f'"other", {tag}', "*"):
                assert server.ask(asked, If_None_Match=condition)[0] == 304, condition
        # Another archive in the same file.
        tag = server.ask(page)[1]["etag"]
        other = server.folder.parent / f"{server.folder.name}.other"
        carpack("pack", FIXTURES / "alice/alice-later.car", "-o", other, "-q", status=10)
        with path.open("r+b") as file:
            file.truncate(0)
            file.write(other.read_bytes())
        other.unlink()
        for _ in range(600):
            if server.ask(page, Range="bytes=0-9", If_Match=tag)[0] == 412:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("the tag stayed the same")


@test
def a_reader_that_stands_still_costs_little_memory():
    content = os.urandom(40 << 20)
    with serving_blobs(content) as (server, _, [path]):
        sockets = [asking(server, path) for _ in range(500)]
        time.sleep(3)
        assert server.memory() < 100 << 20, server.memory()
        assert all(one.recv(12) == b"HTTP/1.1 200" for one in sockets)
        assert server.ask(path, Range="bytes=41000000-41000009")[2] == content[41000000:41000010]
        for one in sockets:
            one.close()


@test
def counters_are_given_where_they_are_wanted():
    with serving("--metrics") as server:
        server.xrpc("com.atproto.sync.listRepos")
        server.ask("/xrpc/com.example.whatever")
        text = server.ask("/metrics")[2].decode()
        assert 'carpack_requests_total{endpoint="com.atproto.sync.listRepos",status="200"} 1' in text
        assert 'endpoint="other",status="501"' in text and "com.example" not in text
        assert "carpack_accounts 2" in text


@test
def hostile_requests_get_an_answer_or_the_door():
    with serving() as server:
        for text in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"A%d: b\r\n" % number for number in range(500)) + b"\r\n",
                     b"GET /xrpc/com.atproto.sync.getBlob?did=%ff%00&cid=%zz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                     b"BREW / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET http://[ HTTP/1.1\r\nHost: [\r\n\r\n"):
            with socket.create_connection((server.host, server.port), timeout=10) as one:
                one.sendall(text)
                one.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionError):
                    one.recv(100)
        assert server.ask("/xrpc/_health")[0] == 200


def exchange(server, *requests, ending=False):
    """All bytes that come back for some requests, which are sent at once, until the server closes the connection."""
    with socket.create_connection((server.host, server.port), timeout=30) as one:
        one.sendall(b"".join(requests))
        if ending:
            one.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: one.recv(1 << 16), b""))


@test
def requests_follow_one_another_on_a_connection_until_one_side_ends_it():
    with serving() as server:
        host = f"Host: {server.host}:{server.port}\r\n".encode()
        health = b"GET /xrpc/_health HTTP/1.1\r\n" + host
        last = health + b"Connection: close\r\n\r\n"
        body = server.ask("/xrpc/_health")[2]
        assert exchange(server, *[health + b"\r\n"] * 50, last).count(body) == 51
        # A client that has no more to say still wants its answers.
        assert exchange(server, *[health + b"\r\n"] * 3, ending=True).count(body) == 3
        assert exchange(server, last, health + b"\r\n").count(body) == 1
        # No body comes with the answers to these, and none of a request is taken for the next one.
        for first in (b"HEAD /xrpc/_health HTTP/1.1\r\n" + host + b"\r\n", b"OPTIONS /xrpc/_health HTTP/1.1\r\n" + host + b"\r\n",
                      b"POST /xrpc/_health HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
                      b"POST /xrpc/_health HTTP/1.1\r\n" + host + b"Content-Length: 9\r\n\r\n" + b"GET / HTT"):
            head, rest = exchange(server, first, last).split(b"\r\n\r\n", 1)
            assert re.match(rb"HTTP/1.1 (200|204|501) ", head), head
            assert rest.count(b"HTTP/1.1 200 OK\r\n") == 1 and rest.endswith(body), rest
        # A body whose length is not known before ends with the connection, where there are no chunks.
        rev = server.xrpc("com.atproto.sync.getLatestCommit", did=ALICE)["rev"]
        changes = f"/xrpc/com.atproto.sync.getRepo?did={ALICE}&since={rev}".encode()
        old = exchange(server, b"GET " + changes + b" HTTP/1.0\r\nConnection: keep-alive\r\n" + host + b"\r\n")
        assert old.startswith(b"HTTP/1.0 200 OK\r\n") and b"chunked" not in old, old
        assert old.endswith(b"\r\n\r\n" + server.ask(changes.decode())[2])


@test
def a_request_is_for_the_host_that_it_names_once():
    with serving() as server:
        name = f"{server.host}:{server.port}"
        for line, hosts, status in (("/", [name], 200), ("/", [], 421), ("/", [name, name], 421), ("/", [name, "example.com"], 421),
                                    (f"http://{name}/", ["example.com"], 200), ("http://example.com/", [name], 421)):
            text = f"GET {line} HTTP/1.1\r\nConnection: close\r\n" + "".join(f"Host: {host}\r\n" for host in hosts) + "\r\n"
            assert exchange(server, text.encode()).startswith(f"HTTP/1.1 {status} ".encode()), (line, hosts)


@test
def a_server_that_may_open_few_files_goes_on():
    with tempfile.TemporaryDirectory() as folder:
        archive(folder)
        line = f"ulimit -n 40; exec {COMMAND} serve {folder} --json --bind 127.0.0.1:0"
        with subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            place = urllib.parse.urlsplit(json.loads(process.stdout.readline())["page"])
            sockets = [socket.create_connection((place.hostname, place.port)) for _ in range(100)]
            time.sleep(0.5)
            for one in sockets:
                one.close()
            for _ in range(300):
                with contextlib.suppress(OSError):
                    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
                    connection.request("GET", "/xrpc/_health")
                    if connection.getresponse().status == 200:
                        break
                time.sleep(0.1)
            else:
                raise AssertionError("no more is answered")
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 143


@test
def what_cannot_be_served_is_said():
    with tempfile.TemporaryDirectory() as folder:
        missing = pathlib.Path(folder) / "none.car.zst"
        carpack("serve", missing, status=66)
        carpack("serve", FIXTURES / "alice/alice.car", status=64)
        def refused(bind, status):
            result = subprocess.run([COMMAND, "serve", folder, "--bind", bind], capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
            assert result.returncode == status, result
            return result.stderr
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            assert refused(f"127.0.0.1:{port}", 73) == f"carpack: error: port {port} of 127.0.0.1 is taken\nhint: choose another with --bind PORT\n"
        # TEST-NET-1 (RFC 5737) and a name that cannot be one (RFC 6761).
        for host in ("192.0.2.1", "nowhere.invalid"):
            assert refused(f"{host}:0", 64) == f"carpack: error: {host} is not an address of this machine\nhint: --bind takes an address, a port, or both\n"
        carpack("serve", folder, "--log", "/dev/null/x", status=73)


@test
def an_empty_folder_is_served_and_said_to_be_empty():
    with tempfile.TemporaryDirectory() as folder:
        with Server(folder) as server:
            assert server.start["archives"] == 0
        assert server.talk == f"carpack: warning: no archive (*.car.zst) in {folder} yet; new ones appear while it runs\n", server.talk
        archive(folder, "bob")
        with Server(folder) as server:
            assert server.start["archives"] == 1
        assert server.talk == "", server.talk


@test
def carpack_goes_to_this_server_by_the_option_that_its_start_names():
    with serving() as server, tempfile.TemporaryDirectory() as folder:
        origin, copy = f"http://127.0.0.1:{server.port}", pathlib.Path(folder) / "copy.car.zst"
        carpack("backup", "alice.example.com", "--plc", f"{origin}/did", "--resolver", origin, "--pds", origin, "-o", copy, "-q")
        for options, told in ([], "--pds http://127.0.0.1:"), (["--impersonate"], " is also a directory"):
            process = subprocess.Popen([COMMAND, "serve", folder, "--bind", "127.0.0.1:0", *options], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
            lines = [process.stderr.readline() for _ in range(4)]
            process.terminate()
            process.communicate(timeout=20)
            assert told in lines[3], lines


def rows(database, sql, *values):
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql, values).fetchall()


@test
def a_database_has_every_snapshot_and_is_brought_up_to_date():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        path, database, account = folder / "a.car.zst", folder / "a.db", FIXTURES / "alice"
        carpack("pack", account / "alice.car", "--blobs", account / "blobs", "-o", path, "-q")
        carpack("export", path, "--sqlite", database, "-q")
        assert rows(database, "SELECT count(*), sum(is_current) FROM records") == [(45, 45)]
        carpack("pack", account / "alice-later.car", "-o", path, "-q")
        told = json.loads(carpack("export", path, "--sqlite", database, "--json"))
        assert told["newSnapshots"] == 1 and told["records"] == 47 and told["complete"]
        # The same as if it had been written at once.
        carpack("export", path, "--sqlite", folder / "b.db", "-q")
        for table in ("records", "snapshots", "blobs", "record_blobs", "posts", "likes", "follows", "profiles"):
            assert rows(database, f"SELECT * FROM {table} ORDER BY 1, 2") == rows(folder / "b.db", f"SELECT * FROM {table} ORDER BY 1, 2"), table
        changes = [json.loads(line) for line in carpack("diff", "--json", path).splitlines()]
        gone = {one["path"] for one in changes if one.get("change") == "deleted"}
        assert {f"{collection}/{key}" for collection, key in rows(database, "SELECT collection, rkey FROM deleted_records WHERE last_snapshot = 1")} == gone
        assert rows(database, "SELECT count(*) FROM posts WHERE is_current") == [(17,)]
        assert rows(database, "SELECT count(*) FROM blobs WHERE NOT is_held") == [(0,)]
        found = rows(database, "SELECT r.text FROM search JOIN records r ON r.id = search.rowid WHERE search MATCH 'onions'")
        assert found and all("onions" in text.lower() for text, in found)
        carpack("export", archive(folder, "bob"), "--sqlite", database, "-q")
        assert rows(database, "SELECT count(*) FROM accounts") == [(2,)]
        assert rows(database, "SELECT count(*) FROM blobs WHERE NOT is_held AND reason IS NOT NULL") == [(1,)]
        assert rows(database, "PRAGMA integrity_check") == [("ok",)]


REVISIONS = ["3lscuqc52or2x", "3lscuqc52or3x", "3lscuqc52or4x"]


def stages(path, *numbers):
    """An archive of some of three stages of an account: two posts are updated, one of them is deleted then."""
    for number in numbers:
        texts = {"a": ["a first", "a second", "a second"], "b": ["b", "b", "b"], "c": ["c first", "c second", None]}
        records = {f"app.bsky.feed.post/{key}": {"$type": "app.bsky.feed.post", "text": text[number], "createdAt": "2025-01-01T00:00:00Z"}
                   for key, text in texts.items() if text[number]}
        records["app.bsky.feed.like/l"] = {"$type": "app.bsky.feed.like", "createdAt": "2025-01-01T00:00:00Z",
                                           "subject": {"uri": f"at://{ALICE}/app.bsky.feed.post/a", "cid": repositories.text(repositories.cid(b""))}}
        path.with_suffix(".car").write_bytes(repositories.repository(records, rev=REVISIONS[number]))
        carpack("pack", path.with_suffix(".car"), "-o", path, "-q")
    return path


@test
def an_updated_record_is_not_among_the_deleted_ones():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        carpack("export", stages(folder / "a.zst", 0, 1, 2), "--sqlite", folder / "a.db", "-q")
        example = re.findall(r"```sql\n(.*?)```", (ROOT / "Docs/SERVER.md").read_text(), re.S)[-1].split(";")[-2]
        seen = rows(folder / "a.db", "SELECT created_at FROM snapshots WHERE rev = ?", REVISIONS[1])[0][0]
        assert rows(folder / "a.db", example) == [("app.bsky.feed.post", "c", "c second", seen)]
        assert rows(folder / "a.db", "SELECT rkey, text FROM current_records ORDER BY rkey") == [("a", "a second"), ("b", "b"), ("l", None)]


@test
def archives_of_an_account_may_come_into_a_database_in_any_order_and_twice():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        whole, again = stages(folder / "whole.zst", 0, 1, 2), stages(folder / "again.zst", 0, 1, 2)
        old, new = stages(folder / "old.zst", 0, 1), stages(folder / "new.zst", 1, 2)
        ends = stages(folder / "ends.zst", 0, 2)
        middle = stages(folder / "middle.zst", 1)
        one, two, three = REVISIONS
        for number, archives in enumerate([[whole], [old, new], [new, old], [whole, again], [whole, old], [ends, middle], [middle, ends], [new, again, old]]):
            database = folder / f"{number}.db"
            for path in archives:
                carpack("export", path, "--sqlite", database, "-q")
            found = rows(database, """SELECT r.rkey, r.text, f.rev, l.rev, r.is_current FROM records r JOIN snapshots f ON f.id = r.first_snapshot
                                      JOIN snapshots l ON l.id = r.last_snapshot ORDER BY r.rkey, r.text""")
            assert found == [("a", "a first", one, one, 0), ("a", "a second", two, three, 1), ("b", "b", one, three, 1), ("c", "c first", one, one, 0),
                             ("c", "c second", two, two, 0), ("l", None, one, three, 1)], (archives, found)
            assert rows(database, "SELECT s.rev FROM accounts a JOIN snapshots s ON s.id = a.snapshot") == [(three,)], archives
            assert rows(database, "SELECT rev FROM snapshots ORDER BY rev") == [(one,), (two,), (three,)], archives
            assert rows(database, "SELECT is_current, count(*) FROM posts GROUP BY 1") == [(0, 3), (1, 2)], archives
            assert rows(database, "SELECT count(*) FROM likes") == [(1,)], archives
            assert rows(database, "SELECT rkey, text FROM deleted_records") == [("c", "c second")], archives
            assert rows(database, "SELECT count(*) FROM search WHERE search MATCH 'second'") == [(2,)], archives


@test
def a_text_is_whole_and_found_by_its_parts():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        posts = {f"app.bsky.feed.post/3k{number}": {"$type": "app.bsky.feed.post", "text": text, "createdAt": "2025-01-01T00:00:00Z"}
                 for number, text in enumerate(["before\0behind the nul", "これは日本語の文章です", "Überraschung"])}
        (folder / "a.car").write_bytes(repositories.repository(posts))
        carpack("pack", folder / "a.car", "-o", folder / "a.car.zst", "-q")
        carpack("export", folder / "a.car.zst", "--sqlite", folder / "a.db", "-q")
        assert rows(folder / "a.db", "SELECT hex(text) FROM records WHERE rkey = '3k0'") == [(b"before\0behind the nul".hex().upper(),)]
        for word, key in [("日本語", "3k1"), ("本語の文", "3k1"), ("rasch", "3k2"), ("before", "3k0")]:
            found = rows(folder / "a.db", "SELECT r.rkey FROM search_parts JOIN records r ON r.id = search_parts.rowid WHERE search_parts MATCH ?", f'"{word}"')
            assert found == [(key,)], (word, found)
        # A database of an earlier version has no such table.
        with contextlib.closing(sqlite3.connect(folder / "a.db")) as connection:
            connection.execute("DROP TABLE search_parts")
            connection.commit()
        carpack("export", folder / "a.car.zst", "--sqlite", folder / "a.db", "-q")
        assert rows(folder / "a.db", "SELECT count(*) FROM search_parts WHERE search_parts MATCH '日本語'") == [(1,)]


@test
def what_others_said_has_tables_of_its_own():
    stand_in = pathlib.Path(COMMAND).parent / "stand-in"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        path, database = folder / "a.car.zst", folder / "a.db"
        process = subprocess.Popen([stand_in, "serve", "--accounts", "1", "--likes", "5", "--follows", "3", "--ready-file", folder / "url"],
                                   stdout=subprocess.PIPE, text=True)
        try:
            url, (_, did), (_, view) = process.stdout.readline().strip(), process.stdout.readline().split(), process.stdout.readline().split()
            backup = ["backup", did, "--plc", url, "--resolver", url, "-o", path, "-q"]
            carpack(*backup, "--context", "--app-view", view)
            carpack("export", path, "--sqlite", database, "-q")
            people = rows(database, "SELECT did, handle, display_name, substr(avatar, 1, 2), absent, seen_from FROM people WHERE account = ?", did)
            assert len(people) == 8 and len({one[0] for one in people}) == 8
            for _, handle, name, avatar, absent, seen_from in people:
                assert handle.endswith(".test") and name.startswith("Somebody ") and avatar == b"\xff\xd8" and absent is None and seen_from == view
            posts = rows(database, "SELECT uri, author, text, is_signed FROM context_posts WHERE account = ?", did)
            assert len(posts) == 5 and all(uri.startswith(f"at://{author}/") and text.startswith("What ") and not signed for uri, author, text, signed in posts)
            # None of it is among the account's own.
            assert rows(database, "SELECT count(*) FROM posts WHERE did <> ?", did) == [(0,)]
            assert rows(database, "SELECT count(*) FROM search WHERE search MATCH 'Somebody'") == [(0,)]
            carpack("forget-context", path, "-q")
            carpack("export", path, "--sqlite", database, "-q")
            assert rows(database, "SELECT (SELECT count(*) FROM people) + (SELECT count(*) FROM context_posts)") == [(0,)]
        finally:
            process.terminate()
            process.wait(20)
            process.stdout.close()


@test
def a_file_that_is_no_database_of_ours_stays_as_it_is():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        path = archive(folder)
        (folder / "text.db").write_bytes(b"mine" * 100)
        with contextlib.closing(sqlite3.connect(folder / "other.db")) as connection:
            connection.execute("CREATE TABLE mine (a)")
            connection.commit()
        for name in ("text.db", "other.db"):
            before = (folder / name).read_bytes()
            carpack("export", path, "--sqlite", folder / name, status=73)
            assert (folder / name).read_bytes() == before
        damaged = bytearray(path.read_bytes())
        # Behind the header and the note.
        damaged[700:800] = bytes(100)
        path.write_bytes(damaged)
        result = subprocess.run([COMMAND, "export", path, "--sqlite", folder / "d.db"], capture_output=True, env=ENVIRONMENT)
        assert result.returncode == 11 and b"damaged" in result.stderr, result


if __name__ == "__main__":
    COMMAND = os.path.abspath(sys.argv[1])
    ENVIRONMENT = dict(os.environ, CARPACK_SERVE=os.path.abspath(sys.argv[2]))
    wanted = sys.argv[3:]
    failed = 0
    for one in tests:
        if wanted and not any(word in one.__name__ for word in wanted):
            continue
        name, start = one.__name__.replace("_", " "), time.monotonic()
        try:
            one()
            print(f"ok      {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception:
            failed += 1
            import traceback
            print(f"FAILED  {name}\n{traceback.format_exc()}", flush=True)
    for note in notes:
        print(note)
    print(f"{len(tests)} tests of the server, {failed} failed")
    sys.exit(1 if failed else 0)
