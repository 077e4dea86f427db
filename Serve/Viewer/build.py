#!/usr/bin/env python3
"""Puts the page together: one HTML file with everything in it, that needs no network.

Usage: build.py OUT.html [OUT.swift]. The second has the page for the command, compressed. Each module becomes a function that gives what it exports; what one imports has to come before it.
"""
import base64
import hashlib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
IMPORT = re.compile(r'^import (\* as \w+|\{[^}]*\}) from "([^"]+)";\n', re.M)
EXPORT = re.compile(r"^export (?=(?:async )?function\*? (\w+)|class (\w+)|const (\w+)|let (\w+))", re.M)
LIMIT = 400_000


def name(path):
    return "m_" + re.sub(r"\W", "_", str(path.relative_to(HERE)).removesuffix(".js"))


def bundle(path, known, doing=()):
    """The source of a module and of all that it imports, each once, in their order."""
    path = path.resolve()
    if path in doing:
        sys.exit(f"{path} imports itself")
    if path in known:
        return ""
    source, before, heads = path.read_text(), "", ""
    for names, target in IMPORT.findall(source):
        other = (path.parent / target).resolve()
        before += bundle(other, known, (*doing, path))
        heads += f"const {names.removeprefix('* as ')} = {name(other)};\n" if names.startswith("*") else \
            f"const {names.replace(' as ', ': ')} = {name(other)};\n"
    exported = [one for groups in EXPORT.findall(source) for one in groups if one]
    body = EXPORT.sub("", IMPORT.sub("", source))
    if re.search(r"^(export|import)\b", body, re.M):
        sys.exit(f"{path}: an import or export of a form that is not known")
    known.add(path)
    return f"{before}const {name(path)} = (() => {{\n{heads}{body}return {{ {', '.join(exported)} }};\n}})();\n"


def policy(script, style):
    def digest(text):
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
    # Where requests go is narrowed by the page itself, once it knows the archive's address.
    return "; ".join([
        "default-src 'none'", f"script-src {digest(script)}", f"style-src {digest(style)}", "img-src blob:", "media-src blob:",
        "worker-src blob:", "connect-src http: https:", "base-uri 'none'", "form-action 'none'"])


def main():
    style = (HERE / "style.css").read_text()
    worker = bundle(HERE / "worker.js", set())
    page = bundle(HERE / "page/app.js", set())
    for code in (worker, page, style):
        if "</" in re.sub(r"</(?=\W)", "", code) and re.search(r"</(script|style)", code, re.I):
            sys.exit("a module would end the element that it stands in")
    html = (HERE / "index.html").read_text()
    for mark, text in (("@POLICY@", policy(page, style)), ("@STYLE@", style), ("@WORKER@", worker), ("@PAGE@", page)):
        html = html.replace(mark, text)
    if len(html.encode()) > LIMIT:
        sys.exit(f"the page has {len(html.encode())} bytes, more than {LIMIT}")
    pathlib.Path(sys.argv[1]).write_text(html)
    print(f"{sys.argv[1]}: {len(html.encode())} bytes")
    if len(sys.argv) > 2:
        source, text = pathlib.Path(sys.argv[2]), swift(html.encode())
        # What has not changed keeps its time, so that nothing is built again.
        if not source.exists() or source.read_text() != text:
            source.write_text(text)


def swift(page):
    """The page as a source file."""
    stored = subprocess.run(["zstd", "-q", "-19", "-c"], input=page, stdout=subprocess.PIPE, check=True).stdout
    return f"""// swift-format-ignore-file
// Written by `make viewer` from Serve/Viewer.

/// The page that shows archives.
package enum ViewerPage {{
  /// The page, compressed by zstd, in base64.
  static let compressed = "{base64.b64encode(stored).decode()}"
}}
"""


if __name__ == "__main__":
    main()
