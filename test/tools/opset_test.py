"""The versions of operators that `kiln ops` claims, against the schemas of the onnx package."""
import collections
import unittest

import onnx
from onnx import helper

import kiln_case
from kiln_case import KilnCase, tensor

# Operators of onnxruntime that its files put into the standard domain, and those that were experimental in the first
# opsets: no schema.
WITHOUT_SCHEMA = {"SimplifiedLayerNormalization", "Affine", "Crop", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh"}
# Operators that may stand in models older than the standard has them: by onnxruntime's fusions, and kernels of a
# library without an oldest opset.
BEFORE_THE_STANDARD = {"LayerNormalization", "RoiAlign"}
# Operators on text and on image files, which are refused with the advice to cut the model.
OUTSIDE = {"ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}


class Versions(KilnCase):
    def setUp(self):
        super().setUp()
        self.claimed = self.json("ops")
        self.known = min(self.claimed["newest_opset"], onnx.defs.onnx_opset_version())
        self.history = collections.defaultdict(dict)
        for schema in onnx.defs.get_all_schemas_with_history():
            if schema.domain == "" and schema.since_version <= self.known:
                self.history[schema.name][schema.since_version] = schema

    def test_each_operator_is_known_up_to_its_newest_version(self):
        for row in self.claimed["operators"]:
            if row["domain"]:
                continue
            with self.subTest(operator=row["name"]):
                versions = self.history[row["name"]]
                if not versions:
                    self.assertIn(row["name"], WITHOUT_SCHEMA)
                    continue
                last = min(row["max_opset"], self.known)
                self.assertEqual(row["version"], max(v for v in versions if v <= last))
                if row["name"] not in BEFORE_THE_STANDARD:
                    self.assertGreaterEqual(row["min_opset"], min(versions))
                if row["max_opset"] < self.known:  # the table says that the next version is unknown: there has to be one
                    self.assertIn(row["max_opset"] + 1, versions)

    def test_every_operator_of_the_standard_is_known(self):
        known = {row["name"] for row in self.claimed["operators"] if row["domain"] == ""}
        deprecated = {name for name, versions in self.history.items() if versions[max(versions)].deprecated}
        self.assertEqual(set(self.history) - known - deprecated, OUTSIDE)

    def test_operators_outside_of_models_are_refused_with_advice(self):
        for name, schema in ((n, self.history[n][max(self.history[n])]) for n in OUTSIDE):
            with self.subTest(operator=name):
                inputs = [f"x{i}" for i in range(schema.min_input)]
                node = helper.make_node(name, inputs, ["y"], **({"pattern": "a"} if name == "RegexFullMatch" else {}))
                graph = helper.make_graph([node], "g", [tensor(i, [2], onnx.TensorProto.UINT8) for i in inputs], [tensor("y", [2])])
                onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8), self.path("m.onnx"))
                line = self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3))
                self.assertIn(f"operator {name} ", line)
                self.assertIn("onnx.utils.extract_model", line)

    def test_an_operator_of_a_newer_opset_is_refused_by_name(self):
        graph = helper.make_graph([helper.make_node("FromTheFuture", ["x"], ["y"])], "g", [tensor("x", [2])], [tensor("y", [2])])
        opset = helper.make_opsetid("", self.claimed["newest_opset"] + 1)
        onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), self.path("m.onnx"))
        done = self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3)
        self.assertIn("FromTheFuture", done.stderr.splitlines()[-1])

    def test_a_model_of_each_opset(self):
        for opset in range(14, self.known + 3):
            node = helper.make_node("Relu", ["x"], ["y"])
            graph = helper.make_graph([node], "g", [tensor("x", [2])], [tensor("y", [2])])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), self.path("m.onnx"))
            done = self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"))
            warnings = [l for l in done.stderr.splitlines() if l.strip()]
            self.assertEqual(len(warnings), opset > self.claimed["newest_opset"], done.stderr)
            self.assertTrue(all(f"opset {opset}" in l for l in warnings), warnings)


if __name__ == "__main__":
    kiln_case.main()
