"""Tensors in the memory of a GPU, on the stand-in for the CUDA driver: IO binding without copies, tensors of the host,
copies, streams of the caller, errors.

    gpu_test.py PLUGIN KILN STAND_IN STAND_IN_PROGRAM
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime as ort
from onnx import TensorProto as T, helper as h

PLUGIN, KILN, STAND_IN, STAND_IN_PROGRAM = (os.path.abspath(a) for a in sys.argv[1:5])
NAME, HOST = "KilnGpuExecutionProvider", "KilnExecutionProvider"
NVIDIA = 0x10DE
FOLDER = os.environ.get("KILN_TEST_FOLDER", "")
SHAPES = {"y": [37], "sum": []}
COPIES = {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2"}


class Control(ctypes.Structure):
    """What test/runtime/hip_stand_in/stand_in.hpp shows to tests."""

    _fields_ = [("reset", ctypes.CFUNCTYPE(None)), ("calls", ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_char_p)), ("log", ctypes.CFUNCTYPE(ctypes.c_char_p)),
                ("fail", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)), ("lose_device", ctypes.c_void_p), ("live", ctypes.CFUNCTYPE(ctypes.c_size_t)),
                ("live_names", ctypes.c_void_p), ("late_uses", ctypes.CFUNCTYPE(ctypes.c_size_t))]


def model_of(nodes, outputs):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [37])], [h.make_tensor_value_info(n, T.FLOAT, s) for n, s in outputs.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)], ir_version=9).SerializeToString()


def native_part(*more, **outputs):
    """A model of a part whose kernels the stand-in has."""
    with open(f"{FOLDER}/gpu.kiln", "rb") as f:
        node = h.make_node("EPContext", ["x"], list(SHAPES), name="part", domain="com.microsoft", main_context=1, embed_mode=1, source=HOST, ep_cache_context=f.read())
    return model_of([node, *more], outputs or SHAPES)


def gpus():
    return [d for d in ort.get_ep_devices() if d.ep_name == NAME]


def session(data, name=NAME, gpu=0, **given):
    o = ort.SessionOptions()
    o.log_severity_level = 4
    devices = gpus()[gpu : gpu + 1] if name == NAME else [d for d in ort.get_ep_devices() if d.ep_name == name]
    o.add_provider_for_devices(devices, {"cache": f"{FOLDER}/cache", "compiler": KILN} | {k: str(v) for k, v in given.items()})
    return ort.InferenceSession(data, o)


def on_gpu(array):
    return ort.OrtValue.ortvalue_from_numpy(array, "gpu", 0, vendor_id=NVIDIA)


def room(shape):
    return ort.OrtValue.ortvalue_from_shape_and_type(shape, np.float32, "gpu", 0, NVIDIA)


class Gpu(unittest.TestCase):
    def setUp(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.driver.kiln_stand_in_control.restype = ctypes.POINTER(Control)
        self.control = self.driver.kiln_stand_in_control().contents
        self.x = np.arange(37, dtype=np.float32) / 8
        self.expected = dict(zip(SHAPES, session(native_part(), HOST, device="cuda:0").run(None, {"x": self.x})))

    def tearDown(self):
        self.assertEqual(self.control.late_uses(), 0)

    def calls(self):
        return set(self.control.log().decode().split())

    def bound(self, s, **results):
        binding = s.io_binding()
        binding.bind_ortvalue_input("x", on_gpu(self.x))
        for name, value in results.items():
            binding.bind_ortvalue_output(name, value)
        return binding

    def check(self, results):
        for name, value in results.items():
            np.testing.assert_array_equal(value.numpy(), self.expected[name])

    def test_a_device_for_each_gpu(self):
        self.assertEqual([d.ep_metadata["device"] for d in gpus()], ["cuda:0", "cuda:1"])
        self.assertEqual(sum(d.ep_name == HOST for d in ort.get_ep_devices()), 1)

    def test_tensors_of_the_host_are_copied(self):
        s = session(native_part())
        self.assertEqual(s.get_providers()[0], NAME)
        for _ in range(3):
            self.check({n: ort.OrtValue.ortvalue_from_numpy(a) for n, a in zip(SHAPES, s.run(None, {"x": self.x}))})

    def test_bound_tensors_are_used_where_they_are(self):
        for graph in "auto", "off":
            s, results = session(native_part(), graph=graph), {n: room(shape) for n, shape in SHAPES.items()}
            binding = self.bound(s, **results)
            s.run_with_iobinding(binding)
            for _ in range(3):
                self.control.reset()
                s.run_with_iobinding(binding)
                self.assertFalse(self.calls() & COPIES, self.calls())
                self.assertFalse({c for c in self.calls() if "Alloc" in c}, self.calls())
            self.check(results)

    def test_results_are_allocated_on_the_gpu(self):
        s = session(native_part())
        binding = self.bound(s)
        binding.bind_ortvalue_output("y", room([37]))
        binding.bind_output("sum", "cpu")
        s.run_with_iobinding(binding)
        self.check(dict(zip(SHAPES, binding.get_outputs())))
        self.control.reset()
        s.run_with_iobinding(binding)
        self.assertEqual(self.calls() & COPIES, {"cuMemcpyDtoHAsync_v2"})
        self.assertEqual(self.control.calls(b"cuMemcpyDtoHAsync_v2"), 1)

    def test_addresses_of_other_libraries(self):
        s, x = session(native_part()), on_gpu(self.x)
        binding, y = s.io_binding(), room([37])
        binding.bind_input("x", "cuda", 0, np.float32, [37], x.data_ptr())
        binding.bind_output("y", "cuda", 0, np.float32, [37], y.data_ptr())
        binding.bind_output("sum", "cpu")
        s.run_with_iobinding(binding)
        np.testing.assert_array_equal(y.numpy(), self.expected["y"])

    def test_runs_on_a_stream_of_the_caller_are_not_waited_for(self):
        context, stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.assertEqual(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), 0)
        self.assertEqual(self.driver.cuCtxSetCurrent(context), 0)
        self.assertEqual(self.driver.cuStreamCreate(ctypes.byref(stream), 1), 0)
        s = session(native_part(), graph="off", stream=stream.value)
        results = {n: room(shape) for n, shape in SHAPES.items()}
        binding = self.bound(s, **results)
        for run in range(4):
            self.control.reset()
            self.assertEqual(self.driver.cuCtxSetCurrent(context), 0)  # the stand-in forgets it
            s.run_with_iobinding(binding)
            if run:  # the first run allocates memory for the kernels
                self.assertFalse({c for c in self.calls() if "Synchronize" in c}, self.calls())
            self.assertEqual(self.driver.cuStreamSynchronize(stream), 0)
        self.check(results)
        del s, binding
        self.assertEqual(self.driver.cuStreamDestroy_v2(stream), 0)

    def test_memory_is_given_back(self):
        s, x = session(native_part(), graph="off"), on_gpu(self.x)
        binding = s.io_binding()
        binding.bind_ortvalue_input("x", x)
        binding.bind_output("sum", "cpu")
        live = []
        for _ in range(8):
            binding.bind_ortvalue_output("y", room([37]))
            s.run_with_iobinding(binding)
            live.append(self.control.live())
        self.assertEqual(live[3:], live[3:4] * 5)

    def test_another_gpu_than_the_tensors(self):
        """ONNX Runtime finds no copy from one GPU to the other, or the answer is right."""
        s = session(native_part(), gpu=1)
        with self.assertRaises(Exception):
            s.run_with_iobinding(self.bound(s, **{n: room(shape) for n, shape in SHAPES.items()}))

    def test_without_memory(self):
        s = session(native_part(), graph="off")
        s.run(None, {"x": self.x})
        binding = self.bound(s)
        for name in SHAPES:
            binding.bind_output(name, "cpu")  # by way of the GPU
        for nth in 1, 2:  # the allocation, and another try
            self.control.fail(b"cuMemAllocFromPoolAsync", nth, 2)
        with self.assertRaisesRegex(Exception, "memory of cuda:0 is used up"):
            s.run_with_iobinding(binding)
        self.control.reset()
        s.run_with_iobinding(binding)
        self.check(dict(zip(SHAPES, binding.get_outputs())))

    def test_wrong_options(self):
        for words, given in (("the session has the device cuda:0", {"device": "cuda:1"}), ("no number", {"stream": "mine"})):
            try:
                self.assertNotIn(NAME, session(native_part(), **given).get_providers())
            except Exception as e:
                self.assertRegex(str(e), words + "|not compatible|Could not find an implementation")
        with self.assertRaisesRegex(Exception, f"with {NAME}|not compatible|Could not find an implementation"):
            session(native_part(), HOST, device="cuda:0", stream=0)

    def test_what_kiln_does_not_run_leaves_all_to_onnxruntime(self):
        """There are no kernels for the copies that ONNX Runtime would put between the parts."""
        data = model_of([h.make_node("Cast", ["x"], ["t"], to=T.STRING), h.make_node("Cast", ["t"], ["f"], to=T.FLOAT), h.make_node("Exp", ["f"], ["e"]), h.make_node("Neg", ["e"], ["y"])], {"y": [37]})
        s = session(data)
        np.testing.assert_allclose(s.run(None, {"x": self.x})[0], -np.exp(self.x), rtol=1e-4)
        y = room([37])
        s.run_with_iobinding(self.bound(s, y=y))
        np.testing.assert_allclose(y.numpy(), -np.exp(self.x), rtol=1e-4)


def with_stand_in():
    """The same tests in a process that finds the stand-in where the driver would be."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/drivers")
        os.symlink(STAND_IN, f"{folder}/drivers/libcuda.so.1")
        env = {**os.environ, "KILN_TEST_FOLDER": folder, "LD_LIBRARY_PATH": f"{folder}/drivers", "XDG_CONFIG_HOME": f"{folder}/config"}
        subprocess.run([STAND_IN_PROGRAM, f"{folder}/gpu.kiln", "plain"], check=True, env=env)
        return subprocess.run([sys.executable, *sys.argv], env=env, timeout=250).returncode


if __name__ == "__main__":
    if tuple(int(n) for n in ort.__version__.split(".")[:2]) < (1, 23):
        print(f"skipped: onnxruntime {ort.__version__} takes no execution providers as plug-ins")
        sys.exit(77)
    if not FOLDER:
        sys.exit(with_stand_in())
    ort.register_execution_provider_library("kiln", PLUGIN)
    unittest.main(argv=sys.argv[:1], verbosity=2)
