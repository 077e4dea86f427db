#!/usr/bin/env python3
"""Writes a Debian changelog from CHANGELOG.md: debian-changelog.py VERSION MAINTAINER SECONDS < CHANGELOG.md

Each heading "## 1.2.0 (2027-01-31)" begins an entry. The one of the version that VERSION is a package of bears
VERSION itself, and without a date, as in "## 1.2.0 (unreleased)", SECONDS since 1970. So does "## Unreleased".
"""

import datetime
import email.utils
import re
import sys
import textwrap

RELEASED = re.compile(r"## \[?(\d+\.\d+\.\d+)\]?(?: .*?(\d{4}-\d{2}-\d{2}))?")


def plain(text):
    """Markdown as plain text: without emphasis, and links without their address."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return text.replace("**", "").replace("`", "")


def main():
    version, maintainer, seconds = sys.argv[1:]
    now = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    entries = []
    for line in sys.stdin.read().splitlines():
        if line.startswith("## "):
            match = RELEASED.match(line)
            if not match:
                if not entries:
                    entries.append((version, now, []))
                continue
            when = datetime.datetime.fromisoformat(match[2] + "T12:00:00+00:00") if match[2] else now
            # "~" begins what tells a package of a commit from that of the release.
            name = version if version.startswith((match[1] + "-", match[1] + "~")) else match[1] + "-1"
            entries.append((name, when, []))
        elif entries and line.startswith(("- ", "* ")):
            entries[-1][2].append(plain(line[2:]))
        elif entries and line.startswith("  ") and entries[-1][2]:
            entries[-1][2][-1] += " " + plain(line.strip())
    for number, (name, when, changes) in enumerate(entries):
        print(f"{'' if number == 0 else chr(10)}carpack ({name}) unstable; urgency=medium\n")
        for change in changes or ["The first entry."]:
            print(textwrap.fill(change, 78, initial_indent="  * ", subsequent_indent="    ", break_on_hyphens=False))
        print(f"\n -- {maintainer}  {email.utils.format_datetime(when)}")


if __name__ == "__main__":
    main()
