"""Resize of open axes, recurrent layers of open length and batch, transposed convolutions of open images and sums of
segments: compiled once, right at every size beside onnxruntime, and finalized for GPUs."""
import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor

rng = np.random.default_rng(1)


def weight(name, dims):
    return numpy_helper.from_array((rng.standard_normal(dims) * 0.3).astype(np.float32), name)


class OpenFamilies(KilnCase):
    def check(self, node, inputs, constants, sizes, outputs=("y",)):
        with self.subTest(node=node.op_type, name=node.name):
            values = [helper.make_tensor_value_info(o, T.FLOAT, None) for o in outputs]
            model = self.save("m.onnx", [node], [tensor(n, d) for n, d in inputs.items()], values, constants, opset=19)
            file = self.compiled(model)
            shown = self.json("inspect", file)
            self.assertEqual((shown["missing_forms"], shown["gpu_missing_forms"]), ({}, {}))
            session = onnxruntime.InferenceSession(model)
            for count, at in enumerate(sizes):
                data = {n: rng.standard_normal([at.get(d, d) for d in dims]).astype(np.float32) for n, dims in inputs.items()}
                given = []
                for name, array in data.items():
                    np.save(self.path(f"{name}.npy"), array)
                    given += ["--input", f"{name}={self.path(name + '.npy')}"]
                done = self.json("run", file, *given, "--specialize", "off", "--output-dir", self.path("out"))
                self.assertTrue(count == 0 or done["cache"]["misses"] == 0, at)
                for output, want in zip(outputs, session.run(None, data)):
                    np.testing.assert_allclose(np.load(self.path(f"out/{output}.npy")), want, rtol=1e-4, atol=1e-5, err_msg=f"{output} {at}")
            bound = [part for n, size in sizes[-1].items() for part in ("--dim", f"{n}={size}")]
            for target in ("sm_90", "gfx942", "gfx1100"):
                self.kiln("finalize", file, "--target", target, "-o", self.path("objects"), "--specialize", "off", *bound)

    def test_resize(self):
        images = [{"n": 1, "h": 7, "w": 10}, {"n": 2, "h": 1, "w": 33}, {"n": 1, "h": 49, "w": 5}]
        scales = numpy_helper.from_array(np.array([1, 1, 2, 1.7], np.float32), "scales")
        for mode, coordinates in [("nearest", "asymmetric"), ("nearest", "half_pixel"), ("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "pytorch_half_pixel")]:
            node = helper.make_node("Resize", ["x", "", "scales"], ["y"], name=f"{mode} {coordinates}", mode=mode, coordinate_transformation_mode=coordinates, nearest_mode="floor")
            self.check(node, {"x": ["n", 6, "h", "w"]}, [scales], images)

    def test_recurrent(self):
        sizes = [{"s": 3, "b": 2}, {"s": 1, "b": 1}, {"s": 40, "b": 5}]
        for operator, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            for direction, both in (("forward", 1), ("bidirectional", 2)):
                hidden = 12
                node = helper.make_node(operator, ["x", "w", "r", "c"], ["y", "h"], name=direction, hidden_size=hidden, direction=direction)
                constants = [weight("w", [both, gates * hidden, 5]), weight("r", [both, gates * hidden, hidden]), weight("c", [both, 2 * gates * hidden])]
                self.check(node, {"x": ["s", "b", 5]}, constants, sizes, ("y", "h"))

    def test_recurrent_with_other_activations(self):
        sizes = [{"s": 3, "b": 2}, {"s": 2, "b": 1}, {"s": 20, "b": 3}]
        for operator, gates, activations, more in (("RNN", 1, ["Relu"], {}), ("GRU", 3, ["HardSigmoid", "Tanh"], {"linear_before_reset": 1}), ("GRU", 3, ["HardSigmoid", "Tanh"], {}), ("LSTM", 4, ["Sigmoid", "Tanh", "Tanh"], {"clip": 0.3})):
            for direction, both in (("forward", 1), ("bidirectional", 2)):
                outputs = ("y", "h", "last") if operator == "LSTM" else ("y", "h")
                node = helper.make_node(operator, ["x", "w", "r"], list(outputs), name=direction, hidden_size=7, direction=direction, activations=activations * both, **more)
                self.check(node, {"x": ["s", "b", 5]}, [weight("w", [both, gates * 7, 5]), weight("r", [both, gates * 7, 7])], sizes, outputs)

    def test_transposed_convolution(self):
        images = [{"n": 1, "h": 3, "w": 4}, {"n": 2, "h": 9, "w": 19}, {"n": 1, "h": 20, "w": 2}]
        for stride, groups, pads in ((2, 1, 1), (3, 2, 0), (1, 1, 1)):
            node = helper.make_node("ConvTranspose", ["x", "w", "c"], ["y"], name=f"{stride} {groups}", strides=[stride, stride], pads=[pads] * 4, group=groups)
            self.check(node, {"x": ["n", 8, "h", "w"]}, [weight("w", [8, 20, 3, 3]), weight("c", [20 * groups])], images)


if __name__ == "__main__":
    kiln_case.main()
