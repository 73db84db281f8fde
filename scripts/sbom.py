#!/usr/bin/env python3
"""A software bill of materials of a build, in SPDX 2.3's JSON: the files that a build made, what is compiled into them
(third_party, headers and archives of Debian packages) and what they need at run time.

    scripts/sbom.py BUILD_FOLDER [-o FILE] [FILE...]      FILE: files of the build, default: the command and the libraries

It reads Ninja's records of included files and the link commands, so it says what this build used, not what it might. The
same build, with the same SOURCE_DATE_EPOCH, gives the same bytes. A header or library that belongs to no Debian package is
an error. Needs Ninja, dpkg and readelf.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import licences

TOP = licences.TOP
OUTPUTS = ["tools/kiln", "lib/libkiln_runtime.so.0", "lib/libkiln.so.0", "lib/kiln-compile-worker", "lib/libonnxruntime_providers_kiln.so"]
# Licences of Debian's source packages, from their copyright files. One that is not here is NOASSERTION.
LICENCES = {
    "llvm-toolchain-22": "Apache-2.0 WITH LLVM-exception",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "flatbuffers": "Apache-2.0",
    "fmtlib": "MIT",
    "spdlog": "MIT",
    "nlohmann-json3": "MIT",
    "cli11": "BSD-3-Clause",
    "libzstd": "BSD-3-Clause",
    "xxhash": "BSD-2-Clause",
    "libsodium": "ISC",
    "libarchive": "BSD-2-Clause",
    "protobuf": "BSD-3-Clause",
    "onnx": "Apache-2.0",
    "zlib": "Zlib",
    "spirv-tools": "Apache-2.0",
    "spirv-headers": "MIT",
    "curl": "curl",
    "python3.11": "PSF-2.0",
    "linux": "GPL-2.0-only WITH Linux-syscall-note",
    "rocm-hipamd": "MIT",
}
THIRD_PARTY = {
    "blake3": ("BLAKE3", "1.8.6", "https://github.com/BLAKE3-team/BLAKE3"),
    "onnxruntime": ("ONNX Runtime's C headers", "1.23.2", "https://github.com/microsoft/onnxruntime"),
}


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def sources_of(build, target):
    """Objects, archives and shared libraries that a target's link command and those of its own archives name."""
    text = run("ninja", "-C", str(build), "-t", "commands", target)
    words = set(re.split(r"[\s,]+", text))
    return {w for w in words if re.search(r"\.(o|a|so(\.[\d.]+)?)$", w)}


def included(build, objects):
    """Files outside of the build that objects were compiled from, by Ninja's record."""
    wanted = False
    for line in run("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            wanted = line.split(":")[0] in objects
        elif wanted and line.strip():
            yield line.strip()


def needed(path):
    """Names of the shared libraries that a file asks for."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", str(path)))


def loaded(path):
    """Paths of the shared libraries that a file asks for, where the loader finds them."""
    wanted = needed(path)
    found = dict(re.findall(r"(\S+) => (/\S+)", run("ldd", str(path))))
    return [found.get(name, f"/lib64/{name}" if name.startswith("ld-linux") else name) for name in wanted]


def packages_of(paths):
    """The Debian package of each path: {path: package}."""
    real, result = {}, {}
    for path in paths:
        real.setdefault(os.path.realpath(path), []).append(path)
    names = sorted(real)
    for start in range(0, len(names), 200):
        part = names[start : start + 200]
        # Where / holds links to /usr, dpkg knows some files by their path without /usr.
        asked = part + [n[4:] for n in part if n.startswith("/usr/lib")]
        text = subprocess.run(["dpkg", "-S", *asked], capture_output=True, text=True).stdout
        for line in text.splitlines():
            package, _, name = line.rpartition(": ")
            for n in (name, "/usr" + name):
                for path in real.get(n, []):
                    result[path] = package.split(", ")[0].split(":")[0]
    missing = sorted(set(paths) - set(result))
    if missing:
        sys.exit(f"sbom: error: {missing[0]} belongs to no Debian package (and {len(missing) - 1} others)")
    return result


def identifier(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(words))


def describe_package(name):
    version, source, source_version, site = run("dpkg-query", "-W", "-f", "${Version}\t${source:Package}\t${source:Version}\t${Homepage}\n", name).splitlines()[0].split("\t")
    return {
        "SPDXID": identifier("debian", name),
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "homepage": site or "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": LICENCES.get(source, "NOASSERTION"),
        "licenseDeclared": LICENCES.get(source, "NOASSERTION"),
        "copyrightText": "NOASSERTION",
        "comment": f"source package {source} {source_version}",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:deb/debian/{name}@{version}"}
        ],
    }


def describe_third_party(folder, table):
    name, version, site = THIRD_PARTY[folder]
    listed = [f for f in licences.tracked() if f.startswith(f"third_party/{folder}/") and f.endswith((".c", ".h"))]
    licence, holder = licences.find(listed[0], table)
    return {
        "SPDXID": identifier("third-party", folder),
        "name": name,
        "versionInfo": version,
        "downloadLocation": site,
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": holder,
    }


def describe_file(path, name):
    data = path.read_bytes()
    return {
        "SPDXID": identifier("file", name),
        "fileName": "./" + name,
        "checksums": [{"algorithm": a.upper(), "checksumValue": hashlib.new(a, data).hexdigest()} for a in ("sha1", "sha256")],
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }


def bill(build, names):
    table = list(licences.entries())
    version = re.search(r"^project\(kiln VERSION ([0-9.]+)", (TOP / "CMakeLists.txt").read_text(), re.M)[1]
    commit = run("git", "rev-parse", "HEAD", cwd=TOP).strip()
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct", cwd=TOP))
    kiln = {
        "SPDXID": "SPDXRef-kiln",
        "name": "kiln",
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0 WITH LLVM-exception",
        "licenseDeclared": "Apache-2.0 WITH LLVM-exception",
        "copyrightText": "2026 Kiln maintainers",
        "sourceInfo": f"commit {commit}",
    }
    files, relations, all_paths, parts = [], set(), set(), {}
    for name in names:
        target = os.path.relpath(os.path.realpath(build / name), build)
        inputs = sources_of(build, target)
        headers = set(included(build, {i for i in inputs if i.endswith(".o")}))
        inside = {h for h in headers if h.startswith("/usr/")} | {i for i in inputs if i.startswith("/usr/") and i.endswith(".a")}
        used = {p for p in loaded(build / name) if p.startswith("/") and not p.startswith(str(build))}
        own = {(f, p) for f in THIRD_PARTY for p in headers | inputs if f"third_party/{f}/" in p}
        parts[name] = (inside, used, own)
        all_paths |= inside | used
    package = packages_of(all_paths)
    found = set()
    for name, (inside, used, own) in parts.items():
        files.append(describe_file(build / name, name))
        me = files[-1]["SPDXID"]
        relations.add((me, "GENERATED_FROM", "SPDXRef-kiln"))
        for part, path in [(identifier("debian", package[i]), i) for i in inside] + [(identifier("third-party", f), p) for f, p in own]:
            # An archive is linked; of a package with headers alone, the headers are compiled in.
            linked = re.search(r"\.(a|o)$", path)
            relations.add((me, "STATIC_LINK", part) if linked else (part, "BUILD_DEPENDENCY_OF", me))
        for p in used:
            relations.add((me, "DYNAMIC_LINK", identifier("debian", package[p])))
        found |= {package[p] for p in inside | used}
    third = sorted({f for _, _, own in parts.values() for f, _ in own})
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"kiln-{version}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: kiln-sbom-{version}"],
        },
        "packages": [kiln, *(describe_third_party(f, table) for f in third), *(describe_package(p) for p in sorted(found))],
        "files": files,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": e} for e in ("SPDXRef-kiln", *(f["SPDXID"] for f in files))]
        + [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in sorted(relations)],
    }
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["documentNamespace"] = f"https://kiln.example/spdx/kiln-{version}-{digest}"
    return document


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    names = options.files or [n for n in OUTPUTS if (build / n).exists()]
    if not names:
        sys.exit(f"sbom: error: {build}: no build of Kiln")
    text = json.dumps(bill(build, names), indent=1) + "\n"
    if options.output:
        options.output.write_text(text)
    else:
        print(text, end="")
    unknown = [p["name"] for p in json.loads(text)["packages"] if p["licenseDeclared"] == "NOASSERTION"]
    if unknown:
        print("sbom: no licence in the table for", *unknown, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
