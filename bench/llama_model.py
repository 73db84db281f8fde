"""A llama of any size with random weights, as onnxruntime-genai writes it: f32 or f16, or MatMulNBits of 4 bits. For
bench/gpu/llama.py and bench/cpu_llama.py."""
import os

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

THETA, EPSILON = 500000.0, 1e-5


class Llama:
    def __init__(self, shape, context, dtype=np.float16, block=0, accuracy_level=0):
        """shape: layers, width, heads, heads of keys and values, width of the feed-forward part, vocabulary. block: elements
        along the depth that share the scale of 4-bit weights; 0 leaves them in dtype."""
        self.layers, self.width, self.heads, self.kv, self.inner, self.vocabulary = shape
        self.head, self.context = self.width // self.heads, context
        self.dtype, self.block, self.accuracy_level = np.dtype(dtype), block, accuracy_level

    def weights(self):
        """name → array [in, out]; made again on each call, always the same."""
        w, kv = self.width, self.kv * self.head
        shapes = {"embed": (self.vocabulary, w)}
        for i in range(self.layers):
            shapes |= {f"{i}.qkv": (w, w + 2 * kv), f"{i}.o": (w, w), f"{i}.gate": (w, self.inner), f"{i}.up": (w, self.inner), f"{i}.down": (self.inner, w)}
        shapes["head"] = (w, self.vocabulary)
        for seed, (name, size) in enumerate(shapes.items()):
            data = np.random.default_rng(seed).standard_normal(size, np.float32)
            yield name, (data * (1.0 if name == "embed" else size[0] ** -0.5)).astype(self.dtype)

    def packed(self, array):
        """MatMulNBits' form of [in, out]: bytes [out, in / block, block / 2] and scales [out * in / block]; zero is 8."""
        blocks = array.astype(np.float32).T.reshape(array.shape[1], -1, self.block)
        scales = np.abs(blocks).max(-1) / 7
        codes = np.clip(np.rint(blocks / np.maximum(scales, 1e-9)[..., None]) + 8, 0, 15).astype(np.uint8)
        return codes[..., 0::2] | codes[..., 1::2] << 4, scales.astype(self.dtype).reshape(-1)

    def rotations(self):
        frequencies = THETA ** (-np.arange(0, self.head, 2) / self.head)
        angles = np.arange(self.context)[:, None] * frequencies
        return np.cos(angles).astype(self.dtype), np.sin(angles).astype(self.dtype)

    def save(self, path):
        nodes, initializers, data = [], [], open(path + ".data", "wb")

        def constant(name, array):
            if array.nbytes < 64:  # onnxruntime reads it while it infers shapes
                initializers.append(numpy_helper.from_array(array, name))
                return name
            t = T(name=name, dims=array.shape, data_type=h.np_dtype_to_tensor_dtype(array.dtype), data_location=T.EXTERNAL)
            data.write(b"\0" * (-data.tell() % 4096))
            for key, value in ("location", os.path.basename(path) + ".data"), ("offset", str(data.tell())), ("length", str(array.nbytes)):
                t.external_data.add(key=key, value=value)
            data.write(array.tobytes())
            initializers.append(t)
            return name

        def add(op, inputs, outputs, domain="", **attributes):
            nodes.append(h.make_node(op, inputs, outputs, domain=domain, **attributes))
            return outputs[0]

        for name, array in self.weights():
            if self.block and name != "embed":
                packed, scales = self.packed(array)
                constant(name, packed), constant(f"{name}.scales", scales)
            else:
                constant(name, array)
        ones = constant("ones", np.ones(self.width, self.dtype))

        def product(x, weight, result, rows, columns):
            if not self.block:
                return add("MatMul", [x, weight], [result])
            return add("MatMulNBits", [x, weight, f"{weight}.scales"], [result], "com.microsoft", K=rows, N=columns, bits=4,
                       block_size=self.block, accuracy_level=self.accuracy_level)

        element, w, kv = h.np_dtype_to_tensor_dtype(self.dtype), self.width, self.kv * self.head
        cos, sin = (constant(n, a) for n, a in zip(("cos_cache", "sin_cache"), self.rotations()))
        one = constant("one", np.array([1], np.int64))
        scalar_one = constant("scalar_one", np.array(1, np.int64))
        valid = add("Cast", [add("Sub", [add("ReduceSum", ["attention_mask", one], ["sum"], keepdims=0), one], ["less"])], ["seqlens_k"], to=T.INT32)
        total = add("Cast", [add("Gather", [add("Shape", ["attention_mask"], ["mask_shape"]), scalar_one], ["total64"], axis=0)], ["total"], to=T.INT32)
        x = add("Gather", ["embed", "input_ids"], ["x"])
        norm = add("SimplifiedLayerNormalization", [x, ones], ["norm"], axis=-1, epsilon=EPSILON, stash_type=1)
        inputs = [("input_ids", T.INT64, ["batch_size", "sequence_length"]), ("attention_mask", T.INT64, ["batch_size", "total_sequence_length"])]
        outputs = [("logits", element, ["batch_size", "sequence_length", self.vocabulary])]
        for i in range(self.layers):
            names = [f"past_key_values.{i}.{part}" for part in ("key", "value")] + [f"present.{i}.{part}" for part in ("key", "value")]
            for n, name in enumerate(names):
                rows = "past_sequence_length" if n < 2 else "total_sequence_length"
                (inputs if n < 2 else outputs).append((name, element, ["batch_size", self.kv, rows, self.head]))
            qkv = product(norm, f"{i}.qkv", f"{i}/qkv", w, w + 2 * kv)
            mixed = add("GroupQueryAttention", [qkv, "", "", *names[:2], valid, total, cos, sin], [f"{i}/attention", *names[2:]], "com.microsoft",
                        num_heads=self.heads, kv_num_heads=self.kv, scale=self.head ** -0.5, do_rotary=1, rotary_interleaved=0)
            o = product(mixed, f"{i}.o", f"{i}/o", w, w)
            norm = add("SkipSimplifiedLayerNormalization", [x, o, ones], [f"{i}/norm", "", "", f"{i}/x"], "com.microsoft", epsilon=EPSILON)
            x = f"{i}/x"
            gate, up = (product(norm, f"{i}.{n}", f"{i}/{n}", w, self.inner) for n in ("gate", "up"))
            act = add("Mul", [gate, add("Sigmoid", [gate], [f"{i}/sigmoid"])], [f"{i}/silu"])
            down = product(add("Mul", [act, up], [f"{i}/inner"]), f"{i}.down", f"{i}/down", self.inner, w)
            norm = add("SkipSimplifiedLayerNormalization", [x, down, ones], [f"{i}/next", "", "", f"{i}/out"], "com.microsoft", epsilon=EPSILON)
            x = f"{i}/out"
        product(norm, "head", "logits", w, self.vocabulary)
        data.close()
        graph = h.make_graph(nodes, "llama", [h.make_tensor_value_info(*i) for i in inputs], [h.make_tensor_value_info(*o) for o in outputs], initializers)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 21), h.make_opsetid("com.microsoft", 1)], ir_version=10), path)
