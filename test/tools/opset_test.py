"""The versions of operators that `kiln ops` claims, against the schemas of the onnx package."""
import collections
import unittest

import onnx
from onnx import helper

import kiln_case
from kiln_case import KilnCase, tensor

# Operators of onnxruntime that its files put into the standard domain: no schema.
WITHOUT_SCHEMA = {"SimplifiedLayerNormalization"}
# Operators that may stand in models older than the standard has them: by onnxruntime's fusions, and kernels of a library without an oldest opset.
BEFORE_THE_STANDARD = {"LayerNormalization", "RoiAlign"}


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
