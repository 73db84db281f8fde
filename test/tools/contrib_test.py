"""Operators of onnxruntime's domain and the newest ones of the standard, against onnxruntime, with their optional
inputs and attributes."""
import itertools
import unittest

import numpy as np

import kiln_case
from operator_case import OperatorCase, reference

rng = np.random.default_rng(5)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def bytes_of(*shape, dtype=np.uint8):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def f32(x):
    return np.array(x, np.float32)


class Normalizations(OperatorCase):
    def test_skip_layer_normalization(self):
        for dtype, bias, beta in [(np.float32, True, True), (np.float32, False, False), (np.float16, True, True)]:
            inputs = [("x", normal(2, 3, 8, dtype=dtype)), ("s", normal(2, 3, 8, dtype=dtype)), ("g", normal(8, dtype=dtype)), ("b", normal(8, dtype=dtype)) if beta else None,
                      ("c", normal(8, dtype=dtype)) if bias else None]
            self.check("SkipLayerNormalization", inputs, ["y", "", "", "sum"], 1e-4 if dtype == np.float32 else 3e-3, epsilon=1e-5)
        self.check("SkipLayerNormalization", [("x", normal(2, 3, 8)), ("s", normal(3, 8)), ("g", normal(8)), ("b", normal(8))])
        self.check("SkipLayerNormalization", [("x", normal(2, 3, 8)), ("s", normal(1, 3, 8)), ("g", normal(8))])

    def test_skip_simplified_layer_normalization(self):
        for bias in (True, False):
            self.check("SkipSimplifiedLayerNormalization", [("x", normal(2, 3, 8)), ("s", normal(2, 3, 8)), ("g", normal(8)), ("c", normal(8)) if bias else None],
                       ["y", "", "", "sum"], epsilon=1e-6)

    def test_simplified_layer_normalization(self):
        self.check("SimplifiedLayerNormalization", [("x", normal(2, 3, 8)), ("g", normal(8))], ["y", "inv"], domain="", epsilon=1e-6, axis=-1)
        self.check("SimplifiedLayerNormalization", [("x", normal(2, 3, 8, dtype=np.float16)), ("g", normal(8, dtype=np.float16))], ["y"], 3e-3, domain="", axis=2)
        self.check("RMSNormalization", [("x", normal(2, 3, 8)), ("g", normal(3, 8))], domain="", standard=23, axis=-2)

    def test_embed_layer_normalization(self):
        ids = lambda most, *shape: rng.integers(0, most, shape).astype(np.int32)
        tables = [("w", normal(20, 8)), ("p", normal(9, 8)), ("t", normal(2, 8)), ("g", normal(8)), ("b", normal(8))]
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
        self.check("EmbedLayerNormalization", [("i", ids(20, 2, 5)), ("s", ids(2, 2, 5)), *tables, ("m", mask)], ["y", "count"], epsilon=1e-12)
        self.check("EmbedLayerNormalization", [("i", ids(20, 2, 5)), ("s", ids(2, 2, 5)), *tables, ("m", mask), ("q", ids(9, 2, 5))], ["y", "count", "sum"])
        tables[2] = None
        self.check("EmbedLayerNormalization", [("i", ids(20, 2, 5)), None, *tables, None, ("q", ids(9, 1, 5))], ["y", "count", "sum"])


class ResidualStreams(OperatorCase):
    """Hyper-connections, and what else onnxruntime fuses in models that have them."""

    def test_streams_are_reduced_and_mixed(self):
        x, flat = normal(2, 3, 4, 5), normal(2, 3, 20)
        for gates in (normal(2, 3, 4), normal(2, 3, 4, 1), normal(2, 3, 4, 5)):
            self.check("HyperConnectionPreMix", [("x", x), ("m", gates)], reduction_scale=0.5)
            self.check("HyperConnectionPostMix", [("x", flat), ("b", normal(2, 3, 5)), ("p", gates), ("m", normal(2, 3, 4, 4))], num_branches=4)
        self.check("HyperConnectionPreMix", [("x", flat), ("m", normal(2, 3, 20))], num_branches=4)
        self.check("HyperConnectionPostMix", [("x", x), ("b", normal(2, 3, 5)), ("p", normal(2, 3, 4)), None])
        self.refused("do not divide into 3 branches", "HyperConnectionPreMix", [("x", flat), ("m", normal(2, 3, 3))], num_branches=3)

    def test_low_rank_mix_without_a_network_gates_by_halves(self):
        x = normal(2, 3, 8)
        inputs = [("x", x), ("n", np.ones(8, np.float32)), ("d", np.zeros((8, 2), np.float32)), ("u", normal(2, 8)), ("i", np.zeros((8, 2), np.float32)), ("b", normal(2, 3, 4)), ("g", normal(2, 3, 2))]
        model, feeds = self.model("HyperConnectionLowRankMix", inputs, ["y", "p", "s"], num_branches=2, gate_mul=3.0)
        streams = x.reshape(2, 3, 2, 4) + feeds["g"][..., None] * feeds["b"][:, :, None]
        norm = streams / np.sqrt((streams ** 2).mean(-1, keepdims=True) + 1e-5)
        self.agree({"y": 0.5 * norm.sum(2), "p": np.full((2, 3, 2), 1.5, np.float32), "s": streams.reshape(2, 3, 8)}, self.run_kiln(model, feeds))

    def test_engram_gate_and_hashes(self):
        rows = [("k", normal(2, 3, 2, 4)), ("q", normal(2, 3, 2, 4)), ("v", normal(2, 3, 4)), ("kn", normal(2, 4)), ("qn", normal(2, 4))]
        self.check("EngramGate", rows)
        self.check("EngramGate", [*rows, ("cn", normal(2, 4))], ["y", "n"], epsilon=1e-3)
        ids = [("x", np.arange(10).reshape(2, 5)), ("m", np.array([7, 31, 101])), ("v", np.array([11, 13, 17, 19]))]
        self.check("NGramHashMapping", ids, ["y", "next"], max_ngram_size=3, n_head_per_ngram=2, pad_id=4)
        self.check("NGramHashMapping", [*ids, ("p", np.array([[5, 6], [7, 8]])), ("o", np.array([0, 100, 200, 300]))], ["y", "next"], max_ngram_size=3, n_head_per_ngram=2, pad_id=4)

    def test_router_selects_experts_in_the_best_groups(self):
        logits = np.array([[3, 0, 2, 2, -1, 4]], np.float32)
        model, feeds = self.model("MoEGroupRouter", [("x", logits), ("b", np.zeros(6, np.float32))], ["y"], n_group=3, topk_group=1, top_k=1, router_sentinel=-7.0)
        chance = float(np.log(1 / (1 + np.exp(-2.0))))
        self.agree({"y": np.array([[-7, -7, chance, -7, -7, -7]], np.float32)}, self.run_kiln(model, feeds))

    def test_convolution_of_an_optimizer_has_weights_with_channels_last(self):
        x, w = normal(1, 5, 6, 3), normal(4, 2, 3, 3)
        model, feeds = self.model("NhwcConv", [("x", x), ("w", w)], ["y"], constants=["w"], kernel_shape=[2, 3])
        standard, same = self.model("Conv", [("x", x.transpose(0, 3, 1, 2).copy()), ("w", w.transpose(0, 3, 1, 2).copy())], ["y"], domain="")
        self.agree({"y": reference(standard, same)["y"].transpose(0, 2, 3, 1)}, self.run_kiln(model, feeds))

    def test_pads_of_a_transposed_convolution_are_an_input(self):
        inputs = [("x", normal(1, 2, 4, 4)), ("w", normal(2, 3, 3, 3)), ("p", np.array([1, 0, 0, 1])), ("b", normal(3))]
        self.check("ConvTransposeWithDynamicPads", inputs, constants=["w", "p"], strides=[2, 2])


class HybridModels(OperatorCase):
    """What onnxruntime-genai writes for Qwen 2.5-VL, 3.5 and their kin."""

    def test_gated_rms_norm(self):
        for dtype, width, more in ((np.float32, 8, {}), (np.float32, 24, {"epsilon": 1e-6, "activation": "sigmoid"}), (np.float16, 24, {})):
            inputs = [("x", normal(2, 3, 24, dtype=dtype)), ("s", normal(width, dtype=dtype)), ("g", normal(2, 3, 24, dtype=dtype))]
            self.check("GatedRMSNorm", inputs, ["y"], 1e-4 if dtype == np.float32 else 3e-3, **more)

    def test_linear_attention_gate(self):
        for dtype in (np.float32, np.float16):
            inputs = [("a", 9 * normal(2, 5, 4, dtype=dtype)), ("t", normal(4)), ("d", -np.exp(normal(4))), ("b", normal(2, 5, 4, dtype=dtype))]
            self.check("LinearAttentionGate", inputs, ["decay", "beta"], 1e-4 if dtype == np.float32 else 3e-3)
        self.check("LinearAttentionGate", inputs[:3], ["decay"], 3e-3)

    def test_linear_attention_whose_heads_of_values_share_queries_and_keys(self):
        for steps, key_heads in ((3, 2), (1, 2), (3, 4)):
            inputs = [("q", normal(2, steps, 16)), ("k", 0.3 * normal(2, steps, 8 * key_heads)), ("v", normal(2, steps, 24)), ("s", normal(2, 4, 8, 6)),
                      ("d", -np.abs(normal(2, steps, 4))), ("b", 0.3 * normal(2, steps, 4))]
            self.check("LinearAttention", inputs, ["y", "final"], q_num_heads=2, kv_num_heads=4)

    def test_gated_delta_net(self):
        # 4 heads of values share 2 heads of queries and keys.
        for steps in (1, 3):
            tokens = [("q", normal(2, steps, 2, 8)), ("k", normal(2, steps, 2, 8)), ("v", normal(2, steps, 4, 6))]
            gates, state = [("d", -np.abs(normal(2, steps, 4))), ("b", normal(2, steps, 4) * 0.2)], ("s", normal(2, 4, 6, 8))
            bias = [("a", normal(4)), ("t", normal(4))]
            outputs = ["y", "final"]
            self.check("GatedDeltaNet", [*tokens, None, *gates, state], outputs, qk_l2_norm=1)
            self.check("GatedDeltaNet", [*tokens, None, *gates, state, *bias], outputs, qk_l2_norm=1, gate_activation="softplus", beta_activation="sigmoid", scale=0.5)
            self.check("GatedDeltaNet", [*tokens, None, *gates, state, *bias], outputs, qk_l2_norm=1, gate_activation="sigmoid", gate_lower_bound=-2.0)
            self.check("GatedDeltaNet", [*tokens, None, gates[0], None, state], outputs, update_rule="gated")
            flat = [(n, a.reshape(-1, *a.shape[2:])) for n, a in tokens + gates]
            self.check("GatedDeltaNet", [*flat[:3], None, *flat[3:], state], outputs, qk_l2_norm=1)
            packed = ("q", np.concatenate([a.reshape(2 * steps, -1) for _, a in tokens], 1))
            self.check("GatedDeltaNet", [packed, None, None, None, *flat[3:], state], outputs, qk_l2_norm=1)
        each_column = ("d", -np.abs(normal(2, 3, 4, 8)))
        self.check("GatedDeltaNet", [*tokens, None, each_column, gates[1], state], outputs, qk_l2_norm=1)
        # Sequences of 3, 1 and 2 tokens.
        starts, states = ("c", np.array([0, 3, 4, 6], np.int32)), ("s", normal(3, 4, 6, 8))
        self.check("GatedDeltaNet", [*flat[:3], starts, *flat[3:], states], outputs, qk_l2_norm=1)
        self.check("GatedDeltaNet", [packed, None, None, starts, *flat[3:], states, *bias], outputs, qk_l2_norm=1, gate_activation="softplus", beta_activation="sigmoid")
        self.check("GatedDeltaNet", [*flat[:3], starts, flat[3], None, states], outputs, update_rule="gated")

    def test_gated_add(self):
        for dtype in (np.float32, np.float16):
            self.check("GatedAdd", [("x", normal(2, 3, 8, dtype=dtype)), ("y", normal(2, 3, 8, dtype=dtype)), ("g", normal(2, 3, 1, dtype=dtype))], ["z"], 1e-4 if dtype == np.float32 else 3e-3)

    def test_positions_in_time_height_and_width(self):
        positions = rng.integers(0, 12, (3, 2, 5)).astype(np.int64)
        for layout, sections in ((0, [2, 3, 3]), (1, [4, 2, 2]), (1, [3, 3, 2]), (0, [8, 0, 0])):
            caches = [("p", positions), ("c", normal(12, 8)), ("s", normal(12, 8))]
            self.check("MRotaryEmbedding", [("x", normal(2, 5, 48)), *caches], mrope_section=sections, mrope_layout=layout, num_heads=3)
            self.check("MRotaryEmbedding", [("x", normal(2, 3, 5, 16)), *caches], mrope_section=sections, mrope_layout=layout, interleaved=1)
            self.check("MRotaryEmbedding", [("x", normal(2, 5, 60)), *caches], mrope_section=sections, mrope_layout=layout, num_heads=3, rotary_embedding_dim=16)


class Activations(OperatorCase):
    def test_gelus(self):
        x, bias = ("x", 3 * normal(3, 4, 8)), ("b", normal(8))
        self.check("Gelu", [x])
        self.check("BiasGelu", [x, bias])
        self.check("FastGelu", [x])
        self.check("FastGelu", [x, bias])
        self.check("QuickGelu", [x], alpha=1.7)
        self.check("QuickGelu", [x])
        self.check("Swish", [x], domain="", standard=24, alpha=0.7)

    def test_fused_activations(self):
        x, w, b, z = ("x", normal(1, 3, 6, 5)), ("w", normal(4, 3, 3, 3)), ("b", normal(4)), ("z", normal(1, 4, 6, 5))
        for name, parameters in [("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.3, 0.4])]:
            self.check("FusedConv", [x, w, b], constants=["w", "b"], pads=[1, 1, 1, 1], activation=name, **({"activation_params": [float(p) for p in parameters]} if parameters else {}))
        self.check("FusedConv", [x, w, b, z], pads=[1, 1, 1, 1], activation="Relu")
        self.refused("activation 'Elu' is not supported", "FusedConv", [x, w, b], activation="Elu")
        self.check("FusedGemm", [("a", normal(3, 4)), ("b", normal(4, 5)), ("c", normal(5))], activation="LeakyRelu", activation_alpha=0.3, alpha=0.5, beta=2.0)


    def test_a_domain_that_the_model_does_not_import(self):
        model, feeds = self.model("Gelu", [("x", normal(2, 3))], ["y"])
        want = reference(model, feeds)
        kept = [o for o in model.opset_import if o.domain == ""]
        del model.opset_import[:]
        model.opset_import.extend(kept)
        self.agree(want, self.run_kiln(model, feeds))


class Products(OperatorCase):
    def test_fused_matmul(self):
        for ta, tb in itertools.product((0, 1), (0, 1)):
            a, b = normal(*((2, 4, 3) if ta else (2, 3, 4))), normal(*((2, 5, 4) if tb else (2, 4, 5)))
            self.check("FusedMatMul", [("a", a), ("b", b)], alpha=0.25, transA=ta, transB=tb)
        self.check("FusedMatMul", [("a", normal(3, 2, 6, 4)), ("b", normal(2, 6, 4, 5))], transBatchA=1)
        self.check("FusedMatMul", [("a", normal(4, 2, 6, 3)), ("b", normal(5, 2, 6, 4))], transBatchA=1, transBatchB=1, transA=1, transB=1)
        self.check("FusedMatMul", [("a", normal(2, 3, 4)), ("b", normal(4, 5))])

    def test_matmul_n_bits(self):
        for bits, k, zero in [(4, 64, "none"), (4, 64, "packed"), (4, 96, "packed"), (4, 72, "none"), (8, 64, "packed"), (8, 64, "none"), (4, 64, "float")]:
            n, block = 7, 32
            blocks = -(-k // block)
            b = bytes_of(n, blocks, block * bits // 8)
            zeros = {"none": None, "packed": ("z", bytes_of(n * ((blocks * bits + 7) // 8))), "float": ("z", normal(n * blocks) + 8)}[zero]
            self.check("MatMulNBits", [("a", normal(2, 3, k)), ("b", b), ("s", normal(n * blocks)), zeros], tolerance=1e-3, constants=["b", "s", "z"],
                       K=k, N=n, bits=bits, block_size=block)
        self.check("MatMulNBits", [("a", normal(3, 32)), ("b", bytes_of(4, 1, 16)), ("s", normal(4)), None, None, ("c", normal(4))], tolerance=1e-3, constants=["b", "s", "c"],
                   K=32, N=4, bits=4, block_size=32)


class Quantized(OperatorCase):
    def quantized(self, name, *shape, dtype=np.uint8, scale=0.02):
        return [(name, bytes_of(*shape, dtype=dtype)), (name + "s", f32(scale)), (name + "z", np.array(3, dtype))]

    def result(self, dtype=np.uint8, scale=0.05):
        return [("ys", f32(scale)), ("yz", np.array(7, dtype))]

    def test_elementwise(self):
        for dtype in (np.uint8, np.int8):
            a, b = self.quantized("a", 2, 3, 4, dtype=dtype), self.quantized("b", 3, 4, dtype=dtype)
            self.check("QLinearAdd", a + b + self.result(dtype))
            self.check("QLinearMul", a + b + self.result(dtype))
            self.check("QLinearLeakyRelu", a + self.result(dtype), alpha=0.2, constants=["as", "az", "ys", "yz"])
            self.check("QLinearSigmoid", a + self.result(dtype, 1 / 256), constants=["as", "az", "ys", "yz"])
        # onnxruntime takes the zero points into a table, so they are constants here.
        self.check("QLinearSoftmax", self.quantized("a", 3, 8) + self.result(np.uint8, 1 / 256), axis=-1, opset=13, constants=["as", "az", "ys", "yz"])
        condition = ("c", rng.integers(0, 2, (2, 3, 4)).astype(bool))
        self.check("QLinearWhere", [condition] + self.quantized("a", 2, 3, 4) + self.quantized("b", 2, 3, 4) + self.result(), constants=["as", "az", "bs", "bz", "ys", "yz"])

    def test_distances_of_rows(self):
        for metric in ("euclidean", "sqeuclidean"):
            for dtype in (np.float32, np.float64):
                self.check("CDist", [("a", normal(5, 3, dtype=dtype)), ("b", normal(7, 3, dtype=dtype))], tolerance=1e-4, metric=metric)

    def test_joins_and_pools(self):
        constants = [n + p for n in "aby" for p in "sz"]
        self.check("QLinearConcat", self.result() + self.quantized("a", 2, 3, 4) + self.quantized("b", 2, 1, 4, scale=0.07), axis=1, constants=constants)
        self.check("QLinearGlobalAveragePool", self.quantized("a", 2, 3, 5, 4) + self.result(), channels_last=0)
        self.check("QLinearGlobalAveragePool", self.quantized("a", 2, 5, 4, 3) + self.result(), channels_last=1)
        self.check("QLinearAveragePool", self.quantized("a", 2, 3, 6, 5) + self.result(), kernel_shape=[3, 3], strides=[2, 1], pads=[1, 1, 1, 1])

    def test_products(self):
        a, b = self.quantized("a", 3, 4), [("b", bytes_of(5, 4, dtype=np.int8)), ("bs", np.abs(normal(5)) / 50), ("bz", bytes_of(5, dtype=np.int8) // 8)]
        c = ("c", rng.integers(-500, 500, 5).astype(np.int32))
        self.check("QGemm", a + b + [c] + self.result(), transB=1, constants=["b", "bs", "bz", "c"])
        self.check("QGemm", a + b + [c, None, None], transB=1, alpha=0.5, constants=["b", "bs", "bz", "c"])
        w = bytes_of(4, 5, dtype=np.int8)
        scales = [("as", f32(0.02)), ("bs", np.abs(normal(5)) / 50), ("az", np.array(9, np.uint8)), ("bz", np.zeros(5, np.int8)), ("c", normal(5))]
        self.check("MatMulIntegerToFloat", [("a", bytes_of(2, 3, 4)), ("b", w), *scales], constants=["b", "bs", "bz"])
        self.check("MatMulIntegerToFloat", [("a", bytes_of(2, 3, 4)), ("b", w), ("as", f32(0.02)), ("bs", f32(0.03))], constants=["b"])
        self.check("DynamicQuantizeMatMul", [("a", normal(2, 3, 4)), ("b", w // 2), ("bs", f32(0.03)), ("bz", np.array(2, np.int8)), ("c", normal(5))], tolerance=2e-2, constants=["b"])

    def test_quantize_and_dequantize(self):
        q = bytes_of(3, 4, dtype=np.uint16)
        self.check("DequantizeLinear", [("x", q), ("s", np.abs(normal(4))), ("z", bytes_of(4, dtype=np.uint16))], axis=1)
        self.check("QuantizeLinear", [("x", normal(3, 4)), ("s", f32(0.001)), ("z", np.array(30000, np.uint16))])

    def test_dynamic_quantize_lstm(self):
        d, i, h = 2, 6, 4
        w, r = bytes_of(d, i, 4 * h), bytes_of(d, h, 4 * h)
        inputs = [("x", normal(5, 3, i)), ("w", w), ("r", r), ("b", normal(d, 8 * h)), None, ("h", normal(d, 3, h)), ("c", normal(d, 3, h)), None,
                  ("ws", f32([0.004, 0.005])), ("wz", np.array([120, 130], np.uint8)), ("rs", f32([0.004, 0.003])), ("rz", np.array([127, 128], np.uint8))]
        self.check("DynamicQuantizeLSTM", inputs, ["y", "yh", "yc"], tolerance=3e-2, constants=["w", "r", "ws", "wz", "rs", "rz"], direction="bidirectional", hidden_size=h)


class Sequences(OperatorCase):
    def test_lengths(self):
        """Sequences of different lengths: the state after each one's end, zeros behind it."""
        t, b, i, h = 5, 3, 4, 6
        lengths = ("l", np.array([5, 2, 3], np.int32))
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            for direction in ("forward", "reverse", "bidirectional"):
                d = 2 if direction == "bidirectional" else 1
                state = [("h", normal(d, b, h))] + ([("c", normal(d, b, h))] if op == "LSTM" else [])
                inputs = [("x", normal(t, b, i)), ("w", normal(d, gates * h, i) / 2), ("r", normal(d, gates * h, h) / 2), ("b", normal(d, 2 * gates * h)), lengths, *state]
                more = {"linear_before_reset": 1} if op == "GRU" and d == 2 else {}
                self.check(op, inputs, ["y", "yh", "yc"] if op == "LSTM" else ["y", "yh"], domain="", direction=direction, hidden_size=h, **more)


class Refused(OperatorCase):
    def test_advice(self):
        x = ("x", normal(2, 3))
        self.refused("export the decoder alone", "BeamSearch", [x], max_length=3)
        self.refused("without packing", "PackedAttention", [x], num_heads=1)
        self.refused("without packing", "RemovePadding", [x])
        self.refused("ORT_ENABLE_EXTENDED", "Conv", [("x", normal(1, 8, 4, 4)), ("w", normal(8, 8, 1, 1))], domain="com.microsoft.nchwc")


class Attention(OperatorCase):
    B, S, N, H = 2, 5, 4, 8

    def test_attention(self):
        b, s, n, h = self.B, self.S, self.N, self.H
        x, w, c = ("x", normal(b, s, 12)), ("w", normal(12, 3 * n * h) / 4), ("c", normal(3 * n * h))
        lengths, raw = np.array([3, 5], np.int32), np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
        ends = np.concatenate([lengths, np.array([1, 0], np.int32)])
        for mask in (None, ("m", raw), ("m", lengths), ("m", ends), ("m", np.tril(np.ones((b, s, s), np.int32)))):
            for causal in (0, 1):
                self.check("Attention", [x, w, c, mask], num_heads=n, unidirectional=causal)
        self.check("Attention", [x, w, c, ("m", raw)], num_heads=n, mask_filter_value=-3.4028234663852886e38)
        self.check("Attention", [x, w, c, None, None, ("a", normal(b, n, s, s))], num_heads=n, scale=0.3)
        past = ("p", normal(2, b, n, 3, h))
        self.check("Attention", [x, w, c, None, past], ["y", "present"], num_heads=n, unidirectional=1)
        self.check("Attention", [x, w, c, ("m", np.ones((b, 8), np.int32)), past], ["y", "present"], num_heads=n, unidirectional=1)
        self.check("Attention", [x, ("w", normal(12, 32 + 32 + 64) / 4), ("c", normal(128))], num_heads=n, qkv_hidden_sizes=[32, 32, 64])

    def test_multi_head_attention(self):
        b, s, n, h, t = self.B, self.S, self.N, self.H, 7
        q, k, v = ("q", normal(b, s, n * h)), ("k", normal(b, t, n * h)), ("v", normal(b, t, n * h))
        mask = np.array([[1] * 7, [1] * 4 + [0] * 3], np.int32)
        self.check("MultiHeadAttention", [q, k, v], num_heads=n)
        self.check("MultiHeadAttention", [q, k, v, ("c", normal(3 * n * h))], num_heads=n, scale=0.2)
        self.check("MultiHeadAttention", [q, k, v, ("c", normal(3 * n * h)), ("m", mask)], num_heads=n)
        self.check("MultiHeadAttention", [q, k, v, None, ("m", np.array([7, 4], np.int32)), ("a", normal(1, n, s, t))], num_heads=n, mask_filter_value=-1e4)
        self.check("MultiHeadAttention", [q, ("k", normal(b, n, t, h)), ("v", normal(b, n, t, h))], num_heads=n)
        k, v = ("k", normal(b, s, n * h)), ("v", normal(b, s, n * h))
        self.check("MultiHeadAttention", [q, k, v, None, None, None, ("pk", normal(b, n, 3, h)), ("pv", normal(b, n, 3, h))], ["y", "ok", "ov"], num_heads=n)
        self.check("MultiHeadAttention", [q, k, v], num_heads=n, unidirectional=1)

    def test_packed_inputs(self):  # onnxruntime's CPU provider has no packed forms: compared with the same numbers apart
        b, s, n, h = self.B, self.S, self.N, self.H
        packed = normal(b, s, n, 3, h)
        apart = [np.ascontiguousarray(packed[:, :, :, i]).reshape(b, s, n * h) for i in range(3)]
        model, feeds = self.model("MultiHeadAttention", [(x, a) for x, a in zip("qkv", apart)], ["y"], num_heads=n)
        want = reference(model, feeds)
        model, feeds = self.model("MultiHeadAttention", [("q", packed)], ["y"], num_heads=n)
        self.agree(want, self.run_kiln(model, feeds))
        model, feeds = self.model("MultiHeadAttention", [("q", apart[0]), ("k", np.ascontiguousarray(packed[:, :, :, 1:]))], ["y"], num_heads=n)
        self.agree(want, self.run_kiln(model, feeds))

    def test_rotary_embedding(self):
        cos, sin = ("c", normal(16, 4)), ("s", normal(16, 4))
        for interleaved in (0, 1):
            self.check("RotaryEmbedding", [("x", normal(2, 3, 32)), ("p", np.array([2], np.int64)), cos, sin], interleaved=interleaved)
            self.check("RotaryEmbedding", [("x", normal(2, 4, 3, 8)), ("p", rng.integers(0, 16, (2, 3))), cos, sin], interleaved=interleaved)
            self.check("RotaryEmbedding", [("x", normal(2, 3, 48)), ("p", rng.integers(0, 16, (2, 3))), cos, sin], interleaved=interleaved, num_heads=4, rotary_embedding_dim=8)
            self.check("RotaryEmbedding", [("x", normal(2, 4, 3, 8)), cos, sin, ("p", rng.integers(0, 16, (2, 3)))], domain="", standard=23, interleaved=interleaved)
        self.check("RotaryEmbedding", [("x", normal(2, 3, 32)), ("c", normal(2, 3, 4)), ("s", normal(2, 3, 4))], domain="", standard=23, num_heads=4)

    def group_query(self, past, steps, lengths, more=(), **attributes):
        """`past` rows in the cache, `steps` new ones; `lengths`: how many rows each batch entry has in all."""
        b, n, g, h = len(lengths), 4, 2, 16
        total = past + steps
        inputs = [("q", normal(b, steps, n * h)), ("k", normal(b, steps, g * h)), ("v", normal(b, steps, g * h)), ("pk", normal(b, g, past, h)), ("pv", normal(b, g, past, h)),
                  ("l", np.array(lengths, np.int32) - 1), ("t", np.array(total, np.int32)), ("c", normal(64, h // 2)), ("s", normal(64, h // 2)), *more]
        self.check("GroupQueryAttention", inputs, ["y", "ok", "ov"], num_heads=n, kv_num_heads=g, constants=["t", "c", "s"], **attributes)

    def test_group_query_attention(self):
        for past, steps in [(0, 5), (6, 1), (6, 3)]:
            whole = [past + steps] * (1 if past and steps > 1 else 2)  # onnxruntime takes several rows after a past for a batch of 1 only
            self.group_query(past, steps, whole)
            self.group_query(past, steps, whole, do_rotary=1)
            self.group_query(past, steps, whole, do_rotary=1, rotary_interleaved=1, scale=0.4)
            self.group_query(past, steps, whole, local_window_size=3)
            self.group_query(past, steps, whole, softcap=5.0)
            self.group_query(past, steps, whole, more=[None, ("a", normal(1, 1, steps, past + steps))])
            self.group_query(past, steps, whole, more=[None, None, ("sink", normal(4))])
            self.group_query(past, steps, whole, smooth_softmax=1)
        self.group_query(0, 5, [5, 3])  # the shorter one ends in rows that do not count
        self.group_query(6, 1, [7, 4], do_rotary=1)
        b, n, g, h, s = 2, 4, 2, 16, 1
        inputs = [("q", normal(b, s, (n + 2 * g) * h)), None, None, ("pk", normal(b, g, 2, h)), ("pv", normal(b, g, 2, h)), ("l", np.array([2, 2], np.int32)),
                  ("t", np.array(3, np.int32)), ("c", normal(64, 8)), ("s", normal(64, 8))]
        self.check("GroupQueryAttention", inputs, ["y", "ok", "ov"], num_heads=n, kv_num_heads=g, do_rotary=1, constants=["t"])

    def test_group_query_attention_in_a_shared_buffer(self):
        b, n, g, h = 2, 4, 2, 16
        inputs = [("q", normal(b, 1, n * h)), ("k", normal(b, 1, g * h)), ("v", normal(b, 1, g * h)), ("pk", normal(b, g, 8, h)), ("pv", normal(b, g, 8, h)), ("l", np.array([3, 5], np.int32)),
                  ("t", np.array(6, np.int32)), ("c", normal(64, h // 2)), ("s", normal(64, h // 2))]
        for rotary in (0, 1):
            self.check("GroupQueryAttention", inputs, ["y", "ok", "ov"], num_heads=n, kv_num_heads=g, do_rotary=rotary, constants=["t"])

    def test_positions_of_a_first_prompt(self):
        for positions in ([[0, 1, 2, 3, 4], [2, 3, 4, 5, 6]], [[3, 4, 5, 6, 7]] * 2):
            self.group_query(0, 5, [5, 5], do_rotary=1, more=[("p", np.array(positions, np.int64))])

    def test_selected_experts(self):
        h, i = 32, 48
        for e, k, t in ((16, 2, 2), (16, 1, 5), (16, 2, 3), (4, 2, 1)):  # few tokens for the experts, and many
            for act, norm in (("silu", 0), ("gelu", 1), ("relu", 1)):
                inputs = [("x", normal(t, h)), ("r", normal(t, e)), ("w1", normal(e, i, h) / 6), ("b1", normal(e, i)), ("w2", normal(e, h, i) / 6), ("b2", normal(e, h))]
                self.check("MoE", inputs, constants=["w1", "b1", "w2", "b2"], k=k, activation_type=act, normalize_routing_weights=norm)

    def test_standard_attention(self):
        b, n, s, t, h = 2, 4, 3, 5, 8
        q, k, v = ("q", normal(b, n, s, h)), ("k", normal(b, n, t, h)), ("v", normal(b, n, t, h))
        self.check("Attention", [q, k, v], domain="", standard=23)
        self.check("Attention", [q, ("k", normal(b, 2, t, h)), ("v", normal(b, 2, t, h))], domain="", standard=23, scale=0.3)
        self.check("Attention", [q, k, v, ("m", normal(b, 1, s, t))], domain="", standard=23, softcap=2.0)
        self.check("Attention", [q, k, v, ("m", rng.integers(0, 2, (b, n, s, t)).astype(bool) | (np.arange(t) == 0))], domain="", standard=23)
        self.check("Attention", [("q", normal(b, s, n * h)), ("k", normal(b, t, n * h)), ("v", normal(b, t, n * h))], domain="", standard=23, q_num_heads=n, kv_num_heads=n)
        self.check("Attention", [q, ("k", normal(b, n, s, h)), ("v", normal(b, n, s, h))], domain="", standard=23, is_causal=1)
        self.check("Attention", [q, ("k", normal(b, n, s, h)), ("v", normal(b, n, s, h)), None, ("pk", normal(b, n, 4, h)), ("pv", normal(b, n, 4, h))], ["y", "ok", "ov"], domain="",
                   standard=23, is_causal=1)


class Alignment(OperatorCase):
    """Paths and suffixes that align two sequences; the number of results depends on the data."""

    def test_dynamic_time_warping(self):
        for shape in [(7, 5), (1, 4, 9), (1, 1), (6, 1), (1, 8), (40, 33)]:
            self.check("DynamicTimeWarping", [("x", normal(*shape))])
            self.check("DynamicTimeWarping", [("x", rng.integers(0, 2, shape).astype(np.float32))])  # ties

    def test_bifurcation_detector(self):
        for trial in range(12):
            tokens = lambda count: rng.integers(0, 3, count).astype(np.int64)
            count, least = int(rng.integers(1, 9)), int(rng.integers(1, 3))
            begin = int(rng.integers(0, count + 1))
            source, predicted = tokens(count), tokens(count + 1 - begin)
            if trial % 2:
                predicted[:count - begin] = source[begin:]
            inputs = [("s", source), ("c", tokens(int(rng.integers(1, 5)))), ("p", np.array(begin)), ("q", predicted) if trial % 3 else None]
            self.check("BifurcationDetector", inputs, ["t", "i"], min_ngram_size=least, max_ngram_size=least + int(rng.integers(0, 3)))


if __name__ == "__main__":
    kiln_case.main()
