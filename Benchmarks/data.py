"""What is measured: made once, in Benchmarks/data, and the same each time."""

import os
import platform
import random
import shutil
import subprocess
import sys

from running import available, run

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
FOLDER = os.path.join(HERE, "data")


def file(name):
    return os.path.join(FOLDER, name)


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def built(product, *options):
    """One of the programs in Sources; those with other options have a folder of their own."""
    if platform.system() == "Darwin":
        options = ()
    scratch = os.path.join(TOP, ".build/benchmarks" + ("-static" if options else ""))
    done = subprocess.run(["swift", "build", "-c", "release", "--package-path", TOP, "--scratch-path", scratch, "--product", product, *options],
                          capture_output=True, text=True, env={**os.environ, "CARPACK_BUILD_BENCH": "1"})
    if done.returncode != 0:
        sys.exit(f"measure: error: {product} cannot be built\n{done.stdout}{done.stderr}")
    return os.path.join(scratch, "release", product)


def prepare():
    os.makedirs(FOLDER, exist_ok=True)
    built("generate-repository")


def generate(*arguments):
    run([os.path.join(TOP, ".build/benchmarks/release/generate-repository"), *map(str, arguments)])


def repository(records):
    """A repository of so many records; a hundredth more has the one that later() gives."""
    car = file(f"{records}.car")
    if not os.path.exists(car) or not os.path.exists(file(f"{records}-later.car")):
        generate("--records", records, "--seed", 1, "-o", car, "--then", file(f"{records}-later.car"),
                 "--created", records // 100, "--deleted", 0, "--updated", 0)
    return car


def later(records, created):
    repository(records)
    return file(f"{records}-later.car")


def states(records, count):
    """The same account, so many times, with a few changes between each two."""
    cars = [file(f"state-{records}-{number}.car") for number in range(count)]
    if not all(map(os.path.exists, cars)):
        then = [argument for car in cars[1:] for argument in ("--then", car)]
        generate("--records", records, "--seed", 3, "-o", cars[0], *then, "--created", 20, "--deleted", 4, "--updated", 2)
    return cars


def media(megabytes):
    """A repository of posts with one image of 50 kB on average each, and the folder of these."""
    folder, car = file(f"media-{megabytes}"), file(f"media-{megabytes}.car")
    if not os.path.isdir(folder) or not os.path.exists(car):
        generate("--records", megabytes * 20, "--seed", 2, "--posts", 100, "--images", 100, "--images-per-post", 1,
                 "--blobs", folder, "-o", car)
    return car, folder


def small_blobs(count):
    folder = file(f"small-{count}")
    if not os.path.isdir(folder):
        os.makedirs(folder + ".partial", exist_ok=True)
        for number in range(count):
            with open(os.path.join(folder + ".partial", f"{number}.bin"), "wb") as blob:
                blob.write(b"%09d " % number * 25)
        os.rename(folder + ".partial", folder)
    return folder


def sections(car):
    """The header of a CAR and its sections, each with its length in front; of CIDs with SHA-256 alone."""
    with open(car, "rb") as opened:
        content = opened.read()
    parts, at = [], 0
    while at < len(content):
        start, length, shift = at, 0, 0
        while True:
            byte = content[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        parts.append((content[at:at + 36], content[start:at + length]))
        at += length
    return parts[0][1], parts[1:]


def new_sections(before, after, path):
    known = {cid for cid, _ in sections(before)[1]}
    with open(path, "wb") as out:
        for cid, section in sections(after)[1]:
            if cid not in known:
                out.write(section)


def union(cars, path):
    """The blocks of all, each once, behind the header of the last."""
    known = set()
    with open(path, "wb") as out:
        out.write(sections(cars[-1])[0])
        for car in reversed(cars):
            for cid, section in sections(car)[1]:
                if cid not in known:
                    known.add(cid)
                    out.write(section)


def every_block_twice(records):
    """Two CARs with each block of a repository twice: in order, and shuffled."""
    header, all = sections(repository(records))
    order, mixed = file("twice.car"), file("twice-shuffled.car")
    twice = [section for _, section in all] * 2
    with open(order, "wb") as out:
        out.write(header + b"".join(twice))
    random.Random(4).shuffle(twice)
    with open(mixed, "wb") as out:
        out.write(header + b"".join(twice))
    return order, mixed


def shared_libraries(program):
    if not available("ldd"):
        return 0
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    return sum("=>" in line for line in done.stdout.splitlines())


def system_calls(command):
    counts = file("calls")
    subprocess.run(["strace", "-f", "-qq", "-o", counts, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(counts) as lines:
        count = sum("resumed>" not in line for line in lines)
    os.remove(counts)
    return count


def allocation_counter():
    """A library that counts what a program allocates; None where there is no compiler for it."""
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None or platform.system() != "Linux":
        return None
    library = file("count-allocations.so")
    run([compiler, "-O2", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "count-allocations.c"), "-ldl"])
    return library


def allocations(counter, command):
    count = file("allocations")
    remove(count)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, LD_PRELOAD=counter, COUNT_ALLOCATIONS=count))
    with open(count) as text:
        return int(text.read())
