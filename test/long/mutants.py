#!/usr/bin/env python3
"""Damaged inputs of every kind against the real `kiln` command, with counts of what became of them.

    mutants.py KILN [--kinds program,onnx,...] [--count 10000] [--seconds N] [--seed 1] [--jobs N] [--out FOLDER]

The good files to start from are made by KILN from test/fuzz/corpus/onnx. Hashes of a changed file are made right again
where it has some, so that the change is read. The kinds take turns, so that an end after --seconds leaves each with
the same number. A mutant is wrong if kiln ends by a signal or with an exit code of no error, takes more than 10 s (it
is tried once more then; on a busy machine processor time counts, and 60 s), needs more than 1 GiB beyond the file's size (of itself or of a worker), or answers with
anything but one line on standard error (`warm`: one for each file). Such a mutant is kept in OUT. OUT/counts.json has the counts, also of a run
that was ended. Exit 1 where anything was wrong. `--show KIND NUMBER` writes one mutant to OUT and prints its commands.
Queue items and replies of servers: mutated_servers.py."""
import argparse
import collections
import ctypes
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import mutations
from mutations import KilnFile, edit, edit_json, edit_message, edit_text

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "../fuzz/corpus")
MOST_SECONDS, MOST_KIB = 10, 1 << 20
PRCTL, PR_SET_CHILD_SUBREAPER = ctypes.CDLL(None).prctl, 36
CODES = {0, 2, 3, 4, 5, 6}  # docs/errors.md; 1 is the answer "no" of some commands: damaged entries, outputs that differ
TARGET, ON_HOST = "x86-64-v3", ["--device", "host", "--threads", "1"]


def npy_file(kind, shape, data):
    return b"\x93NUMPY\x01\x00v\x00" + f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n" + data


IDS = npy_file("<i8", "(1, 3)", bytes([1, 0, 0, 0, 0, 0, 0, 0]) * 3)


class Seeds:
    """Good files of every kind in a folder."""

    def __init__(self, kiln, folder):
        self.folder, self.config = folder, os.path.join(folder, "config")
        self.env = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_CONFIG_HOME": self.config, "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}

        def call(*arguments):
            return subprocess.run([kiln, *arguments], check=True, env={**self.env, "KILN_CACHE_DIR": self.path("cache")}, capture_output=True, cwd=folder, stdin=subprocess.DEVNULL)
        self.onnx, self.models, self.dims = {}, {}, {}
        for name in sorted(os.listdir(os.path.join(CORPUS, "onnx"))):
            self.onnx[name] = self.read(os.path.join(CORPUS, "onnx", name))
            shutil.copy(os.path.join(CORPUS, "onnx", name), self.path(name + ".onnx"))
            if subprocess.run([kiln, "compile", name + ".onnx", "-o", name + ".kiln"], env=self.env, capture_output=True, cwd=folder).returncode == 0:
                self.models[name] = self.read(self.path(name + ".kiln"))
                self.dims[name] = ["--dim", "n=2"] if b'"symbols":{"n"' in self.models[name].replace(b" ", b"").replace(b"\n", b"") else []
        call("finalize", "branch.kiln", "--target", TARGET, "-o", "objects", "--native-file", "native.kiln")
        shutil.copy(self.path("product.kiln"), self.path("embedded.kiln"))
        call("warm", "embedded.kiln", "--target", TARGET, "--dim", "n=2", "--embed", "--cache", "embedding")
        call("run", "product.kiln", "--dim", "n=2", "--target", TARGET, *ON_HOST)
        shutil.copy(os.path.join(CORPUS, "container/decoder"), self.path("decoder.kiln"))
        with open(self.path("ids.npy"), "wb") as file:
            file.write(IDS)
        call("generate", "decoder.kiln", "--prompt-ids", "ids.npy", "--max-new-tokens", "2", *ON_HOST, "--cache", "decoding")
        call("tune", "branch.kiln", "--device", "host", "--budget", "1s", "--cache", "tuned")
        call("cache", "export", "entries.tar.zst", "--cache", "tuned")
        call("run", "branch.kiln", *ON_HOST, "--no-cache", "--record-misses", "misses.log")
        call("cache", "keygen", "root")
        call("cache", "keygen", "farm")
        call("trust", "make", "fleet.root", "--expires", "2999-12-31", "--key", "farm.pub=2998-01-01", "--sign-with", "root")
        call("sign", "branch.kiln", "--version", "3")
        # The decoder's kernels are cached: what is damaged is what stands around them.
        self.generating = ["--prompt-ids", self.path("ids.npy"), "--max-new-tokens", "2", *ON_HOST, "--cache", self.path("decoding")]
        self.decoder = self.read(os.path.join(CORPUS, "container/decoder"))
        configurations = os.path.join(CORPUS, "generation_configuration")
        self.configurations = {n: self.read(os.path.join(configurations, n)) for n in os.listdir(configurations)}
        self.native, self.embedded = self.read(self.path("native.kiln")), self.read(self.path("embedded.kiln"))
        self.entries = {n: self.read(self.path("cache/" + n)) for n in os.listdir(self.path("cache")) if n.endswith((".kernel", ".prepared"))}
        self.records = {n: self.read(self.path("tuned/records/" + n)) for n in os.listdir(self.path("tuned/records"))}
        self.archive = mutations.decompress(self.read(self.path("entries.tar.zst")), 64 << 20)
        self.misses, self.root, self.signature = (self.read(self.path(n)) for n in ("misses.log", "fleet.root", "branch.kiln.sig"))

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()


class Case:
    """A mutant in the making: its generator, the good files, a folder of its own, the commands that read it."""

    def __init__(self, seeds, kind, seed, number, folder):
        self.random, self.seeds, self.folder, self.commands, self.bytes = random.Random(f"{kind} {seed} {number}"), seeds, folder, [], 0

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True, mode=0o700)
        with open(path, "wb") as file:
            file.write(data)
        self.bytes += len(data)
        return path

    def read(self, path, *dims):
        """A file is looked at, or run."""
        self.commands = [["inspect", path, "--check"] if self.random.random() < 0.3 else ["run", path, *ON_HOST, "--no-cache", *dims]]

    def model(self, only=None):
        name = only or self.random.choice(list(self.seeds.models))
        return KilnFile(self.seeds.models[name]), self.seeds.dims[name]


def changed_section(name):
    def make(case):
        file, dims = case.model()
        section = file.sections[name]
        if not section:
            return changed_section("program")(case)
        if name == "manifest" and case.random.random() < 0.7:
            section[:] = edit_json(case.random, section)
        else:
            edit(case.random, section)
        if case.random.random() < 0.05:
            del section[case.random.randrange(len(section)):]
        path = case.write("m.kiln", file.bytes())
        case.read(path, *dims)
    return make


def frame(case):
    """Any byte of a file, hashes as they come: the header, the table, padding."""
    data = bytearray(case.seeds.models[case.random.choice(list(case.seeds.models))])
    edit(case.random, data, 0, case.random.choice([64, 64 + 64 * 6, len(data)]))
    path = case.write("m.kiln", bytes(data[:case.random.randrange(len(data))] if case.random.random() < 0.2 else data))
    case.read(path)


def changed_payload(case, file, index, region=None):
    _, begin, size = file.payloads()[index]
    payload = bytearray(file.sections["kernels"][begin:begin + size])
    edit(case.random, payload, *(region(payload) if region else ()))
    return file.replace_payload(index, bytes(payload))


def portable_kernel(case):
    """A file, the number of a kernel of it in MLIR's bytecode (the others are larger), and the file's dimensions."""
    while True:
        file, dims = case.model()
        found = [i for i, (_, _, size) in enumerate(file.payloads()) if size < 8192]
        if found:
            return file, case.random.choice(found), dims


def kernels(case):
    file, index, dims = portable_kernel(case)
    changed_payload(case, file, index)
    case.commands = [["run", case.write("m.kiln", file.bytes()), *ON_HOST, "--no-cache", *dims]]


def flips(case):
    file, index, _ = portable_kernel(case)
    _, begin, size = file.payloads()[index]
    payload = bytearray(file.sections["kernels"][begin:begin + size])
    bit = case.random.randrange(8 * size)
    payload[bit // 8] ^= 1 << bit % 8
    digest = file.replace_payload(index, bytes(payload))
    path = case.write("m.kiln", file.bytes())
    case.commands = [["inspect", path, "--kernel", digest[:16], "--emit", "mlir"]]


def spirv(case):
    file, _ = case.model("counted")
    sizes = [size for _, _, size in file.payloads()]
    changed_payload(case, file, sizes.index(max(sizes)))
    case.commands = [["finalize", case.write("m.kiln", file.bytes()), "--target", case.random.choice([TARGET, "gfx942"]), "-o", os.path.join(case.folder, "objects"), "--no-cache", "--allow-unsigned-native"]]


def native(case):
    """Code that nobody signed must not run, so only what stands before it is read."""
    def head(payload):
        elf = payload.find(b"\x7fELF")
        return (0, len(payload)) if elf <= 0 or case.random.random() < 0.2 else (0, elf) if case.random.random() < 0.5 else (elf, elf + 64)
    file = KilnFile(case.seeds.native)
    changed_payload(case, file, case.random.randrange(len(file.payloads())), head)
    case.read(case.write("m.kiln", file.bytes()))


def steps(case):
    """A decoder whose file has the program of its steps."""
    file = KilnFile(case.seeds.decoder)
    edit(case.random, file.sections["steps"])
    case.commands = [["generate", case.write("m.kiln", file.bytes()), *case.seeds.generating]]


def genai(case):
    """A folder with a decoder and a configuration beside it, as onnxruntime-genai has it."""
    configuration = case.random.choice(sorted(case.seeds.configurations))
    text = case.seeds.configurations[configuration]
    name = case.random.choice(["genai_config.json", "config.json", "generation_config.json"])
    case.write("f/" + name, (edit_json if case.random.random() < 0.6 else edit_text)(case.random, text))
    case.write("f/model.kiln", case.seeds.decoder)
    case.commands = [["generate", os.path.join(case.folder, "f"), *case.seeds.generating]]


def commands(case):
    """A damaged section, and any of the commands that read files beside `run` and `inspect --check`."""
    file, dims = case.model()
    name = case.random.choice([n for n in ("program", "manifest", "weights_index", "kernels") if file.sections.get(n) and (n != "kernels" or file.payloads())])
    section = file.sections[name]
    if name == "kernels":
        changed_payload(case, file, case.random.randrange(len(file.payloads())))
    else:
        section[:] = edit_json(case.random, section) if name == "manifest" and case.random.random() < 0.7 else edit(case.random, section)
    path, out, good = case.write("m.kiln", file.bytes()), os.path.join(case.folder, "out"), case.seeds.path("branch.kiln")
    host = [*ON_HOST, "--no-cache", *dims]
    case.commands = [case.random.choice([
        ["inspect", path, "--html", out], ["inspect", path, "--dot", out], ["inspect", path, "--json"], ["diff", good, path], ["diff", path, good, "--json"], ["sign", path], ["verify-signature", path],
        ["perf", path, *host, "--iterations", "2", "--html", out], ["perf", path, *host, "--iterations", "2", "--per-kernel", "--json"], ["verify", path, *host], ["verify", path, *host, "--per-kernel"],
        ["tune", path, "--device", "host", "--budget", "100ms", "--cache", os.path.join(case.folder, "cache"), *dims], ["finalize", path, "--target", TARGET, "-o", out, "--no-cache", *dims],
        ["warm", path, "--target", TARGET, "--cache", os.path.join(case.folder, "cache"), *dims], ["refit", path, "--weights", case.seeds.path("branch.onnx"), "-o", out], ["run", path, *ON_HOST, *dims, "--if-cached", "--cache", case.seeds.path("cache")],
        ["generate", path, *case.seeds.generating]])]


def signature(case):
    file = KilnFile(case.seeds.native)
    edit(case.random, file.sections["signature"])
    case.read(case.write("m.kiln", file.bytes()))


def hints(case):
    file, dims = case.model()
    text = b'{"kiln_tuning_hints": 2, "records": [' + b",".join(t for n, t in case.seeds.records.items() if n.endswith(".kernel.json")) + b"]}"
    file.sections["tuning_hints"] = bytearray(edit_json(case.random, text) if case.random.random() < 0.6 else edit_text(case.random, text))
    case.commands = [["run", case.write("m.kiln", file.bytes()), *ON_HOST, "--cache", os.path.join(case.folder, "cache"), *dims]]


def objects(case):
    file = KilnFile(case.seeds.embedded)
    edit(case.random, file.sections["objects"])
    case.commands = [["run", case.write("m.kiln", file.bytes()), *ON_HOST, "--cache", os.path.join(case.folder, "cache"), "--target", TARGET, "--dim", "n=2"]]


def archive(case):
    tar = bytearray(case.seeds.archive)
    if case.random.random() < 0.7:
        heads = [at for at in range(0, len(tar), 512) if tar[at + 257:at + 262] == b"ustar"]
        at = case.random.choice(heads)
        edit(case.random, tar, *((at, at + 512) if case.random.random() < 0.5 else ()))
        if case.random.random() < 0.7:
            tar[at + 148:at + 156] = b"%06o\0 " % (sum(tar[at:at + 148]) + 8 * 32 + sum(tar[at + 156:at + 512]))
        data = mutations.compress(tar)
    else:
        data = bytes(edit(case.random, bytearray(mutations.compress(tar))))
    path = case.write("m.tar.zst", data)
    cache = os.path.join(case.folder, "cache")
    case.commands = [["cache", "import", path, "--cache", cache]]


def entries(case):
    """What precedes the code of an entry, with right hashes; then the cache is read and used. Or the payload, which is
    only verified and exported: code in the own folder counts as the user's own."""
    name = case.random.choice(sorted(case.seeds.entries))
    for other, data in case.seeds.entries.items():
        if other != name:
            case.write("cache/" + other, data)
    entry = bytearray(case.seeds.entries[name])
    head = case.random.random() < 0.5
    edit(case.random, entry, *((0, 144 + int.from_bytes(entry[48:52], "little")) if head else ()))
    data = mutations.repaired_entry(entry) if case.random.random() < 0.8 else bytes(entry)
    case.write("cache/" + name, data[:case.random.randrange(len(data))] if case.random.random() < 0.1 else data)
    cache = os.path.join(case.folder, "cache")
    run = ["run", case.seeds.path("product.kiln"), "--dim", "n=2", "--target", TARGET, *ON_HOST, "--cache", cache]
    case.commands = [run if head else case.random.choice([["cache", "export", os.path.join(case.folder, "out"), "--cache", cache], ["cache", "verify", "--cache", cache]])]


def records(case):
    for name, text in case.seeds.records.items():
        change = case.random.random() < 0.7
        case.write("cache/records/" + name, (edit_json if change and case.random.random() < 0.6 else edit_text)(case.random, text) if change else text)
    cache = os.path.join(case.folder, "cache")
    case.commands = [["run", case.seeds.path("branch.kiln"), *ON_HOST, "--cache", cache]]


def onnx(case):
    name = case.random.choice(list(case.seeds.onnx))
    path, out = case.write("m.onnx", edit_message(case.random, case.seeds.onnx[name])), os.path.join(case.folder, "m.kiln")
    case.commands = [["compile", path, "-o", out], ["run", out, *ON_HOST, "--no-cache", *case.seeds.dims.get(name, [])]]


def npy(case):
    data = edit_text(case.random, npy_file("<f4", "(2, 8)", bytes(64)))
    case.commands = [["run", case.seeds.path("product.kiln"), "--input", "x=" + case.write("x.npy", data), "--cache", case.seeds.path("cache"), "--target", TARGET, *ON_HOST]]


def pb(case):
    message = mutations.write_message([[1, 0, 2], [1, 0, 8], [2, 0, 1], [8, 2, b"x"], [9, 2, bytes(64)]] if case.random.random() < 0.5 else [[1, 0, 2], [1, 0, 8], [2, 0, 1], [4, 2, bytes(64)]])
    case.write("inputs/input_0.pb", edit_message(case.random, message))
    case.commands = [["run", case.seeds.path("product.kiln"), "--inputs", os.path.join(case.folder, "inputs"), "--cache", case.seeds.path("cache"), "--target", TARGET, *ON_HOST]]


def trust(case):
    if case.random.random() < 0.5:
        case.commands = [["trust", "show", case.write("fleet.root", edit_text(case.random, case.seeds.root))]]
    else:
        model = case.write("branch.kiln", case.seeds.models["branch"])
        case.write("branch.kiln.sig", edit_text(case.random, case.seeds.signature))
        case.commands = [["verify-signature", model]]


def lists(case):
    """Recorded misses and lists of models."""
    cache = os.path.join(case.folder, "cache")
    if case.random.random() < 0.5:
        lines = case.seeds.misses.splitlines()
        at = case.random.randrange(len(lines))
        lines[at] = (edit_json if case.random.random() < 0.6 else edit_text)(case.random, lines[at])
        case.commands = [["warm", "--replay", case.write("misses.log", b"\n".join(lines)), "--cache", cache]]
    else:
        text = case.random.choice([b'[{"file": "%s", "options": ["--target", "x86-64-v3"]}]', b'# models\n"%s" --target x86-64-v3 --dim n=1\n']) % case.seeds.path("branch.kiln").encode()
        case.commands = [["warm", "--manifest", case.write("list", edit_text(case.random, text)), "--cache", cache]]


KINDS = {"frame": frame, "program": changed_section("program"), "manifest": changed_section("manifest"), "weights": changed_section("weights_index"), "kernels": kernels, "flips": flips,
         "spirv": spirv, "native": native, "signature": signature, "steps": steps, "genai": genai, "hints": hints, "objects": objects, "archive": archive, "entries": entries, "records": records, "onnx": onnx, "npy": npy, "pb": pb, "trust": trust, "lists": lists, "commands": commands}


def children():
    """Processes that this one must wait for, among them those whose own parent has ended."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found.update(map(int, file.read().split()))
        except OSError:  # the thread has ended
            pass
    return found


def execute(command, env, errors, limit):
    """The exit code (negative: a signal; None: it was ended after `limit` seconds), wall and processor seconds, KiB. Compile
    workers count: they are killed with their host, and then become children of this process, which waits for them."""
    PRCTL(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    began, late, others = time.monotonic(), [], children()
    child = os.posix_spawn(command[0], command, env, file_actions=actions, setpgroup=0)

    def end(*_):
        late.append(True)
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            late.clear()  # it has just ended
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    _, status, usage = os.wait4(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    wall, processor, kib = time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss
    while left := children() - others:
        for pid in left:
            _, _, usage = os.wait4(pid, 0)
            processor, kib = processor + usage.ru_utime + usage.ru_stime, max(kib, usage.ru_maxrss)
    return None if late else os.waitstatus_to_exitcode(status), wall, processor, kib


def judge(case, command, env, errors):
    """What became of a command: ("exit 3", ""), or with the fault; KiB and processor seconds."""
    code, wall, processor, kib = execute(command, env, errors, MOST_SECONDS)
    if code is None:
        code, wall, processor, kib = execute(command, env, errors, 6 * MOST_SECONDS)
        busy = os.getloadavg()[0] > 1.5 * os.cpu_count()  # then a wait says nothing
        if code is None or processor > MOST_SECONDS or (wall > MOST_SECONDS and not busy):
            return "hang", f"{wall:.1f} s, {processor:.1f} s of a processor", kib, processor
    with open(errors, "rb") as file:
        text = file.read(1 << 20)
    if code < 0:
        return f"signal {-code}", "", kib, processor
    if kib > MOST_KIB + case.bytes // 1024:
        return "memory", f"{kib >> 10} MiB", kib, processor
    lines = [line for line in text.split(b"\n") if line.strip() and b"warning" not in line and not line.startswith((b"finalizing ", b"tuning "))]
    if code not in CODES and not (code == 1 and command[1] in ("cache", "verify", "diff")):
        return f"exit {code}", repr(text[-300:]), kib, processor
    if (code not in (0, 1) and (not lines if command[1] == "warm" else len(lines) != 1)) or any(c < 32 and c != 10 for c in text):
        return f"exit {code}", f"{len(lines)} lines: " + repr(text[-300:]), kib, processor
    return f"exit {code}" + (" (worker)" if b"ended by signal" in text or b"the worker" in text else ""), "", kib, processor


def make(seeds, kind, seed, number, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, mode=0o700)
    case = Case(seeds, kind, seed, number, folder)
    KINDS[kind](case)
    return case


def work(state, task):
    kiln, seeds, seed, out, scratch = state
    kind, numbers = task
    counts, runs, most, slowest, used = collections.Counter(), 0, 0, 0.0, 0.0
    folder = os.path.join(scratch, str(os.getpid()))
    for number in numbers:
        case = make(seeds, kind, seed, number, folder)
        for command in case.commands:
            began = time.monotonic()
            outcome, fault, kib, processor = judge(case, [kiln, *command], {**seeds.env, "KILN_CACHE_DIR": os.path.join(folder, "default")}, os.path.join(scratch, f"errors.{os.getpid()}"))
            runs, most, slowest, used = runs + 1, max(most, kib), max(slowest, time.monotonic() - began), used + processor
            if fault or outcome.startswith("signal"):
                shutil.copytree(folder, os.path.join(out, f"{kind}_{seed}_{number}"), dirs_exist_ok=True)
                with open(os.path.join(out, "findings.txt"), "a") as log:
                    log.write(f"{kind} {seed} {number}: {command[0]} {command[-1] if command[0] == 'cache' else ''}: {outcome}: {fault}\n")
                outcome = "fault " + outcome
            if outcome != "exit 0":
                break
        counts[outcome] += 1
    shutil.rmtree(folder, ignore_errors=True)
    return kind, counts, runs, most, slowest, used


_state = None


def begin(state):
    global _state
    _state = state


def task_of_pool(task):
    return work(_state, task)


def table(totals):
    print("| kind | mutants | commands | refused (2, 3, 5) | accepted | other | faults | most memory | slowest | processor time each |\n|---|---|---|---|---|---|---|---|---|---|")
    for kind, t in totals.items():
        c = t["counts"]
        faults = sum(n for o, n in c.items() if o.startswith("fault"))
        refused, accepted = sum(n for o, n in c.items() if o.startswith(("exit 2", "exit 3", "exit 5"))), c.get("exit 0", 0)
        total = sum(c.values())
        print(f"| {kind} | {total:,} | {t['runs']:,} | {refused:,} | {accepted:,} | {total - faults - refused - accepted:,} | {faults} | {t['kib'] >> 10} MiB | {t['slowest']:.1f} s | {1e3 * t['processor'] / max(t['runs'], 1):.0f} ms |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln"), p.add_argument("--kinds", default=",".join(KINDS)), p.add_argument("--count", type=int, default=10000), p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--seed", type=int, default=1), p.add_argument("--jobs", type=int, default=os.cpu_count()), p.add_argument("--out", default="mutants"), p.add_argument("--show", nargs=2)
    p.add_argument("--chunk", type=int, default=50), p.add_argument("--first", type=int, default=0, help="number of the first mutant of each kind, to go on where a run ended")
    a = p.parse_args()
    a.kiln, a.out, kinds = os.path.abspath(a.kiln), os.path.abspath(a.out), a.kinds.split(",")
    os.makedirs(a.out, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.mkdir(os.path.join(folder, "good"))
        seeds = Seeds(a.kiln, os.path.join(folder, "good"))
        if a.show:
            case = make(seeds, a.show[0], a.seed, int(a.show[1]), os.path.join(a.out, "shown"))
            shutil.copytree(seeds.folder, os.path.join(a.out, "good"), dirs_exist_ok=True)
            print(*(" ".join(map(str, c)).replace(seeds.folder, os.path.join(a.out, "good")) for c in case.commands), sep="\n")
            return 0
        tasks = [(k, range(i, min(i + a.chunk, a.count))) for i in range(a.first, a.count, a.chunk) for k in kinds]
        totals = {k: {"counts": {}, "runs": 0, "kib": 0, "slowest": 0.0, "processor": 0.0} for k in kinds}
        end = time.monotonic() + a.seconds
        with multiprocessing.Pool(a.jobs, begin, [(a.kiln, seeds, a.seed, a.out, folder)]) as pool:
            for kind, counts, runs, kib, slowest, used in pool.imap_unordered(task_of_pool, tasks):
                t = totals[kind]
                for outcome, n in counts.items():
                    t["counts"][outcome] = t["counts"].get(outcome, 0) + n
                t["runs"], t["kib"], t["slowest"] = t["runs"] + runs, max(t["kib"], kib), max(t["slowest"], slowest)
                t["processor"] += used
                with open(os.path.join(a.out, "counts.json.new"), "w") as file:
                    json.dump({"seed": a.seed, "kinds": totals}, file, indent=1)
                os.replace(os.path.join(a.out, "counts.json.new"), os.path.join(a.out, "counts.json"))
                if time.monotonic() > end:
                    pool.terminate()
                    break
    table(totals)
    return 1 if any(o.startswith("fault") for t in totals.values() for o in t["counts"]) else 0


if __name__ == "__main__":
    sys.exit(main())
