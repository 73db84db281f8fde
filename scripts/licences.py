#!/usr/bin/env python3
"""Which licence each file has: REUSE.toml, and the texts in LICENSES.

    scripts/licences.py              a line for each licence: how many files have it
    scripts/licences.py FILE...      the licence of these files
    scripts/licences.py --check      every tracked file has a licence, every licence has its text, every entry matches a
                                     file, and every folder of third_party with sources of others has an entry of its own
"""
import collections
import pathlib
import re
import subprocess
import sys
import tomllib

TOP = pathlib.Path(__file__).resolve().parent.parent


def pattern(glob):
    """As REUSE has it: `*` stays in a folder, `**` does not."""
    words = re.split(r"(\*\*|\*)", glob)
    return re.compile("".join({"**": ".*", "*": "[^/]*"}.get(w, re.escape(w)) for w in words) + r"\Z")


def entries():
    """(patterns, licence, copyright) in the order of the file."""
    for entry in tomllib.loads((TOP / "REUSE.toml").read_text())["annotations"]:
        paths = entry["path"] if isinstance(entry["path"], list) else [entry["path"]]
        yield [pattern(p) for p in paths], entry["SPDX-License-Identifier"], entry["SPDX-FileCopyrightText"]


def tracked():
    return subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True).stdout.splitlines()


def find(path, table):
    """(licence, copyright) of a file, or None."""
    found = None
    for patterns, licence, holder in table:
        if any(p.match(path) for p in patterns):
            found = licence, holder
    return found


def check(files, table):
    problems = [f"{f}: no entry of REUSE.toml matches" for f in files if not find(f, table)]
    wanted = {word for _, licence, _ in table for word in re.split(r" (?:WITH|OR|AND) ", licence)}
    texts = {f.stem for f in (TOP / "LICENSES").iterdir()}
    problems += [f"LICENSES/{name}.txt: missing" for name in sorted(wanted - texts)]
    problems += [f"LICENSES/{name}.txt: no entry of REUSE.toml names it" for name in sorted(texts - wanted)]
    for patterns, licence, _ in table:
        problems += [f"REUSE.toml: '{p.pattern}' matches no file" for p in patterns if not any(p.match(f) for f in files)]
    ours = table[0][1]
    for folder in sorted({f.split("/")[1] for f in files if f.startswith("third_party/")}):
        if all(find(f, table)[0] == ours for f in files if f.startswith(f"third_party/{folder}/")):
            problems.append(f"third_party/{folder}: REUSE.toml has no entry for it")
    # A file may say it itself; then it must say the same.
    for f in files:
        text = (TOP / f).read_bytes()[:2000]
        said = re.search(rb"SPDX-License" rb"-Identifier: ([A-Za-z0-9.+ ()-]+)", text)
        if said and f != "REUSE.toml" and said[1].decode().strip() != find(f, table)[0]:
            problems.append(f"{f}: it says {said[1].decode().strip()}, REUSE.toml {find(f, table)[0]}")
    return problems


def main(arguments):
    table = list(entries())
    files = tracked()
    if arguments == ["--check"]:
        problems = check(files, table)
        print("\n".join(problems) or f"{len(files)} files have a licence whose text is in LICENSES")
        return 1 if problems else 0
    for path in arguments:
        print(path, *(find(path, table) or ("none",)), sep="\t")
    if not arguments:
        for licence, count in collections.Counter(find(f, table)[0] for f in files).most_common():
            print(f"{count:6} {licence}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
