#!/usr/bin/env python3
"""Whole commands against the programs they are to be measured by, in one run, by turns: measure.py COMMAND

Writes Benchmarks/RESULTS.md, and ends with 1 if a count (system calls, allocations) is beyond its threshold. Times are never a reason to fail.
RECORDS=100000, MEDIA=500 (megabytes), SMALL=50000 (blobs), MANY=1000000 (records, for memory), SNAPSHOTS=100, RUNS=5 (the median counts)
may be set. What is made stays in Benchmarks/data. Peers that are not installed are left out and named: Benchmarks/install-peers.sh offers them.
"""

import os
import shutil
import subprocess
import sys
import time

import data
from rows import Table
from running import alternate, available, cost, peak_of_anonymous_memory, run

HERE = os.path.dirname(os.path.abspath(__file__))
CARPACK = os.path.abspath(sys.argv[1])


def number(name, usual):
    return int(os.environ.get(name, usual))


RECORDS = number("RECORDS", 100_000)
MEDIA = number("MEDIA", 500)
SMALL = number("SMALL", 50_000)
MANY = number("MANY", 1_000_000)
SNAPSHOTS = number("SNAPSHOTS", 100)
RUNS = number("RUNS", 5)
FEW = min(RUNS, 3)  # of what takes long

table = Table()


def carpack(*arguments):
    return [CARPACK, *arguments]


def packed(car, name, *more):
    """An archive of a CAR, made anew."""
    path = data.file(name)
    data.remove(path)
    run(carpack("pack", "-q", car, "-o", path, *more), allowed=(0, 10))
    return path


def pair(name, ours, theirs, peer, runs=RUNS, cpu=None, wall=None, setup=None):
    """A row of CPU time and one of wall time, as far as there are targets."""
    costs = alternate(runs, {"carpack": ours, peer: theirs}, setup)
    for kind, target in (("cpu", cpu), ("wall", wall)):
        if target is not None:
            table.compare(name, kind, costs["carpack"], peer, costs[peer], target)
    return costs


def repository():
    car = data.repository(RECORDS)
    digest = ["openssl", "dgst", "-sha256", car]
    archive = packed(car, "records.car.zst")
    out, other = data.file("out.car.zst"), data.file("other.zst")
    pair("`inspect`", carpack("inspect", car), digest, "openssl", cpu=2.8, wall=1.7)
    pair("`inspect --records --blobs --json`",
         carpack("inspect", "--records", "--blobs", "--json", car), digest, "openssl", cpu=4.5)
    pair("`pack`, repository only", carpack("pack", "-q", "--force", car, "-o", out),
         ["zstd", "-3", "-T1", "-qf", car, "-o", other], "zstd -3 -T1", cpu=1.5, wall=0.8)
    pair("`verify` of that archive", carpack("verify", archive), digest, "openssl", cpu=5, wall=3)
    pair("`ls` of it", carpack("ls", archive), digest, "openssl", cpu=3)
    if libipld():
        pair("`inspect`", carpack("inspect", car),
             [sys.executable, os.path.join(HERE, "inspect-libipld.py"), car],
             "libipld by hand", FEW, cpu=1, wall=1)
    else:
        table.leave_out("libipld (PyPI)")
    growth(car)
    sizes(car, archive)


def growth(car):
    """An increment: the whole CAR again, with one per cent new."""
    later = data.later(RECORDS, RECORDS // 100)
    base = packed(car, "base.car.zst")
    out = data.file("out.car.zst")
    digest = ["openssl", "dgst", "-sha256", later]

    def again():
        shutil.copyfile(base, out)

    pair("`pack` of a whole CAR, 1 % new", carpack("pack", "-q", later, "-o", out), digest,
         "openssl", cpu=4.5, setup=again)
    again()
    run(carpack("pack", "-q", later, "-o", out), allowed=(0, 10))
    new = data.file("new")
    data.new_sections(car, later, new)
    run(["zstd", "-3", "-qf", new, "-o", new + ".zst"])
    table.sizes("appended by it", os.path.getsize(out) - os.path.getsize(base),
                "zstd -3 of the new sections", os.path.getsize(new + ".zst"), 1.012)


def sizes(car, archive):
    other = data.file("other.zst")
    run(["zstd", "-19", "--long=27", "-qf", car, "-o", other])
    theirs = os.path.getsize(other)
    nine = packed(car, "nine.car.zst", "--level", "9")
    table.sizes("size of the archive", os.path.getsize(archive), "zstd -19 --long=27", theirs, 1.155)
    table.sizes("size at `--level 9`", os.path.getsize(nine), "zstd -19 --long=27", theirs, 1.125)


def snapshots():
    cars = data.states(20_000, SNAPSHOTS)
    archive = data.file("snapshots.car.zst")
    data.remove(archive)
    for number, car in enumerate(cars):
        run(carpack("pack", "-q", car, "-o", archive), allowed=(0, 10))
    union = data.file("union.car")
    data.union(cars, union)
    one = packed(union, "union.car.zst")
    pair(f"`verify` of {SNAPSHOTS} snapshots", carpack("verify", archive), carpack("verify", one),
         "carpack, the union of the blocks as one", FEW, cpu=1.5, wall=1.5)


def media():
    car, folder = data.media(MEDIA)
    archive = packed(car, "media.car.zst", "--blobs", folder)
    pair(f"`verify` of {MEDIA} MB of media", carpack("verify", archive),
         ["openssl", "dgst", "-sha256", archive], "openssl", wall=0.56)
    out = data.file("out.car.zst")
    pack = carpack("pack", "-q", "--force", car, "--blobs", folder, "-o", out)
    other = data.file("other")

    def clean():
        for name in (out, other, other + ".zip"):
            data.remove(name)

    tar = ["sh", "-c", f"tar -cf - '{folder}' '{car}' | zstd -3 -qf -o '{other}'"]
    pair(f"`pack` of {MEDIA} MB of media", pack, tar, "tar into zstd -3", FEW, cpu=1, wall=1, setup=clean)
    if available("zip"):
        pair(f"`pack` of {MEDIA} MB of media", pack, ["zip", "-qr", other + ".zip", folder, car],
             "zip", FEW, cpu=1, wall=1, setup=clean)
    else:
        table.leave_out("zip")
    sealed(pack, archive, car, folder, clean)
    clean()
    store = data.file("peer")
    environment = dict(RESTIC_PASSWORD="x", BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK="yes",
                       BORG_BASE_DIR=data.file("peer-settings"), RESTIC_CACHE_DIR=data.file("peer-settings"))
    os.environ.update(environment)
    peers = {
        "restic": (["restic", "-q", "init", "-r", store], ["restic", "-q", "backup", "-r", store, folder, car],
                   ["restic", "-q", "check", "--read-data", "-r", store]),
        "borg": (["borg", "init", "-e", "none", store], ["borg", "create", store + "::a", folder, car],
                 ["borg", "check", "--verify-data", store]),
    }
    for name, (begin, backup, check) in peers.items():
        if not available(name):
            table.leave_out(name)
            continue

        def anew():
            clean()
            data.remove(store)
            run(begin)

        pair(f"`pack` of {MEDIA} MB of media", pack, backup, name, FEW, cpu=1, wall=1, setup=anew)
        pair(f"`verify` of {MEDIA} MB of media", carpack("verify", archive), check, name, FEW, cpu=1, wall=1)
    clean()
    data.remove(store)
    data.remove(data.file("peer-settings"))


def sealed(pack, archive, car, folder, clean):
    """The same, so that only its owner can read it."""
    identity = data.file("identity.age")
    data.remove(identity)
    run(carpack("key", "new", "-q", "-o", identity))
    with open(identity) as lines:
        recipient = next(word for line in lines for word in line.split() if word.startswith("age1"))
    path = packed(car, "sealed.car.zst", "--blobs", folder, "--recipient", recipient)
    pair(f"`pack` of {MEDIA} MB of media, sealed", [*pack, "--recipient", recipient], pack,
         "carpack, plain", RUNS, cpu=1.3, wall=1.3, setup=clean)
    pair(f"`verify` of {MEDIA} MB of media, sealed",
         carpack("verify", path, "--age-identity", identity), carpack("verify", archive),
         "carpack, plain", RUNS, cpu=1.3, wall=1.3)


def starts():
    car = data.repository(RECORDS)
    archive = data.file("records.car.zst")
    line = subprocess.run(carpack("ls", archive), capture_output=True, text=True).stdout.splitlines()[RECORDS // 2]
    key, cid = line.split()[:2]
    parser = data.built("parse-arguments", "--static-swift-stdlib")
    many = 20 * RUNS
    pair("`--version`", carpack("--version"), [parser, "--version"], "a program that parses arguments", many, cpu=1.6)
    pair("`cat` of a record", carpack("cat", archive, key), [parser, "--version"],
         "a program that parses arguments", many, cpu=2)
    pair("`cat` of a CID", carpack("cat", archive, cid), [parser, "--version"],
         "a program that parses arguments", many, cpu=2)
    table.count("shared libraries of the command", data.shared_libraries(CARPACK), 8)
    if available("strace"):
        for name, arguments, limit in (("`--version`", ["--version"], 165), ("`cat` of a record", ["cat", archive, key], 190)):
            table.count(f"system calls of {name}", data.system_calls(carpack(*arguments)), limit)
    else:
        table.leave_out("strace (system calls are not counted)")
    counter = data.allocation_counter()
    if counter:
        one = data.repository(max(RECORDS // 10, 1000))
        for verb, limit in ((["inspect"], 0.4), (["pack", "-q", "--force", "-o", data.file("out.car.zst")], 0.9)):
            few, more = (data.allocations(counter, carpack(*verb, path)) for path in (one, car))
            name = f"allocations of `{verb[0]}` for each further record"
            table.count(name, (more - few) / (RECORDS - max(RECORDS // 10, 1000)), limit)
    else:
        table.leave_out("a C compiler (allocations are not counted)")


def small():
    folder = data.small_blobs(SMALL)
    archive = data.file("small.car.zst")
    data.remove(archive)
    run(carpack("pack", "-q", data.repository(1000), "--blobs", folder, "--extras", "-o", archive), allowed=(0, 10))
    out, copy = data.file("small-out"), data.file("small-copy")

    def clean():
        data.remove(out)
        data.remove(copy)
        os.sync()

    name = f"{SMALL:,} small blobs: "
    # cp waits for no medium, and extract does at its end.
    pair(name + "`extract --blobs`", carpack("extract", archive, "--blobs", "-q", "-d", out),
         ["cp", "-r", folder, copy], "cp -r", FEW, cpu=1.5, wall=1.5, setup=clean)
    if available("strace"):
        # A file is opened, written, renamed and closed; its time takes one call more. The list of
        # files has a line for each, and is written forty lines at a time.
        for times, limit in (("", 5.1), (" --no-times", 4.1)):
            clean()
            calls = data.system_calls(carpack("extract", archive, "--blobs", "-q", "-d", out, *times.split()))
            calls -= data.system_calls(carpack("ls", "--blobs", archive))
            table.count(f"system calls of `extract --blobs{times}` for each file", calls / SMALL, limit)
    clean()
    listing = [cost(carpack("ls", "--blobs", archive)) for _ in range(FEW)]
    table.note(name + "`ls --blobs`", listing, 1.0)


def shuffled():
    order, mixed = data.every_block_twice(16_000)
    for verb in ("pack", "verify", "extract"):
        def of(car, name):
            archive = data.file(name + ".car.zst")
            if verb == "pack":
                return carpack("pack", "-q", "--force", car, "-o", archive)
            packed(car, name + ".car.zst")
            return carpack("verify", archive) if verb == "verify" else carpack("extract", archive, "--car", "-d", "-")
        pair(f"`{verb}` of every block twice, shuffled", of(mixed, "mixed"), of(order, "order"),
             "carpack, in order", FEW, wall=2, cpu=2)


def memory():
    car, later = data.repository(MANY), data.later(MANY, MANY // 100)
    archive = data.file("many.car.zst")
    data.remove(archive)
    for name, arguments, limit in (
        ("`inspect`", ["inspect", car], 64), ("`pack`", ["pack", "-q", car, "-o", archive], 96),
        ("`pack`, 1 % new", ["pack", "-q", later, "-o", archive], 96), ("`verify`", ["verify", archive], 96),
    ):
        table.memory(f"{name} of {MANY:,} records", peak_of_anonymous_memory(carpack(*arguments)), limit)


def libipld():
    return subprocess.run([sys.executable, "-c", "import libipld"], capture_output=True).returncode == 0


def main():
    for program in ("openssl", "zstd"):
        if not available(program):
            sys.exit(f"measure: error: there is no {program} to measure against")
    began = time.time()
    # The user's own configuration does not count.
    os.environ["XDG_CONFIG_HOME"] = data.file("no-configuration")
    data.prepare()
    for part in (repository, starts, small, media, snapshots, shuffled, memory):
        print(f"measure: {part.__name__} ({time.time() - began:.0f} s)", file=sys.stderr)
        part()
    result = os.path.join(HERE, "RESULTS.md")
    settings = f"RECORDS={RECORDS} MEDIA={MEDIA} SMALL={SMALL} MANY={MANY} SNAPSHOTS={SNAPSHOTS} RUNS={RUNS}"
    text = table.text(settings, time.time() - began)
    with open(result, "w") as file:
        file.write(text)
    print(text)
    return 0 if table.counts_hold else 1


sys.exit(main())
