"""A session on a GPU, on the stand-in for the CUDA driver (KILN_STAND_IN): arrays of the host are copied, arrays of the
device are used where they lie. KILN_STAND_IN_PROGRAM writes a program of kernels for it."""
import os
import subprocess
import sys
import unittest

from python_case import PythonCase

SCRIPT = """
import ctypes, kiln, numpy as np

driver = ctypes.CDLL("libcuda.so.1")
context, staging = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
assert driver.cuMemHostAlloc(ctypes.byref(staging), ctypes.c_size_t(1 << 20), 0) == 0

class device_array:
    "Memory of the stand-in device, shown as CuPy and Numba show theirs."
    def __init__(self, host, strides=None):
        pointer = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(max(host.nbytes, 1))) == 0
        self.host, self.pointer = np.array(host), pointer
        self.write(self.host)
        self.__cuda_array_interface__ = {"version": 3, "typestr": host.dtype.str, "shape": host.shape, "strides": strides, "data": (pointer.value, False)}
    def write(self, values):
        ctypes.memmove(staging, values.ctypes.data, values.nbytes)
        assert driver.cuMemcpyHtoDAsync_v2(self.pointer, staging, ctypes.c_size_t(values.nbytes), None) == 0
        assert driver.cuStreamSynchronize(None) == 0
    def read(self):
        result = np.empty_like(self.host)
        assert driver.cuMemcpyDtoHAsync_v2(staging, self.pointer, ctypes.c_size_t(result.nbytes), None) == 0
        assert driver.cuStreamSynchronize(None) == 0
        ctypes.memmove(result.ctypes.data, staging, result.nbytes)
        return result

session = kiln.open(FILE).session(device="cuda:0")
assert "on cuda:0" in repr(session)
inputs = {s.name: np.arange(np.prod(s.shape), dtype=s.dtype).reshape(s.shape) / 8 for s in session.inputs}
expected = session.run(inputs)
on_device = {n: device_array(a.copy()) for n, a in inputs.items()}
results = {s.name: device_array(np.zeros(s.shape, s.dtype)) for s in session.outputs}
for stream in [None, 0]:
    for r in results.values():
        r.write(np.zeros_like(r.host))
    got = session.run(on_device, results, stream=stream)
    for name, r in results.items():
        assert got[name] is r
        assert np.array_equal(r.read(), expected[name]), (name, stream)

bound = session._core.bind([i.shape for i in session.inputs], True)
for stream in [None, 0]:
    for r in results.values():
        r.write(np.zeros_like(r.host))
    bound.run([on_device[i.name].pointer.value for i in session.inputs], [results[o.name].pointer.value for o in session.outputs], stream)
    for name, r in results.items():
        assert np.array_equal(r.read(), expected[name]), (name, stream)
assert session._core.bind([i.shape for i in session.inputs], False) is None  # they would be copied

def refused(kind, text, *arguments):
    try:
        session.run(*arguments)
    except kind as e:
        assert text in str(e), e
    else:
        raise AssertionError(text)

first = session.inputs[0].name
refused(kiln.errors.UnsupportedError, "give arrays for all outputs", on_device)
refused(kiln.errors.UsageError, "must be where the inputs are", on_device, {s.name: np.zeros(s.shape, s.dtype) for s in session.outputs})
gaps = {**on_device, first: device_array(inputs[first], (8,) * inputs[first].ndim)}
refused(kiln.errors.UnsupportedError, "row-major", gaps, results)
if len(inputs) > 1:
    refused(kiln.errors.UsageError, "move one of them", {**on_device, first: inputs[first]}, results)
print("ran", *expected)
"""


class Gpu(PythonCase):
    def test_arrays_of_the_host_and_of_the_device(self):
        os.mkdir(self.path("drivers"))
        os.symlink(os.environ["KILN_STAND_IN"], self.path("drivers/libcuda.so.1"))
        subprocess.run([os.environ["KILN_STAND_IN_PROGRAM"], self.path("gpu.kiln"), "plain"], check=True)
        env = {**os.environ, "LD_LIBRARY_PATH": self.path("drivers")}
        script = f"FILE = {self.path('gpu.kiln')!r}\n{SCRIPT}"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("ran "), done.stdout)


if __name__ == "__main__":
    unittest.main()
