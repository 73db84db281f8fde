#!/usr/bin/env python3
"""Fail the n-th call of each function of the system while `kiln run` loads a file and uses its cache.

    fail_nth.py KILN FILE.kiln [--state warm|cold] [--only FUNCTION] [--minutes M] [--most N]

For each function (allocate, open, read, ...) the command runs again and again, and in the n-th run the n-th call of the
function fails (fail_nth.c, preloaded). A run must end with exit code 0, or 2 to 4 and one line of error; a signal,
another exit code or more than --seconds is a finding. With a warm cache everything but `allocate` may be forgiven, since
the cache never fails a run: how the runs ended is printed for each function. If all calls of a function would take
longer than --minutes, the first 200 fail, and then every k-th. Calls before main() are not counted, and neither are
those of compile workers, which are processes of their own. Prints findings and a table; exit 1 on a finding."""
import argparse
import collections
import math
import os
import struct
import subprocess
import sys
import tempfile
import time

FUNCTIONS = ["allocate", "open", "read", "map", "status", "write", "sync", "rename", "make-folder", "lock", "sockets", "fork", "thread"]
HERE = os.path.dirname(os.path.abspath(__file__))
CONSECUTIVE = 200


class Server:
    """The program, stopped before main(): it runs main() in a child for each request."""

    def __init__(self, kiln, folder, seconds):
        library, self.errors = os.path.join(folder, "fail_nth.so"), os.path.join(folder, "errors")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "fail_nth.c"), "-ldl"], check=True)
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self.requests, self.answers = ours_out, ours_in
        environment = {**os.environ, "KILN_CACHE_DIR": os.path.join(folder, "cache"), "FAIL_NTH_ERRORS": self.errors, "FAIL_NTH_SECONDS": str(seconds), "LD_BIND_NOW": "1"}
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
    parser.add_argument("--only", choices=FUNCTIONS)
    parser.add_argument("--minutes", type=float, default=5, help="for each function")
    parser.add_argument("--most", type=int, default=1000000)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    findings = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(os.path.abspath(options.kiln), folder, options.seconds)
        arguments = ["run", os.path.abspath(options.file), "--threads", "1"]

        def run(function, n):
            if options.state == "cold":
                subprocess.run(["rm", "-rf", os.path.join(folder, "cache")], check=True)
            return server.run(function, n, arguments)

        for _ in range(2):  # the second run finds a warm cache
            code, _, _, text = run("fork", 0)
            if code != 0:
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
                lines = [line for line in text.replace("\r", "\n").split("\n") if line.startswith("kiln: ") and not line.startswith("kiln: warning")]
                if code not in (0, 2, 3, 4) or (code != 0 and len(lines) != 1):
                    findings += 1
                    print(f"{function} {n}: {code}: {text.strip()[-300:]}", flush=True)
            runs += sum(ended.values())
            print(f"{function:12} {calls:6} calls, {sum(ended.values()):6} failed; runs ended with {dict(sorted(ended.items()))}, {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{runs} failed calls, {findings} findings")
    return findings > 0


if __name__ == "__main__":
    sys.exit(main())
