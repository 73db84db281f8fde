"""The examples of docs/python.md run, in order, as one program."""
import contextlib
import io
import os
import re
import unittest

from python_case import PythonCase


class Documents(PythonCase):
    def test_the_tour_runs(self):
        with open(os.path.join(os.environ["KILN_SOURCE"], "docs/python.md")) as f:
            text = f.read()
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        self.assertGreaterEqual(len(blocks), 5)
        before = os.getcwd()
        os.chdir(self.dir)
        self.addCleanup(os.chdir, before)
        printed, names = io.StringIO(), {}
        with contextlib.redirect_stdout(printed):
            for i, block in enumerate(blocks):
                exec(compile(block, f"docs/python.md, example {i + 1}", "exec"), names)
        self.assertIn("(x: f32[batch, 16]) -> (y: f32[batch, 4])", printed.getvalue())
        self.assertIn("(2, 4) (64, 4)", printed.getvalue())
        self.assertIn("missing_file absent.kiln", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
