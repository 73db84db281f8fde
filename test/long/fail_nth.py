#!/usr/bin/env python3
"""Fail the n-th call of each function of the system while `kiln run` loads a file and uses its cache, or while the farm works.

    fail_nth.py KILN FILE.kiln [--state warm|cold] [--only FUNCTION] [--minutes M] [--most N] [--leaks]
    fail_nth.py KILN MODEL.onnx --farm worker|job [...]

For each function (allocate, open, read, ...) the command runs again and again, and in the n-th run the n-th call of the
function fails (fail_nth.c, preloaded). A run must end with exit code 0, or 2 to 4 and one line of error; a signal,
another exit code or more than --seconds is a finding. With a warm cache everything but `allocate` may be forgiven, since
the cache never fails a run: how the runs ended is printed for each function. If all calls of a function would take
longer than --minutes, the first 200 fail, and then every k-th. Calls before main() are not counted, and neither are
those of compile workers, which are processes of their own.

--farm worker: `kiln farm worker --drain` with one job in the queue of a real Redis server. After each run the job must be
done, dead with a reason, or be done by the next worker, and no file may be left in the scratch folder. --farm job: the
process of one job, `kiln --farm-job`: it answers that the result is there, which then has the right bytes, or why not; or it
ends, which its worker reports. --leaks: LeakSanitizer (that of GCC, preloaded) looks at what is left at the end of each run. Prints findings and a table; exit 1 on a finding."""
import argparse
import collections
import filecmp
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from redis_server import RedisServer  # noqa: E402

FUNCTIONS = ["allocate", "open", "read", "map", "status", "write", "sync", "rename", "make-folder", "lock", "sockets", "fork", "thread", "connect", "send", "receive", "wait", "owner"]
HERE = os.path.dirname(os.path.abspath(__file__))
CONSECUTIVE = 200


class Server:
    """The program, stopped before main(): it runs main() in a child for each request."""

    def __init__(self, kiln, folder, seconds, leaks, **more):
        library, self.errors = os.path.join(folder, "fail_nth.so"), os.path.join(folder, "errors")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", *(["-DLEAKS"] if leaks else []), "-o", library, os.path.join(HERE, "fail_nth.c"), "-ldl"], check=True)
        if leaks:
            library += ":" + os.path.realpath(subprocess.run(["cc", "-print-file-name=liblsan.so"], check=True, capture_output=True, text=True).stdout.strip())
            more["LSAN_OPTIONS"] = "exitcode=23:print_suppressions=0:suppressions=" + os.path.join(HERE, "../lsan.supp")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self.requests, self.answers = ours_out, ours_in
        environment = {**os.environ, "KILN_CACHE_DIR": os.path.join(folder, "cache"), "FAIL_NTH_ERRORS": self.errors, "FAIL_NTH_SECONDS": str(seconds), "LD_BIND_NOW": "1", "XDG_CONFIG_HOME": os.path.join(folder, "config"), **more}
        command = ["/bin/bash", "-c", 'exec 198<&"$1" 199>&"$2"; LD_PRELOAD="$3" exec "$4"', "bash", str(theirs_in), str(theirs_out), library, kiln]
        self.process = subprocess.Popen(command, env=environment, pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.close(theirs_in), os.close(theirs_out)

    def run(self, function, n, arguments):
        """Returns how the run ended, how often it called the function, whether a call failed, and its words."""
        words = b"".join(a.encode() + b"\0" for a in arguments)
        os.write(self.requests, struct.pack("<iii", FUNCTIONS.index(function), n, len(words)) + words)
        answer = b""
        while len(answer) < 16:
            part = os.read(self.answers, 16 - len(answer))
            if not part:
                sys.exit("the server ended")
            answer += part
        status, calls, failed, late = struct.unpack("<iiii", answer)
        code = "late" if late else f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        with open(self.errors, errors="replace") as f:
            return code, calls, bool(failed), f.read()


class Run:
    """`kiln run`, with a warm or a cold cache."""
    codes, answer = (0, 2, 3, 4), ""

    def __init__(self, options, folder):
        self.options, self.folder, self.more = options, folder, {}
        self.arguments = ["run", os.path.abspath(options.file), "--threads", "1"]

    def before(self):
        if self.options.state == "cold":
            subprocess.run(["rm", "-rf", os.path.join(self.folder, "cache")], check=True)

    def wrong(self, code, text):
        lines = [line for line in text.replace("\r", "\n").split("\n") if line.startswith("kiln: ") and not line.startswith("kiln: warning")]
        return code not in self.codes or (code != 0 and len(lines) != 1)


class FarmWorker(Run):
    """A worker that takes one job from a queue and ends."""

    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.server, self.scratch = RedisServer(os.path.join(folder, "redis")), os.path.join(folder, "scratch")
        os.mkdir(self.scratch)
        os.chmod(folder, 0o711)  # jobs of root's worker run as users of their own
        self.arguments = ["farm", "worker", "--redis", self.server.url, "--drain", "--scratch", self.scratch, "--attempts", "1", "--lease", "2", "--quiet"]

    def kiln(self, *words):
        return subprocess.run([self.options.kiln, *words], env={**os.environ, "XDG_CONFIG_HOME": os.path.join(self.folder, "config")}, capture_output=True, text=True)

    def before(self):
        subprocess.run(["redis-cli", "-p", str(self.server.port), "flushall"], check=True, capture_output=True)
        self.kiln("farm", "submit", os.path.abspath(self.options.file), "--redis", self.server.url)

    def wrong(self, code, text):
        if code not in self.codes:
            return True
        for _ in range(2):
            farm = json.loads(self.kiln("farm", "status", "--redis", self.server.url, "--json").stdout)["farms"][0]
            if farm["counts"]["done"] + farm["counts"]["repeated"] == 1 or (farm["dead"] and farm["dead"][0]["error"]):
                return os.listdir(self.scratch) != []
            self.kiln(*self.arguments[:-1])  # another worker
        return True


class FarmJob(Run):
    """The process of a job."""

    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.job, self.good = os.path.join(folder, "job"), os.path.join(folder, "good.kiln")
        subprocess.run([options.kiln, "compile", options.file, "-o", self.good, "--quiet"], check=True)
        self.more = {"FAIL_NTH_INPUT": os.path.join(folder, "request"), "FAIL_NTH_OUTPUT": os.path.join(folder, "answer")}
        with open(self.more["FAIL_NTH_INPUT"], "w") as file:
            json.dump({"kind": "compile", "folder": self.job, "options": []}, file)
        os.chmod(folder, 0o711)
        self.arguments = ["--farm-job"]

    def before(self):
        shutil.rmtree(self.job, ignore_errors=True)
        os.mkdir(self.job, 0o700)
        shutil.copy(self.options.file, os.path.join(self.job, "model.onnx"))

    def wrong(self, code, text):
        with open(self.more["FAIL_NTH_OUTPUT"]) as file:
            self.answer = file.read()
        if code != 0 or not self.answer:
            return code not in (3, 4)  # the worker says how the process ended, and goes on
        said = json.loads(self.answer)
        return said.get("kind") == "internal" if said else not filecmp.cmp(self.good, os.path.join(self.job, "result.kiln"), shallow=False)


def numbers(calls, most, seconds_a_run, minutes):
    """Which calls fail: all of them, or as many as the time allows."""
    allowed = max(CONSECUTIVE + 1, int(60 * minutes / max(seconds_a_run, 1e-4)))
    if calls <= allowed:
        return range(1, min(calls, most) + 1)
    step = math.ceil((calls - CONSECUTIVE) / (allowed - CONSECUTIVE))
    return [n for n in [*range(1, CONSECUTIVE + 1), *range(CONSECUTIVE + step, calls + 1, step)] if n <= most]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("file")
    parser.add_argument("--state", choices=["warm", "cold"], default="warm")
    parser.add_argument("--farm", choices=["worker", "job"])
    parser.add_argument("--leaks", action="store_true")
    parser.add_argument("--only", choices=FUNCTIONS)
    parser.add_argument("--minutes", type=float, default=5, help="for each function")
    parser.add_argument("--most", type=int, default=1000000)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    options.kiln = os.path.abspath(options.kiln)
    findings = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        what = {None: Run, "worker": FarmWorker, "job": FarmJob}[options.farm](options, folder)
        server = Server(options.kiln, folder, options.seconds, options.leaks, **what.more)

        def run(function, n):
            what.before()
            return server.run(function, n, what.arguments)

        for _ in range(2):  # the second run finds a warm cache
            code, _, _, text = run("fork", 0)
            if code != 0 or what.wrong(code, text):
                sys.exit(f"without a failure: {code} {text}")
        for function in [options.only] if options.only else FUNCTIONS:
            begin = time.monotonic()
            _, calls, _, _ = run(function, 0)
            ended = collections.Counter()
            for n in numbers(calls, options.most, time.monotonic() - begin, options.minutes):
                code, _, failed, text = run(function, n)
                if not failed:
                    continue  # threads make the number of calls vary
                ended[str(code)] += 1
                if what.wrong(code, text):
                    findings += 1
                    print(f"{function} {n}: {code}: {(text.strip() or what.answer)[-300:]}", flush=True)
            runs += sum(ended.values())
            print(f"{function:12} {calls:6} calls, {sum(ended.values()):6} failed; runs ended with {dict(sorted(ended.items()))}, {time.monotonic() - begin:.0f} s", flush=True)
        if options.farm == "worker":
            what.server.stop()
    print(f"{runs} failed calls, {findings} findings")
    return findings > 0


if __name__ == "__main__":
    sys.exit(main())
