#!/usr/bin/env python3
"""Tries the completions in real shells, as if typed: check-completions.py COMMAND

Types a line and the Tab key into bash, zsh and fish, each in a terminal of its own, and compares what stands on the screen.
A shell that is not installed is named and passed over. Ends with 1 if anything is wrong.
"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ARCHIVE = os.path.join(HERE, "Fixtures/archives/several.car.zst")

# What is typed before Tab (pressed twice at most), and what the line is then, or which words are on
# the screen.
CASES = [
    ("verbs", "carpack ", ["backup", "verify", "extract"]),
    ("one verb", "carpack repai", "carpack repair "),
    ("help VERB", "carpack help resol", "carpack help resolve "),
    ("a verb of a few letters", "carpack conf", "carpack config "),
    ("verbs below a verb", "carpack fetch plc", "carpack fetch plc-log "),
    ("options", "carpack verify --ca", "carpack verify --cars "),
    ("several options", "carpack info --a", ["--account", "--at", "--allow-large"]),
    ("archives, not other files", "carpack info my", "carpack info my.car.zst "),
    ("archives in folders", "carpack info fol", "carpack info folder/"),
    ("an archive in a folder", "carpack info folder/", "carpack info folder/in.car.zst "),
    ("a name with a blank", "carpack info white", "carpack info white\\ space.car.zst "),
    ("an archive with a blank", "carpack info white\\ space.car.zst --at 2026-02",
     "carpack info white\\ space.car.zst --at 2026-02-01T00:00:00Z "),
    ("numbers of snapshots", "carpack info my.car.zst --at ", ["3", "2026-02-01T00:00:00Z"]),
    ("the date of a snapshot", "carpack info my.car.zst --at 2026-02", "carpack info my.car.zst --at 2026-02-01T00:00:00Z "),
    ("a date behind a colon", "carpack info my.car.zst --at 2026-02-01T00:", "carpack info my.car.zst --at 2026-02-01T00:00:00Z "),
    ("the date behind =", "carpack info my.car.zst --at=2026-02", "carpack info my.car.zst --at=2026-02-01T00:00:00Z "),
    ("numbers from the end", "carpack info my.car.zst --at -3", "carpack info my.car.zst --at -3 "),
    ("accounts", "carpack ls my.car.zst --account al", "carpack ls my.car.zst --account alice.example.com "),
    ("a DID", "carpack ls my.car.zst --account did:plc:w",
     "carpack ls my.car.zst --account did:plc:w3pvxhp5ga2ax32lkbfrxakv "),
    ("collections", "carpack cat my.car.zst app.bsky.feed.", ["feed.like/", "feed.post/"]),
    ("one collection", "carpack cat my.car.zst com.", "carpack cat my.car.zst com.example.garden.diary/"),
    ("paths", "carpack cat my.car.zst app.bsky.actor.profile/", "carpack cat my.car.zst app.bsky.actor.profile/self "),
    ("paths of an older snapshot", "carpack cat --at 1 my.car.zst app.bsky.feed.post/3ljy",
     "carpack cat --at 1 my.car.zst app.bsky.feed.post/3ljyfr3jhbz2b "),
    ("the second of many", "carpack extract my.car.zst x app.bsky.act", "carpack extract my.car.zst x app.bsky.actor.profile/"),
    ("folders only", "carpack extract my.car.zst -d fo", "carpack extract my.car.zst -d folder/"),
    ("nothing in what is no archive", "carpack cat note.txt app", "carpack cat note.txt app"),
    ("nothing where nothing fits", "carpack info my.car.zst --at 9", "carpack info my.car.zst --at 9"),
]

# What Ctrl-X g does: it writes the line to a file.
BASH = ["bash", "--norc", "--noprofile", "-i"]
BASH_LIBRARY = "/usr/share/bash-completion/bash_completion"
START = {
    "bash": (
        BASH,
        ["PS1='> '", "bind 'set completion-query-items 0'", "bind 'set page-completions off'",
         "bind 'set enable-bracketed-paste off'",
         "bind -x '\"\\C-xg\": printf %s \"$READLINE_LINE\" >$LINE'", 'eval "$(carpack --generate-completion-script bash)"'],
    ),
    "bash with bash-completion": (
        BASH,
        ["PS1='> '", f". {BASH_LIBRARY}", "bind 'set completion-query-items 0'", "bind 'set page-completions off'",
         "bind 'set enable-bracketed-paste off'",
         "bind -x '\"\\C-xg\": printf %s \"$READLINE_LINE\" >$LINE'", 'eval "$(carpack --generate-completion-script bash)"'],
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        ["PS1='> '", "RPS1=", "PROMPT_EOL_MARK=", "LISTMAX=1000", "autoload -Uz compinit", "compinit -u -D",
         "line() { print -rn -- \"$BUFFER\" >$LINE }; zle -N line; bindkey '^Xg' line",
         'eval "$(carpack --generate-completion-script zsh)"'],
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        ["function fish_prompt; echo -n '> '; end", "set -g fish_autosuggestion_enabled 0",
         "bind \\cxg 'commandline >$LINE'",
         "carpack --generate-completion-script fish | source"],
    ),
}
# Sequences that move the cursor, colour text or set titles.
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>cM78])")


class Shell:
    def __init__(self, name, folder, variables):
        arguments, preparation = START[name]
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(arguments[0], arguments, variables)
        import fcntl
        import struct
        import termios
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
        self.read(quiet=1.0)
        for line in preparation:
            self.send(line + "\r")
            self.read(quiet=0.4)
        self.send("echo rea''dy\r")
        self.until("ready")
        self.read(quiet=0.5)

    def send(self, text):
        os.write(self.terminal, text.encode())

    def read(self, quiet, limit=10.0):
        """Everything until the shell has been silent for a while."""
        out, end = b"", time.monotonic() + limit
        while time.monotonic() < end:
            ready, _, _ = select.select([self.terminal], [], [], quiet)
            if not ready:
                break
            try:
                piece = os.read(self.terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            # Some shells ask the terminal who it is, and wait for the answer.
            if b"\x1b[c" in piece or b"\x1b[0c" in piece:
                self.send("\x1b[?62;c")
            if b"\x1b[6n" in piece:
                self.send("\x1b[1;1R")
            out += piece
        return ESCAPES.sub("", out.decode(errors="replace")).replace("\r", "")

    def until(self, words, limit=20.0):
        text, end = "", time.monotonic() + limit
        while words not in text and time.monotonic() < end:
            text += self.read(quiet=0.2)
        return text

    def complete(self, line, expected, report):
        """What is on the screen, and on the line, after a line and Tab; and Tab again if that did not do it."""
        self.send(line)
        text, typed = self.read(quiet=0.2), ""
        for _ in range(2):
            self.send("\t")
            text += self.read(quiet=1.0)
            # A list is shown by the second Tab in a row; to ask for the line in between would make
            # it the first again.
            end = time.monotonic() + 4
            if isinstance(expected, str):
                typed = self.line(report)
            while not is_right(text, typed, expected) and isinstance(expected, list) and time.monotonic() < end:
                text += self.read(quiet=0.5)
            if is_right(text, typed, expected):
                break
        # A menu may be open, and the line may be long.
        self.send("\x03")
        self.read(quiet=0.2)
        self.send("\r")
        self.read(quiet=0.2)
        return text, typed

    def line(self, report):
        """What stands on the line, as the shell itself knows it."""
        if os.path.exists(report):
            os.remove(report)
        self.send("\x18g")
        end = time.monotonic() + 5
        while not os.path.exists(report) and time.monotonic() < end:
            self.read(quiet=0.1)
        self.read(quiet=0.1)
        if not os.path.exists(report):
            return ""
        with open(report) as file:
            return file.read().rstrip("\n")

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def is_right(text, typed, expected):
    if isinstance(expected, str):
        return typed == expected
    return all(word in text for word in expected)


def check(name, folder, variables):
    """How many cases went wrong in this shell."""
    failures = 0
    shell = Shell(name, folder, variables)
    for what, line, expected in CASES:
        text, typed = shell.complete(line, expected, variables["LINE"])
        errors = re.findall(r".*(?:error:|not found|parse).*", text)
        if not is_right(text, typed, expected) or errors or "note.txt" in text.replace(line, ""):
            failures += 1
            print(f"{name}: {what}: of {line!r} was made {typed!r}, not {expected!r}; on the screen:")
            print("    " + text.replace("\n", "\n    "))
    shell.close()
    return failures


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check-completions.py COMMAND")
    command = os.path.abspath(sys.argv[1])
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        binaries = os.path.join(folder, ".bin")
        os.makedirs(binaries)
        os.symlink(command, os.path.join(binaries, "carpack"))
        work = os.path.join(folder, "work")
        os.makedirs(os.path.join(work, "folder"))
        for name in ("my.car.zst", "folder/in.car.zst", "white space.car.zst"):
            shutil.copy(ARCHIVE, os.path.join(work, name))
        for name in ("note.txt", "other.dat"):
            with open(os.path.join(work, name), "w") as file:
                file.write("not an archive\n")
        variables = {
            "PATH": binaries + ":" + os.environ["PATH"], "HOME": work, "TERM": "xterm", "LC_ALL": "C.UTF-8",
            "LINE": os.path.join(folder, "line"),
            "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder, "XDG_CACHE_HOME": folder,
        }
        for name in START:
            program = name.split(" ")[0]
            if shutil.which(program) is None or (" " in name and not os.path.exists(BASH_LIBRARY)):
                print(f"{name} is not installed: its completions were not tried")
                continue
            wrong = check(name, work, variables)
            failures += wrong
            version = subprocess.run([program, "--version"], stdout=subprocess.PIPE).stdout.decode().splitlines()[0]
            print(f"{len(CASES) - wrong} of {len(CASES)} completions are right in {name} ({version})", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
