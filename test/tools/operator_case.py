"""Tests of single operators: nodes by onnxruntime and by `kiln`, on random inputs. The nodes that a test checks become
one model, for speed."""
import os

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from kiln_case import KilnCase

DOMAINS = {"com.microsoft": 1, "ai.onnx.ml": 3}


def reference(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


class Node:
    """One node. `inputs`: (name, array), or None for one that is left out; names in `constants` become initializers.
    `standard` is the opset of the
    standard's domain. All names begin with `prefix`."""

    def __init__(self, prefix, op, inputs, outputs, constants=(), domain="com.microsoft", standard=21, **attributes):
        given = [(prefix + i[0], i[1]) for i in inputs if i]
        fixed = {prefix + c for c in constants}
        self.standard = standard
        self.outputs = [prefix + o for o in outputs if o]
        self.feeds = {n: a for n, a in given if n not in fixed}
        self.initializers = [numpy_helper.from_array(a, n) for n, a in given if n in fixed]
        self.proto = helper.make_node(op, [prefix + i[0] if i else "" for i in inputs], [o and prefix + o for o in outputs], domain=domain, name=prefix + "node", **attributes)


def model_of(nodes):
    feeds = {n: a for node in nodes for n, a in node.feeds.items()}
    graph = helper.make_graph([n.proto for n in nodes], "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()],
                              [helper.make_empty_tensor_value_info(o) for n in nodes for o in n.outputs], [i for n in nodes for i in n.initializers])
    versions = {**{n.proto.domain: 1 for n in nodes}, **DOMAINS, "": max(n.standard for n in nodes)}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in versions.items()], ir_version=10), feeds


class OperatorCase(KilnCase):
    reference = staticmethod(reference)

    def setUp(self):
        super().setUp()
        self.pending = []

    def tearDown(self):
        for standard in sorted({n.standard for n, _, _ in self.pending}):
            self.check_together([p for p in self.pending if p[0].standard == standard])
        super().tearDown()

    def check_together(self, pending):
        model, feeds = model_of([n for n, _, _ in pending])
        want, got = self.reference(model, feeds), self.run_kiln(model, feeds)
        for node, tolerance, about in pending:
            with self.subTest(about):
                self.agree({o: want[o] for o in node.outputs}, got, tolerance, about)

    def model(self, op, inputs, outputs, **more):
        return model_of([Node("", op, inputs, outputs, **more)])

    def run_kiln(self, model, feeds, dims=()):
        onnx.save(model, self.path("m.onnx"))
        self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), *(a for d in dims for a in ("--dim", d)))
        given = []
        for name, a in feeds.items():
            np.save(self.path(name + ".npy"), a)
            given += ["--input", f"{name}={self.path(name + '.npy')}"]
        folder = self.path("out")
        if os.path.isdir(folder):
            for file in os.listdir(folder):
                os.remove(os.path.join(folder, file))
        self.kiln("run", self.path("m.kiln"), "--quiet", "--output-dir", folder, *given)
        return {file[:-4]: np.load(os.path.join(folder, file)) for file in os.listdir(folder)}

    def agree(self, want, got, tolerance=1e-4, about=""):
        for name, w in want.items():
            if not isinstance(w, np.ndarray):
                continue
            self.assertIn(name, got, about)
            g = got[name]
            self.assertEqual(w.shape, g.shape, f"{about}: {name}")
            if w.dtype.kind == "b" or w.dtype.kind in "iu" and w.dtype.itemsize > 1:
                np.testing.assert_array_equal(g, w, f"{about}: {name}")
            elif w.dtype.kind in "iu":  # quantized: a number that is right in the middle may go either way
                self.assertLessEqual(int(np.abs(w.astype(int) - g.astype(int)).max(initial=0)), 1, f"{about}: {name}")
            else:
                scale = max(1e-3, float(np.abs(w[np.isfinite(w)]).max(initial=0)))
                np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=0, atol=tolerance * scale, err_msg=f"{about}: {name}")

    def check(self, op, inputs, outputs=("y",), tolerance=1e-4, **more):
        """The node gives what onnxruntime gives; compared when the test ends."""
        about = f"{op} {[i and (i[0], i[1].shape, str(i[1].dtype)) for i in inputs]} { {k: v for k, v in more.items() if len(str(v)) < 60} }"
        self.pending.append((Node(f"n{len(self.pending)}_", op, inputs, list(outputs), **more), tolerance, about))

    def refused(self, text, op, inputs, outputs=("y",), **more):
        """The node is refused with an error that names what is missing."""
        model, _ = self.model(op, inputs, list(outputs), **more)
        onnx.save(model, self.path("m.onnx"))
        self.assertIn(text, self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3)))
