"""docs/custom_ops.md as a new user would follow it: the page's own source and commands, then mistakes."""
import os
import re

import numpy as np
import onnx
from onnx import TensorProto, helper

import kiln_case
from kiln_case import KilnCase, tensor

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "custom_ops.md")


def fenced(language, index=0):
    """The page's code blocks of one language."""
    with open(PAGE) as page:
        return re.findall(rf"```{language}\n(.*?)```", page.read(), re.S)[index]


class CustomOps(KilnCase):
    def setUp(self):
        super().setUp()
        with open(self.path("relu6.hip"), "w") as out:
            out.write(fenced("cpp"))

    def model(self, limit=None, dims=(2, 5), name="model.onnx", op="Relu6", **attributes):
        if limit is not None:
            attributes["limit"] = limit
        nodes = [helper.make_node("Add", ["x", "x"], ["twice"], name="add"), helper.make_node(op, ["twice"], ["cut"], name="relu6", domain="my.ops", **attributes),
                 helper.make_node("Neg", ["cut"], ["y"], name="neg")]
        graph = helper.make_graph(nodes, "g", [tensor("x", dims)], [tensor("y", dims)])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)], ir_version=8), self.path(name))
        return self.path(name)

    def run_model(self, file, x):
        np.save(self.path("x.npy"), x)
        self.kiln("run", file, "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
        return np.load(self.path("out/y.npy"))

    def test_the_page_in_one_command(self):
        x = np.linspace(-5, 5, 10, dtype=np.float32).reshape(2, 5)
        self.kiln("compile", self.model(), "--custom-op", self.path("relu6.hip"), "-o", self.path("model.kiln"))
        np.testing.assert_array_equal(self.run_model(self.path("model.kiln"), x), -np.clip(2 * x, 0, 6))
        kernels = {k["format"]: k["hash"] for k in self.json("inspect", self.path("model.kiln"))["kernels"]}
        self.assertEqual(set(kernels), {"amdgcnspirv", "mlir_bytecode"})
        self.assertIn("spirv.llvm_amdgcn_workitem_id_x", self.kiln("inspect", self.path("model.kiln"), "--kernel", kernels["amdgcnspirv"], "--emit", "spirv").stdout)
        self.assertIn("relu6", self.kiln("inspect", self.path("model.kiln"), "--kernel", kernels["amdgcnspirv"], "--emit", "asm", "--target", "gfx1100").stdout)

    def test_attributes_and_precision(self):
        x = np.linspace(-5, 5, 10, dtype=np.float32).reshape(2, 5)
        for more in [[], ["--fp16"]]:
            self.kiln("compile", self.model(limit=2.5), "--custom-op", self.path("relu6.hip"), "-o", self.path("model.kiln"), *more)
            np.testing.assert_allclose(self.run_model(self.path("model.kiln"), x), -np.clip(2 * x, 0, 2.5), atol=5e-3 if more else 0)

    def test_open_dimensions(self):
        self.kiln("compile", self.model(dims=("n", 5)), "--custom-op", self.path("relu6.hip"), "-o", self.path("model.kiln"))
        for n in [1, 300]:
            x = np.random.default_rng(n).standard_normal((n, 5)).astype(np.float32) * 4
            np.testing.assert_array_equal(self.run_model(self.path("model.kiln"), x), -np.clip(2 * x, 0, 6))

    def test_verify_against_supplied_data(self):
        model, folder = self.model(), self.path("data")
        os.mkdir(folder)
        x = np.linspace(-5, 5, 10, dtype=np.float32).reshape(2, 5)
        np.save(os.path.join(folder, "x.npy"), x)
        line = self.error_line(self.kiln("verify", model, "--custom-op", self.path("relu6.hip"), "--inputs", folder, code=2))
        self.assertIn("no built-in reference", line)
        opened = self.kiln("verify", self.model(dims=("n", 5)), "--custom-op", self.path("relu6.hip"), code=2)
        self.assertIn("no built-in reference", self.error_line(opened))
        np.save(os.path.join(folder, "y.npy"), -np.clip(2 * x, 0, 6))
        self.assertEqual(self.json("verify", model, "--custom-op", self.path("relu6.hip"), "--inputs", folder)["against"], "supplied outputs")
        np.save(os.path.join(folder, "y.npy"), -np.clip(2 * x, 0, 5))
        self.kiln("verify", model, "--custom-op", self.path("relu6.hip"), "--inputs", folder, code=1)

    def test_same_bytes(self):
        model = self.model()
        self.kiln("compile", model, "--custom-op", self.path("relu6.hip"), "-o", self.path("a.kiln"))
        self.kiln("compile", model, "--custom-op", "relu6.hip", "-o", "b.kiln", cwd=self.dir)
        with open(self.path("a.kiln"), "rb") as a, open(self.path("b.kiln"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_mistakes(self):
        model = self.model()
        with open(self.path("bad.hip"), "w") as out:
            out.write(fenced("cpp").replace("0.0f), limit", "0.0f), limt"))
        done = self.kiln("compile", model, "--custom-op", self.path("bad.hip"), "-o", self.path("x.kiln"), code=3)
        self.assertRegex(done.stderr, r"bad\.hip:\d+:\d+: error: use of undeclared identifier 'limt'")
        self.assertIn("^~~~", done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], r"^kiln: invalid_model: .*bad\.hip")
        self.assertIn("my.ops", self.error_line(self.kiln("compile", model, "-o", self.path("x.kiln"), code=3)))
        self.assertIn("'slope' is not declared", self.error_line(self.kiln("compile", self.model(slope=1.0, name="b.onnx"), "--custom-op", self.path("relu6.hip"), "-o", self.path("x.kiln"), code=3)))
        self.assertIn("cannot be opened", self.error_line(self.kiln("compile", model, "--custom-op", "/nowhere.hip", "-o", self.path("x.kiln"), code=3)))

    def test_what_the_kernels_do_not_take(self):
        """Tensors of another type than the kernel's pointers, sources that are none, shared memory that a device does
        not have."""
        def compiled(source, code, model=None):
            with open(self.path("bad.hip"), "w") as out:
                out.write(source)
            return self.kiln("compile", model or self.model(), "--custom-op", self.path("bad.hip"), "-o", self.path("x.kiln"), code=code)
        page = fenced("cpp")
        doubles = helper.make_graph([helper.make_node("Relu6", ["x"], ["y"], domain="my.ops")], "g", [tensor("x", [4], TensorProto.DOUBLE)], [tensor("y", [4])])
        onnx.save(helper.make_model(doubles, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)], ir_version=8), self.path("doubles.onnx"))
        self.assertIn("do not take f64[4] with these attributes: '!has(input0) || type(input0) == f32' does not hold", self.error_line(compiled(page, 3, self.path("doubles.onnx"))))
        self.assertIn("does not point at the elements of output0, which are f64", compiled(page.replace("KILN_OUTPUT(0, float32", "KILN_OUTPUT(0, float64"), 3).stderr)
        self.assertIn("declares no operator", self.error_line(compiled("#include <hip/hip_runtime.h>", 3)))
        self.assertIn("Clang crashed", self.error_line(compiled("#pragma clang __debug crash", 3)))
        self.assertIn("is a folder", self.error_line(self.kiln("compile", self.model(), "--custom-op", self.dir, "-o", self.path("x.kiln"), code=3)))
        compiled(page + "KILN_SHARED(100000)\n", 0)
        for target, code in ("gfx942", 3), ("sm_90", 0):
            done = self.kiln("finalize", self.path("x.kiln"), "--target", target, "-o", self.path("objects"), code=code)
            self.assertEqual("100000 bytes of shared memory" in done.stderr, code == 3)

    def test_inputs_left_out_lists_and_several_outputs(self):
        with open(self.path("scale.hip"), "w") as out:
            out.write("""#include <hip/hip_runtime.h>
template <class T, bool Biased>
__global__ void scale(const T* x, const T* bias, const T* factor, T* y, int32_t* sign, int64_t n, int has_factor, T offset) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i] * (has_factor ? factor[0] : T(1)) + (Biased ? bias[i] : T(0)) + offset;
  sign[i] = y[i] < 0 ? -1 : 1;
}
template __global__ void scale<float, true>(const float*, const float*, const float*, float*, int32_t*, int64_t, int, float);
template __global__ void scale<float, false>(const float*, const float*, const float*, float*, int32_t*, int64_t, int, float);
#define SCALE(condition, biased)                                                                                                  \\
  KILN_OPERATOR("my.ops", "Scale")                                                                                                \\
  KILN_REQUIRE(condition)                                                                                                         \\
  KILN_ATTRIBUTE(offsets, list(0))                                                                                                \\
  KILN_OUTPUT(0, float32, same_as(input0))                                                                                        \\
  KILN_OUTPUT(1, int32, same_as(input0))                                                                                          \\
  KILN_LAUNCH(scale<float, biased>, per_element(elements(input0)), input0, input1, input2, output0, output1, elements(input0), has(input2), item(offsets, length(offsets) - 1))
SCALE(has(input1), true)
SCALE(!has(input1), false)
""")
        x, bias, factor = np.linspace(-3, 3, 300, dtype=np.float32), np.ones(300, np.float32), np.float32([2])
        for names in ["x", "x", "x"], ["x", "b"], ["x", "b", "f"], ["x", "", "f"]:
            feeds = {"x": x} | ({"b": bias} if "b" in names else {}) | ({"f": factor} if "f" in names else {})
            names = ["x"] if names == ["x", "x", "x"] else names
            node = helper.make_node("Scale", names, ["y", "s"], domain="my.ops", offsets=[7, 3])
            graph = helper.make_graph([node], "g", [tensor(k, v.shape) for k, v in feeds.items()], [tensor("y", [300]), tensor("s", [300], TensorProto.INT32)])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)], ir_version=8), self.path("m.onnx"))
            inputs = []
            for k, v in feeds.items():
                np.save(self.path(k + ".npy"), v)
                inputs += ["--input", f"{k}={self.path(k + '.npy')}"]
            self.kiln("compile", self.path("m.onnx"), "--custom-op", self.path("scale.hip"), "-o", self.path("m.kiln"))
            self.kiln("run", self.path("m.kiln"), *inputs, "--output-dir", self.path("out"))
            want = x * (2 if "f" in names else 1) + (1 if "b" in names else 0) + 3
            np.testing.assert_allclose(np.load(self.path("out/y.npy")), want, atol=1e-6, err_msg=str(names))
            np.testing.assert_array_equal(np.load(self.path("out/s.npy")), np.where(want < 0, -1, 1))

    def test_hip_command(self):
        document = self.json("hip", self.path("relu6.hip"), "-o", self.path("relu6.spv"))
        self.assertEqual([k["name"] for k in document["kernels"]], ["relu6"])
        self.assertEqual(os.path.getsize(self.path("relu6.spv")), document["bytes"])
        self.assertIn("OpEntryPoint Kernel", self.kiln("hip", self.path("relu6.hip"), "--disassemble").stdout)

    def test_operators_of_the_library(self):
        node = helper.make_node("RandomUniformLike", ["x"], ["y"], low=1.0, high=2.0, seed=3.0)
        file = self.save("random.onnx", [node], [tensor("x", [1000])], [tensor("y", [1000])])
        self.kiln("compile", file, "-o", self.path("random.kiln"))
        y = self.run_model(self.path("random.kiln"), np.zeros(1000, np.float32))
        self.assertTrue(((y >= 1) & (y < 2)).all() and abs(y.mean() - 1.5) < 0.05)
        for extra in [], ["--per-kernel"]:  # the library has references of its own
            self.assertEqual(self.json("verify", file, *extra)["against"], "reference")

    def test_roi_align_agrees_with_onnxruntime(self):
        import onnxruntime
        rng = np.random.default_rng(0)
        x = rng.standard_normal((2, 3, 16, 20)).astype(np.float32)
        rois = np.sort(rng.uniform(0, 60, (7, 2, 2)).astype(np.float32), axis=1).reshape(7, 4)
        for opset, mode, more in [(10, "avg", {}), (16, "avg", {}), (16, "avg", {"coordinate_transformation_mode": "output_half_pixel", "sampling_ratio": 3}), (16, "avg", {"sampling_ratio": 2})]:
            node = helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], mode=mode, output_height=4, output_width=5, spatial_scale=0.25, **more)
            file = self.save("roi.onnx", [node], [tensor("x", x.shape), tensor("r", [7, 4]), tensor("i", [7], TensorProto.INT64)], [tensor("y", [7, 3, 4, 5])], opset=opset)
            feeds = {"x": x, "r": rois, "i": rng.integers(0, 2, 7)}
            want = onnxruntime.InferenceSession(file).run(None, feeds)[0]
            self.kiln("compile", file, "-o", self.path("roi.kiln"))
            inputs = []
            for name, data in feeds.items():
                np.save(self.path(name + ".npy"), data)
                inputs += ["--input", f"{name}={self.path(name + '.npy')}"]
            self.kiln("run", self.path("roi.kiln"), *inputs, "--output-dir", self.path("out"))
            np.testing.assert_allclose(np.load(self.path("out/y.npy")), want, rtol=1e-4, atol=1e-5, err_msg=f"{opset} {mode} {more}")
            self.assertEqual(self.json("verify", file, *inputs, "--per-kernel")["against"], "reference")


if __name__ == "__main__":
    kiln_case.main()
