#!/usr/bin/env python3
"""Restores the accounts of a whole server against the stand-in, and kills the command in between.

Usage: restore-all.py CARPACK STAND_IN
Environment: ACCOUNTS=500 BLOBS=4 BLOB_SIZE=500000 LARGE=5 LARGE_SIZE=200000000 KILLS=10 JOBS=4 SEED=1

It counts at the stand-in what was made, imported, uploaded and signed, and ends with 1 if anything came twice.
"""
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

carpack, stand_in = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])


def setting(name, value):
    return int(os.environ.get(name, value))


accounts, large = setting("ACCOUNTS", 500), setting("LARGE", 5)
kills, jobs = setting("KILLS", 10), setting("JOBS", 4)
random.seed(setting("SEED", 1))


def run(line, *more, check=True):
    result = subprocess.run([carpack, *line.split(), *more], capture_output=True, text=True)
    if check and result.returncode != 0:
        sys.exit(f"{line}: {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result


def get(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    key = run("recovery-key new -o server.key --quiet").stdout.split("\n")[0]
    pathlib.Path("admin").write_text("admin-secret\n")
    begun = time.monotonic()
    servers = subprocess.Popen(
        [stand_in, "serve", "--accounts", str(accounts), "--posts", "20", "--blobs", os.environ.get("BLOBS", "4"),
         "--blob-size", os.environ.get("BLOB_SIZE", "500000"), "--large",
         f"1x{os.environ.get('LARGE_SIZE', '200000000')}", "--large-accounts", str(large), "--second-server",
         "--blob-limit", str(1 << 30), "--admin-password", "admin-secret", "--rotation-key", key],
        stdout=subprocess.PIPE, text=True)
    try:
        old, dids, places = servers.stdout.readline().strip(), [], {}
        while len(places) < 2:
            name, value = servers.stdout.readline().split()
            if value.startswith("did:"):
                dids.append(value)
            else:
                places[name] = value
        pathlib.Path("members").write_text("".join(f"{did} member{number}@example.org\n" for number, did in enumerate(dids)))
        print(f"{len(dids)} accounts made up: {time.monotonic() - begun:.0f} s", flush=True)
        flags = f"--plc {places['directory']} --resolver {old}"
        begun = time.monotonic()
        run(f"backup --all --pds {old} {flags} -o backups/ --quiet --jobs 8")
        size = sum(file.stat().st_size for file in pathlib.Path("backups").rglob("*.car.zst"))
        print(f"backed up: {size / 1e9:.2f} GB, {time.monotonic() - begun:.0f} s", flush=True)
        get(f"{old}/control/status?status=deactivated")
        new = places["second"]
        line = (f"restore --all backups/ --to {new} --rotation-key server.key --admin-password-file admin --accounts members "
                f"{flags} --jobs {jobs} --abandon-old --yes identity --yes activate")
        plan = run(line, "--plan")
        print(plan.stdout.strip().split("\n")[-1], flush=True)
        begun, killed, peak = time.monotonic(), 0, 0
        while True:
            process = subprocess.Popen([carpack, *line.split()], stdout=open("out", "w"), stderr=open("errors", "w"))
            end = time.monotonic() + random.uniform(0.5, 4) if killed < kills else None
            while process.poll() is None and (end is None or time.monotonic() < end):
                try:
                    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                    peak = max(peak, int(status.split("VmHWM:")[1].split()[0]) // 1024)
                except (FileNotFoundError, IndexError, ProcessLookupError):
                    pass
                time.sleep(0.02)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                killed += 1
            if process.wait() == 0:
                break
            if process.returncode != -9:
                sys.exit(f"{process.returncode}\n{pathlib.Path('out').read_text()[-3000:]}{pathlib.Path('errors').read_text()[-3000:]}")
        print(f"restored: {time.monotonic() - begun:.0f} s, killed {killed} times, at most {peak} MB of memory", flush=True)
        done = pathlib.Path("out").read_text().strip().split("\n")[-1]
        calls, unread = collections.Counter(), 0
        for text in get(f"{new}/control/requests").splitlines():
            request = json.loads(text)
            if request.get("method") == "POST" and request.get("status") == 200:
                name = request["path"].rsplit(".", 1)[1]
                calls[name] += 1
                unread += name == "uploadBlob" and not request["read"]
        state = json.loads(get(f"{new}/control/accounts"))["accounts"]
        print(done, dict(calls), f"{get(places['directory'] + '/control/posts').strip()} operations sent", flush=True)
        active = sum(account.get("status") == "active" for account in state)
        blobs = sum(account["held"] for account in state)
        wanted = accounts * setting("BLOBS", 4) + large
        print(f"{active} active, {blobs} of {wanted} blobs there", flush=True)
        again = run(line)
        print("again:", again.stdout.strip().split("\n")[-1], flush=True)
        # What the server answered with success must not be sent twice. A blob may be, whose answer
        # nobody read: the server was still at it when the next run asked what is missing.
        print(f"{unread} answers to uploads were read by nobody", flush=True)
        once = active == calls["createAccount"] == calls["importRepo"] == accounts
        once = once and blobs == wanted and calls["uploadBlob"] - unread <= wanted
        if not once or "done" not in again.stdout:
            sys.exit("not everything came once")
    finally:
        servers.terminate()
