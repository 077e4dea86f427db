#!/usr/bin/env python3
"""Puts the page together: one HTML file with everything in it. Usage: build.py OUT.html [OUT.swift], the second for the command.

Each module becomes a function that returns what it exports, without its comments; the modules it imports come before it.
"""
import base64, hashlib, pathlib, re, subprocess, sys

HERE = pathlib.Path(__file__).parent
IMPORT = re.compile(r'^import (\* as \w+|\{[^}]*\}) from "([^"]+)";\n', re.M)
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|class|const|let) (\w+)", re.M)
COMMENT = re.compile(r"^ *(//[^\n]*|/\*\*?(?:(?!\*/).)*\*/)\n", re.M | re.S)
LIMIT = 300_000


def bundle(path, done, name=lambda path: "m_" + re.sub(r"\W", "_", str(path.relative_to(HERE.resolve())).removesuffix(".js"))):
    """The source of a module and of all that it imports, each once, in their order."""
    path = path.resolve()
    if path in done:
        return "" if done[path] else sys.exit(f"{path} imports itself")
    done[path] = False
    source, before, head = COMMENT.sub("", path.read_text()), "", ""
    for names, target in IMPORT.findall(source):
        other = (path.parent / target).resolve()
        before += bundle(other, done)
        head += f"const {names.removeprefix('* as ').replace(' as ', ': ')} = {name(other)};\n"
    body = re.sub(r"^export ", "", IMPORT.sub("", source), flags=re.M)
    if len(EXPORT.findall(source)) != len(re.findall(r"^export\b", source, re.M)) or re.search(r"^import\b|</script", body, re.M | re.I):
        sys.exit(f"{path}: an import or export of an unknown form, or the end of the element that it stands in")
    done[path] = True
    return f"{before}const {name(path)} = (() => {{\n{head}{body}return {{ {', '.join(EXPORT.findall(source))} }};\n}})();\n"


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


style, worker, page = (HERE / "style.css").read_text(), bundle(HERE / "worker.js", {}), bundle(HERE / "page/app.js", {})
# Where requests go is narrowed by the page itself, once it knows the archive's address.
policy = f"default-src 'none'; script-src {digest(page)}; style-src {digest(style)}; img-src blob:; media-src blob:; worker-src blob:; " \
    "connect-src http: https:; base-uri 'none'; form-action 'none'"
html = (HERE / "index.html").read_text()
for mark, text in (("@POLICY@", policy), ("@STYLE@", style), ("@WORKER@", worker), ("@PAGE@", page)):
    html = html.replace(mark, text)
if len(html.encode()) > LIMIT:
    sys.exit(f"the page has {len(html.encode())} bytes, more than {LIMIT}")
pathlib.Path(sys.argv[1]).write_text(html)
print(f"{sys.argv[1]}: {len(html.encode())} bytes")
if len(sys.argv) > 2:
    stored = subprocess.run(["zstd", "-q", "-19", "-c"], input=html.encode(), stdout=subprocess.PIPE, check=True).stdout
    swift = (HERE / "page.swift").read_text().replace("@PAGE@", base64.b64encode(stored).decode())
    # A source that has not changed keeps its time, so that nothing is built again.
    if not pathlib.Path(sys.argv[2]).exists() or pathlib.Path(sys.argv[2]).read_text() != swift:
        pathlib.Path(sys.argv[2]).write_text(swift)
