"""GroupQueryAttention whose caches of keys and values are quantized, against onnxruntime."""
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import kiln_case
from operator_case import OperatorCase

HEADS, GROUPS, DEPTH = 4, 2, 16
rng = np.random.default_rng(7)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


class QuantizedCaches(OperatorCase):
    def one(self, bits, kind, past, steps, lengths, scale_shape=None, dtype=np.float32, more=(), **attributes):
        """`past` rows in the cache, `steps` new ones; `lengths`: how many rows each batch entry has in all."""
        b, width = len(lengths), DEPTH * bits // 8
        scale_shape = [1] if kind == "PER_TENSOR" else scale_shape or [1, GROUPS, 1, DEPTH]
        cache = lambda: rng.integers(-128, 128, (b, GROUPS, past, width)).astype(np.int8) if bits == 8 else rng.integers(0, 256, (b, GROUPS, past, width)).astype(np.uint8)
        scale = lambda: (rng.uniform(0.015, 0.025, scale_shape) * (1 if bits == 8 else 16)).astype(np.float32)
        inputs = [("q", normal(b, steps, HEADS * DEPTH, dtype=dtype)), ("k", normal(b, steps, GROUPS * DEPTH, dtype=dtype)), ("v", normal(b, steps, GROUPS * DEPTH, dtype=dtype)),
                  ("pk", cache()), ("pv", cache()), ("l", np.array(lengths, np.int32) - 1), ("t", np.array(max(lengths), np.int32)), ("c", normal(64, DEPTH // 2, dtype=dtype)),
                  ("s", normal(64, DEPTH // 2, dtype=dtype)), None, *(more or (None, None)), ("ks", scale()), ("vs", scale())]
        self.check("GroupQueryAttention", inputs, ["y", "ok", "ov"], 1e-4 if dtype == np.float32 else 4e-3, num_heads=HEADS, kv_num_heads=GROUPS, kv_cache_bit_width=bits, k_quant_type=kind,
                   v_quant_type=kind, constants=["t", "c", "s", "ks", "vs"], **attributes)

    def test_scales_for_the_tensor_and_for_channels(self):
        for bits in (8, 4):
            for kind in ("PER_TENSOR", "PER_CHANNEL"):
                self.one(bits, kind, 6, 1, [7, 7])
                self.one(bits, kind, 6, 3, [9], do_rotary=1)
                self.one(bits, kind, 0, 5, [5, 5], do_rotary=1)
            for shape in ([GROUPS * DEPTH], [GROUPS, 1, DEPTH]):
                self.one(bits, "PER_CHANNEL", 6, 1, [7, 7], scale_shape=shape)

    def test_half_precision(self):
        for bits in (8, 4):
            self.one(bits, "PER_CHANNEL", 6, 1, [7, 7], dtype=np.float16, do_rotary=1)

    def test_options_beside_quantization(self):
        for bits in (8, 4):
            self.one(bits, "PER_TENSOR", 6, 1, [7, 7], local_window_size=3)
            self.one(bits, "PER_TENSOR", 6, 1, [7, 7], softcap=2.0)
            self.one(bits, "PER_TENSOR", 6, 1, [7, 7], more=(None, ("sink", normal(HEADS))))

    def test_a_shared_buffer(self):
        for bits in (8, 4):
            self.one(bits, "PER_CHANNEL", 16, 1, [4, 6], do_rotary=1)

    def test_formats_that_contradict_the_cache_are_refused(self):
        def model(kind, bits, scales):
            names = ["q", "k", "v", "pk", "pv", "l", "t"] + ["" if not scales else n for n in ("",) * 5] + (["ks", "vs"] if scales else [])
            infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in (("q", 1, [1, 1, 64]), ("k", 1, [1, 1, 32]), ("v", 1, [1, 1, 32]), ("pk", TensorProto.INT8, [1, 2, 4, 16]),
                     ("pv", TensorProto.INT8, [1, 2, 4, 16]), ("l", TensorProto.INT32, [1]), ("t", TensorProto.INT32, [1]))]
            if scales:
                infos += [helper.make_tensor_value_info(n, 1, [1]) for n in ("ks", "vs")]
            node = helper.make_node("GroupQueryAttention", names, ["y", "ok", "ov"], name="attention", domain="com.microsoft", num_heads=4, kv_num_heads=2, k_quant_type=kind, v_quant_type=kind,
                                    kv_cache_bit_width=bits)
            graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info(n) for n in ("y", "ok", "ov")])
            return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
        for kind, bits, scales, text in (("PER_TENSOR", 4, True, "a cache of 4 bits does not fit input 3"), ("PER_TENSOR", 5, True, "kv_cache_bit_width is 5"), ("NONE", 8, True, "k_quant_type is NONE"),
                                         ("PER_TENSOR", 8, False, "needs inputs 3 and 12"), ("PER_HEAD", 8, True, "PER_HEAD")):
            onnx.save(model(kind, bits, scales), self.path("m.onnx"))
            self.assertIn(text, self.error_line(self.kiln("compile", self.path("m.onnx"), "-o", self.path("m.kiln"), code=3)))


if __name__ == "__main__":
    kiln_case.main()
