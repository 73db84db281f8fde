"""If and Loop: kernels inside their bodies are finalized and give onnxruntime's answers."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor


class ControlFlow(KilnCase):
    def compare(self, model, inputs):
        arguments = []
        for name, a in inputs.items():
            np.save(self.path(name + ".npy"), a)
            arguments += ["--input", f"{name}={self.path(name + '.npy')}"]
        file = self.compiled(model)
        document = self.json("run", file, "--output-dir", self.path("out"), *arguments)
        session = onnxruntime.InferenceSession(model)
        for out, want in zip(session.get_outputs(), session.run(None, inputs)):
            np.testing.assert_allclose(np.load(self.path(f"out/{out.name}.npy")), want, rtol=1e-5, atol=1e-6)
        return file, document

    def if_model(self):
        w = numpy_helper.from_array(np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32), "w")
        then = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Sigmoid", ["t"], ["a"])], "then", [], [tensor("a", [3, 5])])
        other = helper.make_graph([helper.make_node("Slice", ["x", "s0", "s5", "s1"], ["u"]), helper.make_node("Exp", ["u"], ["b"])], "else", [], [tensor("b", [3, 5])])
        constants = [numpy_helper.from_array(np.array([v], np.int64), n) for v, n in [(0, "s0"), (5, "s5"), (1, "s1")]]
        nodes = [helper.make_node("If", ["flag"], ["y"], name="choice", then_branch=then, else_branch=other)]
        return self.save("if.onnx", nodes, [tensor("flag", [], TensorProto.BOOL), tensor("x", [3, 7])], [tensor("y", [3, 5])], [w, *constants])

    def test_if(self):
        model = self.if_model()
        x = np.random.default_rng(2).standard_normal((3, 7)).astype(np.float32)
        for flag in [True, False]:
            file, _ = self.compare(model, {"flag": np.array(flag), "x": x})
        # Both branches hold kernels, and finalizing makes all of them native.
        symbols = {k["symbol"] for k in self.json("inspect", file)["kernels"]}
        self.assertTrue(any("dot" in s for s in symbols), symbols)
        self.assertTrue(any("exp" in s for s in symbols), symbols)
        self.assertEqual(self.json("run", file)["cache"]["misses"], 0)

    def test_loop_with_carried_and_scanned_values(self):
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("MatMul", ["h", "w"], ["p"]), helper.make_node("Tanh", ["p"], ["h2"]),
             helper.make_node("ReduceSum", ["h2"], ["total"], keepdims=0)],
            "body", [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), tensor("h", [2, 9])],
            [tensor("go_on", [], TensorProto.BOOL), tensor("h2", [2, 9]), tensor("total", [])])
        w = numpy_helper.from_array((np.random.default_rng(1).standard_normal((9, 9)) / 3).astype(np.float32), "w")
        trips = numpy_helper.from_array(np.array(6, np.int64), "trips")
        always = numpy_helper.from_array(np.array(True), "always")
        model = self.save("loop.onnx", [helper.make_node("Loop", ["trips", "always", "x"], ["last", "totals"], name="again", body=body)],
                          [tensor("x", [2, 9])], [tensor("last", [2, 9]), tensor("totals", [6])], [w, trips, always])
        self.compare(model, {"x": np.random.default_rng(5).standard_normal((2, 9)).astype(np.float32)})


if __name__ == "__main__":
    kiln_case.main()
