"""Runs programs, and says what they cost."""

import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass
class Cost:
    cpu: float
    wall: float


def available(program):
    return shutil.which(program) is not None


def run(command, allowed=(0,)):
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode not in allowed:
        sys.stderr.buffer.write(done.stderr)
        sys.exit(f"measure: error: {done.returncode} from {' '.join(command)}")


def cost(command):
    """What a program takes; none of those measured here may fail for another reason than missing blobs."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 10):
        sys.exit(f"measure: error: {process.returncode} from {' '.join(command)}")
    return Cost(usage.ru_utime + usage.ru_stime, wall)


def alternate(runs, commands, setup=None):
    """The medians of several programs that run by turns, so that a machine that drifts drifts for all of them."""
    costs = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            if setup:
                setup()
            costs[name].append(cost(command))
    return {name: Cost(statistics.median(c.cpu for c in all), statistics.median(c.wall for c in all))
            for name, all in costs.items()}


def peak_of_anonymous_memory(command):
    """The most memory, in bytes, that a program held and that is no file's; None where the system does not tell."""
    if not os.path.exists("/proc/self/status"):
        return None
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as file:
                for line in file:
                    if line.startswith("RssAnon:"):
                        peak = max(peak, int(line.split()[1]) * 1024)
        except FileNotFoundError:
            break
        time.sleep(0.005)
    if process.wait() not in (0, 10):
        sys.exit(f"measure: error: {process.returncode} from {' '.join(command)}")
    return peak
