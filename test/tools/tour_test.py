"""Runs every command of docs/tour.md and docs/service.md, in the order of the page, with the shell; and the Python of the latter, where
the package is built."""
import os
import re
import shutil
import subprocess
import sys

import kiln_case

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.environ.get("KILN_PYTHON_PACKAGE", "")


class Tour(kiln_case.KilnCase):
    def run_page(self, name):
        """Runs the blocks `sh` of a page in a folder with the model; returns the page."""
        shutil.copy(os.path.join(kiln_case.MODELS, "squeezenet1_1.onnx"), self.dir)
        os.mkdir(self.path("bin"))
        os.symlink(kiln_case.KILN, self.path("bin/kiln"))
        with open(os.path.join(TOP, "docs", name)) as page:
            text = page.read()
        commands = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
        self.environment = {**os.environ, "PATH": f"{self.path('bin')}:{os.environ['PATH']}", "KILN_CACHE_DIR": self.path("cache")}
        for command in commands:
            with self.subTest(command):
                done = subprocess.run(["bash", "-c", command], cwd=self.dir, env=self.environment, capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
        return text, commands

    def test_the_tour(self):
        _, commands = self.run_page("tour.md")
        self.assertGreater(len(commands), 12)
        self.assertTrue(all(command.startswith("kiln ") for command in commands))
        self.assertGreater(os.path.getsize(self.path("report.html")), 10000)
        self.assertTrue(os.listdir(self.path("out")))

    def test_a_service(self):
        text, commands = self.run_page("service.md")
        self.assertGreater(len(commands), 6)
        if not PACKAGE:
            print("the Python of docs/service.md is not run: this build has no Python package")
            return
        example, = re.findall(r"```python\n(.*?)```", text, re.S)
        environment = {**self.environment, "PYTHONPATH": PACKAGE, "KILN_CACHE_PATH": self.path("image/kernels"), "KILN_CACHE_DIR": self.path("empty")}
        done = subprocess.run([sys.executable, "-c", example], cwd=self.dir, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("'kernels': 27", done.stdout)


if __name__ == "__main__":
    kiln_case.main()
