"""Sizes at the edges of their ranges, among them those at which tensors are empty: kernels for all sizes serve them, right
beside onnxruntime and without compiling anything."""
import itertools

import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor

rng = np.random.default_rng(1)


def integers(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


class OpenEdges(KilnCase):
    def check(self, nodes, inputs, outputs, constants, ranges):
        """`ranges` has the lowest and highest size of each dimension; one size between them is tried, too."""
        values = [helper.make_tensor_value_info(o, T.FLOAT, None) for o in outputs]
        model = self.save("m.onnx", nodes, [tensor(n, d) for n, d in inputs.items()], values, constants, opset=18)
        self.kiln("compile", model, "-o", self.path("m.kiln"), *(a for n, (low, high) in ranges.items() for a in ("--dim", f"{n}={low}:{high}")))
        session = onnxruntime.InferenceSession(model)
        sizes = itertools.product(*(sorted({low, low + 1, (low + high) // 2, high}) for low, high in ranges.values()))
        for count, values in enumerate(sorted(sizes, key=sum, reverse=True)):
            at = dict(zip(ranges, values))
            given, data = [], {}
            for name, dims in inputs.items():
                data[name] = rng.standard_normal([at.get(d, d) for d in dims]).astype(np.float32)
                np.save(self.path(f"{name}.npy"), data[name])
                given += ["--input", f"{name}={self.path(name + '.npy')}"]
            done = self.json("run", self.path("m.kiln"), *given, "--specialize", "off", "--output-dir", self.path("out"))
            self.assertTrue(count == 0 or done["cache"]["misses"] == 0, at)
            for output, want in zip(outputs, session.run(None, data)):
                np.testing.assert_allclose(np.load(self.path(f"out/{output}.npy")), want, rtol=1e-4, atol=1e-5, err_msg=f"{output} {at}")

    def test_a_cache_without_rows(self):
        """Attention over a past and new rows; a join, sums and padding along the axis that may be empty."""
        node = helper.make_node
        nodes = [node("Concat", ["past", "x"], ["all"], axis=1), node("Transpose", ["all"], ["t"], perm=[0, 2, 1]),
                 node("MatMul", ["x", "t"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "all"], ["y"]),
                 node("Transpose", ["past"], ["pt"], perm=[0, 2, 1]), node("Transpose", ["x"], ["xt"], perm=[0, 2, 1]),
                 node("Concat", ["pt", "xt"], ["joined"], axis=2), node("ReduceSum", ["past", "axis"], ["sums"]),
                 node("Pad", ["pt", "pads"], ["padded"]), node("MatMul", ["pt", "past"], ["squares"])]
        constants = [integers("axis", [1]), integers("pads", [0, 0, 1, 0, 0, 2])]
        self.check(nodes, {"past": [2, "n", 8], "x": [2, "s", 8]}, ["y", "joined", "sums", "padded", "squares"], constants, {"n": (0, 5), "s": (1, 9)})

    def test_one_position_less(self):
        """What torch writes for x[:, 1:]: nothing is left of one position."""
        node = helper.make_node
        nodes = [node("Slice", ["x", "one", "many", "one"], ["rest"]), node("Slice", ["x", "zero", "last", "one"], ["front"]),
                 node("Sub", ["rest", "front"], ["d"]), node("ReduceSum", ["d", "one"], ["total"], keepdims=0), node("MatMul", ["d", "w"], ["y"]),
                 node("LayerNormalization", ["y", "g"], ["z"])]
        constants = [integers("zero", [0]), integers("one", [1]), integers("last", [-1]), integers("many", [2**40]),
                     numpy_helper.from_array(rng.standard_normal((8, 12)).astype(np.float32), "w"), numpy_helper.from_array(np.ones(12, np.float32), "g")]
        self.check(nodes, {"x": ["b", "s", 8]}, ["total", "y", "z"], constants, {"b": (1, 3), "s": (1, 33)})

    def test_images_of_an_empty_batch(self):
        node = helper.make_node
        nodes = [node("Conv", ["x", "w"], ["c"], pads=[1] * 4), node("Relu", ["c"], ["r"]), node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
                 node("GlobalAveragePool", ["m"], ["g"]), node("Softmax", ["g"], ["top"], axis=1)]
        constants = [numpy_helper.from_array(rng.standard_normal((8, 3, 3, 3)).astype(np.float32), "w")]
        self.check(nodes, {"x": ["n", 3, "h", 6]}, ["m", "top"], constants, {"n": (0, 4), "h": (2, 9)})

    def test_positions_of_what_is_not_zero(self):
        """NonZero is a HIP kernel of the library, and one payload serves tensors of several shapes."""
        node = helper.make_node
        nodes = [node("NonZero", ["x"], ["at"]), node("Transpose", ["at"], ["places"]), node("GatherND", ["x", "places"], ["y"]),
                 node("NonZero", ["z"], ["other"]), node("Cast", ["other"], ["w"], to=T.FLOAT),
                 node("NonZero", ["v"], ["known"]), node("Cast", ["known"], ["u"], to=T.FLOAT)]
        self.check(nodes, {"x": ["n", 3], "z": ["h", "n"], "v": [7]}, ["y", "w", "u"], [], {"n": (0, 400), "h": (1, 5)})


if __name__ == "__main__":
    kiln_case.main()
