"""The other side of worker.py: starts emulator processes, hands them jobs, notices when they die or take too long."""
import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def missing(environment=os.environ):
    """Why the emulator cannot run, or None."""
    library = environment.get("KILN_AMD_MACHINE")
    if not library:
        return "KILN_AMD_MACHINE is not set: it names the emulator's library, test/emulation/libkiln_amd_machine.so of a build"
    if not os.path.exists(library):
        return f"KILN_AMD_MACHINE={library} does not exist"
    return None if shutil.which("llvm-objdump-22") else "no llvm-objdump-22"


class Worker:
    """One emulator process at a time; a new one after every death."""

    def __init__(self):
        self.process = None

    def run(self, job, timeout):
        """The worker's answer, or {"done": False, "error": ...} saying where it died."""
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "worker.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
            self.unread = b""
        self.process.stdin.write((json.dumps(job) + "\n").encode())
        at, deadline = "the start", time.time() + timeout
        while True:
            line = self._line(deadline)
            if line is None:
                self.close()
                return {"done": False, "error": f"more than {timeout} s, at {at}"}
            if not line:
                code = self.process.wait()
                self.close()
                what = "out-of-bounds access (SIGSEGV)" if code == -signal.SIGSEGV else f"the emulator died with {code}"
                return {"done": False, "error": f"{what}, at {at}"}
            message = json.loads(line)
            if "at" not in message:
                if "error" in message:
                    message["error"] += f", at {at}"
                return message
            at = message["at"]

    def _line(self, deadline):
        while b"\n" not in self.unread:
            if not select.select([self.process.stdout], [], [], max(deadline - time.time(), 0))[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return b""
            self.unread += more
        line, self.unread = self.unread.split(b"\n", 1)
        return line

    def close(self):
        if not self.process:
            return
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None


def run_all(items, run_one, jobs):
    """run_one(item, worker) for every item, on `jobs` threads that have a worker each; results come as they are
    ready."""
    waiting, ready = queue.SimpleQueue(), queue.SimpleQueue()
    for item in items:
        waiting.put(item)

    def work():
        worker = Worker()
        try:
            while True:
                item = waiting.get_nowait()
                ready.put((item, run_one(item, worker)))
        except queue.Empty:
            pass
        finally:
            worker.close()
            ready.put(None)

    for _ in range(jobs):
        threading.Thread(target=work, daemon=True).start()
    for _ in range(jobs):
        while (result := ready.get()) is not None:
            yield result
