#!/usr/bin/env python3
"""Replies of a Redis server and items of the farm's queue, damaged by a seed, against the real `kiln` command.

    mutated_servers.py KILN replies [--count 10000] [--seed 1] [--jobs 16]     `kiln run --cache-remote`, a server of its own each
    mutated_servers.py KILN items [--count 10000] [--seed 1]                    a farm worker, over a real redis-server

Replies: a run must end with exit 0 (a server that lies is a miss) within 10 s beyond the time that its call may take,
need less than 1 GiB and print nothing but one warning. Items: the worker must take every item, end with exit 0, leave no
item in the queue, and no item may take more than 10 s. Prints a row of counts; exit 1 where anything was wrong."""
import argparse
import collections
import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time

import mutants
from mutations import edit, edit_json, edit_text

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from redis_server import WHY_NOT, RedisServer  # noqa: E402

LONGEST_CALL = 10  # redis_limits::call


def commands(connection):
    """What a client sends, as lists of words."""
    stream = connection.makefile("rb")
    while head := stream.readline():
        words = []
        for _ in range(int(head[1:])):
            size = int(stream.readline()[1:])
            words.append(stream.read(size + 2)[:-2])
        yield words


class LyingServer:
    """Answers like a Redis server that has an entry for every key, but damages every other answer."""

    def __init__(self, entry):
        self.entry, self.random, self.socket = entry, random.Random(0), socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with connection:
            try:
                for words in commands(connection):
                    answer = b"$%d\r\n%s\r\n" % (len(self.entry), self.entry) if words[0] == b"GETEX" else b"+OK\r\n"
                    connection.sendall(self.damaged(answer) if self.random.random() < 0.7 else answer)
            except (OSError, ValueError):
                return

    def damaged(self, answer):
        r, choice = self.random, self.random.randrange(6)
        if choice == 0:  # what an entry holds
            body = bytes(edit(r, bytearray(self.entry)))
            return b"$%d\r\n%s\r\n" % (len(body), body)
        if choice == 1:
            return b"$%d\r\n%s\r\n" % (r.choice([-5, -1, 0, 5, len(self.entry) - 1, len(self.entry) + 1, 1 << 31, 1 << 63, 10**30]), self.entry)
        if choice == 2:
            return r.choice([b"*%d\r\n", b":%d\r\n", b"-%d\r\n", b"%%%d\r\n", b"~%d\r\n", b"_\r\n%d", b"#%d\r\n"]) % r.choice([-1, 0, 1, 5, 1 << 32, (1 << 63) - 1]) + answer * r.choice([0, 1, 3])
        if choice == 3:
            return b"*1\r\n" * r.choice([1, 8, 100, 5000]) + answer
        if choice == 4:
            return edit_text(r, answer[:200]) + answer[200:]
        return answer[:r.randrange(len(answer))]


def reply_task(task):
    kiln, seeds, seed, numbers, scratch = task
    folder, counts, most, slowest, faults = os.path.join(scratch, str(os.getpid())), collections.Counter(), 0, 0.0, []
    os.makedirs(folder, exist_ok=True)
    server = LyingServer(next(data for name, data in seeds.entries.items() if name.endswith(".kernel")))
    url = f"redis://127.0.0.1:{server.socket.getsockname()[1]}"
    for number in numbers:
        server.random = random.Random(f"{seed} {number}")
        case = mutants.make(seeds, "trust", seed, number, folder)  # an empty folder
        command = [kiln, "run", seeds.path("product.kiln"), "--dim", "n=2", "--target", mutants.TARGET, *mutants.ON_HOST, "--cache", os.path.join(case.folder, "cache"), "--cache-remote", url]
        errors = os.path.join(scratch, f"errors.{os.getpid()}")
        code, wall, _, kib = mutants.execute(command, seeds.env, errors, LONGEST_CALL + mutants.MOST_SECONDS)
        with open(errors, "rb") as file:
            text = file.read(1 << 16)
        wrong = code != 0 or kib > mutants.MOST_KIB or any(c < 32 and c != 10 for c in text) or len(text.splitlines()) > 2
        counts["fault" if wrong else "exit 0"] += 1
        most, slowest = max(most, kib), max(slowest, wall)
        if wrong:
            faults.append(f"reply {seed} {number}: exit {code}, {wall:.1f} s, {kib} KiB, {text[-300:]!r}")
    return counts, most, slowest, faults


def replies(a, folder):
    seeds = mutants.Seeds(a.kiln, folder)
    numbers = range(a.first, a.count)
    tasks = [(a.kiln, seeds, a.seed, numbers[i:i + 25], folder) for i in range(0, len(numbers), 25)]
    counts, most, slowest, faults, end = collections.Counter(), 0, 0.0, [], time.monotonic() + a.seconds
    with multiprocessing.Pool(a.jobs) as pool:
        for more, kib, seconds, found in pool.imap_unordered(reply_task, tasks):
            counts += more
            most, slowest = max(most, kib), max(slowest, seconds)
            faults += found
            print(f"\r{sum(counts.values())}", end="", file=sys.stderr, flush=True)
            if time.monotonic() > end:
                pool.terminate()
                break
    print(f"\n| replies | {sum(counts.values()):,} | {counts['exit 0']:,} exit 0 | {counts['fault']} faults | {most >> 10} MiB | {slowest:.1f} s |")
    return faults


class Redis:
    """A client: enough for queues."""

    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def __call__(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.stream.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        self.stream.flush()
        return self.read()

    def read(self):
        head = self.stream.readline()
        if head[:1] == b"$":
            return None if head[1:2] == b"-" else self.stream.read(int(head[1:]) + 2)[:-2]
        if head[:1] == b"*":
            return [self.read() for _ in range(max(0, int(head[1:])))]
        return int(head[1:]) if head[:1] == b":" else head[1:-2]


def damaged_item(r, redis, prefix, name, spec):
    """Queues a job whose text, fields or entry of the stream are damaged."""
    text, fields = spec, {"state": "queued", "label": "m", "attempts": "0", "lost": "0", "keep": "1000"}
    choice = r.randrange(10)
    if choice < 5:
        text = edit_json(r, spec)
    elif choice < 7:
        text = edit_text(r, spec)
    elif choice == 7:
        fields[r.choice(list(fields))] = r.choice(["", "x", "-1", "1e300", "\x1b[31m", "9" * 400, "dead", "running"])
    elif choice == 8:
        document = json.loads(spec)
        document["options"] = r.choice([["--dump-ir", "/tmp/out"], ["--custom-op", "x.hip"], ["-o", "/etc/passwd"], ["/etc/passwd"], ["--manifest", "/etc/shadow"], ["--fp16", "--fp16"], ["--max-nodes", str(r.choice([0, 5, 1 << 70]))], ["--dim", "n=0:5:1"], ["--target", "x\0y"], ["--", "x"], ["--external-weights", "/"]])
        text = json.dumps(document).encode()
    if r.random() < 0.03:
        redis("SET", prefix + b"job:" + name, "x")  # another type
    else:
        redis("HSET", prefix + b"job:" + name, "spec", text, *[w for pair in fields.items() for w in pair])
    entry = redis("XADD", prefix + b"jobs", "*", *(["job", name] if r.random() < 0.97 else [r.choice(["job", "x"]), r.choice(["", "nope"])]))
    if r.random() < 0.9 and isinstance(entry, bytes):
        redis("HSET", prefix + b"job:" + name, "entry", entry)


def items(a, folder):
    if WHY_NOT:
        print(WHY_NOT)
        return []
    mutants.Seeds(a.kiln, folder)
    os.chmod(folder, 0o711)  # jobs of root's worker run as users of their own
    server = RedisServer(os.path.join(folder, "redis"))
    faults, states, slowest, most, taken = [], collections.Counter(), 0.0, 0, 0
    try:
        redis = Redis(server.port)
        env = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": os.path.join(folder, "config")}
        for options in [], ["--fp16"]:
            subprocess.run([a.kiln, "farm", "submit", os.path.join(folder, "product.onnx"), "--options", " ".join(options), "--redis", server.url], check=True, env=env, capture_output=True)
        keys = redis("KEYS", "kiln:farm:*:job:*")
        specs, prefix = [redis("HGET", k, "spec") for k in keys], keys[0][:keys[0].index(b"job:")]
        end = time.monotonic() + a.seconds
        for batch in range(a.first, a.count, 250):
            if time.monotonic() > end:
                break
            for number in range(batch, min(batch + 250, a.count)):
                r = random.Random(f"item {a.seed} {number}")
                damaged_item(r, redis, prefix, b"%064x" % number, r.choice(specs))
            began = time.monotonic()
            command = [a.kiln, "farm", "worker", "--redis", server.url, "--drain", "--scratch", folder, "--attempts", "1", "--lease", "5", "--jobs", str(a.jobs), "--quiet"]
            code, wall, _, kib = mutants.execute(command, env, os.path.join(folder, "errors"), 600)
            most, slowest = max(most, kib), max(slowest, (time.monotonic() - began) / 250)
            left = redis("XLEN", prefix + b"jobs")
            if code != 0 or left:
                with open(os.path.join(folder, "errors"), "rb") as file:
                    faults.append(f"items {a.seed} from {batch}: exit {code}, {left} left, {wall:.1f} s, {file.read()[-400:]!r}")
                    redis("DEL", prefix + b"jobs")
            for number in range(batch, min(batch + 250, a.count)):
                key = prefix + b"job:%064x" % number
                states[(redis("HGET", key, "state") or b"gone").decode("utf-8", "replace")[:20]] += 1
                redis("DEL", key)
            taken += min(250, a.count - batch)
            print(f"\r{taken} {dict(states)}", end="", file=sys.stderr, flush=True)
    finally:
        server.stop()
    print(f"\n| items | {taken:,} | {', '.join(f'{n:,} {s}' for s, n in states.most_common())} | {len(faults)} faults | {most >> 10} MiB | {slowest:.2f} s each |")
    return faults


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kiln"), p.add_argument("what", choices=["replies", "items"]), p.add_argument("--count", type=int, default=10000), p.add_argument("--seed", type=int, default=1), p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--seconds", type=float, default=1e9, help="an end before --count"), p.add_argument("--first", type=int, default=0, help="number of the first one, to go on where a run ended")
    a = p.parse_args()
    a.kiln = os.path.abspath(a.kiln)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        faults = {"replies": replies, "items": items}[a.what](a, folder)
    print(*faults[:20], sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
