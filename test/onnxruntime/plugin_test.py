"""The execution provider in ONNX Runtime's own sessions: answers, shapes, parts, options, errors, threads."""
import glob
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper

PLUGIN, KILN = (os.path.abspath(a) for a in sys.argv[1:3])
WHEEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../onnxruntime/wheel/__init__.py")
NAME = "KilnExecutionProvider"
CACHE = tempfile.TemporaryDirectory()


def model(nodes, inputs, outputs, constants=(), opset=17, more=()):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info(*i) for i in inputs], [h.make_tensor_value_info(*o) for o in outputs], [numpy_helper.from_array(a, n) for n, a in constants])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset), *more], ir_version=9).SerializeToString()


def perceptron(seed=1):
    r = np.random.default_rng(seed)
    weights = [("w", r.standard_normal((16, 40), np.float32)), ("b", r.standard_normal(40, np.float32)), ("v", r.standard_normal((40, 8), np.float32))]
    nodes = [h.make_node("Gemm", ["x", "w", "b"], ["h"]), h.make_node("Gelu", ["h"], ["a"], approximate="tanh"), h.make_node("MatMul", ["a", "v"], ["y"])]
    return model(nodes, [("x", T.FLOAT, ["n", 16])], [("y", T.FLOAT, ["n", 8])], weights, opset=20)


def options(**given):
    o = ort.SessionOptions()
    o.log_severity_level = 4
    given = {"cache": CACHE.name, "compiler": KILN} | {k.replace("_", "-"): str(v) for k, v in given.items()}
    o.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == NAME], given)
    return o


def taken(data):
    """The log's line on what Kiln runs, from a process of its own: the log goes to standard error."""
    code = "import sys, onnxruntime as ort\nort.register_execution_provider_library('kiln', sys.argv[1])\no = ort.SessionOptions()\no.log_severity_level = 1\no.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == 'KilnExecutionProvider'], {'cache': sys.argv[2], 'compiler': sys.argv[3]})\nort.InferenceSession(sys.stdin.buffer.read(), o)"
    done = subprocess.run([sys.executable, "-c", code, PLUGIN, CACHE.name, KILN], input=data, capture_output=True)
    return done.stderr.decode(errors="replace")


class Plugin(unittest.TestCase):
    def check(self, data, *feeds, **given):
        session = ort.InferenceSession(data, options(**given))
        reference = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
        for feed in feeds:
            for expected, got in zip(reference.run(None, feed), session.run(None, feed)):
                self.assertEqual(got.shape, expected.shape)
                self.assertEqual(got.dtype, expected.dtype)
                if expected.dtype.kind == "f":
                    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
                else:
                    np.testing.assert_array_equal(got, expected)
        return session

    def refused(self, words, **given):
        """Before 1.26 the Python interface prints an error of the provider's and goes on without it."""
        try:
            session = ort.InferenceSession(perceptron(), options(**given))
            self.assertNotIn(NAME, session.get_providers())
        except Exception as e:
            self.assertRegex(str(e), words)

    def test_a_device_for_the_processor(self):
        devices = [d for d in ort.get_ep_devices() if d.ep_name == NAME]
        self.assertEqual(len(devices), 1)
        self.assertEqual(devices[0].ep_vendor, "Kiln")

    def test_the_wheel_names_the_same_providers(self):
        self.assertEqual(runpy.run_path(WHEEL)["get_ep_names"](), [NAME, "KilnGpuExecutionProvider"])

    def test_one_session_for_all_shapes(self):
        r = np.random.default_rng(2)
        session = self.check(perceptron(), *({"x": r.standard_normal((n, 16), np.float32)} for n in (1, 3, 64, 1, 7)))
        self.assertEqual(session.get_providers()[0], NAME)
        self.assertRegex(taken(perceptron()), r"Kiln runs 3 of 3 nodes in 1 parts")

    def test_kernels_are_in_the_order_of_the_model(self):
        r = np.random.default_rng(5)
        nodes, last = [], "x"
        for i in range(4):  # squeeze and expand, as in squeezenet
            nodes += [h.make_node("MatMul", [last, "w"], [f"s{i}"], name=f"squeeze{i}")]
            nodes += [h.make_node("MatMul", [f"s{i}", f"v{e}"], [f"{e}{i}"], name=f"expand_{e}{i}") for e in "ab"]
            nodes += [h.make_node("Concat", [f"a{i}", f"b{i}"], [f"c{i}"], name=f"concat{i}", axis=1)]
            last = f"c{i}"
        constants = [(name, r.standard_normal(shape, np.float32) / 4) for name, shape in (("w", (32, 8)), ("va", (8, 16)), ("vb", (8, 16)))]
        data = model(nodes, [("x", T.FLOAT, [4, 32])], [(last, T.FLOAT, [4, 32])], constants)
        with tempfile.TemporaryDirectory() as folder:
            self.check(data, {"x": r.standard_normal((4, 32), np.float32)}, cache=folder)
            with open(f"{folder}/model.onnx", "wb") as f:
                f.write(data)
            subprocess.run([KILN, "compile", f"{folder}/model.onnx", "-o", f"{folder}/model.kiln", "--quiet"], check=True)
            orders = []
            for file in [f"{folder}/model.kiln", *glob.glob(f"{folder}/onnxruntime/*.kiln")]:
                subprocess.run([KILN, "inspect", file, "--dot", f"{folder}/graph.dot", "--quiet"], check=True)
                with open(f"{folder}/graph.dot") as f:
                    orders.append(re.findall(r"(?:squeeze|expand_.|concat)\d", f.read()))
        self.assertEqual(len(orders), 2)
        self.assertGreaterEqual(len(orders[0]), 12)
        self.assertEqual(*orders)

    def test_tensors_that_kernels_cannot_use_where_they_are(self):
        data = model([h.make_node("Softmax", ["x"], ["s"]), h.make_node("Mul", ["s", "x"], ["y"])], [("x", T.FLOAT, ["n", 16])], [("y", T.FLOAT, ["n", 16])])
        session, reference = ort.InferenceSession(data, options()), ort.InferenceSession(data, providers=["CPUExecutionProvider"])
        memory = np.zeros(2 * 4 * 64 + 8, np.uint8)
        for begin, result in [(0, 256), (1, 258), (0, 0), (0, 64), (3, 259)]:  # some are not aligned, some overlap
            x = np.random.default_rng(begin).standard_normal((4, 16)).astype(np.float32)
            memory[begin : begin + 256] = x.view(np.uint8).reshape(-1)
            binding = session.io_binding()
            binding.bind_input("x", "cpu", 0, np.float32, [4, 16], memory.ctypes.data + begin)
            binding.bind_output("y", "cpu", 0, np.float32, [4, 16], memory.ctypes.data + result)
            session.run_with_iobinding(binding)
            got = memory[result : result + 256].copy().view(np.float32).reshape(4, 16)
            np.testing.assert_allclose(got, reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)

    def test_attributes_of_all_kinds(self):
        r = np.random.default_rng(3)
        nodes = [
            h.make_node("Constant", [], ["c"], value=numpy_helper.from_array(r.standard_normal((1, 4, 1, 1), np.float32))),
            h.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2], auto_pad="NOTSET"),
            h.make_node("LeakyRelu", ["y"], ["z"], alpha=0.25),
            h.make_node("Add", ["z", "c"], ["s"]),
            h.make_node("GlobalAveragePool", ["s"], ["p"]),
        ]
        data = model(nodes, [("x", T.FLOAT, ["n", 3, "h", "w_"])], [("p", T.FLOAT, ["n", 4, 1, 1])], [("w", r.standard_normal((4, 3, 3, 3), np.float32))])
        self.check(data, {"x": r.standard_normal((2, 3, 9, 7), np.float32)}, {"x": r.standard_normal((1, 3, 16, 16), np.float32)})

    def test_strings_of_a_recurrent_layer(self):
        r = np.random.default_rng(4)
        weights = [("w", r.standard_normal((1, 12, 5), np.float32)), ("r", r.standard_normal((1, 12, 3), np.float32))]
        node = h.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3, activations=["Sigmoid", "Tanh", "Tanh"])
        data = model([node, h.make_node("Neg", ["y"], ["z"])], [("x", T.FLOAT, [4, 2, 5])], [("z", T.FLOAT, [4, 1, 2, 3])], weights)
        self.check(data, {"x": r.standard_normal((4, 2, 5), np.float32)})

    def test_bodies(self):
        body = lambda op, out: h.make_graph([h.make_node(op, ["x"], [out])], out, [], [h.make_tensor_value_info(out, T.FLOAT, ["n"])])
        nodes = [h.make_node("ReduceSum", ["x"], ["s"], keepdims=0), h.make_node("Greater", ["s", "zero"], ["c"]), h.make_node("If", ["c"], ["y"], then_branch=body("Exp", "t"), else_branch=body("Abs", "e"))]
        data = model(nodes, [("x", T.FLOAT, ["n"])], [("y", T.FLOAT, ["n"])], [("zero", np.array(0, np.float32))])
        self.check(data, {"x": np.ones(3, np.float32)}, {"x": -np.ones(5, np.float32)})

    def test_bodies_that_read_nothing_from_outside(self):
        """ONNX Runtime 1.23 shows them before their graph, and does not say what they are."""
        nodes = [h.make_node("Sub", ["next", "in"], ["d"]), h.make_node("ReduceSumSquare", ["d"], ["q"], axes=[0], keepdims=0), h.make_node("Identity", ["in"], ["out"])]
        state = [h.make_tensor_value_info(n, T.FLOAT, s) for n, s in [("in", [3]), ("next", [3])]]
        body = h.make_graph(nodes, "body", state, [h.make_tensor_value_info("out", T.FLOAT, [3]), h.make_tensor_value_info("q", T.FLOAT, [])])
        nodes = [h.make_node("Abs", ["c"], ["a"]), h.make_node("Scan", ["a", "x"], ["end", "squares"], body=body, num_scan_inputs=1), h.make_node("Sqrt", ["squares"], ["r"]), h.make_node("Neg", ["r"], ["y"])]
        data = model(nodes, [("c", T.FLOAT, [3]), ("x", T.FLOAT, ["n", 3])], [("y", T.FLOAT, ["n"])])
        r = np.random.default_rng(6)
        self.check(data, {"c": r.standard_normal(3, np.float32), "x": r.standard_normal((5, 3), np.float32)})

    def test_values_that_only_bodies_read(self):
        """Before 1.27 ONNX Runtime does not pass them, so the node is left to it."""
        body = lambda op, out: h.make_graph([h.make_node(op, ["x"], [out])], out, [], [h.make_tensor_value_info(out, T.FLOAT, ["n"])])
        node = h.make_node("If", ["c"], ["y"], then_branch=body("Exp", "t"), else_branch=body("Abs", "e"))
        data = model([node], [("x", T.FLOAT, ["n"]), ("c", T.BOOL, [])], [("y", T.FLOAT, ["n"])])
        self.check(data, {"x": np.ones(3, np.float32), "c": np.array(True)}, {"x": -np.ones(5, np.float32), "c": np.array(False)})
        old = tuple(int(n) for n in ort.__version__.split(".")[:2]) < (1, 27)
        self.assertIn("If: this ONNX Runtime does not pass" if old else "Kiln runs 1 of 1 nodes", taken(data))

    def test_sizes_that_depend_on_data(self):
        nodes = [h.make_node("Relu", ["x"], ["r"]), h.make_node("NonZero", ["r"], ["y"])]
        data = model(nodes, [("x", T.FLOAT, ["n", 6])], [("y", T.INT64, [2, "m"])])
        self.check(data, *({"x": np.random.default_rng(n).standard_normal((n, 6)).astype(np.float32)} for n in (1, 5)), {"x": -np.ones((2, 6), np.float32)})

    def test_the_rest_stays_with_onnxruntime(self):
        nodes = [h.make_node("Relu", ["x"], ["a"]), h.make_node("Sqrt", ["a"], ["b"]), h.make_node("Cast", ["b"], ["t"], to=T.STRING), h.make_node("Cast", ["t"], ["f"], to=T.FLOAT), h.make_node("Exp", ["f"], ["c"]), h.make_node("Add", ["c", "b"], ["y"])]
        data = model(nodes, [("x", T.FLOAT, ["n"])], [("y", T.FLOAT, ["n"])])
        self.check(data, {"x": np.array([0.25, 4, -1], np.float32)})
        log = taken(data)
        self.assertRegex(log, r"Kiln runs [34] of 6 nodes in [12] parts")
        self.assertIn("'t' holds text", log)

    def test_sequences_inside_of_a_part(self):
        nodes = [h.make_node("Relu", ["x"], ["r"]), h.make_node("SplitToSequence", ["r"], ["s"], axis=0, keepdims=1), h.make_node("SequenceErase", ["s", "first"], ["e"]), h.make_node("ConcatFromSequence", ["e"], ["y"], axis=0)]
        x, first = [("x", T.FLOAT, [3, 4])], [("first", np.array(0, np.int64))]
        data = model(nodes, x, [("y", T.FLOAT, [2, 4])], first)
        feed = {"x": np.random.default_rng(7).standard_normal((3, 4)).astype(np.float32)}
        self.check(data, feed)
        self.assertIn("Kiln runs 4 of 4 nodes in 1 parts", taken(data))
        # A sequence that the session gives is made by ONNX Runtime.
        whole = onnx.load_from_string(data)
        whole.graph.output.append(h.make_tensor_sequence_value_info("e", T.FLOAT, None))
        session = ort.InferenceSession(whole.SerializeToString(), options())
        y, e = session.run(None, feed)
        np.testing.assert_array_equal(y, np.maximum(feed["x"][1:], 0))
        np.testing.assert_array_equal(np.concatenate(e), y)
        self.assertIn("'e' is no tensor", taken(whole.SerializeToString()))

    def test_sequences_in_a_loop(self):
        body = h.make_graph([h.make_node("Mul", ["x", "x"], ["q"]), h.make_node("SequenceInsert", ["in", "q"], ["out"]), h.make_node("Identity", ["c"], ["go"])], "body",
                            [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []), h.make_tensor_sequence_value_info("in", T.FLOAT, None)],
                            [h.make_tensor_value_info("go", T.BOOL, []), h.make_tensor_sequence_value_info("out", T.FLOAT, None)])
        nodes = [h.make_node("SequenceConstruct", ["x"], ["start"]), h.make_node("Loop", ["trips", "", "start"], ["all"], body=body), h.make_node("ConcatFromSequence", ["all"], ["y"], axis=0)]
        data = model(nodes, [("x", T.FLOAT, [2, 4])], [("y", T.FLOAT, [8, 4])], [("trips", np.array(3, np.int64))])
        self.check(data, {"x": np.random.default_rng(8).standard_normal((2, 4)).astype(np.float32)})

    def test_models_of_compiled_parts(self):
        feed = {"x": np.random.default_rng(5).standard_normal((3, 16)).astype(np.float32)}
        for embedded in "0", "1":
            with tempfile.TemporaryDirectory() as folder:
                source, made = f"{folder}/m.onnx", f"{folder}/made/m_ctx.onnx"
                os.mkdir(f"{folder}/made")
                with open(source, "wb") as f:
                    f.write(perceptron())
                writing = options()
                writing.add_session_config_entry("ep.context_enable", "1")
                writing.add_session_config_entry("ep.context_embed_mode", embedded)
                writing.add_session_config_entry("ep.context_file_path", made)
                expected = ort.InferenceSession(source, writing).run(None, feed)[0]
                os.remove(source)
                nodes = onnx.load(made).graph.node
                self.assertEqual([n.op_type for n in nodes], ["EPContext"])
                self.assertEqual(sum(n.endswith(".kiln") for n in os.listdir(f"{folder}/made")), 1 - int(embedded))
                with tempfile.TemporaryDirectory() as other:
                    # Another machine: an empty cache, and nothing is compiled from ONNX.
                    session = ort.InferenceSession(made, options(cache=other))
                    self.assertEqual(session.get_providers()[0], NAME)
                    np.testing.assert_array_equal(session.run(None, feed)[0], expected)
                    del session  # it writes to its cache until it ends

    def test_a_context_may_not_name_files_elsewhere(self):
        node = h.make_node("EPContext", ["x"], ["y"], name="part", domain="com.microsoft", main_context=1, embed_mode=0, source=NAME, ep_cache_context="../../etc/passwd")
        data = model([node], [("x", T.FLOAT, ["n"])], [("y", T.FLOAT, ["n"])], more=[h.make_opsetid("com.microsoft", 1)])
        # ONNX Runtime logs the provider's words and says itself that nobody takes the node.
        with self.assertRaisesRegex(Exception, "not a file beside the model|not compatible|Could not find an implementation"):
            ort.InferenceSession(data, options())

    def test_a_context_whose_file_has_other_types_than_the_node_is_refused(self):
        """The provider hands tensors to the file as they are, so their types must be those that it was compiled for."""
        def context(takes, gives):
            with tempfile.TemporaryDirectory() as folder:
                with open(f"{folder}/m.onnx", "wb") as f:
                    f.write(model([h.make_node("Cast", ["x"], ["y"], to=gives)], [("x", takes, [4])], [("y", gives, [4])]))
                subprocess.run([KILN, "compile", f"{folder}/m.onnx", "-o", f"{folder}/m.kiln", "--quiet"], check=True)
                with open(f"{folder}/m.kiln", "rb") as f:
                    return f.read()

        def run(file, takes, gives):
            node = h.make_node("EPContext", ["x"], ["y"], name="part", domain="com.microsoft", main_context=1, embed_mode=1, source=NAME, ep_cache_context=file)
            session = ort.InferenceSession(model([node], [("x", takes, [4])], [("y", gives, [4])], more=[h.make_opsetid("com.microsoft", 1)]), options())
            return session.run(None, {"x": np.ones(4, h.tensor_dtype_to_np_dtype(takes))})[0]

        np.testing.assert_array_equal(run(context(T.FLOAT, T.INT64), T.FLOAT, T.INT64), 1)
        for file, node in {(T.DOUBLE, T.FLOAT): (T.FLOAT, T.FLOAT), (T.FLOAT, T.DOUBLE): (T.FLOAT, T.FLOAT), (T.FLOAT, T.FLOAT): (T.FLOAT, T.STRING), (T.FLOAT, T.INT64): (T.FLOAT, T.STRING),
                           (T.INT64, T.FLOAT): (T.BOOL, T.FLOAT)}.items():
            with self.assertRaisesRegex(Exception, "other elements"):
                run(context(*file), *node)

    def test_native_code_in_a_context_needs_consent(self):
        """A context may hold native kernels. They run only if a trusted key has signed them."""
        with tempfile.TemporaryDirectory() as folder:
            def config(name):
                return {**os.environ, "XDG_CONFIG_HOME": f"{folder}/{name}", "KILN_CACHE_DIR": f"{folder}/{name}_cache"}

            def native(name, env):
                add = model([h.make_node("Add", ["x", "c"], ["y"])], [("x", T.FLOAT, [4])], [("y", T.FLOAT, [4])], [("c", np.float32(1))])
                with open(f"{folder}/m.onnx", "wb") as f:
                    f.write(add)
                subprocess.run([KILN, "compile", f"{folder}/m.onnx", "-o", f"{folder}/m.kiln", "--quiet"], check=True, env=env)
                subprocess.run([KILN, "finalize", f"{folder}/m.kiln", "--target", "x86-64-v3", "-o", f"{folder}/o", "--native-file", f"{folder}/{name}.kiln"], check=True, env=env, stdout=subprocess.DEVNULL)
                return f"{folder}/{name}.kiln"

            def run(file, embedded):
                with open(file, "rb") as f:
                    context = f.read() if embedded else os.path.basename(file)
                node = h.make_node("EPContext", ["x"], ["y"], name="part", domain="com.microsoft", main_context=1, embed_mode=int(embedded), source=NAME, ep_cache_context=context)
                with open(f"{folder}/ctx.onnx", "wb") as f:
                    f.write(model([node], [("x", T.FLOAT, [4])], [("y", T.FLOAT, [4])], more=[h.make_opsetid("com.microsoft", 1)]))
                session = ort.InferenceSession(f"{folder}/ctx.onnx", options(cache=f"{folder}/cache"))
                return session.run(None, {"x": np.ones(4, np.float32)})[0]

            unsigned = {k: v for k, v in config("nobody").items() if k not in ("HOME", "XDG_CONFIG_HOME")}
            before = dict(os.environ)
            os.environ["XDG_CONFIG_HOME"] = f"{folder}/own"
            try:
                for embedded in False, True:
                    np.testing.assert_array_equal(run(native("own", config("own")), embedded), 2)
                    for name, env in ("stranger", config("stranger")), ("unsigned", unsigned):
                        # ONNX Runtime says the provider's words, or that nobody takes the node.
                        with self.assertRaisesRegex(Exception, "trusted|not compatible|Could not find an implementation|not signed"):
                            run(native(name, env), embedded)
            finally:
                os.environ.clear()
                os.environ.update(before)

    def test_a_cache_that_others_may_write_is_not_used(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            session = ort.InferenceSession(perceptron(), options(cache=folder))
            self.assertEqual(os.listdir(folder), [])
            session.run(None, {"x": np.ones((1, 16), np.float32)})  # by ONNX Runtime
        feed = {"x": np.ones((1, 16), np.float32)}

        def answer(cache, data=perceptron()):
            return ort.InferenceSession(data, options(cache=cache)).run(None, feed)[0]

        # The file that the cache has for this model is exchanged for one of another model.
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/parent")
            place = f"{folder}/parent/c"
            good, evil = answer(place), answer(f"{folder}/evil", perceptron(2))
            made, other = (glob.glob(f"{f}/onnxruntime/*.kiln") for f in (place, f"{folder}/evil"))
            self.assertEqual((len(made), len(other)), (1, 1))
            shutil.copy(other[0], made[0])
            np.testing.assert_array_equal(answer(place), evil)  # the tests would notice
            folders = [f"{folder}/parent", place, f"{place}/onnxruntime"]
            for path in folders:
                for mode in 0o777, 0o775, 0o770:
                    os.chmod(path, mode)
                    np.testing.assert_allclose(answer(place), good, rtol=1e-5)
                os.chmod(path, 0o700)
                if os.geteuid() == 0:
                    os.chown(path, 65534, 65534)
                    np.testing.assert_allclose(answer(place), good, rtol=1e-5)
                    os.chown(path, 0, 0)
            os.symlink(place, f"{folder}/link")
            np.testing.assert_array_equal(answer(f"{folder}/link"), evil)
            if os.geteuid() == 0:
                os.chown(f"{folder}/link", 65534, 65534, follow_symlinks=False)
                np.testing.assert_allclose(answer(f"{folder}/link"), good, rtol=1e-5)
            # A file that others could have changed is made again.
            os.chmod(made[0], 0o666)
            np.testing.assert_array_equal(answer(place), good)
            self.assertEqual(os.stat(made[0]).st_mode & 0o022, 0)
        with tempfile.TemporaryDirectory() as folder:
            ort.InferenceSession(perceptron(), options(cache=f"{folder}/c"))
            self.assertEqual([os.stat(f"{folder}/{d}").st_mode & 0o777 for d in ("c", "c/onnxruntime")], [0o700, 0o700])

    def test_shapes_that_are_inputs(self):
        data = model([h.make_node("Reshape", ["x", "shape"], ["y"])], [("x", T.FLOAT, ["n", "m"]), ("shape", T.INT64, [2])], [("y", T.FLOAT, ["a", "b"])])
        self.check(data, {"x": np.ones((2, 6), np.float32), "shape": np.array([-1, 3])}, {"x": np.ones((2, 6), np.float32), "shape": np.array([0, 6])})

    def test_options_are_those_of_the_command_line(self):
        feed = {"x": np.ones((2, 16), np.float32)}
        self.check(perceptron(), feed, device="host", threads=1, specialize="off", graph="auto", tune="off", precision="model")
        for wrong, words in (({"colour": "red"}, "there is no such option"), ({"specialize": "never"}, "not one of"), ({"threads": "many"}, "no number")):
            self.refused(words, **wrong)
        self.refused("KILN_COMPILER", compiler="/nowhere/kiln")
        self.refused("libabsent.so: cannot open shared object file", compiler=self.program_that_cannot_start())
        with self.assertRaisesRegex(Exception, "cuda"):
            ort.InferenceSession(perceptron(), options(device="cuda:77"))

    def program_that_cannot_start(self):
        """What a loader says of a library that is missing is in the message."""
        path = f"{CACHE.name}/broken"
        with open(path, "w") as f:
            f.write("#!/bin/sh\necho \"$0: error while loading shared libraries: libabsent.so: cannot open shared object file\" >&2\nexit 127\n")
        os.chmod(path, 0o700)
        return path

    def test_a_wrong_shape_is_an_error_and_the_session_goes_on(self):
        nodes = [h.make_node("Add", ["x", "z"], ["a"]), h.make_node("Neg", ["a"], ["y"])]
        data = model(nodes, [("x", T.FLOAT, ["n"]), ("z", T.FLOAT, ["n"])], [("y", T.FLOAT, ["n"])])
        session = ort.InferenceSession(data, options())
        with self.assertRaisesRegex(Exception, "'n' is 4 here and 3 in 'x'"):
            session.run(None, {"x": np.ones(3, np.float32), "z": np.ones(4, np.float32)})
        self.assertEqual(session.get_providers()[0], NAME)
        np.testing.assert_array_equal(session.run(None, {"x": np.ones(3, np.float32), "z": np.ones(3, np.float32)})[0], -2 * np.ones(3, np.float32))

    def test_a_cut_file_in_the_cache_is_made_again(self):
        with tempfile.TemporaryDirectory() as cache:
            feed = {"x": np.ones((2, 16), np.float32)}
            self.check(perceptron(), feed, cache=cache)
            (file,) = glob.glob(cache + "/onnxruntime/*.kiln")
            size = os.path.getsize(file)
            os.truncate(file, 1000)
            self.check(perceptron(), feed, cache=cache)
            self.assertEqual(os.path.getsize(file), size)

    def test_the_folder_of_parts_is_bounded(self):
        with tempfile.TemporaryDirectory() as cache:
            folder = os.path.join(cache, "onnxruntime")
            os.mkdir(folder, 0o700)
            now, day, gib = time.time(), 86400, 1 << 30
            ages = {"older.kiln": 3 * day, "old.kiln": 2 * day, "opened.kiln": 60, "note.txt": 3 * day}
            for name, age in ages.items():
                path = os.path.join(folder, name)
                with open(path, "wb") as f:
                    f.truncate(3 * gib)  # takes no room on the disk
                os.utime(path, (now - age, now - age))
            for name, age in {"work.abc123": 2 * day, "work.def456": 60}.items():
                os.mkdir(os.path.join(folder, name))
                os.utime(os.path.join(folder, name), (now - age, now - age))
            ort.InferenceSession(perceptron(), options(cache=cache))
            left = set(os.listdir(folder))
            self.assertEqual(left & (set(ages) | {"work.abc123", "work.def456"}), {"old.kiln", "opened.kiln", "note.txt", "work.def456"})
            (made,) = left - set(ages) - {"work.def456"}
            os.utime(os.path.join(folder, made), (now - day, now - day))
            ort.InferenceSession(perceptron(), options(cache=cache))  # finds it
            self.assertGreater(os.stat(os.path.join(folder, made)).st_mtime, now - 60)

    def test_sessions_and_threads(self):
        data, wrong = perceptron(), []
        sessions = [ort.InferenceSession(data, options(threads=1)) for _ in range(2)]
        reference = ort.InferenceSession(data, providers=["CPUExecutionProvider"])

        def work(number):
            for i in range(30):
                x = np.random.default_rng(number * 100 + i).standard_normal((1 + i % 4, 16)).astype(np.float32)
                got = sessions[(number + i) % 2].run(None, {"x": x})[0]
                if not np.allclose(got, reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5):
                    wrong.append((number, i))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_the_library_shows_its_two_functions_only(self):
        names = subprocess.run(["nm", "-D", "--defined-only", PLUGIN], capture_output=True, text=True, check=True).stdout
        self.assertEqual(sorted(re.findall(r" [A-Za-z] (\S+)", names)), ["CreateEpFactories", "ReleaseEpFactory"])


if __name__ == "__main__":
    if tuple(int(n) for n in ort.__version__.split(".")[:2]) < (1, 23):
        print(f"skipped: onnxruntime {ort.__version__} takes no execution providers as plug-ins")
        sys.exit(77)
    ort.register_execution_provider_library("kiln", PLUGIN)
    unittest.main(argv=sys.argv[:1], verbosity=2)
