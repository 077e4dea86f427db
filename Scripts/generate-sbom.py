#!/usr/bin/env python3
"""Writes what a built carpack is made of as SPDX 2.3: generate-sbom.py COMMAND > carpack.spdx.json

Swift packages with the versions of Package.resolved, what the toolchain links statically, and the shared libraries that the command
is linked to or opens, with the versions of this system's packages where dpkg knows them. SOURCE_DATE_EPOCH dates it.
"""

import datetime
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
    "libzstd": "BSD-3-Clause", "libz": "Zlib", "libxxhash": "BSD-2-Clause", "libcrypto": "Apache-2.0", "libcurl": "curl",
    "libc": "LGPL-2.1-or-later", "libm": "LGPL-2.1-or-later", "libresolv": "LGPL-2.1-or-later",
    "ld-linux": "LGPL-2.1-or-later", "libgcc_s": "GPL-3.0-or-later WITH GCC-exception-3.1",
}
# Opened while the command runs, and in no list of the linker.
OPENED = ["libcrypto.so.3", "libcurl.so.4"]


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
    return next((text for start, text in LICENCES.items() if re.match(re.escape(start) + r"\b", name)), "NOASSERTION")


def swift_packages():
    with open(os.path.join(TOP, "Package.resolved")) as file:
        pins = json.load(file)["pins"]
    with open(os.path.join(TOP, "Package.swift")) as file:
        manifest = file.read()
    for pin in pins:
        # Package.resolved may also have what only the documentation takes.
        if f'package: "{pin["identity"]}"' not in manifest:
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


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: generate-sbom.py COMMAND")
    command = sys.argv[1]
    with open(command, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    version = output(command, "--version").strip()
    moment = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp()), datetime.timezone.utc)

    root = package("carpack", version, licence="MIT", primaryPackagePurpose="APPLICATION",
                   checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
    packages, relations = [root], []

    def relate(subject, kind, other):
        relations.append({"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other})

    relate("SPDXRef-DOCUMENT", "DESCRIBES", root["SPDXID"])
    for part in [*swift_packages(), *toolchain(), *compiler_library(command)]:
        packages.append(part)
        relate(root["SPDXID"], "STATIC_LINK", part["SPDXID"])
    for name, kind in shared_libraries(command):
        owner, found = system_package(name)
        more = {"licence": licence(name), "primaryPackagePurpose": "LIBRARY"}
        if owner:
            more["sourceInfo"] = f"built with the package {owner} {found}"
        part = package(name, found, **more)
        packages.append(part)
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
