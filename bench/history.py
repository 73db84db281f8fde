#!/usr/bin/env python3
"""Ratios to peers over time: benchmarks append them to a file (`--history FILE`), and this program prints what changed.

    bench/history.py [FILE] [--machine TEXT] [--case TEXT]      # default: bench/history.jsonl

Prints a table for each machine. A row has a case, a peer, the program that measured it, the last ratio (the peer's time
over Kiln's: above 1 Kiln is faster), the one before it and the best of all. A ratio that is more than 5 % lower than the one
before it or than the best is marked. Rows are told apart by machine, program, case and the peer's name; the version of a
peer is shown and may change. The filters keep machines and cases that contain a text.

A line of the file is a JSON object: `date`, `commit`, `build` (the digests that `kiln --version` prints), `machine`
(processor and threads, or GPU), `command`, `case` (model, batch, precision and what else the case needs), `peer` with its
version, `ratio`, and the times `kiln_ms` and `peer_ms`, which were measured in turn in one run.
"""
import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT = os.path.join(HERE, "history.jsonl")
FALL = 0.05  # marked when a ratio is lower by more than this share


def processor(threads):
    """The machine of a run on the processor, with the number of threads that the run used."""
    fields = {}
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            fields = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", f.read(), re.M))
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields['model']})"
    return f"{name}, {threads} thread{'s' if threads > 1 else ''}"


def gpu(device):
    """The machine of a run on an NVIDIA GPU, given as Kiln names it ("cuda:0")."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader", "-i", device.partition(":")[2] or "0"]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip()


def case(model, batch=1, precision=None, *more):
    """The name of a case. Without a precision it is that of the file: f16 where the model's name says so, else f32."""
    return ", ".join([model, f"batch {batch}", precision or ("f16" if "fp16" in model else "f32"), *more])


def version_of(package):
    """The name of an installed Python package with its version: how lines name a peer."""
    from importlib.metadata import version
    return f"{package} {version(package)}"


def add_options(parser):
    """The options of every benchmark that can append to a history."""
    parser.add_argument("--history", metavar="FILE", help="append each ratio to this file, see bench/history.py")
    parser.add_argument("--commit", help="the commit that KILN was built from, for --history (default: that of this checkout)")


class Log:
    """Appends lines to the file of `--history`, and does nothing without that option. Raises SystemExit at once where the
    commit is neither given nor found, so that no run ends without its lines."""

    def __init__(self, options, kiln):
        self.path = options.history
        if self.path:
            self.fixed = {"date": datetime.date.today().isoformat(), "commit": options.commit or checkout(), "build": build_of(kiln)}

    def add(self, machine, case, peer, kiln_ms, peer_ms):
        if not self.path:
            return
        line = self.fixed | {"machine": machine, "command": command(sys.argv), "case": case, "peer": peer,
                             "ratio": round(peer_ms / kiln_ms, 4), "kiln_ms": round(kiln_ms, 5), "peer_ms": round(peer_ms, 5)}
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps(line, ensure_ascii=False) + "\n")


def checkout():
    done = subprocess.run(["git", "-C", HERE, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True)
    if done.returncode:
        sys.exit("history: this is no git checkout; give the commit of KILN with --commit")
    return done.stdout.strip()


def build_of(kiln):
    text = subprocess.run([kiln, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    found = re.search(r"\((.*)\)", text)
    return found[1] if found else text


def command(arguments):
    """The command as it would be given in the repository: paths shortened to their last part, without --history and --commit."""
    program = os.path.relpath(os.path.abspath(arguments[0]), os.path.dirname(HERE))
    words, skip = [program], False
    for word in arguments[1:]:
        if not skip and word.partition("=")[0] not in ("--history", "--commit"):
            words.append(os.path.basename(word.rstrip("/")) if "/" in word else word)
        skip = word in ("--history", "--commit")
    return " ".join(words)


def read(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def series(lines):
    """(machine, program, case, peer's name) → its lines in the order of the file."""
    found = {}
    for line in lines:
        program, peer = line["command"].split()[0], line["peer"].split()[0]
        found.setdefault((line["machine"], program, line["case"], peer), []).append(line)
    return found


def falls(ratios):
    """What to write beside the last of some ratios: how much lower it is than the one before and than the best."""
    others = {"the one before": ratios[-2:-1], "the best": ratios[:-1]}
    lower = {name: 1 - ratios[-1] / max(of) for name, of in others.items() if of}
    return ", ".join(f"**{100 * by:.0f} % below {name}**" for name, by in lower.items() if by > FALL)


def tables(lines):
    """The tables as Markdown: {machine: rows}."""
    found = {}
    for (machine, program, of, _), rows in series(lines).items():
        ratios = [row["ratio"] for row in rows]
        before = f"{ratios[-2]:.2f} ({rows[-2]['commit']})" if len(rows) > 1 else "-"
        best = max(rows, key=lambda row: row["ratio"])
        last = rows[-1]
        found.setdefault(machine, []).append(
            f"| {of} | {last['peer']} | {program} | {last['date']} | {last['commit']} | {ratios[-1]:.2f} | {before} "
            f"| {best['ratio']:.2f} ({best['commit']}) | {falls(ratios)} |")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default=DEFAULT)
    parser.add_argument("--machine", default="")
    parser.add_argument("--case", default="")
    options = parser.parse_args()
    lines = [line for line in read(options.file) if options.machine in line["machine"] and options.case in line["case"]]
    for machine, rows in tables(lines).items():
        print(f"\n{machine}\n\n| case | peer | program | date | commit | ratio | before | best | |\n|---|---|---|---|---|--:|--:|--:|---|")
        print("\n".join(rows))
    if not lines:
        sys.exit(f"history: no line of {options.file} has such a machine and case")


if __name__ == "__main__":
    main()
