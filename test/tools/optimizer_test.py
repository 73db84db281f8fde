"""`compile --explain` and `--disable-pass`, and rewrites of whole models against onnxruntime."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor


class Optimizer(KilnCase):
    def weights(self, name, *dims, seed=1):
        return numpy_helper.from_array(np.random.default_rng(seed).standard_normal(dims).astype(np.float32) / 4, name)

    def branches(self):
        """A block of RepVGG as it is trained, then two convolutions without an activation between them."""
        norm = [self.weights(f"{n}{i}", 8, seed=i) for i in range(3) for n in ("scale", "shift", "mean")]
        ones = numpy_helper.from_array(np.linspace(0.5, 1.5, 8, dtype=np.float32), "variance")
        nodes = [helper.make_node("Conv", ["x", "w3"], ["c0"], pads=[1, 1, 1, 1]), helper.make_node("Conv", ["x", "w1"], ["c1"]),
                 helper.make_node("Identity", ["x"], ["c2"])]
        nodes += [helper.make_node("BatchNormalization", [f"c{i}", f"scale{i}", f"shift{i}", f"mean{i}", "variance"], [f"b{i}"]) for i in range(3)]
        nodes += [helper.make_node("Add", ["b0", "b1"], ["s0"]), helper.make_node("Add", ["s0", "b2"], ["s1"]), helper.make_node("Relu", ["s1"], ["r"]),
                  helper.make_node("Conv", ["r", "wa", "ba"], ["wide"], pads=[1, 1, 1, 1]), helper.make_node("Conv", ["wide", "wb", "bb"], ["y"])]
        weights = [self.weights("w3", 8, 8, 3, 3), self.weights("w1", 8, 8, 1, 1), self.weights("wa", 32, 8, 3, 3), self.weights("ba", 32),
                   self.weights("wb", 8, 32, 1, 1), self.weights("bb", 8), ones] + norm
        return self.save("branches.onnx", nodes, [tensor("x", [1, 8, 12, 10])], [tensor("y", [1, 8, 12, 10])], weights)

    def heads(self):
        """Three products of one operand and the attention over them."""
        nodes, weights = [], [numpy_helper.from_array(np.array([1, 16, 4, 8]), "split"), numpy_helper.from_array(np.array([1, 16, 32]), "join")]
        for name in "qkv":
            nodes += [helper.make_node("MatMul", ["x", f"w{name}"], [f"p{name}"]), helper.make_node("Add", [f"p{name}", f"b{name}"], [f"a{name}"]),
                      helper.make_node("Reshape", [f"a{name}", "split"], [f"r{name}"]),
                      helper.make_node("Transpose", [f"r{name}"], [f"t{name}"], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
            weights += [self.weights(f"w{name}", 32, 32, seed=ord(name)), self.weights(f"b{name}", 32)]
        nodes += [helper.make_node("MatMul", ["tq", "tk"], ["scores"]), helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
                  helper.make_node("MatMul", ["weights", "tv"], ["o"]), helper.make_node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
                  helper.make_node("Reshape", ["ot", "join"], ["y"])]
        return self.save("heads.onnx", nodes, [tensor("x", [1, 16, 32])], [tensor("y", [1, 16, 32])], weights)

    def compiled_with(self, model, *options):
        out = self.path("made.kiln")
        return out, self.json("compile", model, "-o", out, "--explain", *options)

    def check_numbers(self, model, file, dims):
        x = np.random.default_rng(3).standard_normal(dims).astype(np.float32)
        np.save(self.path("x.npy"), x)
        self.kiln("run", file, "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
        expected = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
        np.testing.assert_allclose(np.load(self.path("out/y.npy")), expected, rtol=1e-3, atol=1e-3)

    def test_branches_and_chains_of_convolutions_become_one_each(self):
        model = self.branches()
        file, report = self.compiled_with(model)
        rules = {(r["pass"], r["rule"]): r for r in report["explain"]["rewrites"]}
        self.assertEqual(rules["merge_parallel_contractions", "convolutions"]["count"], 2)
        self.assertEqual(rules["compose_contractions", "convolutions"]["count"], 1)
        self.assertGreater(rules["compose_contractions", "convolutions"]["flop_saved"], 0)
        self.assertTrue(rules["compose_contractions", "convolutions"]["places"])
        self.check_numbers(model, file, [1, 8, 12, 10])
        apart, other = self.compiled_with(model, "--disable-pass", "compose_contractions", "--disable-pass", "merge_parallel_contractions")
        self.assertGreater(other["launches"], report["launches"])
        self.check_numbers(model, apart, [1, 8, 12, 10])

    def test_products_of_one_operand_become_one(self):
        model = self.heads()
        file, report = self.compiled_with(model)
        apart, other = self.compiled_with(model, "--disable-pass", "fuse_horizontally")
        self.assertEqual(other["launches"] - report["launches"], 2)
        self.check_numbers(model, apart, [1, 16, 32])
        file, report = self.compiled_with(model)
        self.check_numbers(model, file, [1, 16, 32])
        reasons = [b["reason"] for b in report["explain"]["not_fused"]]
        self.assertIn("each of them is the anchor of a kernel, which has one", reasons)

    def test_what_does_not_change_in_a_loop_leaves_it(self):
        body = helper.make_graph(
            [helper.make_node("Exp", ["k"], ["e"]), helper.make_node("MatMul", ["e", "k"], ["m"]), helper.make_node("Mul", ["v", "m"], ["p"]),
             helper.make_node("Tanh", ["p"], ["v_out"]), helper.make_node("Identity", ["c"], ["c_out"])],
            "body", [tensor("i", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), tensor("v", [4, 4])],
            [tensor("c_out", [], TensorProto.BOOL), tensor("v_out", [4, 4])])
        nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)]
        model = self.save("loop.onnx", nodes, [tensor("x", [4, 4]), tensor("k", [4, 4]), tensor("n", [], TensorProto.INT64)], [tensor("y", [4, 4])])
        file, report = self.compiled_with(model)
        self.assertIn(("hoist_loop_invariants", "loop"), {(r["pass"], r["rule"]) for r in report["explain"]["rewrites"]})
        rng = np.random.default_rng(1)
        feed = {"x": rng.random((4, 4), np.float32), "k": rng.random((4, 4), np.float32) / 4, "n": np.array(0)}
        for trips in (0, 1, 5):
            feed["n"] = np.array(trips)
            inputs = []
            for name, data in feed.items():
                np.save(self.path(f"{name}.npy"), data)
                inputs += ["--input", f"{name}={self.path(name + '.npy')}"]
            self.kiln("run", file, *inputs, "--output-dir", self.path("out"))
            np.testing.assert_allclose(np.load(self.path("out/y.npy")), onnxruntime.InferenceSession(model).run(None, feed)[0], rtol=1e-4, atol=1e-5)

    def test_the_text_names_rewrites_and_boundaries(self):
        text = self.kiln("compile", self.heads(), "-o", self.path("h.kiln"), "--explain").stdout
        for words in ["rewrites\n", "fuse_horizontally/dot", "not fused\n", "add -> attention"]:
            self.assertIn(words, text)

    def test_unknown_passes_are_refused_with_the_nearest(self):
        def refused(name):
            return self.error_line(self.kiln("compile", self.conv_model(), "-o", self.path("c.kiln"), "--disable-pass", name, code=2))
        unread = self.kiln("compile", self.path("missing.onnx"), "-o", self.path("c.kiln"), "--disable-pass", "fuse", code=2)
        self.assertIn("--disable-pass fuse: there is no such pass", self.error_line(unread), "refused before the model is read")
        self.assertIn("--disable-pass sink_reshape: there is no such pass to disable; did you mean 'sink_reshapes'?", refused("sink_reshape"))
        self.assertIn("there is no such pass", refused("channels_last"))  # kernel formation needs it

    def test_every_pass_can_be_left_out(self):
        text = " ".join(self.kiln("compile", "--help").stdout.split())
        names = text.split("problem comes from: ")[1].split(" --")[0].split("Example")[0].replace(",", " ").split()
        self.assertIn("simplify_movement", names)
        for model, dims in [(self.branches(), [1, 8, 12, 10]), (self.heads(), [1, 16, 32])]:
            for name in names:
                with self.subTest(model=model, without=name):
                    self.check_numbers(model, self.compiled_with(model, "--disable-pass", name)[0], dims)


if __name__ == "__main__":
    kiln_case.main()
