"""`verify --bisect` finds the part of a model that differs, and writes a model that differs on its own. What differs here
is f16: it overflows where f32 does not."""
import os

import numpy as np
import onnx
from onnx import helper, numpy_helper

from kiln_case import KilnCase, main, tensor


def constant(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


class Bisect(KilnCase):
    def overflowing(self, name="model.onnx", external=False):
        """41 nodes, of which `bigger` leaves the range of f16 (65504), and `normal` comes back."""
        nodes = [helper.make_node("Tanh", ["x"], ["t0"], name="first")]
        for i in range(18):
            nodes.append(helper.make_node("Add" if i % 2 else "Mul", [f"t{i}", "half"], [f"t{i + 1}"], name=f"before{i}"))
        nodes += [
            helper.make_node("MatMul", ["t18", "large"], ["u"], name="big"),
            helper.make_node("MatMul", ["u", "large"], ["v"], name="bigger"),
            helper.make_node("LayerNormalization", ["v", "ones"], ["w0"], name="normal", axis=-1),
        ]
        for i in range(18):
            nodes.append(helper.make_node("Sin" if i % 2 else "Neg", [f"w{i}"], [f"w{i + 1}"], name=f"after{i}"))
        nodes.append(helper.make_node("Reshape", ["w18", "sizes"], ["y"], name="last"))
        weights = [constant("half", np.linspace(0.4, 0.6, 16)), constant("large", np.random.default_rng(0).uniform(1000, 3000, (16, 16))), constant("ones", np.ones(16)), constant("sizes", [-1, 4], np.int64)]
        path = self.save(name, nodes, [tensor("x", ["N", 16])], [tensor("y", ["M", 4])], weights)
        if external:
            onnx.save(onnx.load(path), path, save_as_external_data=True, all_tensors_to_one_file=True, location="weights.bin", size_threshold=0)
        return path

    def check_part(self, found, most):
        self.assertLessEqual(len(found["nodes"]), most)
        part = onnx.load(found["file"])
        onnx.checker.check_model(part, full_check=True)
        self.assertEqual(len(part.graph.node), len(found["nodes"]))
        # The part differs on its own, with the inputs beside it, and not in f32.
        self.kiln("verify", found["file"], "--inputs", found["inputs"], "--fp16", code=1)
        self.kiln("verify", found["file"], "--inputs", found["inputs"])
        return [n.name for n in part.graph.node]

    def test_the_smallest_part_is_found(self):
        document = self.json("verify", self.overflowing(), "--dim", "N=3", "--fp16", "--bisect", self.path("part.onnx"), code=1)
        names = self.check_part(document["bisect"], 3)
        self.assertTrue({"bigger", "normal"} & set(names), names)
        self.assertLess(document["bisect"]["parts_tried"], 40)

    def test_weights_in_other_files_come_along(self):
        document = self.json("verify", self.overflowing(external=True), "--dim", "N=3", "--fp16", "--bisect", self.path("elsewhere.onnx"), code=1)
        os.remove(self.path("weights.bin"))
        self.check_part(document["bisect"], 3)

    def test_what_agrees_is_not_bisected(self):
        document = self.json("verify", self.overflowing(), "--dim", "N=3", "--bisect", self.path("part.onnx"))
        self.assertTrue(document["ok"])
        self.assertNotIn("bisect", document)
        self.assertFalse(os.path.exists(self.path("part.onnx")))

    def test_bodies_of_ifs_bring_what_they_read(self):
        then = helper.make_graph([helper.make_node("MatMul", ["t", "large"], ["a"])], "then", [], [tensor("a", ["N", 16])])
        other = helper.make_graph([helper.make_node("MatMul", ["t", "large"], ["b"])], "else", [], [tensor("b", ["N", 16])])
        nodes = [
            helper.make_node("Exp", ["x"], ["t"], name="exp"),
            helper.make_node("If", ["which"], ["c"], name="if", then_branch=then, else_branch=other),
            helper.make_node("Neg", ["c"], ["y"], name="neg"),
        ]
        file = self.save("if.onnx", nodes, [tensor("x", ["N", 16]), tensor("which", [], onnx.TensorProto.BOOL)], [tensor("y", ["N", 16])], [constant("large", np.full((16, 16), 3e4))])
        np.save(self.path("which.npy"), np.array(True))
        np.save(self.path("x.npy"), np.full((2, 16), 1, np.float32))
        found = self.json("verify", file, "--fp16", "--input", f"which={self.path('which.npy')}", "--input", f"x={self.path('x.npy')}", "--bisect", self.path("part.onnx"), code=1)["bisect"]
        self.assertIn("if", self.check_part(found, 2))

    def test_small_integer_inputs_stay_inputs(self):
        nodes = [
            helper.make_node("Gather", ["table", "ids"], ["e"], name="embed"),
            helper.make_node("MatMul", ["e", "large"], ["u"], name="big"),
            helper.make_node("LayerNormalization", ["u", "ones"], ["y"], name="normal", axis=-1),
        ]
        rng = np.random.default_rng(0)
        weights = [constant("table", rng.uniform(1, 2, (10, 16))), constant("large", rng.uniform(1e4, 6e4, (16, 16))), constant("ones", np.ones(16))]
        file = self.save("ids.onnx", nodes, [tensor("ids", [1, 8], onnx.TensorProto.INT64)], [tensor("y", [1, 8, 16])], weights)
        found = self.json("verify", file, "--fp16", "--bisect", self.path("part.onnx"), code=1)["bisect"]
        self.check_part(found, 2)

    def test_a_folder_that_cannot_be_written(self):
        done = self.kiln("verify", self.overflowing(), "--dim", "N=3", "--fp16", "--bisect", self.path("no/folder/part.onnx"), code=3)
        self.assertIn("no/folder", self.error_line(done))

    def test_the_text_names_the_nodes(self):
        done = self.kiln("verify", self.overflowing(), "--dim", "N=3", "--fp16", "--bisect", self.path("part.onnx"), code=1)
        self.assertRegex(done.stdout, r"smallest part that differs: \d nodes in \S*part\.onnx, its inputs in \S*part ")


if __name__ == "__main__":
    main()
