"""Native code in files that Python opens: without consent it does not run."""
import os
import subprocess
import unittest

import numpy as np

import kiln
from kiln import errors
from kiln.command import command
from python_case import PythonCase, add_model


class Trust(PythonCase):
    def test_native_code_needs_consent(self):
        portable = self.path("m.kiln")
        kiln.compile(add_model()).save(portable)

        def native(name, **changed):
            env = {k: v for k, v in {**os.environ, **changed}.items() if v is not None}
            subprocess.run([command(), "finalize", portable, "--target", "x86-64-v3", "-o", self.path("objects"), "--native-file", self.path(name)], check=True, env=env, capture_output=True)
            return self.path(name)

        a = np.ones((2, 3), np.float32)

        def run(file, **options):
            return kiln.Model(file).session(**options).run({"a": a, "b": a})["sum"]

        files = {"own": native("own.kiln"), "stranger": native("stranger.kiln", XDG_CONFIG_HOME=self.path("stranger")), "unsigned": native("unsigned.kiln", HOME=None, XDG_CONFIG_HOME=None)}
        np.testing.assert_array_equal(run(files["own"]), 2 * a)
        for name in "stranger", "unsigned":
            for options in {}, {"no_cache": True}, {"trusted_keys": self.path("config/kiln/key.pub")}:
                with self.subTest(name, **options), self.assertRaises(errors.UntrustedError):
                    run(files[name], **options)
            np.testing.assert_array_equal(run(files[name], allow_unsigned=True), 2 * a)
        keys = self.path("stranger/kiln/key.pub")
        np.testing.assert_array_equal(run(files["stranger"], trusted_keys=keys), 2 * a)
        os.chmod(keys, 0o664)
        with self.assertRaisesRegex(errors.UntrustedError, "writable by its group"):
            run(files["stranger"], trusted_keys=keys)

    def test_names_of_files_and_in_files(self):
        """Bytes that are no text are an error of this package, wherever they stand."""
        with open(self.path("m.onnx"), "wb") as f:
            f.write(add_model().SerializeToString().replace(b"difference", b"differ\xffnce"))
        with self.assertRaisesRegex(errors.UnsupportedError, "not UTF-8"):
            kiln.compile(self.path("m.onnx"), self.path("m.kiln"))
        with self.assertRaisesRegex(errors.UnsupportedError, "not UTF-8"):
            kiln.Model(self.path("m.kiln"))
        good = self.path("good.kiln")
        kiln.compile(add_model()).save(good)
        self.assertEqual(kiln.Model(os.fsencode(good)).path, good)
        with self.assertRaises(errors.MissingFileError):
            kiln.Model(good + "\0.kiln")


if __name__ == "__main__":
    unittest.main()
