"""Statuses become exceptions: a class for each status of runtime/kiln.h, with Kiln's message."""
import os
import re
import unittest

import kiln
import numpy as np
from kiln import errors
from onnx import helper

from python_case import PythonCase, add_model, conv_model, model_of, tensor


class Errors(PythonCase):
    def test_every_status_has_a_class(self):
        with open(os.path.join(os.environ["KILN_SOURCE"], "runtime/kiln.h")) as f:
            listed = re.search(r"typedef enum kiln_status(?: KILN_INT)? \{(.*?)\}", f.read(), re.S)[1]
        statuses = {s.lower() for s in re.findall(r"\bKILN_(\w+)", re.sub(r"/\*.*?\*/", "", listed, flags=re.S))} - {"ok"}
        self.assertEqual(statuses, set(errors._classes))
        for status in statuses:
            self.assertEqual(errors.of_status(status, "x: y").status, status)

    def test_every_kind_of_the_command_has_a_class(self):
        with open(os.path.join(os.environ["KILN_SOURCE"], "docs/errors.md")) as f:
            rows = re.findall(r"^\| `(\w+)` \| \d+ \| `KILN_(\w+)` \|", f.read(), re.M)
        self.assertGreater(len(rows), 20)
        for kind, status in rows:
            self.assertEqual(errors.of_status(kind, "").status, status.lower())

    def test_exceptions_are_also_python_s(self):
        for ours, theirs in [
            (errors.UsageError, ValueError),
            (errors.InvalidShapeError, ValueError),
            (errors.InvalidSequenceError, ValueError),
            (errors.MissingFileError, FileNotFoundError),
            (errors.FileAccessError, OSError),
            (errors.OutOfMemoryError, MemoryError),
            (errors.UnsupportedError, NotImplementedError),
            (errors.CompileTimeoutError, TimeoutError),
            (errors.UnreachableError, ConnectionError),
        ]:
            self.assertTrue(issubclass(ours, theirs) and issubclass(ours, kiln.KilnError))
            self.assertEqual(str(ours("a: b; c")), "a: b; c")

    def test_files(self):
        with self.assertRaisesRegex(errors.MissingFileError, "absent.kiln"):
            kiln.open(self.path("absent.kiln"))
        with open(self.path("short.kiln"), "wb") as f:
            f.write(b"KI")
        with self.assertRaisesRegex(errors.DamagedFileError, "short.kiln"):
            kiln.open(self.path("short.kiln"))
        with self.assertRaisesRegex(errors.MissingFileError, "absent.onnx"):
            kiln.compile(self.path("absent.onnx"))
        with self.assertRaises(errors.DamagedFileError):
            kiln.compile(b"no model")

    def test_models(self):
        unknown = model_of([helper.make_node("Nonsense", ["x"], ["y"])], [tensor("x", [1])], [tensor("y", [1])])
        with self.assertRaisesRegex(errors.UnsupportedError, "Nonsense"):
            kiln.compile(unknown)
        with self.assertRaisesRegex(errors.UsageError, "model: a int is none of"):
            kiln.compile(3)
        with self.assertRaisesRegex(errors.UsageError, "precision"):
            kiln.compile(add_model(), precision="fp8")
        with self.assertRaisesRegex(errors.UsageError, "N=.*3"):
            kiln.compile(conv_model(), dims={"N": (1, 2, [3], 4)})
        with self.assertRaises(errors.KilnError):
            kiln.compile(conv_model(), dims={"unknown": 2})
        self.assertEqual([name for name in os.listdir(self.dir) if name.endswith(".kiln")], [])

    def test_devices_and_options(self):
        model = kiln.compile(add_model())
        with self.assertRaises((errors.NoDriverError, errors.NoDeviceError)):
            model.session("cuda:99")
        with self.assertRaises(errors.UsageError):
            model.session("gpu")
        with self.assertRaisesRegex(errors.UsageError, "tune: 'hard' is none of off, quick, full, exhaustive"):
            model.session(tune="hard")
        with self.assertRaisesRegex(errors.UsageError, "specialization"):
            model.session(specialization="sometimes")
        with self.assertRaises(errors.NotCachedError):
            model.session(only_cached=True)(np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32))
        with self.assertRaises(errors.UsageError):
            model.session(allow_unsigned=True, trusted_keys=self.path("keys"))

    def test_calls(self):
        with kiln.compile(add_model()).session(threads=1) as session:
            a = np.zeros((2, 3), np.float32)
            with self.assertRaisesRegex(errors.UsageError, "input 'b': it is missing"):
                session.run({"a": a})
            with self.assertRaisesRegex(errors.UsageError, "input 'c': the model has none of this name; it has a, b"):
                session.run({"a": a, "b": a, "c": a})
            with self.assertRaisesRegex(errors.UsageError, "output 'z'"):
                session.run({"a": a, "b": a}, {"z": a})
            with self.assertRaisesRegex(errors.UsageError, "inputs: the model has 2, and 1 are given"):
                session(a)
            with self.assertRaisesRegex(errors.UsageError, "by place and by name"):
                session(a, a=a)
            self.assertEqual(len(session(a, b=a)), 2)
            with self.assertRaises(errors.UnsupportedError):
                session.run({"a": a, "b": a}, stream=0)
        with self.assertRaisesRegex(errors.UsageError, "session: it is closed"):
            session(a, a)


if __name__ == "__main__":
    unittest.main()
