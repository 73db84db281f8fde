#!/usr/bin/env python3
"""One process that serves for hours while everything around it fails.

    soak.py [--minutes 240] [--threads 8] [--seed 1] [--disk MIB]        PYTHONPATH must have the Python package

Threads share sessions of three models and run them at random sizes; every result is compared with NumPy's. Sessions are
closed and opened again. Beside them `kiln run` processes over the same cache folder and a Redis server are started, and
most are killed with -9 at a random moment; what ends by itself must be right. The server is killed and started again, or
away for a while. The disk of the cache (a small tmpfs where this script may mount one) is filled and freed again.

Prints resident memory, descriptors, threads and children each minute. Exit 1 if a result was wrong, a run failed, memory
grew by more than 5 % (and 8 MiB) after the first quarter, or descriptors, threads or children were left a minute after the
end."""
import argparse
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from onnx import numpy_helper

import kiln
from kiln.command import command

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from random_shapes_memory import made_models  # noqa: E402
from redis_server import WHY_NOT, RedisServer  # noqa: E402


def read_line(path):
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return ""


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def image(x, k):
    """Convolution with padding 1, ReLU, pooling over 2 x 2, mean over the rest."""
    n, _, height, width = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = sum(np.einsum("nchw,oc->nohw", padded[:, :, i:i + height, j:j + width], k[:, :, i, j]) for i in range(3) for j in range(3)).clip(0)
    y = y[:, :, :height // 2 * 2, :width // 2 * 2].reshape(n, k.shape[0], height // 2, 2, width // 2, 2)
    return y.max((3, 5)).mean((2, 3), keepdims=True)


REFERENCE = {"perceptron": lambda x, w: softmax((x @ w["w"]).clip(0) @ w["v"]), "attention": lambda x, w: softmax(x @ w["w"] @ x.transpose(0, 2, 1)) @ x, "image": lambda x, w: image(x, w["k"])}


def random_input(r, name):
    if name == "image":
        shape = (r.randint(1, 3), 3, r.randint(2, 24), r.randint(2, 24))
    else:
        shape = (r.randint(1, 4), r.randint(1, 40), 32)
    return np.random.default_rng(r.randrange(1 << 30)).standard_normal(shape).astype(np.float32)


class Soak:
    def __init__(self, options, folder):
        self.options, self.folder, self.end, self.lock = options, folder, time.monotonic() + options.minutes * 60, threading.Lock()
        self.counts, self.faults, self.sessions, self.models, self.weights = {}, [], {}, {}, {}
        self.cache = os.path.join(folder, "disk")
        os.mkdir(self.cache, 0o700)
        self.mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={options.disk}m,mode=0700", "tmpfs", self.cache], capture_output=True).returncode == 0
        self.server = None if WHY_NOT else RedisServer(os.path.join(folder, "redis"))
        for name, model in made_models().items():
            with open(self.path(name + ".onnx"), "wb") as file:
                file.write(model.SerializeToString())
            kiln.compile(self.path(name + ".onnx")).save(self.path(name + ".kiln"))
            self.models[name] = kiln.Model(self.path(name + ".kiln"))
            self.weights[name] = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}

    def path(self, name):
        return os.path.join(self.folder, name)

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def fault(self, text):
        with self.lock:
            self.faults.append(text)
        print("FAULT", text, flush=True)

    def going(self):
        return time.monotonic() < self.end

    def session(self, name):
        """A session that threads share; after 2,000 runs or so a new one takes its place."""
        with self.lock:
            if name not in self.sessions or self.sessions[name][1] == 0:
                self.sessions[name] = [self.models[name].session(specialization="lazy", threads=1, cache=os.path.join(self.cache, "kiln"), warn=lambda text: None), 2000]
            self.sessions[name][1] -= 1
            return self.sessions[name][0]

    def check(self, what, name, x, y):
        want = REFERENCE[name](x, self.weights[name])
        if y.shape != want.shape or not np.allclose(y, want, rtol=1e-3, atol=1e-4):
            self.fault(f"{what}: {name} of {x.shape} is wrong by {np.abs(y - want).max() if y.shape == want.shape else y.shape}")

    def serve(self, seed):
        r = random.Random(seed)
        while self.going():
            name = r.choice(list(REFERENCE))
            x = random_input(r, name)
            try:
                self.check("session", name, x, self.session(name).run({"x": x})["y"])
            except Exception as e:  # whatever it is, a run must not fail here
                self.fault(f"session: {name} of {x.shape}: {type(e).__name__}: {e}")
            self.count("runs")

    def processes(self):
        """Whole commands, of which three in four are killed."""
        r, out, x_file = random.Random(self.options.seed + 1000), self.path("out"), self.path("x.npy")
        while self.going():
            name = r.choice(list(REFERENCE))
            x = random_input(r, name)
            np.save(x_file, x)
            remote = ["--cache-remote", self.server.url] if self.server else []
            child = subprocess.Popen([command(), "run", self.path(name + ".kiln"), "--input", "x=" + x_file, "--threads", "1", "--cache", os.path.join(self.cache, "kiln"), *remote, "--output-dir", out, "--quiet"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
            if r.random() < 0.75:
                time.sleep(r.random() * 0.4)
                child.kill()
            _, errors = child.communicate()
            if child.returncode == 0:
                self.check("command", name, x, np.load(os.path.join(out, "y.npy")))
                self.count("commands")
            elif child.returncode == -signal.SIGKILL:
                self.count("killed")
            else:
                self.fault(f"command: {name} of {x.shape}: exit {child.returncode}: {errors[-300:]!r}")
            time.sleep(r.random() * self.options.pause)

    def trouble(self):
        """The server goes and comes; the disk is full and has room again."""
        r, junk = random.Random(self.options.seed + 2000), os.path.join(self.cache, "junk")
        while self.going():
            time.sleep(min(r.random() * 20, max(0, self.end - time.monotonic())))
            if self.server and r.random() < 0.5:
                try:
                    self.server.restart(r.choice([signal.SIGKILL, signal.SIGTERM]), r.choice([0, 1, 5]))
                    self.count("server restarts")
                except RuntimeError:  # on a crowded machine it may not be there in time; the next restart tries again
                    self.count("slow server starts")
            elif self.mounted:
                try:
                    with open(junk, "wb", buffering=0) as file:
                        while True:
                            file.write(bytes(1 << 16))
                except OSError:
                    self.count("full disks")
                time.sleep(r.random() * 5)
                os.unlink(junk)
                if r.random() < 0.3:
                    subprocess.run([command(), "cache", "gc", "--cache", os.path.join(self.cache, "kiln"), "--max-bytes", "0"], capture_output=True)

    def sample(self):
        gc.collect()
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        with open("/proc/self/task/%d/children" % os.getpid()) as file:
            children = len(file.read().split())
        return resident, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), children

    def held(self):
        """What is open, named: descriptors, threads (with the kernel function that they wait in) and children."""
        names = {}
        for fd in os.listdir("/proc/self/fd"):
            try:
                names["descriptor " + fd] = os.readlink("/proc/self/fd/" + fd)
            except OSError:
                pass
        for thread in os.listdir("/proc/self/task"):
            names["thread " + thread] = " ".join(read_line(f"/proc/self/task/{thread}/{file}") for file in ("comm", "wchan"))
        for child in read_line("/proc/self/task/%d/children" % os.getpid()).split():
            names["child " + child] = read_line(f"/proc/{child}/cmdline").replace("\0", " ")
        return names

    def close(self):
        for session, _ in self.sessions.values():
            session.close()
        self.sessions.clear()

    def run(self):
        for name in REFERENCE:  # what a process has once for all sessions: pools of threads, compile workers
            x = random_input(random.Random(0), name)
            self.check("first", name, x, self.session(name).run({"x": x})["y"])
        self.close()
        time.sleep(10)
        before, held_before = self.sample(), self.held()
        threads = [threading.Thread(target=self.serve, args=(self.options.seed + i,)) for i in range(self.options.threads)] + [threading.Thread(target=self.processes), threading.Thread(target=self.trouble)]
        for thread in threads:
            thread.start()
        begun, samples = time.monotonic(), []
        while self.going():
            time.sleep(min(60, max(0.1, self.end - time.monotonic())))
            samples.append(self.sample())
            print(f"{(time.monotonic() - begun) / 60:6.1f} min: {samples[-1][0]:.1f} MiB, {samples[-1][1]} descriptors, {samples[-1][2]} threads, {samples[-1][3]} children; {self.counts}", flush=True)
        for thread in threads:
            thread.join()
        self.close()
        if self.server:
            self.server.stop()
        after, began = self.sample(), time.monotonic()
        for what, name in sorted(self.held().items()):
            if held_before.get(what) != name:
                print(f"right after the end: {what}: {name}")
        while any(a > b for a, b in zip(after[1:], before[1:])) and time.monotonic() < began + 60:  # workers that are idle end after a while
            time.sleep(1)
            after = self.sample()
        settled = [s[0] for s in samples[len(samples) // 4:]] or [after[0]]
        print(f"{time.monotonic() - began:.0f} s until it had settled")
        third = max(1, len(settled) // 3)
        first, last = sorted(settled[:third])[third // 2], sorted(settled[-third:])[third // 2]
        print(f"resident {first:.1f} -> {last:.1f} MiB (most {max(settled):.1f}); descriptors {before[1]} before, {after[1]} after; threads {before[2]}, {after[2]}; children {before[3]}, {after[3]}; {self.counts}")
        if any(a > b for a, b in zip(after[1:], before[1:])):
            for what, name in sorted(self.held().items()):
                if held_before.get(what) != name:
                    print(f"left: {what}: {name}")
        if last > first * 1.05 and last > first + 8:
            self.fault(f"memory grew from {first:.1f} to {last:.1f} MiB")
        for what, b, a in zip(("descriptors", "threads", "children"), before[1:], after[1:]):
            if a > b:
                self.fault(f"{a - b} {what} are left")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, default=240), p.add_argument("--threads", type=int, default=8), p.add_argument("--seed", type=int, default=1)
    p.add_argument("--disk", type=int, default=8, help="MiB of the cache's disk"), p.add_argument("--pause", type=float, default=0.5, help="longest pause between two commands, in seconds")
    options = p.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["XDG_CONFIG_HOME"], os.environ["KILN_CACHE_DIR"] = os.path.join(folder, "config"), os.path.join(folder, "cache")
        soak = Soak(options, folder)
        try:
            soak.run()
        finally:
            if soak.server:
                soak.server.stop()
            if soak.mounted:
                subprocess.run(["umount", "-l", soak.cache])
    print(f"{len(soak.faults)} faults")
    return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main())
