#!/usr/bin/env python3
"""Tests of the page in a real browser: Debian's Chromium, driven by playwright, and without its
windows (chromium-headless-shell) if that is installed, because it takes a third of the time.

Usage: browser.py CARPACK [--page PAGE] [--pictures FOLDER] [--only WORDS] [--part 1/2] [--keep].
The page is the one in the command, or PAGE. Pictures of every view are left in the folder, to be
looked at. Only the tests whose names have the words are run; with --part only every second, so that
two processes share them. Without playwright or Chromium it says so, and ends with 0. With --keep
the pictures in screens/ are made again: those of Debian's Chromium with DejaVu, which others are
compared with.
"""
import argparse
import base64
import functools
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import forgeries
import repositories
import videos

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
SCREENS = pathlib.Path(__file__).parent / "screens"
VIEWS = ["", "replies", "media", "search/the", "everything", "statistics", "time", "proof"]
passed = []


def test(function):
    """A test is a function whose name is a sentence."""
    function.is_test = True
    return function


def carpack(*arguments, status=0):
    result = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == status, f"{arguments}: {result.returncode}\n{result.stdout}{result.stderr}"


class Page:
    """A tab with the page; remembers what it asked for and what went wrong."""

    def __init__(self, browser, size=(1200, 900), **options):
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        self.tab = self.context.new_page()
        self.requests, self.errors = [], []
        self.tab.on("request", lambda one: one.url.startswith(("http:", "https:", "ws:")) and self.requests.append(one.url))
        self.tab.on("console", lambda one: one.type in ("error", "warning") and self.errors.append(one.text))
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.errors.append("a dialog: " + dialog.message), dialog.dismiss()))
        self.context.on("page", lambda _: self.errors.append("a page was opened"))

    def open(self, archive):
        self.tab.goto(f"file://{PAGE}")
        files = archive if isinstance(archive, list) else [archive]
        self.tab.set_input_files("input[type=file] >> nth=0", [str(one) for one in files])
        self.tab.wait_for_selector("aside nav a, [role=alert]", timeout=60_000)
        return self

    def show(self, address):
        self.tab.evaluate("address => { document.getElementById('main').dataset.at = '?'; location.hash = ''; location.hash = '#/' + address; }", address)
        self.settle(address)
        return self.tab.inner_text("main")

    def settle(self, address):
        """Waits until a view is on the page, with the rows that are seen."""
        begins = address.split("/")[0]
        self.tab.wait_for_selector(f"main[data-at^='{begins}']" if begins else "main[data-at='']", timeout=60_000)
        for _ in range(100):
            self.tab.wait_for_timeout(50)
            if self.tab.locator("main [aria-busy=true]").count() == 0:
                return

    def expect_quiet(self, requests=0):
        assert len(self.requests) <= requests, self.requests
        assert not self.errors, self.errors

    def close(self):
        self.context.close()


def memory_of_pages():
    """The memory of the largest process of this test's browser that shows a page, in bytes; 0 where that cannot be told."""
    parents, sizes = {}, {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "status").read_text()
            parents[process.name] = re.search(r"PPid:\s+(\d+)", status)[1]
            if b"--type=renderer" in (process / "cmdline").read_bytes():
                sizes[process.name] = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) << 10
        except OSError:
            pass

    def is_own(process):
        while process in parents and process != str(os.getpid()):
            process = parents[process]
        return process == str(os.getpid())
    return max([0, *(size for process, size in sizes.items() if is_own(process))])


def png(shade):
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    rows = b"".join(b"\0" + bytes([shade, x * 4 % 256, 128] * 1) * 1 + bytes([shade, 90, x]) * 63 for x in range(64))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", (64).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0") + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pack(folder, name, records, blobs=(), **options):
    (folder / f"{name}.blobs").mkdir(exist_ok=True)
    for number, content in enumerate(blobs):
        (folder / f"{name}.blobs" / str(number)).write_bytes(content)
    (folder / f"{name}.car").write_bytes(repositories.repository(records, **options))
    result = subprocess.run([COMMAND, "pack", "-q", folder / f"{name}.car", "--blobs", folder / f"{name}.blobs", "-o", folder / f"{name}.car.zst"], capture_output=True, text=True)
    assert result.returncode in (0, 10), result.stderr
    return folder / f"{name}.car.zst"


HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>\u202e txet"


def hostile_records():
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked=1"><script>window.hacked=1</script><rect width="9" height="9"/></svg>'
    html = b"<!doctype html><script>window.hacked=1</script>"
    post = "app.bsky.feed.post"
    made = {"createdAt": "2025-01-01T00:00:00Z"}
    records = {
        "app.bsky.actor.profile/self": {"$type": "app.bsky.actor.profile", "displayName": HOSTILE, "description": HOSTILE, "avatar": repositories.blob(svg, "image/svg+xml"), "banner": repositories.blob(html, "image/png")},
        f"{post}/3lkxag2qhdc22": {"$type": post, "text": HOSTILE, "langs": [HOSTILE], "facets": [
            {"index": {"byteStart": 0, "byteEnd": 8}, "features": [{"$type": "app.bsky.richtext.facet#link", "uri": "javascript:window.hacked=1"}]},
            {"index": {"byteStart": 9, "byteEnd": 12}, "features": [{"$type": "app.bsky.richtext.facet#link", "uri": "data:text/html,<script>1</script>"}]},
            {"index": {"byteStart": -5, "byteEnd": 99999999}, "features": [{"$type": "app.bsky.richtext.facet#tag", "tag": HOSTILE}]},
            {"index": "no", "features": "no"}, None, 7], **made},
        f"{post}/3lkxag2qhdc23": {"$type": post, "text": "", "embed": {"$type": "app.bsky.embed.images", "images": [
            {"alt": HOSTILE, "image": repositories.blob(svg, "image/png"), "aspectRatio": {"width": -1, "height": 1 << 62}},
            {"alt": "", "image": repositories.blob(html, "image/jpeg")}, {"alt": 7, "image": None}, None]}, **made},
        f"{post}/3lkxag2qhdc24": {"$type": post, "text": "a link", "embed": {"$type": "app.bsky.embed.external", "external": {"uri": "javascript:window.hacked=1", "title": HOSTILE, "description": HOSTILE}}, **made},
        f"{post}/3lkxag2qhdc25": {"$type": post, "text": "word" * 250_000, **made},
        f"{post}/3lkxag2qhdc26": {"$type": post, "text": "a reply", "reply": {"parent": {"uri": "javascript:window.hacked=1"}, "root": 5}, **made},
        f"{post}/3lkxag2qhdc27": {"$type": post, "text": "to itself", "reply": {"parent": {"uri": f"at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/{post}/3lkxag2qhdc27"}}, **made},
        f"{post}/3lkxag2qhdc2a": {"$type": post, "text": ["no", "text"], "embed": 5, "labels": {"values": [{"val": "porn"}]}, "createdAt": 5},
        f"{post}/3lkxag2qhdc2b": {"__proto__": {"x": 1}, "constructor": "x", "$type": post, "text": "marked", "labels": {"values": [{"val": "porn"}]}, "embed": {"$type": "app.bsky.embed.images", "images": [{"alt": "behind", "image": repositories.blob(png(9), "image/png")}]}, **made},
        "com.example.odd/1": {"deep": functools.reduce(lambda inner, _: [inner], range(200), 1), "huge": 1 << 62, "bytes": b"\0\1", "null": None},
        "com.example.odd/2": {"$type": HOSTILE, HOSTILE[:40]: HOSTILE, "url": "javascript:window.hacked=1", "uri": "https://example.com/\"><script>"},
        "app.bsky.feed.like/3lkxag2qhdc22": {"$type": "app.bsky.feed.like", "subject": {"uri": "javascript:window.hacked=1"}, **made},
        "app.bsky.graph.follow/3lkxag2qhdc22": {"$type": "app.bsky.graph.follow", "subject": "did:plc:\"><script>", **made},
    }
    return records, [svg, html, png(9)]


@test
def every_view_of_the_fixture_account_is_shown_and_nothing_is_asked_for(browser, folder):
    archive = ROOT / "Fixtures/archives/one.car.zst"
    for size, scheme in (((1200, 900), "light"), ((390, 844), "dark")):
        page = Page(browser, size, color_scheme=scheme).open(archive)
        for view in VIEWS:
            assert page.show(view).strip(), view
            wide = page.tab.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{view} is {wide} pixels too wide at {size}"
            if PICTURES:
                page.tab.wait_for_timeout(300)
                page.tab.screenshot(path=f"{PICTURES}/{scheme}-{view.replace('/', '-') or 'posts'}.png")
        page.expect_quiet()
        page.close()


# A pixel differs by more than a fifth in one colour; up to 0.5 % may, for letters are drawn a
# little differently everywhere.
DIFFERENT, TOLERATED = 50, 0.005
COMPARE = """async ([one, other, limit]) => {
    const pixels = async text => {
        const image = await createImageBitmap(new Blob([Uint8Array.from(atob(text), c => c.charCodeAt(0))], { type: 'image/png' }));
        const [width, height] = [image.width >> 1, image.height >> 1], canvas = new OffscreenCanvas(width, height).getContext('2d');
        canvas.drawImage(image, 0, 0, width, height);
        return [image.width, image.height, canvas.getImageData(0, 0, width, height).data];
    };
    const [[width, height, left], [otherWidth, otherHeight, right]] = await Promise.all([pixels(one), pixels(other)]);
    if (width !== otherWidth || height !== otherHeight) return 1;
    let count = 0;
    for (let i = 0; i < left.length; i += 4) if ([0, 1, 2].some(k => Math.abs(left[i + k] - right[i + k]) > limit)) count++;
    return count / (left.length / 4);
}"""


@test
def twelve_views_look_as_they_did(browser, folder):
    fonts = subprocess.run(["fc-match", "system-ui"], capture_output=True, text=True).stdout if shutil.which("fc-match") else ""
    if "DejaVu" not in fonts and not KEEPS:
        print(f"the views were not compared with the kept ones, which are set in DejaVu Sans, and not in {fonts.strip() or 'what is here'}")
        return
    archives = {name: ROOT / f"Fixtures/archives/{name}.car.zst" for name in ("one", "several")}
    post = "app.bsky.feed.post"
    views = [("one", "", "light"), ("one", "replies", "light"), ("one", "media", "dark"), ("one", "search/the", "light"), ("one", "everything", "light"), ("one", "statistics", "dark"),
             ("one", "proof", "light"), ("several", "time", "light"), ("several", "deleted", "dark"), ("several", "", "dark"), ("several", "browse/app.bsky.feed.like", "light"), ("several", f"browse/{post}", "light")]
    SCREENS.mkdir(exist_ok=True)
    bare, pages, wrong = Page(browser), {}, []
    for name, view, scheme in views:
        width = 900 if scheme == "light" else 400
        page = pages.get((name, scheme))
        if page is None:
            page = pages[name, scheme] = Page(browser, (width, 900), color_scheme=scheme, locale="en-US", timezone_id="UTC", device_scale_factor=0.5, reduced_motion="reduce").open(archives[name])
            page.tab.wait_for_selector("[data-proof=mark]:not(:has-text('checking'))", timeout=30_000, state="attached")
        page.show(view)
        page.tab.evaluate("scrollTo(0, 0)")
        page.tab.wait_for_timeout(500)
        shot = page.tab.screenshot(animations="disabled", caret="hide")
        kept = SCREENS / f"{name}-{view.replace('/', '-') or 'posts'}-{scheme}.png"
        if KEEPS:
            kept.write_bytes(shot)
            continue
        share = bare.tab.evaluate(COMPARE, [base64.b64encode(kept.read_bytes()).decode(), base64.b64encode(shot).decode(), DIFFERENT])
        if share > TOLERATED:
            wrong.append(f"{kept.name}: {share:.1%} of the pixels")
            if PICTURES:
                pathlib.Path(PICTURES, kept.name).write_bytes(shot)
    for page in [bare, *pages.values()]:
        page.close()
    assert not wrong, wrong


@test
def what_strangers_wrote_is_only_ever_text(browser, folder):
    records, blobs = hostile_records()
    page = Page(browser).open(pack(folder, "hostile", records, blobs))
    for view in [*VIEWS, "browse/app.bsky.feed.like", "browse/app.bsky.graph.follow", "browse/com.example.odd",
                 *(f"at/{path}" for path in records), "thread/app.bsky.feed.post/3lkxag2qhdc27", "search/%3Cscript%3E"]:
        page.show(view)
        page.tab.wait_for_timeout(150)
        assert page.tab.evaluate("window.hacked") is None, view
        bad = page.tab.evaluate("""[...document.querySelectorAll('a[href], [src]')].map(e => e.getAttribute('href') ?? e.getAttribute('src'))
            .filter(a => !/^(#|https?:|blob:)/.test(a))""")
        assert not bad, (view, bad)
        assert page.tab.evaluate("document.querySelectorAll('script').length") == 2, view
        assert page.tab.evaluate("document.querySelectorAll('iframe, object, embed').length") == 0, view
    page.expect_quiet()
    assert page.show("at/app.bsky.feed.post/3lkxag2qhdc2b").count("marked as porn") == 1
    page.close()


@test
def the_keyboard_is_enough(browser, folder):
    page = Page(browser).open(ROOT / "Fixtures/archives/one.car.zst")
    page.tab.keyboard.press("/")
    page.tab.wait_for_selector("input[type=search]:focus")
    page.tab.keyboard.type("e")
    page.tab.wait_for_selector("main [role=status] >> text=/^[0-9]+ record/")
    page.tab.go_back()
    page.tab.wait_for_timeout(200)
    page.tab.keyboard.press("Tab")
    names = set()
    for _ in range(30):
        names.add(page.tab.evaluate("document.activeElement.innerText || document.activeElement.ariaLabel"))
        page.tab.keyboard.press("Tab")
    assert {"Posts", "Media", "Time"} <= {name.split("\n")[0] for name in names}, names
    tree = page.tab.locator("body").aria_snapshot()
    for name in ("navigation \"Views\"", "link \"Posts\"", "main"):
        assert name in tree, tree
    page.expect_quiet()
    page.close()


@test
def no_view_breaks_a_rule_of_accessibility(browser, folder):
    try:
        import axe_playwright_python
    except ImportError:
        print("axe-playwright-python is not there: the rules of accessibility were not tried")
        return
    axe = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
    alice, whole = ROOT / "Fixtures/alice", folder / "whole.car.zst"
    for car in ("alice.car", "alice-later.car"):
        carpack("pack", "-q", alice / car, "--blobs", alice / "blobs", "--plc-log", alice / "plc-audit-log.json", "-o", whole)
    records, blobs = hostile_records()
    damaged = folder / "hurt.car.zst"
    content = bytearray(whole.read_bytes())
    content[2000] ^= 255
    damaged.write_bytes(content)
    views = [*VIEWS, "browse/app.bsky.feed.like", "browse/app.bsky.graph.follow", "browse/com.example.garden.diary", "deleted", "search/"]
    odd = [f"at/{path}" for path in records][:8]
    for archive, addresses in ((whole, views), (pack(folder, "accessible", records, blobs), [*views, *odd]), (damaged, ["", "proof"])):
        for size, scheme in (((1280, 900), "light"), ((360, 760), "dark"))[:2 if archive == whole else 1]:
            page = Page(browser, size, color_scheme=scheme, bypass_csp=True).open(archive)
            page.tab.evaluate(axe)
            for address in addresses:
                page.show(address)
                found = page.tab.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
                assert not found, (archive.name, scheme, address, [(one["id"], one["nodes"][0]["html"][:200], one["nodes"][0].get("failureSummary", "")[:300]) for one in found])
            page.close()


@test
def many_posts_are_scrolled_through_with_few_elements(browser, folder):
    digits = "234567abcdefghijklmnopqrstuvwxyz"

    def key(number):
        return "3l" + "".join(digits[number >> 5 * i & 31] for i in reversed(range(10))) + "2"
    count = 60_000
    records = {f"app.bsky.feed.post/{key(i)}": {"$type": "app.bsky.feed.post", "text": f"number {i} " + "words " * (i % 60), "createdAt": "2025-01-01T00:00:00Z"} for i in range(count)}
    page = Page(browser)
    # The newest posts are there before the rest is read, and are said to be not checked yet.
    page.tab.add_init_script("""window.early = null; new MutationObserver(() => {
        const text = document.querySelector('main')?.innerText ?? '';
        if (/reading (60,000 records|the rest)/.test(text) && document.querySelector('main article')) window.early ??= { text, mark: document.querySelector('.proof').innerText };
    }).observe(document, { childList: true, subtree: true })""")
    archive = pack(folder, "many", records)
    page.tab.goto(f"file://{PAGE}")
    empty = memory_of_pages()
    page.open(archive)
    page.tab.wait_for_selector("main .figures >> text=60,000 posts")
    early = page.tab.evaluate("window.early")
    assert early and f"number {count - 1} " in early["text"] and "checking" in early["mark"], early
    page.tab.wait_for_selector("[data-proof=mark]:not(:has-text('checking'))", timeout=60_000)
    grown = memory_of_pages() - empty
    print(f"   {count:,} posts: {grown >> 20} MiB more memory")
    assert grown < 120 << 20, grown
    # Of a CAR they are, too.
    page.tab.add_init_script("""new MutationObserver((_, one) => {
        if (document.documentElement.scrollHeight < 1500 || !document.querySelector('main article')) return;
        one.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(() => scrollTo(0, 500)));
    }).observe(document, { childList: true, subtree: true, attributes: true })""")
    page.open(folder / "many.car")
    page.tab.wait_for_selector("main .figures >> text=60,000 posts")
    assert f"number {count - 1} " in page.tab.evaluate("window.early")["text"]
    # A reader who has scrolled by then stays there.
    page.tab.wait_for_function("Math.abs(scrollY - 500) < 30")
    page.tab.wait_for_timeout(300)
    assert abs(page.tab.evaluate("scrollY") - 500) < 30, page.tab.evaluate("scrollY")
    page.show("")
    assert f"number {count - 1} " in page.tab.inner_text("main")
    for part in (0.1, 0.5, 0.9, 1):
        page.tab.evaluate("part => scrollTo(0, document.documentElement.scrollHeight * part)", part)
        page.tab.wait_for_timeout(400)
        assert page.tab.evaluate("document.querySelectorAll('*').length") < 1500
    page.tab.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.tab.wait_for_timeout(400)
    assert "number 0 " in page.tab.inner_text("main"), page.tab.inner_text("main")[-300:]
    page.show("replies")
    page.show("")
    page.tab.evaluate("document.querySelector('.list').show(10000)")
    page.tab.wait_for_timeout(400)
    assert f"number {count - 10_001} " in page.tab.inner_text("main")
    page.show("search/")
    page.tab.fill("input[type=search]", "NUMBER 12345")
    page.tab.wait_for_selector("main [role=status] >> text=/^1 record/")
    page.tab.wait_for_selector("mark >> text=12345")
    page.expect_quiet()
    page.close()


@test
def every_view_prints_all_of_it_or_says_what_is_printed(browser, folder):
    post = "app.bsky.feed.post"
    key = lambda i: f"3lkxag2qhdc{'234567abcdefghijklmnopqrstuvwxyz'[i // 32]}{'234567abcdefghijklmnopqrstuvwxyz'[i % 32]}"
    records = {f"{post}/{key(i)}": {"$type": post, "text": f"number {i:04} ", "createdAt": "2025-01-01T00:00:00Z"} for i in range(900)}
    records[f"{post}/{key(0)}"]["embed"] = {"$type": "app.bsky.embed.images", "images": [{"alt": "the last picture", "image": repositories.blob(png(1), "image/png")}]}
    likes = {f"app.bsky.feed.like/{key(i)}": {"$type": "app.bsky.feed.like", "subject": {"uri": f"at://did:plc:44ybard66vv44zksje25o7dz/{post}/{key(i)}", "cid": "x"}, "createdAt": "2025-01-01T00:00:00Z"} for i in range(1024)}
    page = Page(browser).open(pack(folder, "printed", {**records, **likes}, [png(1)]))
    # The printing itself is a dialogue: what would be printed is looked at instead.
    page.tab.evaluate("""() => { window.print = () => { window.printed = { pictures: document.querySelectorAll('.list img').length,
        note: document.querySelector('.print-note')?.textContent, numbers: [...document.querySelectorAll('.list .text')].map(e => e.textContent) }; }; }""")
    page.show("")
    page.tab.evaluate("scrollTo(0, 9000)")
    page.tab.wait_for_timeout(200)
    page.tab.click("text=Print this view")
    for _ in range(200):
        printed = page.tab.evaluate("window.printed ?? null")
        if printed:
            break
        page.tab.wait_for_timeout(50)
    assert printed["numbers"] == [f"number {i:04} " for i in reversed(range(900))] and printed["pictures"] == 1 and not printed["note"], printed
    page.tab.wait_for_timeout(300)
    assert page.tab.locator(".list article").count() < 60
    page.show("browse/app.bsky.feed.like")
    page.tab.evaluate("window.printed = null")
    page.tab.click("text=Print this view")
    for _ in range(200):
        printed = page.tab.evaluate("window.printed")
        if printed:
            break
        page.tab.wait_for_timeout(50)
    assert printed["note"].startswith("1,000 of 1,024 items are printed"), printed["note"]
    # The browser's own command says how little of a long list it prints.
    page.show("")
    page.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.tab.emulate_media(media="print")
    assert re.match(r"\d+ of 900 items are printed", page.tab.inner_text(".print-note")) and not page.tab.is_visible("aside")
    page.expect_quiet()
    page.close()


@test
def time_shows_what_was_deleted_and_older_snapshots(browser, folder):
    post = "app.bsky.feed.post"
    records = {f"{post}/3lkxag2qhdc2{c}": {"$type": post, "text": f"post {c}", "createdAt": "2025-01-01T00:00:00Z"} for c in "abcdef"}
    archive = pack(folder, "time", records)
    gone = records.pop(f"{post}/3lkxag2qhdc2c")
    records[f"{post}/3lkxag2qhdc2g"] = {**gone, "text": "post g"}
    records[f"{post}/3lkxag2qhdc2d"] = {**gone, "text": "post D, edited"}
    (folder / "newer.car").write_bytes(repositories.repository(records, rev="3lscuqc52or3x"))
    carpack("pack", "-q", folder / "newer.car", "-o", archive)
    page = Page(browser).open(archive)
    assert "post g" in page.show("") and "post c" not in page.tab.inner_text("main")
    page.show("time")
    page.tab.click("text=What changed")
    page.tab.wait_for_selector("text=Deleted: 1")
    # What was deleted opens, from the list of changes and by its address; what was changed shows
    # how.
    page.tab.click("text=Posts 3lkxag2qhdc2c")
    page.tab.wait_for_selector("text=As it was on")
    assert "post c" in page.tab.inner_text("main")
    shown = page.show(f"at/{post}/3lkxag2qhdc2c")
    assert "post c" in shown and "Deleted between" in shown, shown
    page.show("time")
    page.tab.click("text=What changed")
    page.tab.click("text=Posts 3lkxag2qhdc2d")
    page.tab.wait_for_selector("del")
    assert "post d" in page.tab.inner_text("del") and "post D, edited" in page.tab.inner_text("ins")
    shown = page.show("deleted")
    assert "post c" in shown and "deleted between" in shown
    page.show("time")
    page.tab.locator("main .timeline a.name").nth(1).click()
    page.tab.wait_for_timeout(400)
    assert "post c" in page.tab.inner_text("main") and "post g" not in page.tab.inner_text("main")
    page.expect_quiet()
    page.close()


@test
def no_forged_archive_gets_the_green_mark_and_what_is_wrong_is_said_large(browser, folder):
    made = folder / "forged"
    made.mkdir()
    genuine = {"genuine", "genuine-by-hand", "former-key", "future-revision", "log-without-times", "document-only"}
    page = Page(browser)
    for archive in forgeries.write(COMMAND, made):
        name = archive.name.removesuffix(".car.zst")
        page.open(archive)
        # No mark is green while something is still being checked.
        assert not page.tab.evaluate("[...document.querySelectorAll('.proof')].some(e => e.innerText.includes('checking') && e.classList.contains('good'))"), name
        page.tab.wait_for_selector("[data-proof=mark]:not(:has-text('checking'))", timeout=30_000)
        mark = page.tab.locator("[data-proof=mark]").first.inner_text()
        assert (page.tab.locator(".proof.good").count() > 0) == (name in genuine), (name, mark)
        assert ("intact" in mark) == (name in genuine), (name, mark)
        alert = page.tab.locator(".banner-box").inner_text() if page.tab.locator(".banner-box").count() else ""
        assert ("not genuine" in alert) == ("not genuine" in mark) and ("is damaged" in alert) == ("damaged" in mark), (name, mark, alert)
        if name == "lost-record":
            assert "39 of 40 records can be read" in alert and "carpack repair lost-record.car.zst" in alert, alert
        levels = page.show("proof")
        for level in ("intact", "well-formed", "signed", "identity-proven", "continuous", "complete"):
            assert level in levels, levels
        page.expect_quiet()
    page.close()


@test
def cars_folders_and_several_files_open_and_others_get_a_sentence(browser, folder):
    alice = ROOT / "Fixtures/alice"
    page = Page(browser)
    page.open([alice / "alice.car", *sorted((alice / "blobs").iterdir())])
    page.tab.wait_for_selector("main img", timeout=30_000)
    page.tab.wait_for_selector("[data-proof=mark]:has-text('signature not known')")
    assert page.tab.locator(".proof.good").count() == 0
    page.open([ROOT / "Fixtures/archives/one.car.zst", alice / "alice.car"])
    page.tab.wait_for_selector("select[aria-label=Account]")
    page.tab.select_option("select[aria-label=Account]", index=1)
    page.tab.wait_for_selector("text=Beans, mostly.")
    (folder / "letter.txt").write_text("Dear carpack")
    page.open(folder / "letter.txt")
    assert "There is no account in it" in page.tab.inner_text("[role=alert]")
    (folder / "a.car.zst.age").write_text("age-encryption.org/v1\n")
    page.open(folder / "a.car.zst.age")
    assert "encrypted with age" in page.tab.inner_text("[role=alert]")
    page.expect_quiet()
    page.close()


@test
def an_account_is_shown_as_its_owner_knows_it(browser, folder):
    did, post, other = "did:plc:ewvi7nxzyoun6zhxrhs64oiz", "app.bsky.feed.post", "did:plc:44ybard66vv44zksje25o7dz"
    keys = [f"3lkxag2qhdc2{c}" for c in "abcdefg"]
    uri = lambda key, collection=post: f"at://{did}/{collection}/{key}"
    made = lambda day: {"createdAt": f"2025-03-{day:02}T14:03:00Z"}
    reply = lambda key: {"reply": {"root": {"uri": uri(keys[0])}, "parent": {"uri": uri(key)}}}
    pictures = [png(i) for i in range(4)]
    images = lambda count: {"embed": {"$type": "app.bsky.embed.images", "images": [{"alt": f"a wombat, seen {i} times", "image": repositories.blob(pictures[i], "image/png")} for i in range(count)]}}
    records = {
        "app.bsky.actor.profile/self": {"$type": "app.bsky.actor.profile", "displayName": "Alice", "description": "See https://alice.example.com, @bob.example.com", "pinnedPost": {"uri": uri(keys[1]), "cid": "x"}},
        f"{post}/{keys[0]}": {"$type": post, "text": "it begins", **made(1)},
        f"{post}/{keys[1]}": {"$type": post, "text": "goes on", **reply(keys[0]), **made(2)},
        f"{post}/{keys[2]}": {"$type": post, "text": "a side remark", **reply(keys[0]), **made(3)},
        f"{post}/{keys[3]}": {"$type": post, "text": "and ends", **reply(keys[1]), **made(4)},
        f"{post}/{keys[5]}": {"$type": post, "text": "much later", "createdAt": "2025-06-01T12:00:00Z"},
        f"{post}/{keys[4]}": {"$type": post, "text": "with @carol.example.com", "facets": [{"index": {"byteStart": 5, "byteEnd": 23}, "features": [{"$type": "app.bsky.richtext.facet#mention", "did": other}]}], **made(5), **images(3)},
        f"app.bsky.feed.like/{keys[0]}": {"$type": "app.bsky.feed.like", "subject": {"uri": uri(keys[0]), "cid": "x"}, **made(6)},
        f"app.bsky.feed.like/{keys[1]}": {"$type": "app.bsky.feed.like", "subject": {"uri": f"at://{other}/{post}/{keys[0]}", "cid": "x"}, **made(6)},
        f"app.bsky.feed.repost/{keys[2][:-1]}y": {"$type": "app.bsky.feed.repost", "subject": {"uri": uri(keys[3]), "cid": "x"}, **made(7)},
        f"app.bsky.feed.repost/{keys[0][:-1]}2": {"$type": "app.bsky.feed.repost", "subject": {"uri": f"at://{other}/{post}/{keys[0]}", "cid": "x"}, **made(1)},
        f"app.bsky.graph.follow/{keys[0]}": {"$type": "app.bsky.graph.follow", "subject": other, **made(6)},
        f"app.bsky.graph.follow/{keys[1]}": {"$type": "app.bsky.graph.follow", "subject": "did:plc:z72i7hdynmk6r22z27h6tvur", **made(6)},
        f"app.bsky.graph.list/{keys[0]}": {"$type": "app.bsky.graph.list", "name": "Gardeners", "purpose": "app.bsky.graph.defs#curatelist", **made(6)},
        f"app.bsky.graph.listitem/{keys[0]}": {"$type": "app.bsky.graph.listitem", "list": uri(keys[0], "app.bsky.graph.list"), "subject": other, **made(6)},
        f"com.whtwnd.blog.entry/{keys[0]}": {"$type": "com.whtwnd.blog.entry", "title": "On beans", "content": "They grow.\n\nSlowly.", **made(6)},
        f"com.example.odd/{keys[0]}": {"$type": "com.example.odd", "favouriteThing": {"someColour": "green"}, **made(6)},
    }
    page = Page(browser).open(pack(folder, "known", records, pictures))
    home = page.show("")
    # Reposts stand among the posts, by their keys, with the post if the archive has it.
    cards = page.tab.evaluate("[...document.querySelectorAll('.list article')].map(e => [new DOMMatrix(getComputedStyle(e.closest('[role=listitem]')).transform).f, e.innerText]).sort((a, b) => a[0] - b[0]).map(([, text]) => text)")
    assert [("reposted" in one, next((words for words in ("and ends", "a post by @carol.example.com", "it begins", "with @carol") if words in one), None)) for one in cards] \
        == [(True, "and ends"), (False, None), (False, "with @carol"), (False, "it begins"), (True, "a post by @carol.example.com")], cards
    assert "Pinned" in home and "first post" in home and "Mar 1, 2025" in home and "a wombat, seen 2 times" in home, home
    assert page.tab.locator(".hero a[href='https://alice.example.com/']").count() == 1 and page.tab.locator(".hero a[href='https://bsky.app/profile/bob.example.com']").count() == 1
    # Three pictures leave no hole: the first is as high as the two others.
    heights = page.tab.evaluate("[...document.querySelectorAll('.pictures.n3 .picture')].map(e => e.getBoundingClientRect().height)")
    assert abs(heights[0] - heights[1] - heights[2]) < 10, heights
    thread = page.show(f"thread/{post}/{keys[1]}")
    assert thread.index("it begins") < thread.index("goes on") < thread.index("and ends"), thread
    thread = page.show(f"thread/{post}/{keys[0]}")
    assert thread.index("it begins") < thread.index("goes on") < thread.index("and ends") < thread.index("a side remark"), thread
    for view, words in {"browse/app.bsky.feed.like": ["it begins", "@carol.example.com", "March 2025"], "browse/app.bsky.graph.follow": ["@carol.example.com", "did:plc:z72i7…tvur"],
                        f"at/app.bsky.graph.list/{keys[0]}": ["Gardeners", "1 member", "@carol.example.com"], f"at/com.whtwnd.blog.entry/{keys[0]}": ["On beans", "They grow."],
                        f"at/com.example.odd/{keys[0]}": ["favourite thing", "some colour", "green"], "day/2025-03-05": ["1 post", "with @carol"], "search/slowly": ["They grow.", "On beans"], "search/wombat": ["found in the description of a picture"],
                        "search/to%3A%40carol.example.com": ["4 records"]}.items():
        page.show(view)
        for one in words:
            for _ in range(100):
                if one in page.tab.inner_text("main"):
                    break
                page.tab.wait_for_timeout(50)
            assert one in page.tab.inner_text("main"), (view, one, page.tab.inner_text("main"))
        if view.startswith("browse"):
            assert "at://" not in page.tab.inner_text("main"), page.tab.inner_text("main")
    page.show("statistics")
    assert page.tab.locator("a[href='#/day/2025-03-05']").count() == 1
    # Months without posts keep their place in the chart.
    left = page.tab.evaluate("['2025-03', '2025-06'].map(month => document.querySelector(`a[href='#/day/${month}'] .bar`)?.x.baseVal.value)")
    assert left[1] - left[0] == 3 * 40, left
    page.expect_quiet()
    page.close()


@test
def private_data_is_shown_as_what_it_is(browser, folder):
    cbor, cid = forgeries.cbor, forgeries.cid
    one = forgeries.Forger(COMMAND, folder, "private", posts=3)
    answers = {
        "app.bsky.bookmark.getBookmarks": {"bookmarks": [{"subject": {"uri": "at://did:plc:44ybard66vv44zksje25o7dz/app.bsky.feed.post/3lkxag2qhdc22", "cid": "x"}, "createdAt": "2025-05-05T05:05:05Z",
                                                          "item": {"author": {"did": "did:plc:44ybard66vv44zksje25o7dz", "handle": "carol.example.com"}, "record": {"text": "a bookmarked <b>text</b>"}}}]},
        "app.bsky.draft.getDrafts": {"drafts": [{"updatedAt": "2025-05-06T05:05:05Z", "draft": {"posts": [{"text": "not yet said"}]}}]},
        "app.bsky.actor.getPreferences": {"preferences": [{"$type": "app.bsky.actor.defs#adultContentPref", "enabled": False}]},
    }
    more, methods = [], []
    for endpoint, answer in answers.items():
        text = json.dumps(answer).encode()
        pieces = [cbor({"carpackPrivate": part}) for part in (text[:50], text[50:])]
        more += [(cid(piece), piece) for piece in pieces]
        methods.append({"endpoint": endpoint, "fetchedAt": "2025-06-01T00:00:00Z", "answers": [[cid(piece) for piece in pieces]], "bytes": len(text)})
    block = cbor({"did": one.account.did, "carpackPrivate": methods})
    archive = one.forge(more=[*more, (cid(block), block)], private=cid(block))
    carpack("verify", archive)
    page = Page(browser).open(archive)
    page.tab.click("nav >> text=Private")
    page.tab.wait_for_selector("text=not yet said")
    shown = page.tab.inner_text("main")
    for words in ("Bookmarks", "@carol.example.com", "a bookmarked <b>text</b>", "Drafts", "Preferences", "enabled"):
        assert words in shown, shown
    page.expect_quiet()
    page.close()


@test
def a_page_with_an_archive_in_it_shows_it_without_a_second_file(browser, folder):
    archive = (ROOT / "Fixtures/archives/one.car.zst").read_bytes()
    element = f'<script type="application/octet-stream;base64" id="archive" data-name="one.car.zst">{base64.b64encode(archive).decode()}</script>\n'
    (folder / "whole.html").write_text(PAGE.read_text().replace("</body>", element + "</body>"))
    page = Page(browser)
    page.tab.goto(f"file://{folder}/whole.html")
    page.tab.wait_for_selector("text=This picture is on no server any more.", timeout=30_000)
    page.tab.wait_for_selector("[data-proof=mark]:has-text('incomplete')")
    refused = page.tab.evaluate("fetch('http://127.0.0.1:9/').then(() => 'let through', () => 'refused')")
    assert refused == "refused"
    page.errors = [one for one in page.errors if "127.0.0.1:9" not in one]
    page.expect_quiet()
    page.close()


@test
def damaged_archives_give_a_message_or_what_is_left(browser, folder):
    good = (ROOT / "Fixtures/archives/one.car.zst").read_bytes()
    chance = random.Random(5)
    page = Page(browser)
    for number in range(40):
        bytes_ = bytearray(good if number % 4 else good[:chance.randrange(len(good))])
        for _ in range(chance.randrange(1, 40)):
            if bytes_:
                bytes_[chance.randrange(len(bytes_))] ^= 1 << chance.randrange(8)
        (folder / "damaged.car.zst").write_bytes(bytes_)
        page.open(folder / "damaged.car.zst")
        assert page.tab.inner_text("body").strip()
    page.expect_quiet()
    page.close()


@test
def real_accounts_are_shown_in_every_view(browser, folder):
    corpus = os.environ.get("CARPACK_CORPUS")
    if not corpus:
        print("CARPACK_CORPUS is not set: no real accounts were looked at")
        return
    shown, of_folders = 0, {}
    pages = [Page(browser, size) for size in ((1200, 900), (390, 844))]
    for car in sorted(pathlib.Path(corpus, "repos").rglob("*.car"), reverse=True):
        # A folder may have one large account many times, of which the newest is enough.
        of_folders[car.parent] = of_folders.get(car.parent, 0) + car.stat().st_size
        if of_folders[car.parent] > max(1 << 20, car.stat().st_size):
            continue
        archive = folder / f"{car.stem}.car.zst"
        archive.unlink(missing_ok=True)
        packed = subprocess.run([COMMAND, "pack", "-q", car, "-o", archive], capture_output=True)
        if packed.returncode not in (0, 10):
            continue
        page = pages[shown % 2].open(archive)
        if page.tab.locator("[role=alert]").count() == 0:
            for view in VIEWS:
                assert page.show(view).strip(), f"{car.name}: {view}"
            shown += 1
        page.expect_quiet()
    for page in pages:
        page.close()
    assert shown > 15, shown


@test
def fifty_forged_archives_never_hang_the_tab(browser, folder):
    if not shutil.which("node"):
        return
    forging = pathlib.Path(__file__).parent / "forging.js"
    subprocess.run(["node", forging, ROOT / "Fixtures/archives/several.car.zst", folder, "50"], check=True)
    page = Page(browser)
    for number in range(50):
        start = time.monotonic()
        page.open(folder / f"forged-{number}.car.zst")
        assert time.monotonic() - start < 10, number
    page.expect_quiet()
    page.close()


@test
def a_large_video_plays_from_the_archive_without_being_in_memory(browser, folder):
    page = Page(browser)
    page.tab.goto(f"file://{PAGE}")
    clip = videos.webm(videos.picture(page.tab), 30, 5 << 20)
    page.close()
    post, key = "app.bsky.feed.post", "3lkxag2qhdc22"
    records = {f"{post}/{key}": {"$type": post, "text": "a long clip", "createdAt": "2025-01-01T00:00:00Z", "embed": {
        "$type": "app.bsky.embed.video", "video": repositories.blob(clip, "video/webm"), "aspectRatio": {"width": 4, "height": 3}}}}
    archive = pack(folder, "clip", records, [clip])
    page = Page(browser).open(archive)
    page.tab.wait_for_selector("text=Show the video")
    before = memory_of_pages()
    page.tab.click("text=Show the video")
    page.tab.wait_for_selector("video", timeout=60_000)
    page.tab.evaluate("new Promise(done => { const one = document.querySelector('video'); if (one.readyState >= 2) done(); one.onloadeddata = done; })")
    for place in (25.5, 3.5):
        page.tab.evaluate("place => new Promise(done => { const one = document.querySelector('video'); one.onseeked = done; one.currentTime = place; })", place)
        assert page.tab.evaluate("document.querySelector('video').videoWidth") == 64
    grown = memory_of_pages() - before
    print(f"   a video of {len(clip) >> 20} MiB: {grown >> 20} MiB more memory")
    # The player's own memory is among it, and what the engine has not given back yet.
    assert grown < 96 << 20, grown
    page.expect_quiet()
    page.close()
    # From a web server no more is fetched than fits into memory; and what is damaged is not played.
    shutil.copy(PAGE, folder / "viewer.html")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = Page(browser)
    origin = f"http://127.0.0.1:{server.server_port}"
    page.tab.goto(f"{origin}/viewer.html#url={origin}/clip.car.zst")
    page.tab.click("text=Show the video")
    page.tab.wait_for_selector("text=this page plays up to 64 MB from a web server", timeout=60_000)
    page.close()
    server.shutdown()
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    page = Page(browser).open(archive)
    page.tab.click("text=Show the video")
    page.tab.wait_for_selector("text=or it is damaged", timeout=60_000)
    assert page.tab.locator("video").count() == 0
    page.close()
    archive.unlink()


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, also parts of them."""
    asked = []

    def do_GET(self):
        path = pathlib.Path(self.translate_path(self.path.split("?")[0]))
        if path.is_dir():
            return super().do_GET()
        if not path.is_file():
            return self.send_error(404)
        content = path.read_bytes()
        part = None if "whole" in self.path else re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(part[1]), min(int(part[2]), len(content) - 1)) if part else (0, len(content) - 1)
        tag = f'"{path.stat().st_mtime_ns}-{len(content)}"'
        if self.headers.get("If-Match", tag) != tag:
            return self.send_error(412)
        self.send_response(206 if part else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Type", "text/html" if path.suffix == ".html" else "application/octet-stream")
        if part:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
            Ranges.asked.append(last + 1 - first)
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        self.wfile.write(content[first:last + 1])

    def log_message(self, *_):
        pass


@test
def from_a_web_server_only_what_is_looked_at_is_fetched(browser, folder):
    records, blobs = {}, []
    for i in range(60):
        content = png(i) + os.urandom(300_000)
        blobs.append(content)
        records[f"app.bsky.feed.post/3lkxag2qhdc{'234567abcdefghijklmnopqrstuvwxyz'[i // 10]}{'234567abcd'[i % 10]}"] = {
            "$type": "app.bsky.feed.post", "text": f"picture {i}", "createdAt": "2025-01-01T00:00:00Z",
            "embed": {"$type": "app.bsky.embed.images", "images": [{"alt": f"the picture {i}", "image": repositories.blob(content, "image/png")}]}}
    archive = pack(folder, "web", records, blobs)
    shutil.copy(PAGE, folder / "viewer.html")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Ranges.asked.clear()
    page = Page(browser)
    origin = f"http://127.0.0.1:{server.server_port}"
    page.tab.goto(f"{origin}/viewer.html#url={origin}/web.car.zst")
    page.tab.wait_for_selector("main img", timeout=60_000)
    page.tab.wait_for_timeout(500)
    shown = page.tab.locator("main img").count()
    assert 0 < shown < 15, shown
    assert sum(Ranges.asked) < (shown + 2) * 300_400 + 200_000 < archive.stat().st_size, (sum(Ranges.asked), shown)
    assert len(Ranges.asked) <= 40, len(Ranges.asked)
    assert all(url.startswith(origin) for url in page.requests)
    # A reload comes back to the same place.
    page.show("at/app.bsky.feed.post/3lkxag2qhdc22")
    page.tab.reload()
    page.tab.wait_for_selector(".facts", timeout=60_000)
    assert "picture 0" in page.tab.inner_text("main")
    # Nothing else is let through, whoever asks.
    refused = page.tab.evaluate("fetch('http://127.0.0.1:9/').then(() => 'let through', () => 'refused')")
    assert refused == "refused"
    page.errors = [one for one in page.errors if "127.0.0.1:9" not in one]
    assert not page.errors, page.errors
    page.close()
    server.shutdown()


@test
def cars_several_archives_and_folders_open_from_a_web_server(browser, folder):
    served = folder / "served"
    (served / "shelf").mkdir(parents=True)
    alice, one = ROOT / "Fixtures/alice/alice.car", ROOT / "Fixtures/archives/one.car.zst"
    for path, to in ((PAGE, "viewer.html"), (alice, "alice.car"), (alice, "whole.car"), (one, "shelf/one & only.car.zst"), (alice, "shelf/alice.car"), (one, "letter.txt")):
        shutil.copy(path, served / to)
    (served / "letter.txt").write_text("Dear carpack")
    (served / "none").mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=str(served)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"

    def opened(*names):
        page = Page(browser)
        page.tab.goto(f"{origin}/viewer.html#" + "&".join(f"url={name}" for name in names))
        page.tab.wait_for_selector("aside nav a, [role=alert], .shelf", timeout=30_000)
        return page
    # With ranges and without; two at once; and what is none gets its sentence.
    for names, words in ((["alice.car"], "Beans, mostly."), (["whole.car"], "Beans, mostly."), (["shelf/one%20%26%20only.car.zst"], "This picture is on no server any more.")):
        page = opened(*names)
        page.tab.wait_for_selector(f"text={words}")
        page.expect_quiet(requests=50)
        page.close()
    page = opened("alice.car", "shelf/one%20%26%20only.car.zst")
    page.tab.wait_for_selector("select[aria-label=Account]")
    page.close()
    for name, words in (("letter.txt", "There is no account in it"), ("none/", "There are no archives in this folder"), ("absent.car", "the server answered 404")):
        page = opened(name)
        assert words in page.tab.inner_text("[role=alert]"), page.tab.inner_text("body")
        page.close()
    page = opened("shelf/")
    page.tab.click("text=one & only.car.zst")
    page.tab.wait_for_selector("text=This picture is on no server any more.")
    refused = page.tab.evaluate(f"fetch('{origin}/alice.car').then(() => 'let through', () => 'refused')")
    assert refused == "refused"
    page.close()
    page = opened("shelf/")
    page.tab.click("text=Open all of them")
    page.tab.wait_for_selector("select[aria-label=Account]")
    page.close()
    server.shutdown()


@test
def an_archive_that_is_replaced_or_grows_is_opened_anew(browser, folder):
    post, blobs = "app.bsky.feed.post", [png(i) + os.urandom(200_000) for i in range(30)]
    def records(text):
        return {f"{post}/3lkxag2qhdc{'234'[i // 10]}{'234567abcd'[i % 10]}": {"$type": post, "text": text, "createdAt": "2025-01-01T00:00:00Z", "embed": {
            "$type": "app.bsky.embed.images", "images": [{"alt": "", "image": repositories.blob(content, "image/png")}]}} for i, content in enumerate(blobs)}
    archive = pack(folder, "replaced", records("the first"), blobs)
    shutil.copy(PAGE, folder / "viewer.html")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = Page(browser)
    origin = f"http://127.0.0.1:{server.server_port}"
    page.tab.goto(f"{origin}/viewer.html#url={origin}/replaced.car.zst")
    page.tab.wait_for_selector("main img", timeout=60_000)
    assert "the first" in page.tab.inner_text("main")
    archive.unlink()
    pack(folder, "replaced", records("the second"), blobs, rev="3lscuqc52or3x")
    # Whatever is read next notices it: here a picture.
    page.tab.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.tab.wait_for_selector("text=the second", timeout=60_000)
    assert "the first" not in page.tab.inner_text("main")
    assert "has changed" in page.tab.inner_text("aside")
    page.close()
    server.shutdown()


def main():
    global COMMAND, PAGE, PICTURES, KEEPS
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("the page was not tried in a browser: playwright is not there")
        return
    if not CHROMIUM:
        print("the page was not tried in a browser: Chromium is not there")
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("command", type=os.path.abspath)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--pictures")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    COMMAND, PICTURES, KEEPS = options.command, options.pictures, options.keep
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folder = pathlib.Path(folder)
        PAGE = folder / "page.html"
        if options.page:
            shutil.copy(options.page, PAGE)
        else:
            carpack("view", "--page", PAGE, "-q")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        failed = 0
        tests = [(name, one) for name, one in globals().items() if getattr(one, "is_test", False)]
        for name, function in tests[part - 1::parts]:
            if options.only.replace(" ", "_") not in name:
                continue
            start = time.monotonic()
            try:
                function(browser, folder)
                print(f"ok {name.replace('_', ' ')} ({time.monotonic() - start:.1f} s)")
            except Exception as error:
                failed += 1
                print("FAILED", name.replace("_", " "), "\n  ", error)
        browser.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
