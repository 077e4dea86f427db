#!/usr/bin/env python3
"""Writes what a built carpack is made of as SPDX 2.3: generate-sbom.py COMMAND SERVER > carpack.spdx.json

Swift packages with the versions of Package.resolved, what the toolchain links statically, and the shared libraries that the command
is linked to or opens, with the versions of this system's packages where dpkg knows them. SOURCE_DATE_EPOCH dates it.
"""

import datetime
import glob
import hashlib
import json
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNTIME_LICENCE = "Apache-2.0 WITH Swift-exception"
LICENCES = {
    "swift-argument-parser": RUNTIME_LICENCE, "swift-system": RUNTIME_LICENCE,
    "swift-nio": "Apache-2.0", "swift-": "Apache-2.0",
    "libsqlite3": "blessing", "libzstd": "BSD-3-Clause", "libz": "Zlib", "libxxhash": "BSD-2-Clause", "libcrypto": "Apache-2.0", "libstdc": "GPL-3.0-or-later WITH GCC-exception-3.1", "libcurl": "curl", "libisal": "BSD-3-Clause", "libpq": "PostgreSQL",
    "libc": "LGPL-2.1-or-later", "libm": "LGPL-2.1-or-later", "libresolv": "LGPL-2.1-or-later",
    "ld-linux": "LGPL-2.1-or-later", "libgcc_s": "GPL-3.0-or-later WITH GCC-exception-3.1",
}
# Opened while the command runs, and in no list of the linker.
OPENED = ["libcrypto.so.3", "libcurl.so.4", "libisal.so.2", "libpq.so.5"]


def output(*command):
    """What a program says; nothing if it is not there or fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.decode() if done.returncode == 0 else ""


def package(name, version, **more):
    identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
    licence = more.pop("licence", "NOASSERTION")
    return {
        "SPDXID": identifier, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
        "copyrightText": "NOASSERTION", **more,
    }


def licence(name):
    return next((text for start, text in LICENCES.items() if re.match(re.escape(start) + r"(\b|(?<=-))", name)), "NOASSERTION")


def linked_modules(program):
    """The modules that a program was linked of, by the list that the linker was given."""
    with open(os.path.join(TOP, ".build/release", f"{program}.product", "Objects.LinkFileList")) as file:
        return set(re.findall(r"/([^/]+)\.build/", file.read()))


def swift_packages(program):
    """The packages that a program was linked of: Package.resolved has also what others take."""
    linked = linked_modules(program)
    with open(os.path.join(TOP, "Package.resolved")) as file:
        pins = json.load(file)["pins"]
    for pin in pins:
        folders = [one for one in glob.glob(os.path.join(TOP, ".build/checkouts/*")) if os.path.basename(one).lower() == pin["identity"]]
        modules = {os.path.basename(one) for folder in folders for one in glob.glob(os.path.join(folder, "Sources", "*"))}
        modules |= {os.path.basename(folder).split(".")[0] for folder in folders}
        if not linked & modules:
            continue
        version, revision = pin["state"].get("version", "NOASSERTION"), pin["state"]["revision"]
        place = pin["location"]
        reference = {
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": "pkg:swift/" + re.sub(r"^https://|\.git$", "", place) + "@" + version,
        }
        yield package(
            pin["identity"], version, licence=licence(pin["identity"]), sourceInfo=f"git revision {revision}",
            externalRefs=[reference] if place.startswith("https://") else [])


def toolchain():
    version = re.search(r"Swift version (\S+)", output("swift", "--version") or "")
    yield package("swift-runtime", version[1] if version else "NOASSERTION", licence=RUNTIME_LICENCE,
                  comment="Swift standard library, Foundation and Dispatch, as far as they are linked statically")


def compiler_library(command):
    with open(command, "rb") as file:
        version = re.search(rb"GCC: \([^)]*\) (\d[\d.]*)", file.read())
    yield package("libstdc++", version[1].decode() if version else "NOASSERTION",
                  licence="GPL-3.0-or-later WITH GCC-exception-3.1", comment="linked statically")


def shared_libraries(command):
    """(name of the file, version): what the linker noted, and what is opened."""
    for line in output("readelf", "-d", command).splitlines():
        match = re.search(r"\(NEEDED\).*\[(.*)\]", line)
        if match:
            yield match[1], "DYNAMIC_LINK"
    for name in OPENED:
        yield name, "OPTIONAL_DEPENDENCY_OF"


def system_package(name):
    """The package of a shared library here, and its version."""
    cache = output("/sbin/ldconfig", "-p")
    match = re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", cache, re.MULTILINE)
    places = [match[1], "/usr" + match[1], match[1].removeprefix("/usr")] if match else []
    if match:
        places.append(os.path.realpath(match[1]))
    for place in places:
        owner = output("dpkg", "-S", place).split(": ")[0].split(",")[0]
        if owner:
            return owner.split(":")[0], output("dpkg-query", "-W", "-f", "${Version}", owner)
    return None, "NOASSERTION"


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: generate-sbom.py COMMAND SERVER")
    command, server = sys.argv[1:]
    digest, server_digest = digest_of(command), digest_of(server)
    version = output(command, "--version").strip()
    moment = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp()), datetime.timezone.utc)

    packages, relations = [], []

    def add(part):
        if part["SPDXID"] not in {one["SPDXID"] for one in packages}:
            packages.append(part)

    def relate(subject, kind, other):
        relations.append({"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other})

    for name, program, checksum, opens in [("carpack", command, digest, True), ("carpack-serve", server, server_digest, False)]:
        root = package(name, version, licence="MIT", primaryPackagePurpose="APPLICATION",
                       checksums=[{"algorithm": "SHA256", "checksumValue": checksum}])
        add(root)
        relate("SPDXRef-DOCUMENT", "DESCRIBES", root["SPDXID"])
        libraries = [*compiler_library(program)] if opens else []
        for part in [*swift_packages(name), *toolchain(), *libraries]:
            add(part)
            relate(root["SPDXID"], "STATIC_LINK", part["SPDXID"])
        for name, kind in shared_libraries(program):
            if kind != "DYNAMIC_LINK" and not opens:
                continue
            owner, found = system_package(name)
            more = {"licence": licence(name), "primaryPackagePurpose": "LIBRARY"}
            if owner:
                more["sourceInfo"] = f"built with the package {owner} {found}"
            part = package(name, found, **more)
            add(part)
            if kind == "DYNAMIC_LINK":
                relate(root["SPDXID"], kind, part["SPDXID"])
            else:
                relate(part["SPDXID"], kind, root["SPDXID"])

    json.dump({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"carpack-{version}",
        # A name, not an address: it differs for each binary.
        "documentNamespace": f"https://spdx.org/spdxdocs/carpack-{version}-{digest[:32]}",
        "creationInfo": {
            "created": f"{moment:%Y-%m-%dT%H:%M:%SZ}", "creators": ["Tool: generate-sbom.py", "Organization: carpack contributors"],
        },
        "packages": packages, "relationships": relations,
    }, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
