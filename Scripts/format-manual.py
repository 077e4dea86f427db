#!/usr/bin/env python3
"""Writes carpack-archive(5) from Docs/FORMAT.md: format-manual.py VERSION < Docs/FORMAT.md > carpack-archive.5

It knows the Markdown that the document has: headings, paragraphs, lists, tables, blocks of code, and code, emphasis and links
in lines. Anything else fails. SOURCE_DATE_EPOCH dates the page.
"""

import datetime
import os
import re
import sys

INLINE = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\*([^*\s](?:[^*]*[^*\s])?)\*|\[([^]]+)\]\(([^)]+)\)")
ITEM = re.compile(r"( *)(-|\d+\.) +(.*)")


def escaped(text):
    """Text for roff: no character in it is a request or an escape, and a minus is a minus."""
    for character, name in [("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti")]:
        text = text.replace(character, name)
    return "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)


def prose(text):
    """A line or a paragraph, with code and strong words in bold, and emphasis in italics."""
    out, place = "", 0
    for match in INLINE.finditer(text):
        out += re.sub(r"(?<=[a-z])\\-(?=[a-z])", "-", escaped(text[place:match.start()]))
        code_text, strong, emphasis, name, address = match.groups()
        if name:
            # Files of the documentation have no address of their own.
            out += escaped(name) + (f" <{escaped(address)}>" if address.startswith("http") else "")
        else:
            out += ("\\fI" if emphasis else "\\fB") + escaped(code_text or strong or emphasis) + "\\fR"
        place = match.end()
    out += re.sub(r"(?<=[a-z])\\-(?=[a-z])", "-", escaped(text[place:]))
    return "\\&" + out if out.startswith((".", "'")) else out


def code(lines):
    """Lines that keep their form."""
    return [".PP", ".in +4n", ".EX", *("\\&" + escaped(line) if line.startswith(".") else escaped(line) for line in lines), ".EE", ".in"]


def table(lines):
    """A table for tbl, whose last column takes the room that is left."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    assert set("".join(rows[1])) <= set("-: "), "a table has a line below its heading"
    columns = len(rows[0])
    out = [".TS", " ".join(["lB"] * columns) + "x", " ".join(["l"] * columns) + "x."]
    for row in [rows[0], *rows[2:]]:
        assert len(row) == columns, row
        # A cell in the form of a paragraph is filled.
        cells = [prose(cell) for cell in row[:-1]] + [f"T{{\n{prose(row[-1])}\nT}}"]
        out.append("\t".join(cells))
    return [".PP", *out, ".TE"]


def listed(lines):
    """A list, each of whose items may have lists below it."""
    out, depth, items = [], [], []
    for line in lines:
        match = ITEM.fullmatch(line)
        if match:
            items.append([len(match[1]), match[2], match[3]])
        else:
            items[-1][2] += " " + line.strip()
    for indent, sign, text in items:
        while depth and indent < depth[-1]:
            depth.pop()
            out.append(".RE")
        if depth and indent > depth[-1]:
            out.append(".RS 4")
            depth.append(indent)
        depth = depth or [indent]
        out += [".IP \\(bu 2" if sign == "-" else f".IP {sign} 4", prose(text)]
    return out + [".RE"] * (len(depth) - 1)


def blocks(text):
    """(kind, lines) of each block."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        start, line = number, lines[number]
        number += 1
        if not line.strip():
            continue
        if line.startswith("#"):
            yield "heading", [line]
        elif line.startswith("```"):
            while not lines[number].startswith("```"):
                number += 1
            yield "code", lines[start + 1:number]
            number += 1
        elif line.startswith("    "):
            while number < len(lines) and lines[number].startswith("    "):
                number += 1
            yield "code", [line[4:] for line in lines[start:number]]
        else:
            kind = "table" if line.startswith("|") else "list" if ITEM.fullmatch(line) else "paragraph"
            while number < len(lines) and lines[number].strip() and not lines[number].startswith(("#", "```")):
                if kind == "paragraph" and ITEM.fullmatch(lines[number]):
                    break
                number += 1
            yield kind, lines[start:number]


def page(text, version, date):
    out = ["'\\\" t", '.\\" Written by Scripts/format-manual.py from Docs/FORMAT.md.',
           f'.TH CARPACK\\-ARCHIVE 5 "{date}" "carpack {version}" "carpack manual"', ".ad l",
           # A terminal has no pages at whose ends tables are broken.
           ".if n .pl 10000v",
           ".SH NAME", "carpack\\-archive \\- the format of a carpack archive, NAME.car.zst", ".SH DESCRIPTION"]
    begun = False
    for kind, lines in blocks(text):
        if kind == "heading":
            level, title = re.fullmatch(r"(#+) (.*)", lines[0]).groups()
            if level == "#":
                assert not begun, "a document has one title"
            else:
                out.append((".SH " if level == "##" else ".SS ") + prose(title.replace("`", "")))
            begun = True
        elif kind == "paragraph":
            if not out[-1].startswith((".SH", ".SS")):
                out.append(".PP")
            out.append(prose(" ".join(line.strip() for line in lines)))
        else:
            block = {"code": code, "table": table, "list": listed}[kind](lines)
            # A heading begins a paragraph by itself.
            out += block[1:] if block[0] == ".PP" and out[-1].startswith((".SH", ".SS")) else block
    return out + [".SH SEE ALSO", ".BR carpack (1),", ".BR carpack\\-verify (1),", ".BR carpack\\-repair (1),", ".BR zstd (1)"]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: format-manual.py VERSION < Docs/FORMAT.md")
    moment = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(moment), datetime.timezone.utc) if moment else datetime.date.today()
    sys.stdin.reconfigure(encoding="utf-8")
    print("\n".join(page(sys.stdin.read(), sys.argv[1], f"{when:%Y-%m-%d}")))


if __name__ == "__main__":
    main()
