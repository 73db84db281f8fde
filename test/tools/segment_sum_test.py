"""SegmentSum of domain kiln (docs/add_a_kernel.md): on the host against numpy, and native objects for every target."""
import json
import os
import unittest

import numpy as np
import onnx
from onnx import helper

import kiln_case
from operator_case import OperatorCase

rng = np.random.default_rng(5)


class SegmentSum(OperatorCase):
    def model_for(self, rows, of, **attributes):
        nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("SegmentSum", ["n", "ids"], ["s"], domain="kiln", **attributes),
                 helper.make_node("Relu", ["s"], ["y"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [rows, 12]), helper.make_tensor_value_info("ids", 7, [rows])],
                                  [helper.make_tensor_value_info("y", 1, [of, 12])])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("kiln", 1)], ir_version=8)

    def test_it_is_one_kernel_with_its_neighbours_and_gives_numpys_numbers(self):
        x = rng.standard_normal((50, 12)).astype(np.float32)
        ids = np.sort(rng.integers(-1, 8, 50)).astype(np.int64)
        want = np.stack([-x[ids == s].sum(axis=0) for s in range(7)]).clip(0)
        got = self.run_kiln(self.model_for(50, 7, segments=7), {"x": x, "ids": ids})
        np.testing.assert_allclose(got["y"], want, atol=1e-5)

    def test_every_target_has_code(self):
        self.run_kiln(self.model_for(9, 3, segments=3), {"x": np.ones((9, 12), np.float32), "ids": np.arange(9) // 3})
        for target in [t["name"] for t in self.json("targets")["targets"] if t["name"] != "native"]:
            folder = self.path(target)
            self.kiln("finalize", self.path("m.kiln"), "--target", target, "-o", folder)
            with open(os.path.join(folder, "kernels.json")) as file:
                kernels = json.load(file)["kernels"]
            self.assertEqual(len(kernels), 1, target)

    def test_the_number_of_segments_must_be_said(self):
        onnx.save(self.model_for(9, 3), self.path("m.onnx"))
        done = self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3)
        self.assertIn("needs the attribute 'segments'", self.error_line(done))


if __name__ == "__main__":
    kiln_case.main()
