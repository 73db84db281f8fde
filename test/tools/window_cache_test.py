"""What onnxruntime-genai writes for models with sliding windows and convolutions: GroupQueryAttention with a cache of
the last positions only, beside the same operator with a cache of full length, and CausalConvWithState of onnxruntime's
domain, beside numpy. onnxruntime's older versions have neither."""
import os
import unittest

import numpy as np
from onnx import TensorProto, helper

import kiln_case
from kiln_case import tensor

HEADS, GROUPS, DEPTH, WINDOW = 4, 2, 8, 4


def resident(total, room):
    """Rows of the cache that hold positions, as the operator's documentation defines it."""
    step = room - WINDOW + 1
    return total - step * -(-max(total - room, 0) // step)


class WindowCache(kiln_case.KilnCase):
    def run_model(self, name, inputs):
        arguments = []
        for key, data in inputs.items():
            np.save(self.path(f"{key}.npy"), data)
            arguments += ["--input", f"{key}={self.path(key + '.npy')}"]
        self.kiln("run", self.path(name), *arguments, "--output-dir", self.path("out"))
        return {f[:-4]: np.load(self.path(f"out/{f}")) for f in os.listdir(self.path("out"))}

    def attention(self, name, room, **attributes):
        inputs = [tensor("q", ["batch", "steps", HEADS * DEPTH]), tensor("k", ["batch", "steps", GROUPS * DEPTH]), tensor("v", ["batch", "steps", GROUPS * DEPTH]),
                  tensor("pk", ["batch", GROUPS, room, DEPTH]), tensor("pv", ["batch", GROUPS, room, DEPTH]), tensor("last", ["batch"], TensorProto.INT32), tensor("total", [], TensorProto.INT32)]
        outputs = [tensor("y", ["batch", "steps", HEADS * DEPTH]), tensor("ok", ["batch", GROUPS, None, DEPTH]), tensor("ov", ["batch", GROUPS, None, DEPTH])]
        node = helper.make_node("GroupQueryAttention", [i.name for i in inputs], [o.name for o in outputs], domain="com.microsoft", num_heads=HEADS, kv_num_heads=GROUPS, local_window_size=WINDOW, **attributes)
        model = helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
        with open(self.path(f"{name}.onnx"), "wb") as f:
            f.write(model.SerializeToString())
        self.kiln("compile", self.path(f"{name}.onnx"), "-o", self.path(f"{name}.kiln"), *([] if attributes else ["--dim", "past=0:64"]))

    def test_a_sliding_cache_gives_the_answers_of_a_full_one(self):
        rng = np.random.default_rng(1)
        self.attention("full", "past")
        self.attention("slides", "room", sliding_window_cache=1)
        for room, parts in ((WINDOW, [3, 1, 9, 1]), (WINDOW + 3, [2, 6, 1, 1, 12])):
            full = {n: np.zeros((1, GROUPS, 0, DEPTH), np.float32) for n in ("pk", "pv")}
            window = {n: np.full((1, GROUPS, room, DEPTH), 7, np.float32) for n in ("pk", "pv")}
            total = 0
            for steps in parts:
                total += steps
                step = {n: rng.standard_normal((1, steps, h * DEPTH)).astype(np.float32) for n, h in (("q", HEADS), ("k", GROUPS), ("v", GROUPS))}
                step |= {"last": np.array([total - 1], np.int32), "total": np.array(total, np.int32)}
                want, got = self.run_model("full.kiln", step | full), self.run_model("slides.kiln", step | window)
                np.testing.assert_allclose(got["y"], want["y"], rtol=1e-4, atol=1e-5)
                full, window = {"pk": want["ok"], "pv": want["ov"]}, {"pk": got["ok"], "pv": got["ov"]}
                rows = resident(total, room)
                for n in full:
                    np.testing.assert_array_equal(window[n][:, :, :rows], full[n][:, :, total - rows:])
        small = {n: np.zeros((1, GROUPS, WINDOW - 1, DEPTH), np.float32) for n in ("pk", "pv")}
        for name, data in (step | small).items():
            np.save(self.path(f"{name}.npy"), data)
        done = self.kiln("run", self.path("slides.kiln"), *(o for n in step | small for o in ("--input", f"{n}={self.path(n + '.npy')}")), code=5)
        self.assertIn("'room' = 3", self.error_line(done))

    def test_convolution_with_a_state(self):
        rng = np.random.default_rng(2)
        weights = rng.standard_normal((6, 1, 3)).astype(np.float32)
        for dilation, last in ((1, False), (2, False), (1, True), (3, True)):
            before = 2 * dilation
            x, past = rng.standard_normal((2, 6, 5)).astype(np.float32), rng.standard_normal((2, 6, before)).astype(np.float32)
            whole = np.concatenate([past, x], 2)
            want = sum(whole[:, :, j * dilation:j * dilation + 5] * weights[:, 0, j, None] for j in range(3))
            turn = (lambda a: a.transpose(0, 2, 1)) if last else (lambda a: a)
            shape = lambda length: ["batch", length, 6] if last else ["batch", 6, length]
            node = helper.make_node("CausalConvWithState", ["x", "w", "", "p"], ["y", "n"], domain="com.microsoft", dilation=dilation, channels_last=int(last))
            graph = helper.make_graph([node], "g", [tensor("x", shape("length")), tensor("w", [6, 1, 3]), tensor("p", shape(before))], [tensor("y", shape("length")), tensor("n", shape(before))])
            with open(self.path("c.onnx"), "wb") as f:
                f.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8).SerializeToString())
            self.kiln("compile", self.path("c.onnx"), "-o", self.path("c.kiln"))
            got = self.run_model("c.kiln", {"x": turn(x).copy(), "w": weights, "p": turn(past).copy()})
            np.testing.assert_allclose(turn(got["y"]), want, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(turn(got["n"]), whole[:, :, -before:])


if __name__ == "__main__":
    kiln_case.main()
