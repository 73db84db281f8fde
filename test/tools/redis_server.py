"""A real Redis server of a test's own: on a free port of the loopback, with an append-only file in a folder of the
test's."""
import os
import shutil
import signal
import socket
import subprocess
import time

EXECUTABLE = shutil.which("redis-server")
WHY_NOT = None if EXECUTABLE else "no redis-server on this machine (scripts/setup.sh installs it)"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class RedisServer:
    def __init__(self, folder, *more):
        self.folder, self.more, self.port, self.process = str(folder), more, free_port(), None
        os.makedirs(self.folder, exist_ok=True)
        self.start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def start(self):
        with open(os.path.join(self.folder, "log"), "a") as log:
            self.process = subprocess.Popen([EXECUTABLE, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", *self.more],
                                            stdout=log, stderr=log)
        end = time.time() + 20
        while time.time() < end:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as s:
                    s.sendall(b"PING\r\n")
                    if s.recv(64)[:1] in (b"+", b"-"):
                        return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the Redis server did not start: " + open(os.path.join(self.folder, "log")).read()[-500:])

    def stop(self, how=signal.SIGKILL):
        if self.process:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def restart(self, how=signal.SIGKILL, pause=0.5):
        self.stop(how)
        time.sleep(pause)
        self.start()
