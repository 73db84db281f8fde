"""Runs every command of docs/tour.md, in the order of the page, with the shell."""
import os
import re
import shutil
import subprocess

import kiln_case

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Tour(kiln_case.KilnCase):
    def test_every_command_of_the_page(self):
        shutil.copy(os.path.join(kiln_case.MODELS, "squeezenet1_1.onnx"), self.dir)
        os.mkdir(self.path("bin"))
        os.symlink(kiln_case.KILN, self.path("bin/kiln"))
        with open(os.path.join(TOP, "docs/tour.md")) as page:
            blocks = re.findall(r"```sh\n(.*?)```", page.read(), re.S)
        commands = [line for block in blocks for line in block.splitlines()]
        self.assertGreater(len(commands), 12)
        environment = {**os.environ, "PATH": f"{self.path('bin')}:{os.environ['PATH']}", "KILN_CACHE_DIR": self.path("cache")}
        for command in commands:
            with self.subTest(command):
                self.assertTrue(command.startswith("kiln "))
                done = subprocess.run(["bash", "-c", command], cwd=self.dir, env=environment, capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(os.path.getsize(self.path("report.html")), 10000)
        self.assertTrue(os.listdir(self.path("out")))


if __name__ == "__main__":
    kiln_case.main()
