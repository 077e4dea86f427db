"""The table of results."""

import os
import platform
import re
import shutil
import statistics
import subprocess


class Table:
    def __init__(self):
        self.rows, self.counts, self.left_out = [], [], []
        self.counts_hold = True

    def compare(self, name, kind, ours, peer, theirs, target):
        mine, other = getattr(ours, kind), getattr(theirs, kind)
        ratio = mine / other if other else float("inf")
        self.add(name, kind.upper() if kind == "cpu" else kind, seconds(mine), f"{peer}: {seconds(other)}", ratio, target)

    def sizes(self, name, ours, peer, theirs, target):
        self.add(name, "bytes", f"{ours:,}", f"{peer}: {theirs:,}", ours / theirs, target, digits=3)

    def add(self, name, kind, ours, theirs, ratio, target, digits=2):
        verdict = "held" if ratio <= target else "**not held**"
        # Where a target is 1, it is the peer that a user would pick.
        if target == 1:
            verdict = "carpack takes less" if ratio < 1 else "**the peer takes less**"
        limit = "–" if target == 1 else f"≤ {target} ×"
        self.rows.append(f"| {name} | {kind} | {ours} | {theirs} | {ratio:.{digits}f} × | {limit} | {verdict} |")

    def note(self, name, costs, target):
        wall = statistics.median(c.wall for c in costs)
        verdict = "held" if wall <= target else "**not held**"
        self.rows.append(f"| {name} | wall | {seconds(wall)} | | | ≤ {target:.0f} s | {verdict} |")

    def memory(self, name, peak, limit):
        if peak is None:
            self.leave_out("anonymous memory (the system does not tell)")
            return
        mebibytes = peak / (1 << 20)
        verdict = "held" if mebibytes <= limit else "**not held**"
        self.rows.append(f"| {name} | anonymous memory | {mebibytes:.0f} MiB | | | ≤ {limit} MiB | {verdict} |")

    def count(self, name, value, limit):
        holds = value <= limit
        self.counts_hold = self.counts_hold and holds
        shown = f"{value:.2f}" if isinstance(value, float) else str(value)
        self.counts.append(f"| {name} | {shown} | ≤ {limit} | {'held' if holds else '**beyond it**'} |")

    def leave_out(self, name):
        if name not in self.left_out:
            self.left_out.append(name)

    def text(self, settings, took):
        lines = [
            "# Results", "",
            "Written by `make bench`; [README](README.md) says how. Medians of runs by turns with the other program, on this machine:", "",
            f"* {machine()}", f"* {', '.join(versions())}", f"* {settings}; {took:.0f} s for all of it; load at the end {load()}", "",
            "| what | of | carpack | the other | ratio | target | |", "|---|---|---|---|---|---|---|",
            *self.rows, "",
            "## Counts", "",
            "These do not depend on how busy a machine is; `make bench` fails beyond a threshold.", "",
            "| what | count | threshold | |", "|---|---|---|---|", *self.counts, "",
        ]
        if self.left_out:
            lines += ["Left out, since they are not installed (`Benchmarks/install-peers.sh` offers them): "
                      + ", ".join(self.left_out) + ".", ""]
        return "\n".join(lines)


def seconds(value):
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def load():
    return " ".join(f"{value:.1f}" for value in os.getloadavg()[:1])


def machine():
    processor = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            found = re.search(r"model name\s*: (.*)", file.read())
            processor = found.group(1) if found else processor
        with open("/etc/os-release") as file:
            system = re.search(r'PRETTY_NAME="(.*)"', file.read()).group(1)
    except (FileNotFoundError, AttributeError):
        system = platform.platform()
    return f"{os.cpu_count()} cores of {processor}, {system}, {platform.system()} {platform.release()}"


def versions():
    for program, argument in (("openssl", "version"), ("zstd", "--version"), ("swift", "--version"), ("tar", "--version"),
                              ("zip", "-v"), ("restic", "version"), ("borg", "--version"), ("cp", "--version")):
        if shutil.which(program) is None:
            continue
        done = subprocess.run([program, argument], capture_output=True, text=True)
        found = re.search(r"\d+\.\d+(\.\d+)?", done.stdout + done.stderr)
        if found:
            yield f"{program} {found.group(0)}"
