"""A real nginx of a test's own: on a free port of the loopback, over a folder of the test's, with the configuration that
docs/farm.md shows."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from redis_server import free_port

# Debian has it in /usr/sbin, which is not in every PATH.
EXECUTABLE = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
WHY_NOT = None if EXECUTABLE else "no nginx on this machine (Debian: nginx-light)"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def shown_server():
    """The server {...} of docs/farm.md."""
    with open(os.path.join(TOP, "docs/farm.md")) as page:
        return re.search(r"```nginx\n(server \{.*?\n\}\n)```", page.read(), re.S)[1]


class NginxServer:
    def __init__(self, folder):
        self.folder, self.port, self.process = str(folder), free_port(), None
        self.files = os.path.join(self.folder, "files")
        os.makedirs(self.files)
        self.start()

    def url(self, scheme):
        return f"{scheme}://127.0.0.1:{self.port}/cache"

    def start(self, location="", server=""):
        """`location` and `server` are further directives at these places. `server` may hold "ssl"."""
        listen = f"listen 127.0.0.1:{self.port}{' ssl' if 'ssl_certificate' in server else ''};\n  {server}"
        text = shown_server().replace("listen 8080;", listen).replace("root /srv/kiln;", f"root {self.files};")
        text = text.replace("location / {", f"location / {{\n    {location}")
        temporary = "".join(f"  {kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.getuid() == 0 else ""
        with open(os.path.join(self.folder, "nginx.conf"), "w") as file:
            file.write(f"{user}daemon off;\npid {self.folder}/pid;\nevents {{}}\nhttp {{\n  access_log {self.folder}/access;\n{temporary}{text}}}\n")
        command = [EXECUTABLE, "-p", self.folder, "-c", os.path.join(self.folder, "nginx.conf"), "-e", os.path.join(self.folder, "errors")]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        end = time.time() + 20
        while time.time() < end and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        with open(os.path.join(self.folder, "errors")) as log:
            raise RuntimeError("nginx did not start: " + log.read()[-500:])

    def calls(self):
        """The lines of its log: one for each call that it has answered."""
        with open(os.path.join(self.folder, "access")) as log:
            return [line for line in log if '"' in line and "HTTP" in line]

    def entries(self):
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(self.files) for name in names)

    def stop(self, how=signal.SIGKILL):
        if self.process:
            os.killpg(self.process.pid, how)  # its workers, too
            self.process.wait()
            self.process = None

    def restart(self, **directives):
        self.stop()
        self.start(**directives)
