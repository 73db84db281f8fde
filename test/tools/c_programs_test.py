"""The programs in examples/: a portable file with the compiler in libkiln.so, a native one with the runtime alone.
KILN_EXAMPLES is their folder, KILN_LIBRARIES that of the
libraries; KILN_STAND_IN and KILN_STAND_IN_PROGRAM as in graph_test.py."""
import ctypes
import os
import shutil
import subprocess
import unittest

import numpy as np

import kiln_case
from kiln_case import KilnCase


class CPrograms(KilnCase):
    def c(self, program, *arguments, code=0, env=None):
        environment = {**os.environ, "KILN_CACHE_DIR": self.path("cache"), **(env or {})}
        done = subprocess.run([os.path.join(os.environ["KILN_EXAMPLES"], program), *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr[-2000:])
        return done

    def expected(self, file, shape, *more):
        """The line that the programs print for y, from `kiln run` with zeros."""
        np.save(self.path("x.npy"), np.zeros(shape, np.float32))
        self.kiln("run", file, "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"), *more)
        y = np.load(self.path("out/y.npy"))
        return f"y {y.nbytes} bytes " + " ".join(f"{v:.6g}" for v in y.ravel()[:4])

    def runtime_alone(self):
        """A folder with the runtime library and without the compiler."""
        os.mkdir(self.path("alone"))
        for name in os.listdir(os.environ["KILN_LIBRARIES"]):
            if name.startswith("libkiln_runtime.so"):
                shutil.copy(os.path.join(os.environ["KILN_LIBRARIES"], name), self.path("alone"), follow_symlinks=False)
        # LD_PRELOAD, because the build's run path comes before LD_LIBRARY_PATH
        return {"LD_PRELOAD": self.path("alone/libkiln_runtime.so.0")}

    def test_programs_are_short(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
        for name in ["run_portable.c", "run_native.c", "run_tuned.c", "run_any_size.cpp"]:
            with open(os.path.join(folder, name)) as f:
                self.assertLessEqual(len(f.readlines()), 60, name)

    def test_a_portable_file_runs_cold_then_warm(self):
        file = self.compiled()
        cold = self.c("run_portable", file)
        self.assertRegex(cold.stderr, r"compiled (\d+) of \1 kernels")
        warm = self.c("run_portable", file)
        self.assertEqual(warm.stderr, "")
        self.assertEqual(warm.stdout, cold.stdout)
        self.assertEqual(cold.stdout.strip(), self.expected(file, (1, 3, 9, 7)))

    def test_the_program_in_cpp_gives_the_same(self):
        file = self.compiled()
        self.assertEqual(self.c("run_any_size", file).stdout.strip(), self.expected(file, (1, 3, 9, 7)))
        file = self.compiled(self.conv_model(batch="N"))
        self.assertEqual(self.c("run_any_size", file, "host", "N=2").stdout.strip(), self.expected(file, (2, 3, 9, 7)))
        self.assertIn("usage: dimension 'N'", self.c("run_any_size", file, code=1).stderr)

    @unittest.skipIf(shutil.which("rustc") is None, "rustc is not installed (Debian: rustc)")
    @unittest.skipIf(kiln_case.SANITIZER, "the program is built without the sanitizer that the library has")
    def test_the_program_in_rust_gives_the_same(self):
        file, folder = self.compiled(), os.environ["KILN_LIBRARIES"]
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/run_from_rust.rs")
        program = self.path("run_from_rust")
        subprocess.run(["rustc", "-O", source, "-o", program, "-L", f"native={folder}", "-l", "kiln_runtime", "-C", f"link-arg=-Wl,-rpath,{folder}"], check=True)
        environment = {**os.environ, "KILN_CACHE_DIR": self.path("cache")}
        done = subprocess.run([program, file], capture_output=True, text=True, env=environment, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        got, expected = done.stdout.split(), self.expected(file, (1, 3, 9, 7)).split()
        self.assertEqual(got[:3], expected[:3])
        np.testing.assert_allclose(np.float32(got[3:]), np.float32(expected[3:]), rtol=1e-5)
        missing = subprocess.run([program, "nothing.kiln"], capture_output=True, text=True)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("missing_file: nothing.kiln", missing.stderr)

    def test_open_dimensions_take_values(self):
        file = self.compiled(self.conv_model(batch="N"))
        done = self.c("run_portable", file, "host", "N=2")
        self.assertEqual(done.stdout.strip(), self.expected(file, (2, 3, 9, 7)))
        self.assertIn("usage: dimension 'N'", self.c("run_portable", file, code=1).stderr)

    @unittest.skipIf(kiln_case.SANITIZER, "a sanitizer's library is not loaded into Python")
    def test_a_native_file_serves_all_sizes_without_a_compiler(self):
        file, native = self.compiled(self.conv_model(batch="N")), self.path("native.kiln")
        self.kiln("finalize", file, "--target", kiln_case.HOST, "--specialize", "off", "--native-file", native)
        self.runtime_alone()
        library = ctypes.CDLL(self.path("alone/libkiln_runtime.so.0"))
        library.kiln_last_error.restype = ctypes.c_char_p
        library.kiln_status_name.restype = ctypes.c_char_p

        class Dim(ctypes.Structure):
            _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]

        def check(status):
            self.assertEqual(status, 0, library.kiln_last_error())

        def pointers(array):
            return (ctypes.c_void_p * 1)(array.ctypes.data)

        session = ctypes.c_void_p()
        check(library.kiln_session_open(native.encode(), None, ctypes.byref(session)))
        self.assertEqual(library.kiln_session_dim_count(session), 1)
        for n in (1, 5, 2, 17, 5):
            program, context = ctypes.c_void_p(), ctypes.c_void_p()
            check(library.kiln_session_program(session, ctypes.byref(Dim(b"N", n)), ctypes.c_size_t(1), ctypes.byref(program)))
            check(library.kiln_context_create(program, ctypes.byref(context)))
            x = np.random.default_rng(n).standard_normal((n, 3, 9, 7)).astype(np.float32)
            np.save(self.path("x.npy"), x)
            self.kiln("run", file, "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
            want = np.load(self.path("out/y.npy"))
            y = np.full_like(want, np.nan)
            check(library.kiln_run(context, pointers(x), pointers(y)))
            np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)
            library.kiln_context_destroy(context)
            library.kiln_program_close(program)
        program = ctypes.c_void_p()
        status = library.kiln_session_program(session, ctypes.byref(Dim(b"N", 0)), ctypes.c_size_t(1), ctypes.byref(program))
        self.assertEqual(library.kiln_status_name(status), b"invalid_shape", library.kiln_last_error())
        self.assertIn(b"'N' = 0", library.kiln_last_error())
        library.kiln_session_close(session)

    @unittest.skipIf(kiln_case.SANITIZER, "the preloaded runtime would come before the sanitizer's")
    def test_a_native_file_needs_the_runtime_alone(self):
        portable, native = self.compiled(), self.path("native.kiln")
        self.kiln("finalize", portable, "--target", kiln_case.HOST, "-o", self.path("objects"), "--native-file", native)
        alone = self.runtime_alone()
        needed = subprocess.run(["ldd", self.path("alone/libkiln_runtime.so.0")], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("LLVM", needed)
        self.assertNotIn("MLIR", needed)
        self.assertEqual(self.c("run_native", native, env=alone).stdout.strip(), self.expected(portable, (1, 3, 9, 7)))
        refused = self.c("run_native", portable, code=1, env=alone).stderr
        self.assertIn("not_built_in", refused)
        self.assertIn("install it beside libkiln_runtime.so", refused)

    def test_kernels_are_tuned_while_a_c_program_runs(self):
        file = self.compiled()
        done = self.c("run_tuned", file, "host", 60)
        self.assertRegex(done.stdout, r"^[1-9]\d* of [1-9]\d* kernels tuned, \d+ improved, \d+ swaps$")
        native = self.path("native.kiln")
        self.kiln("finalize", file, "--target", kiln_case.HOST, "-o", self.path("objects"), "--native-file", native)
        self.assertIn("native kernels are not tuned", self.c("run_tuned", native, code=1).stderr)

    def test_a_worker_that_is_missing_is_named(self):
        file = self.compiled()
        refused = self.c("run_portable", file, code=1, env={"KILN_COMPILE_WORKER": self.path("absent")}).stderr
        self.assertIn(self.path("absent"), refused)

    def test_on_a_gpu(self):
        """Copies to the device and back, on the stand-in for the CUDA driver."""
        os.mkdir(self.path("drivers"))
        os.symlink(os.environ["KILN_STAND_IN"], self.path("drivers/libcuda.so.1"))
        env = {"LD_LIBRARY_PATH": self.path("drivers")}
        subprocess.run([os.environ["KILN_STAND_IN_PROGRAM"], self.path("gpu.kiln"), "plain"], check=True)
        self.assertIn("bytes", self.c("run_portable", self.path("gpu.kiln"), "cuda:0", env=env).stdout)


if __name__ == "__main__":
    kiln_case.main()
