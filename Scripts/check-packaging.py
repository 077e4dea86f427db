#!/usr/bin/env python3
"""Checks what is in Packaging/ against a built command: check-packaging.py COMMAND SERVER

Each command line of a unit, a compose file, the crontab, the property list and the formula is one that the command takes;
the install script installs what it was told to and nothing else; the container's root has all that the command needs.
What cannot be checked here, because a program is missing, is said.
"""

import functools
import glob
import hashlib
import http.server
import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMAND, SERVER = map(os.path.abspath, sys.argv[1:3]) if len(sys.argv) == 3 else sys.exit("usage: check-packaging.py COMMAND SERVER")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


# What "carpack schedule" writes, which has it in itself, is what is installed for users.
USER_UNITS = "Sources/carpack/Units"


def packaged(pattern, folder="Packaging"):
    found = sorted(os.path.relpath(path, TOP) for path in glob.glob(os.path.join(TOP, folder, pattern)))
    assert found, pattern
    return found


def run(*words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


def takes(place, words):
    """Whether the command takes these words."""
    result = run(COMMAND, "---parse", *words)
    assert result.returncode == 0, f"{place}: carpack {' '.join(words)}: {result.stdout}"


def units_have_options_that_there_are():
    for path in packaged("systemd/system/*.service") + packaged("*.service", USER_UNITS):
        lines = re.findall(r"^ExecStart=carpack (.*)$", read(path), re.MULTILINE)
        assert len(lines) == 1, path
        takes(path, shlex.split(lines[0].replace("%i", "1")))
    if not shutil.which("systemd-analyze"):
        return "systemd-analyze"
    for found, scope in [(packaged("systemd/system/*"), "--system"), (packaged("*", USER_UNITS), "--user")]:
        paths = [os.path.join(TOP, path) for path in found]
        lines = run("systemd-analyze", scope, "--man=no", "verify", *paths).stdout.splitlines()
        # The command may not be installed.
        lines = [line for line in lines if "carpack" in line and "Command carpack is not executable" not in line]
        assert not lines, "\n".join(lines)


def compose_files_have_options_that_there_are():
    for path in packaged("*/compose.yaml"):
        text = read(path)
        lines = re.findall(r"^    command: (?!server )(.*)$|^# .* carpack (fleet .*?)(?: {2,}.*)?$", text, re.MULTILINE)
        assert lines, path
        for service, comment in lines:
            takes(path, shlex.split(service or comment))
    try:
        import yaml
    except ImportError:
        return "yaml"
    for path in packaged("*/compose.yaml"):
        assert "services" in yaml.safe_load(read(path)), path


def schedules_have_options_that_there_are():
    for path in packaged("cron/*") + packaged("launchd/*") + packaged("homebrew/*"):
        text = read(path)
        if path.endswith(".plist"):
            text = plistlib.loads(text.encode())["ProgramArguments"][2]
        lines = re.findall(r"(?:&& |exec )carpack ([a-z][^\n>&]*?)(?: 2>.*)?$", text, re.MULTILINE)
        lines += [line.replace('"', "").replace(",", "") for line in re.findall(r'run \[opt_bin/"carpack", (.*)\]', text)]
        assert lines, path
        for line in lines:
            takes(path, shlex.split(line))


def the_formula_is_ruby_and_of_this_version():
    version = run(os.path.join(TOP, "Scripts/version.sh")).stdout.strip()
    assert f"/carpack-{version}.tar.gz" in read("Packaging/homebrew/carpack.rb"), version
    if not shutil.which("ruby"):
        return "ruby"
    result = run("ruby", "-c", os.path.join(TOP, "Packaging/homebrew/carpack.rb"))
    assert result.returncode == 0, result.stdout


class Site:
    """A folder with a tarball, served on loopback."""

    def __init__(self, folder):
        self.folder, self.name = folder, "carpack-1.2.3-linux-any.tar.gz"
        inner = os.path.join(folder, "inner")
        os.makedirs(os.path.join(inner, "bin"))
        os.makedirs(os.path.join(inner, "share/man/man1"))
        with open(os.path.join(inner, "bin/carpack"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho 1.2.3\n")
        os.chmod(os.path.join(inner, "bin/carpack"), 0o755)
        os.makedirs(os.path.join(inner, "Docs"))
        for name in ["share/man/man1/carpack.1", "README.md", "Docs/FORMAT.md"]:
            with open(os.path.join(inner, name), "w", encoding="ascii"):
                pass
        with tarfile.open(os.path.join(folder, self.name), "w:gz") as tar:
            tar.add(inner, arcname="carpack-1.2.3-linux-any")
        with open(os.path.join(folder, self.name), "rb") as file:
            self.digest = hashlib.sha256(file.read()).hexdigest()

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def sums(self, text):
        with open(os.path.join(self.folder, "SHA256SUMS"), "w", encoding="ascii") as file:
            file.write(text)

    def install(self, prefix, name=None, **variables):
        address = f"http://127.0.0.1:{self.server.server_port}/{name or self.name}"
        environment = {
            "PATH": os.environ["PATH"], "HOME": self.folder, "PREFIX": prefix, "CARPACK_TARBALL": address, "no_proxy": "127.0.0.1",
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"), **variables,
        }
        return run("sh", os.path.join(TOP, "Packaging/install.sh"), env=environment)


def the_install_script_checks_what_it_installs():
    if not shutil.which("curl"):
        return "curl"
    with tempfile.TemporaryDirectory() as folder:
        site = Site(folder)
        good = f"{'0' * 64}  other.tar.gz\n{site.digest}  {site.name}\n"
        wrong = "f" * 64
        cases = [
            ("the digest of SHA256SUMS", good, {}, True),
            ("a digest that is given", "", {"CARPACK_SHA256": site.digest}, True),
            ("a wrong digest in SHA256SUMS", good.replace(site.digest, wrong), {}, False),
            ("a wrong digest that is given", good, {"CARPACK_SHA256": wrong}, False),
            ("no line for the tarball", f"{site.digest}  other.tar.gz\n", {}, False),
            ("a tarball that is not there", good, {"name": "none.tar.gz"}, False),
        ]
        for number, (case, sums, variables, succeeds) in enumerate(cases):
            site.sums(sums)
            prefix = os.path.join(folder, f"prefix-{number}")
            result = site.install(prefix, **variables)
            assert (result.returncode == 0) == succeeds, f"{case}: {result.returncode} {result.stdout}"
            assert os.path.exists(os.path.join(prefix, "bin/carpack")) == succeeds, case
            for name in ["share/man/man1/carpack.1", "share/doc/carpack/Docs/FORMAT.md"]:
                assert os.path.exists(os.path.join(prefix, name)) == succeeds, f"{case}: {name}"
            assert os.path.exists(prefix) == succeeds, case
        # A download that breaks off: what came is not what the digest says.
        with open(os.path.join(folder, site.name), "r+b") as file:
            file.truncate(100)
        site.sums(good)
        assert site.install(os.path.join(folder, "cut")).returncode != 0
        assert not os.path.exists(os.path.join(folder, "cut"))
        site.server.shutdown()


def the_root_of_the_container_has_all_that_the_command_needs():
    script = "Packaging/container/root.sh"
    line = re.search(rf"^RUN {re.escape(script)} (.*)$", read("Packaging/container/Containerfile"), re.MULTILINE)
    words = re.search(rf"{re.escape(os.path.basename(script))} ([A-Z ]+)$", read(script), re.MULTILINE)
    assert len(line[1].split()) == len(words[1].split()), f"the Containerfile passes {line[1]}"
    if sys.platform != "linux":
        return "Linux"
    archive = sorted(glob.glob(os.path.join(TOP, "Fixtures/archives/*.car.zst")))[0]
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "root")
        result = run(os.path.join(TOP, script), COMMAND, SERVER, root)
        assert result.returncode == 0, result.stdout
        for library in ["libcurl.so.4", "libcrypto.so.3", "libpq.so.5", "libisal.so.2"]:
            assert glob.glob(f"{root}/**/{library}", recursive=True), library
        shutil.copy(archive, os.path.join(root, "data/a.car.zst"))
        # As in a container: nothing else is there, and the user is nobody.
        if shutil.which("bwrap") and run("bwrap", "--ro-bind", "/", "/", "true").returncode == 0:
            inside = ["bwrap", "--unshare-all", "--bind", root, "/", "--dev", "/dev", "--proc", "/proc", "--uid", "65532",
                      "--gid", "65532", "--chdir", "/data", "--clearenv", "--setenv", "LD_LIBRARY_PATH", library_paths(root)]
        elif os.geteuid() == 0:
            os.chmod(folder, 0o755)
            inside = ["env", "-i", f"LD_LIBRARY_PATH={library_paths(root)}", shutil.which("chroot"), "--userspec=65532:65532", root]
        else:
            return "bwrap"
        for words in [["/usr/bin/carpack", "--version"], ["/usr/bin/carpack", "verify", "/data/a.car.zst"]]:
            result = run(*inside, *words)
            assert result.returncode == 0, f"{words}: {result.stdout}"
        result = run(*inside, "/usr/bin/carpack", "export", "/data/a.car.zst", "--sqlite", "/tmp/a.db")
        assert result.returncode == 0, result.stdout


def the_page_of_the_format_is_clean():
    with open(os.path.join(TOP, "Docs/FORMAT.md"), "rb") as file:
        result = subprocess.run([os.path.join(TOP, "Scripts/format-manual.py"), "1.2.3"], stdin=file, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    with tempfile.NamedTemporaryFile(suffix=".5") as page:
        page.write(result.stdout)
        page.flush()
        if not shutil.which("man"):
            return "man"
        shown = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page.name], capture_output=True, check=False,
                               env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80"))
        assert shown.returncode == 0 and not shown.stderr, shown.stderr.decode()[:500]
        # A word of the last table, and the last line of the worked example.
        for words in ["u64 required features", "D2 CA 51 F9 67 61 22 E2", "SEE ALSO"]:
            assert words in re.sub(r"\x1b\[[0-9;]*m|.\x08", "", shown.stdout.decode()), words


def library_paths(root):
    """Where the libraries of a command lie that was built for the suites, whose standard library is not in it."""
    return ":".join(sorted({os.path.dirname(path)[len(root):] for path in glob.glob(f"{root}/**/libswift*.so", recursive=True)}))


def main():
    failed = 0
    checks = [
        units_have_options_that_there_are, compose_files_have_options_that_there_are, schedules_have_options_that_there_are,
        the_formula_is_ruby_and_of_this_version, the_install_script_checks_what_it_installs,
        the_root_of_the_container_has_all_that_the_command_needs, the_page_of_the_format_is_clean,
    ]
    for check in checks:
        name = check.__name__.replace("_", " ")
        try:
            missing = check()
            print(f"ok      {name}{f' (in part: there is no {missing})' if missing else ''}")
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {name}: {error}")
    print(f"{len(checks)} checks of the packaging, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
