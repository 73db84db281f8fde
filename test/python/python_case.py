"""What the tests of the Python package share: small models, a folder and a cache for each test."""
import os
import tempfile
import unittest

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def tensor(name, dims, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def model_of(nodes, inputs, outputs, initializers=(), opset=19):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def conv_model(batch="N"):
    """x[batch, 3, 9, 7] -> Conv, Relu -> y[batch, 5, 9, 7]."""
    rng = np.random.default_rng(1)
    weights = numpy_helper.from_array(rng.standard_normal((5, 3, 3, 3)).astype(np.float32), "w")
    bias = numpy_helper.from_array(rng.standard_normal(5).astype(np.float32), "b")
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]
    return model_of(nodes, [tensor("x", [batch, 3, 9, 7])], [tensor("y", [batch, 5, 9, 7])], [weights, bias])


def identity_like(kind, shape=(2, 3)):
    """x -> Reshape -> y, for any element type."""
    target = numpy_helper.from_array(np.array([-1], np.int64), "target")
    count = int(np.prod(shape))
    nodes = [helper.make_node("Reshape", ["x", "target"], ["y"])]
    return model_of(nodes, [tensor("x", list(shape), kind)], [tensor("y", [count], kind)], [target])


def add_model(shape=(2, 3)):
    """(a, b) -> (sum, difference)."""
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["difference"])]
    shape = list(shape)
    return model_of(nodes, [tensor("a", shape), tensor("b", shape)], [tensor("sum", shape), tensor("difference", shape)])


def reference(model, inputs):
    """onnxruntime's outputs by name. `model`: a path or a ModelProto."""
    session = onnxruntime.InferenceSession(model if isinstance(model, str) else model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


class PythonCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        os.chmod(self.dir, 0o755)
        os.environ["XDG_CONFIG_HOME"] = self.path("config")
        os.environ["KILN_CACHE_DIR"] = self.path("cache")

    def path(self, name):
        return os.path.join(self.dir, name)

    def assert_close(self, got, expected, tolerance=1e-4):
        self.assertEqual(got.shape, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
