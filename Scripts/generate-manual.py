#!/usr/bin/env python3
"""Writes the manual pages of a built carpack into a folder: generate-manual.py COMMAND FOLDER

One page for the command and one for each verb, from what the command says about itself
(--experimental-dump-help). In the discussion of a verb, an upper-case line is the heading of a
section, and lines that begin with two spaces keep their form. With SOURCE_DATE_EPOCH set, the pages
bear that date.
"""

import datetime
import json
import os
import re
import subprocess
import sys

HEADING = re.compile(r"[A-Z][A-Z ]+[A-Z]")
# "  NAME  what it is": a list of terms, as exit statuses and variables are written.
TERM = re.compile(r"  (\S.*?)(?: {2,}(\S.*))?")
STATUS = re.compile(r"Exit status: ")

# What every verb shares. A section of the same name in a verb's own discussion comes before it.
FILES = {
    "archive": ("NAME.car.zst", "An archive: a zstd file whose content is a CAR."),
    "partial": (
        ".NAME.car.zst.partial",
        "What the first backup of an account has fetched so far. The next run resumes it.",
    ),
    "config": (
        "~/.config/carpack/config.toml",
        "Defaults of options, accounts and what follows a backup; below $XDG_CONFIG_HOME if that is set. See carpack-config(1).",
    ),
    "system": ("/etc/ssl/certs", "The certificates that servers are checked with, on most systems."),
}
ENVIRONMENT = {
    "NO_COLOR": "If it is set, nothing is coloured.",
    "COLUMNS": "How many columns help has, if standard output is no terminal.",
    "TMPDIR": "Where temporary files are written (default: /tmp).",
    "SOURCE_DATE_EPOCH": "Seconds since 1970: takes the place of the clock, so that the same input"
    " gives the same archive.",
}
NETWORK = {
    "https_proxy": "The proxy that is used. all_proxy and no_proxy count too.",
}
# The secrets that are read from a variable, by the option that needs them.
SECRETS = {
    "login": {"CARPACK_APP_PASSWORD": "The app password for --login."},
    "sign-head": {"CARPACK_KEY_PASSPHRASE": "The passphrase of the key for --sign-head."},
}
# An option's help ends in "(NAME, NAME)" if variables give its value where it is not given.
VARIABLES = re.compile(r"\(([A-Z][A-Z0-9]*_[A-Z0-9_]*(?:, [A-Z][A-Z0-9]*_[A-Z0-9_]*)*)\b")


def escaped(text):
    """Text for roff: no character in it is a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    # A real hyphen between letters may be broken at; a minus is for what is typed.
    text = re.sub(r"(?<=[a-z])\\-(?=[a-z])", "-", text)
    text = "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)
    return re.sub(r"^\.", r"\\&.", text)


def literal(text):
    """The same for what is typed: each "-" is a minus."""
    return re.sub(r"(?<!\\)-", r"\\-", escaped(text))


def prose(text):
    """A paragraph, with options and other verbs in bold."""
    pieces = re.split(r"((?<![\w-])--?[a-z][a-z0-9-]*|\"carpack(?: [a-z][a-z-]*)*\")", text)
    out = []
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            out.append(escaped(piece))
        else:
            out.append(f"\\fB{literal(piece.strip(chr(34)))}\\fR")
    line = "".join(out)
    return "\\&" + line if line[:1] in (".", "'") else line


def sections(discussion):
    """The discussion, cut at its headings: (heading, lines), the first without a heading."""
    parts = [(None, [])]
    for line in (discussion or "").splitlines():
        if HEADING.fullmatch(line.strip()) and line == line.lstrip():
            parts.append((line.strip(), []))
        else:
            parts[-1][1].append(line.rstrip())
    return parts


def paragraphs(lines, is_list):
    """roff for paragraphs, and for blocks of indented lines: a list, or lines that keep their form."""
    out, block = [], []

    def close():
        while block and not block[-1]:
            block.pop()
        if not block:
            return
        out.extend(terms(block) if is_list else shown(block))
        block.clear()

    separated = True
    for line in lines:
        if line.startswith("  ") or (not line and block):
            block.append(line)
            continue
        close()
        if not line:
            separated = True
        else:
            if separated or (out and out[-1] in (".EE", ".RE")) or is_list:
                out.append(".PP")
            out.append(prose(line))
            separated = False
    close()
    return out


def shown(block):
    return [".PP", ".in +4n", ".EX"] + [literal(line[2:]) if line else "" for line in block] + [".EE", ".in"]


def terms(block):
    """A list of terms; deeper lines go on with the one before."""
    out = []
    for line in filter(None, block):
        match = TERM.fullmatch(line)
        if match and not line.startswith("   "):
            out += [".TP", f"\\fB{literal(match[1])}\\fR"]
            if match[2]:
                out.append(prose(match[2]))
        else:
            out.append(prose(line.strip()))
    return out


def term(name, text):
    return [".TP", f"\\fB{literal(name)}\\fR", prose(text)]


def described(argument):
    """What an argument is for, the values that it takes, and what holds without it."""
    texts = [argument.get("abstract"), argument.get("discussion")]
    values = argument.get("allValues") or argument.get("allValueStrings")
    explained = argument.get("allValueDescriptions") or {}
    if values and not explained and not any("values:" in (text or "") for text in texts):
        texts.append("Values: " + ", ".join(values) + ".")
    if argument.get("defaultValue") and argument["kind"] != "flag":
        texts.append(f"Default: {argument['defaultValue']}.")
    out = []
    for text in filter(None, texts):
        out += ([".IP"] if out else []) + [prose(" ".join(text.split()))]
    for value in values or [] if explained else []:
        out += [".RS", *term(value, explained.get(value, "")), ".RE"]
    return out


def dashed(name):
    return ("--" if name["kind"] == "long" else "-") + name["name"]


def option(argument):
    """One option: its names, short ones first, its value, what it does."""
    names = sorted((dashed(name) for name in argument.get("names") or []), key=lambda n: n.startswith("--"))
    line = ", ".join(f"\\fB{literal(name)}\\fR" for name in names)
    if argument["kind"] == "option":
        line += f" \\fI{literal(argument.get('valueName') or 'value')}\\fR"
    return [".TP", line, *described(argument)]


def positional(argument):
    name = f"\\fI{literal(argument.get('valueName') or 'argument')}\\fR"
    return name + (" ..." if argument.get("isRepeating") else "")


def shown_arguments(command, kinds):
    """The arguments of these kinds."""
    return [a for a in command.get("arguments") or [] if a["kind"] in kinds and a.get("shouldDisplay", True)]


def synopsis(words, command):
    if shown_subcommands(command):
        return [f"\\fB{literal(' '.join(words))}\\fR \\fIverb\\fR [\\fIoption\\fR ...] [\\fIargument\\fR ...]",
                ".br", f"\\fB{literal(' '.join(words))} help\\fR [\\fIverb\\fR]" if len(words) == 1 else
                f"\\fBcarpack help {literal(' '.join(words[1:]))}\\fR [\\fIverb\\fR]"]
    line = f"\\fB{literal(' '.join(words))}\\fR [\\fIoption\\fR ...]"
    for argument in shown_arguments(command, ("option", "flag")):
        if not argument.get("isOptional", True):
            value = f" \\fI{literal(argument.get('valueName') or 'value')}\\fR" if argument["kind"] == "option" else ""
            line += f" \\fB{literal(dashed(argument['preferredName']))}\\fR{value}"
    for argument in shown_arguments(command, ("positional",)):
        line += f" [{positional(argument)}]" if argument.get("isOptional") else f" {positional(argument)}"
    return [line]


def shown_subcommands(command):
    return [
        c for c in command.get("subcommands") or []
        if c.get("shouldDisplay", True) and c["commandName"] != "help"
    ]


def takes(command, *names):
    return any(
        name["name"] in names
        for argument in command.get("arguments") or [] for name in argument.get("names") or []
    )


def reads_archive(command):
    return any(
        "zst" in (((argument.get("completionKind") or {}).get("file") or {}).get("extensions") or [])
        for argument in command.get("arguments") or []
    )


def uses_network(command):
    return takes(command, "pds", "plc-url", "login", "rate", "connections") or any(
        map(uses_network, shown_subcommands(command)))


class Manual:
    def __init__(self, root, version, date):
        self.root, self.version, self.date = root, version, date
        self.pages = {}
        self.without_examples = []

    def write_all(self):
        self.add([], self.root)
        return self.pages

    def add(self, above, command):
        words = above + [command["commandName"]]
        self.pages["-".join(words) + ".1"] = "\n".join(self.page(words, command)) + "\n"
        for below in shown_subcommands(command):
            self.add(words, below)

    def page(self, words, command):
        parts = [(h, l) for h, l in sections(command.get("discussion")) if h or any(l)]
        # The paragraph on the exit status has a section to go to, wherever it stands.
        statuses = [line for _, lines in parts for line in lines if STATUS.match(line)]
        parts = [(h, [line for line in lines if not STATUS.match(line)]) for h, lines in parts]
        own = {heading: lines for heading, lines in parts if heading}
        general = next((lines for heading, lines in parts if heading is None), [])
        name = "-".join(words)
        abstract = (command.get("abstract") or "").rstrip(".")
        if not re.match(r"[A-Z]{2}", abstract):
            abstract = abstract[:1].lower() + abstract[1:]

        out = ['.\\" Written by Scripts/generate-manual.py from the help of the command.']
        out.append(f'.TH {literal(name).upper()} 1 "{self.date}" "carpack {self.version}" "carpack manual"')
        out.append(".ad l")
        out += [".SH NAME", f"{literal(name)} \\- {escaped(abstract)}"]
        out += [".SH SYNOPSIS", *synopsis(words, command)]
        out += [".SH DESCRIPTION", prose(command.get("abstract") or "")]
        out += paragraphs([""] + general, is_list=False)
        out += self.verbs(words, command)
        out += self.arguments(command)
        known = {"EXAMPLES", "EXIT STATUS", "FILES", "ENVIRONMENT", "SEE ALSO"}
        for heading, lines in parts:
            if heading and heading not in known:
                out += [f".SH {literal(heading)}", *paragraphs(lines, is_list=False)]
        if "EXAMPLES" in own:
            out += [".SH EXAMPLES", *paragraphs(own["EXAMPLES"], is_list=False)]
        else:
            self.without_examples.append(" ".join(words))
        out += self.exit_status(words, own, statuses)
        out += self.files(words, command, own)
        out += self.environment(command, own)
        out += self.see_also(words, command, own)
        # A heading begins a paragraph by itself.
        return [line for before, line in zip([""] + out, out) if not (line == ".PP" and before.startswith(".SH "))]

    def verbs(self, words, command):
        below = shown_subcommands(command)
        if not below:
            return []
        out = [".SH COMMANDS" if len(words) > 1 else ".SH VERBS"]
        for verb in below:
            page = "-".join(words + [verb["commandName"]])
            out += [".TP", f"\\fB{literal(page)}\\fR(1)", prose(verb.get("abstract") or "")]
        return out

    def arguments(self, command):
        out = []
        positionals = shown_arguments(command, ("positional",))
        if positionals:
            out.append(".SH ARGUMENTS")
            for argument in positionals:
                out += [".TP", positional(argument), *described(argument)]
        options = shown_arguments(command, ("option", "flag"))
        out.append(".SH OPTIONS")
        titles = list(dict.fromkeys(argument.get("sectionTitle") for argument in options))
        for title in sorted(titles, key=lambda title: title is not None):
            if title:
                out.append(f".SS {escaped(title)}")
            for argument in options:
                if argument.get("sectionTitle") == title:
                    out += option(argument)
        return out

    def exit_status(self, words, own, statuses):
        out = [".SH EXIT STATUS"]
        if "EXIT STATUS" in own:
            return out + paragraphs(own["EXIT STATUS"], is_list=True)
        for line in statuses:
            text = STATUS.sub("", line)
            out += [".PP", prose(text[:1].upper() + text[1:])]
        return out + [".PP", "All statuses, which are the same for every verb, are listed in \\fBcarpack\\fR(1)."]

    def files(self, words, command, own):
        out = [".SH FILES", *paragraphs(own.get("FILES", []), is_list=True)]
        if len(words) == 1 or reads_archive(command) or takes(command, "into"):
            out += term(*FILES["archive"])
        if len(words) == 1 or takes(command, "into"):
            out += term(*FILES["partial"])
        if words[1:] != ["config"] and (len(words) == 1 or takes(command, "no-config")):
            out += term(*FILES["config"])
        if uses_network(command):
            out += term(*FILES["system"])
        return out if len(out) > 1 else out + ["No files but those that are named."]

    def environment(self, command, own):
        out = [".SH ENVIRONMENT", *paragraphs(own.get("ENVIRONMENT", []), is_list=True)]
        said = "\n".join(own.get("ENVIRONMENT", []))
        variables = {}
        for option, secret in SECRETS.items():
            variables |= secret if takes(command, option) else {}
        for argument in command.get("arguments") or []:
            for names in VARIABLES.findall(argument.get("abstract") or ""):
                for name in names.split(", "):
                    variables.setdefault(name, f"Used without {dashed(argument['preferredName'])}.")
        variables.update(NETWORK if uses_network(command) else {})
        variables.update(ENVIRONMENT)
        for name, text in variables.items():
            if not re.search(rf"\b{name}\b", said):
                out += term(name, text)
        return out

    def see_also(self, words, command, own):
        text = json.dumps([command.get("discussion"), command.get("abstract"), command.get("arguments")])
        names = {c["commandName"] for c in shown_subcommands(self.root)}
        related = {f"carpack-{v}" for v in re.findall(r"carpack ([a-z-]+)", text) if v in names}
        related |= {"-".join(words[:n]) for n in range(1, len(words))} | {"zstd"}
        related |= {"-".join(words + [c["commandName"]]) for c in shown_subcommands(command)}
        related.discard("-".join(words))
        ordered = sorted(related, key=lambda name: (name == "zstd", name))
        pages = [(name, 1) for name in ordered]
        if len(words) == 1:
            pages.insert(-1, ("carpack-archive", 5))
        lines = [f".BR {literal(name)} ({part})" + ("," if name != "zstd" else "") for name, part in pages]
        return [".SH SEE ALSO", *paragraphs(own.get("SEE ALSO", []), is_list=False), *lines]


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: generate-manual.py COMMAND FOLDER")
    command, folder = sys.argv[1:]

    def ask(*arguments):
        return subprocess.run([command, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()

    root = json.loads(ask("--experimental-dump-help"))["command"]
    moment = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(moment), datetime.timezone.utc) if moment else datetime.date.today()
    manual = Manual(root, ask("--version").strip(), f"{when:%Y-%m-%d}")
    os.makedirs(folder, exist_ok=True)
    for name, page in manual.write_all().items():
        with open(os.path.join(folder, name), "w", encoding="ascii", newline="\n") as file:
            file.write(page)
    print(f"{len(manual.pages)} manual pages in {folder}")
    if manual.without_examples:
        print("without examples: " + ", ".join(manual.without_examples), file=sys.stderr)


if __name__ == "__main__":
    main()
