#!/usr/bin/env python3
"""Tests of the page in Firefox, driven by its own protocol, Marionette: https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html

Usage: firefox.py CARPACK [--page PAGE] [--pictures FOLDER]. Without Firefox it says so, and ends with 0.
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser as chromium

ROOT = pathlib.Path(__file__).resolve().parents[3]
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
VIEWS = ["", "replies", "media", "search/the", "everything", "statistics", "time", "deleted", "proof", "browse/app.bsky.feed.like"]


class Firefox:
    """A Firefox without a window, with one tab."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "user.js").write_text(f'user_pref("marionette.port", {port});\nuser_pref("intl.locale.requested", "en-US");\n')
        self.process = subprocess.Popen([FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", folder, "--width", "1200", "--height", "900"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "TZ": "UTC", "HOME": str(folder)})
        self.number = 0
        for _ in range(300):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
                break
            except OSError:
                time.sleep(0.1)
        self.receive()
        self.call("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {"acceptInsecureCerts": False}}})

    def receive(self):
        length = b""
        while not length.endswith(b":"):
            length += self.socket.recv(1) or sys.exit("Firefox has gone")
        text = b""
        while len(text) < int(length[:-1]):
            text += self.socket.recv(int(length[:-1]) - len(text))
        return json.loads(text)

    def call(self, name, arguments={}):
        self.number += 1
        message = json.dumps([0, self.number, name, arguments]).encode()
        self.socket.sendall(str(len(message)).encode() + b":" + message)
        _, number, error, result = self.receive()
        assert number == self.number and error is None, error
        return result

    def run(self, script, *arguments):
        return self.call("WebDriver:ExecuteScript", {"script": script, "args": list(arguments), "sandbox": "default", "newSandbox": False})["value"]

    def wait(self, script, *arguments, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.run(script, *arguments)
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {script}\n{self.run('return document.body.innerText')[:500]}")

    def open(self, page, archive):
        self.call("WebDriver:Navigate", {"url": f"file://{page}"})
        element = self.call("WebDriver:FindElement", {"using": "css selector", "value": "input[type=file]"})["value"]
        self.call("WebDriver:ElementSendKeys", {"id": next(iter(element.values())), "text": str(archive)})
        self.wait("return Boolean(document.querySelector('aside nav a, [role=alert]'))")

    def show(self, view):
        self.run("document.getElementById('main').dataset.at = '?'; location.hash = ''; location.hash = '#/' + arguments[0]", view)
        self.wait("return document.getElementById('main').dataset.at === arguments[0].split('?')[0] && !document.querySelector('main [aria-busy=true]')", view)
        return self.run("return document.getElementById('main').innerText")

    def end(self):
        self.process.terminate()
        self.process.wait()


def main():
    if not FIREFOX:
        print("the page was not tried in Firefox: it is not there")
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("command", type=os.path.abspath)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--pictures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        page = folder / "page.html"
        if options.page:
            shutil.copy(options.page, page)
        else:
            subprocess.run([options.command, "view", "--page", page, "-q"], check=True)
        archive = folder / "alice.car.zst"
        alice = ROOT / "Fixtures/alice"
        for car in ("alice.car", "alice-later.car"):
            subprocess.run([options.command, "pack", "-q", alice / car, "--blobs", alice / "blobs", "--plc-log", alice / "plc-audit-log.json", "-o", archive], check=True)
        (folder / "profile").mkdir()
        browser = Firefox(folder / "profile")
        try:
            browser.open(page, archive)
            # The signature, secp256k1 or P-256, is checked here, too.
            browser.wait("return [...document.querySelectorAll('[data-proof=mark]')].some(e => /intact$/.test(e.innerText.trim()))")
            for view in VIEWS:
                assert browser.show(view).strip(), view
                assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), f"{view} is too wide"
                if options.pictures:
                    pathlib.Path(options.pictures, f"firefox-{view.replace('/', '-') or 'posts'}.png").write_bytes(base64.b64decode(browser.call("WebDriver:TakeScreenshot", {"full": False})["value"]))
            browser.show("")
            browser.wait("return [...document.images].some(one => one.complete && one.naturalWidth > 0)")
            print("ok every view of an account is shown in Firefox, which checks it")
            refused = browser.call("WebDriver:ExecuteAsyncScript", {"script": "fetch('http://127.0.0.1:9/').then(() => arguments[0]('let through'), error => arguments[0](String(error)))", "args": []})["value"]
            assert refused != "let through", refused
            content = bytearray(archive.read_bytes())
            content[2000] ^= 255
            (folder / "hurt.car.zst").write_bytes(content)
            browser.open(page, folder / "hurt.car.zst")
            browser.wait("return document.body.innerText.includes('This archive is damaged')")
            browser.open(page, alice / "alice.car")
            browser.wait("return document.body.innerText.includes('Beans, mostly.')")
            browser.open(page, ROOT / "README.md")
            assert "There is no account in it" in browser.run("return document.body.innerText")
            print("ok damaged archives, CARs and other files are told apart in Firefox")
            chromium.COMMAND = options.command
            records, blobs = chromium.hostile_records()
            browser.open(page, chromium.pack(folder, "hostile", records, blobs))
            for view in [*VIEWS[:8], *(f"at/{path}" for path in records)]:
                browser.show(view)
                assert browser.run("return window.wrappedJSObject ? window.wrappedJSObject.hacked === undefined : window.hacked === undefined"), view
                assert browser.run("return document.scripts.length === 2 && !document.querySelector('iframe, object, embed')"), view
            print("ok what strangers wrote is only ever text in Firefox")
        finally:
            browser.end()


if __name__ == "__main__":
    main()
