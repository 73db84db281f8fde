"""What the black-box tests share: running `kiln`, small models, the command line of a test script."""
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

KILN, MODELS = "", ""
# A CPU target that runs here: that of the machine that the tested program is built for (CMake says which).
HOST = {"aarch64": "armv8-a"}.get(os.environ.get("KILN_PROCESSOR", ""), "x86-64-v3")
SANITIZER = os.environ.get("KILN_SANITIZER", "")  # "address", "thread" or ""
no_memory_limit = unittest.skipIf(SANITIZER, "a sanitizer reserves more memory than a limit allows")


def blake3(data):
    """The hash as LLVM has it, since Python has none."""
    folder = subprocess.run(["llvm-config-22", "--libdir"], check=True, capture_output=True, text=True).stdout.strip()
    library = ctypes.CDLL(os.path.join(folder, "libLLVM.so"))
    state, digest = ctypes.create_string_buffer(4096), ctypes.create_string_buffer(32)
    library.llvm_blake3_hasher_init(state)
    library.llvm_blake3_hasher_update(state, data, ctypes.c_size_t(len(data)))
    library.llvm_blake3_hasher_finalize(state, digest, ctypes.c_size_t(32))
    return digest.raw


def main():
    """`script.py KILN MODELS_DIR [unittest arguments]`."""
    global KILN, MODELS
    KILN, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(module="__main__", argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)


class KilnCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dir = self.folder.name
        os.chmod(self.dir, 0o755)
        os.environ["XDG_CONFIG_HOME"] = self.path("config")  # where keys are made

    def path(self, name):
        return os.path.join(self.dir, name)

    def kiln(self, *arguments, code=0, env=None, **more):
        """Runs kiln, checks its exit code, returns the completed process."""
        environment = {**os.environ, "KILN_CACHE_DIR": self.path("cache"), **(env or {})}
        environment = {k: v for k, v in environment.items() if v is not None}
        done = subprocess.run([KILN, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=1500 if SANITIZER else 300, **more)
        self.assertEqual(done.returncode, code, f"kiln {' '.join(map(str, arguments))}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done

    def json(self, *arguments, **more):
        done = self.kiln(*arguments, "--json", **more)
        return json.loads(done.stdout)

    def error_line(self, done):
        lines = [l for l in done.stderr.splitlines() if l.strip()]
        self.assertEqual(len(lines), 1, done.stderr)
        return lines[0]

    def save(self, name, nodes, inputs, outputs, initializers=(), opset=17):
        graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.save(model, self.path(name))
        return self.path(name)

    def conv_model(self, name="conv.onnx", batch=1):
        """x[batch, 3, 9, 7] -> Conv 5x3x3, Relu -> y."""
        rng = np.random.default_rng(1)
        weights = numpy_helper.from_array(rng.standard_normal((5, 3, 3, 3)).astype(np.float32), "w")
        bias = numpy_helper.from_array(rng.standard_normal(5).astype(np.float32), "b")
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"], name="relu")]
        return self.save(name, nodes, [tensor("x", [batch, 3, 9, 7])], [tensor("y", [batch, 5, 9, 7])], [weights, bias])

    def compiled(self, model=None):
        model = model or self.conv_model()
        out = os.path.splitext(model)[0] + ".kiln"
        self.kiln("compile", model, "-o", out)
        return out


def tensor(name, dims, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)
