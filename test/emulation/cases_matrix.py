"""Matrix products: layouts, odd sizes and tails, batches, epilogues, long K, few rows, integers, and attention's
chains."""
import numpy as np

from graph import case


def matmul(g, a, b, scale=0.25):
    return g.op("MatMul", g.input("a", a), g.input("b", b, scale=scale))


@case("f16 bf16 f32", short=True)
def matmul_even(g):
    g.output(matmul(g, [64, 64], [64, 64]))


@case("f16 bf16 f32")
def matmul_odd(g):
    g.output(matmul(g, [61, 37], [37, 83]))


@case("f16 bf16 f32")
def matmul_tails(g):
    """More than one tile in each direction, with remainders."""
    g.output(matmul(g, [150, 72], [72, 136]))


@case("f16")
def matmul_large_tiles(g):
    """Large enough for the largest tiles."""
    g.output(matmul(g, [520, 96], [96, 392]))


@case("f16 f32")
def matmul_long(g):
    g.output(matmul(g, [33, 1031], [1031, 48], scale=0.1))


@case("f16 bf16 f32")
def matmul_one_row(g):
    """Decode: a vector times constant weights."""
    g.output(g.op("MatMul", g.input("a", [1, 520]), g.weight([520, 200], 0.1)))


@case("f16 f32")
def matmul_sixteen_rows(g):
    g.output(g.op("MatMul", g.input("a", [16, 264]), g.weight([264, 136], 0.1)))


@case("f16")
def matmul_few_rows_wide(g):
    """Columns for several tiles of a workgroup on RDNA, the last of which is not whole."""
    g.output(g.op("MatMul", g.input("a", [7, 264]), g.weight([264, 3208], 0.1)))


@case("f16 f32")
def matmul_five_rows_long(g):
    g.output(g.op("MatMul", g.input("a", [5, 2056]), g.weight([2056, 72], 0.05)))


@case("f16 bf16 f32")
def gemm_transposed_b(g):
    g.output(g.op("Gemm", g.input("a", [45, 70]), g.input("b", [53, 70], 0.25), g.input("c", [53]), transB=1))


@case("f16 f32")
def gemm_transposed_a(g):
    g.output(g.op("Gemm", g.input("a", [70, 45]), g.input("b", [70, 53], 0.25), transA=1, alpha=0.5))


@case("f16")
def gemm_transposed_both(g):
    g.output(g.op("Gemm", g.input("a", [66, 39]), g.input("b", [58, 66], 0.25), g.weight([39, 1]), transA=1, transB=1, beta=2.0))


@case("f16 bf16 f32")
def linear_gelu(g):
    """Constant weights, bias and GELU in the epilogue."""
    x = g.op("Add", g.op("MatMul", g.input("x", [47, 96]), g.weight([96, 120], 0.1)), g.weight([120]))
    erf = g.op("Erf", g.op("Mul", x, g.constant(0.7071067811865475)))
    g.output(g.op("Mul", g.op("Mul", x, g.constant(0.5)), g.op("Add", erf, g.constant(1.0))))


@case("f16 f32")
def linear_residual(g):
    x = g.op("Add", g.op("MatMul", g.input("x", [29, 64]), g.weight([64, 56], 0.125)), g.weight([56]))
    g.output(g.op("Add", x, g.input("r", [29, 56])))


@case("f16 f32")
def matmul_prologue(g):
    """Elementwise work on an operand before the product."""
    a = g.op("Mul", g.op("Sigmoid", g.input("a", [40, 64])), g.input("s", [64]))
    g.output(g.op("MatMul", a, g.input("b", [64, 72], 0.25)))


@case("f16 bf16 f32")
def batched(g):
    g.output(matmul(g, [3, 2, 35, 40], [3, 2, 40, 27]))


@case("f16")
def batched_broadcast(g):
    g.output(matmul(g, [4, 33, 24], [24, 65]))


@case("f16 f32")
def batched_transposed(g):
    """Q·Kᵀ: the transpose is part of the product."""
    k = g.op("Transpose", g.input("k", [2, 3, 50, 32]), perm=[0, 1, 3, 2])
    g.output(g.op("Mul", g.op("MatMul", g.input("q", [2, 3, 37, 32]), k), g.constant(0.17)))


@case("f32", short=True)
def integers_u8(g):
    a, b = g.integers("a", [45, 72], 0, 256, "u8"), g.constant(g.random.integers(-128, 128, (72, 53)), "i8")
    g.output(g.op("MatMulInteger", a, b, g.constant(128, "u8")), "i32")


@case("f32")
def integers_u8_few_rows(g):
    """One row tile straight from memory; the depth is no multiple of a step."""
    a, b = g.integers("a", [7, 208], 0, 256, "u8"), g.constant(g.random.integers(-128, 128, (208, 40)), "i8")
    g.output(g.op("MatMulInteger", a, b, g.constant(3, "u8")), "i32")


@case("f32")
def integers_u8_one_row(g):
    a, b = g.integers("a", [1, 512], 0, 256, "u8"), g.constant(g.random.integers(-128, 128, (512, 48)), "i8")
    g.output(g.op("MatMulInteger", a, b, g.constant(200, "u8")), "i32")


@case("f32")
def integers_u8_deep(g):
    """Workgroups divide the depth. All factors are as large as they can be."""
    a, b = g.given("a", np.full((32, 6000), 255), "u8"), g.constant(np.where(np.arange(48) % 2, 127, -128) * np.ones((6000, 1), int), "i8")
    g.output(g.op("MatMulInteger", a, b, g.constant(0, "u8")), "i32")


@case("f32")
def integers_i8(g):
    a, b = g.integers("a", [64, 128], -128, 128, "i8"), g.integers("b", [128, 64], -128, 128, "i8")
    g.output(g.op("MatMulInteger", a, b), "i32")


@case("f32", tolerance=5e-3)
def quantized_linear(g):
    """A QDQ product: int8 operands, f32 result. A rounding that falls the other way is one step of one operand."""
    def qdq(x, scale):
        return g.op("DequantizeLinear", g.op("QuantizeLinear", x, g.constant(scale), g.constant(0, "i8")), g.constant(scale), g.constant(0, "i8"))

    w = g.op("DequantizeLinear", g.constant(g.random.integers(-127, 128, (96, 72)), "i8"), g.constant(0.01), g.constant(0, "i8"))
    g.output(g.op("MatMul", qdq(g.input("x", [35, 96]), 0.03), w))


def attention_inputs(g, heads, rows, columns, width):
    return (g.input("q", [1, heads, rows, width]), g.input("k", [1, heads, columns, width]), g.input("v", [1, heads, columns, width]))


def attention(g, q, k, v, scale, mask=None):
    s = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(scale))
    s = g.op("Add", s, mask) if mask else s
    return g.op("MatMul", g.op("Softmax", s, axis=-1), v)


@case("f16 f32", short=True)
def attention_plain(g):
    g.output(attention(g, *attention_inputs(g, 2, 33, 47, 32), 0.18))


@case("f16")
def attention_causal(g):
    n = 65
    mask = g.constant(np.where(np.tri(n) > 0, 0.0, -10000.0)[None, None])
    g.output(attention(g, *attention_inputs(g, 2, n, n, 64), 0.125, mask))


def limits(g, rows, columns, low):
    """A mask that is computed from the numbers of keys and a limit for each row."""
    last = g.integers("last", [1, 1, rows, 1], low, columns + 9)
    seen = g.op("LessOrEqual", g.constant(np.arange(columns), "i64"), last)
    return g.op("Where", seen, g.constant(0.0), g.constant(-np.inf))


@case("f16 f32")
def attention_limits(g):
    """Tiles whose rows see different numbers of keys, in no order."""
    g.output(attention(g, *attention_inputs(g, 1, 35, 83, 32), 0.18, limits(g, 35, 83, 0)))


@case("f32")
def attention_rows_of_lowest(g):
    """Exporters mask with the lowest number: where it masks a whole row, all keys weigh the same."""
    mask = np.where(np.arange(40)[:, None] % 3, np.where(np.arange(50) % 7, 0, np.finfo(np.float32).min), np.finfo(np.float32).min)
    g.output(attention(g, *attention_inputs(g, 2, 40, 50, 32), 0.18, g.given("mask", mask[None, None].astype(np.float32), "f32")))


@case("f16")
def attention_narrow_limits(g):
    g.output(attention(g, *attention_inputs(g, 1, 5, 67, 64), 0.125, limits(g, 5, 67, 3)))


@case("f16")
def cache_rows(g):
    """Rows of caches that are replaced, some of them twice."""
    at = g.op("Expand", g.op("Reshape", g.integers("at", [5], 0, 7), g.constant(np.array([1, 1, 5, 1]), "i64")), g.constant(np.array([1, 3, 5, 16]), "i64"))
    for name in "kv":
        g.output(g.op("ScatterElements", g.input(name, [1, 3, 9, 16]), at, g.op("Mul", g.input(name + "_new", [1, 3, 5, 16]), g.constant(3.0)), axis=2))


@case("f16")
def attention_decode(g):
    g.output(attention(g, *attention_inputs(g, 3, 1, 131, 64), 0.125))


@case("f16")
def attention_split_keys(g):
    """Few rows: parts of the keys in workgroups of their own, joined by the last to arrive."""
    g.output(attention(g, *attention_inputs(g, 2, 3, 547, 64), 0.125))


@case("f16 bf16")
def attention_parts_joined_apart(g):
    """Deep heads, of which the parts of a tile's rows are so many bytes that a launch of its own joins them; rows and
    keys end within a tile."""
    g.output(attention(g, *attention_inputs(g, 2, 61, 2060, 256), 0.0625))


@case("f16 bf16")
def attention_deep_whole_blocks(g):
    """Queries that registers do not hold on RDNA stay in shared memory; whole blocks of keys."""
    g.output(attention(g, *attention_inputs(g, 2, 80, 768, 256), 0.0625))


@case("f16")
def attention_deep_causal(g):
    mask = g.constant(np.where(np.tri(70, 70, 0) > 0, 0.0, -10000.0)[None, None])
    g.output(attention(g, *attention_inputs(g, 2, 70, 70, 192), 0.07, mask))


def grouped(g, tensor, heads, share, columns, width):
    """Heads of keys that several query heads share, as models write it."""
    wide = g.op("Expand", g.op("Unsqueeze", tensor, g.constant(np.array([2]), "i64")), g.constant(np.array([1, heads, share, columns, width]), "i64"))
    return g.op("Reshape", wide, g.constant(np.array([1, heads * share, columns, width]), "i64"))


@case("f16 bf16", short=True)
def attention_narrow(g):
    """Grouped heads of one query, whose keys and values waves read straight from memory; the last block is not full."""
    heads, share, keys, depth = 2, 4, 203, 128
    q, k, v = g.input("q", [1, heads * share, 1, depth]), g.input("k", [1, heads, keys, depth]), g.input("v", [1, heads, keys, depth])
    g.output(attention(g, q, grouped(g, k, heads, share, keys, depth), grouped(g, v, heads, share, keys, depth), 0.09))


@case("f16")
def attention_narrow_causal(g):
    """Several queries of a head, all parts of the rows' tile, a mask that hides keys from some, and one row that sees a
    single key."""
    rows, keys = 13, 96
    mask = g.constant(np.where(np.tri(rows, keys, 0) > 0, 0.0, -10000.0)[None, None])
    g.output(attention(g, *attention_inputs(g, 2, rows, keys, 128), 0.09, mask))


@case("f16")
def attention_narrow_split_keys(g):
    """Rounds of blocks in a wave, waves in a workgroup, and parts of the keys joined by the last workgroup to
    arrive."""
    g.output(attention(g, *attention_inputs(g, 3, 2, 1500, 128), 0.09))


@case("f16")
def attention_narrow_tiles(g):
    """More rows than one tile has, each tile read by waves of its own; the last tile has few rows, the last block few
    keys."""
    g.output(attention(g, *attention_inputs(g, 2, 37, 131, 128), 0.09))


@case("f16")
def attention_narrow_layouts(g):
    """Heads after positions in all tensors, and a residual added to the result."""
    heads, rows, keys, depth = 3, 2, 150, 128
    first = lambda name, count: g.op("Transpose", g.input(name, [1, count, heads, depth]), perm=[0, 2, 1, 3])
    y = g.op("Transpose", attention(g, first("q", rows), first("k", keys), first("v", keys), 0.09), perm=[0, 2, 1, 3])
    g.output(g.op("Add", y, g.input("residual", [1, rows, heads, depth])))


@case("f16")
def attention_wide(g):
    g.output(attention(g, *attention_inputs(g, 1, 20, 70, 128), 0.088))


@case("f16 bf16 f32", short=True)
def matmul_int4_one_row(g):
    """Decode with weights of 4 bits, in groups of 32 along k: 16 bytes are 32 of them."""
    g.output(g.op("MatMul", g.input("a", [1, 512]), g.packed_weight([512, 72], block=32)))


@case("f16 f32")
def matmul_int4_sixteen_rows(g):
    """A depth that no step divides, columns that no tile divides."""
    g.output(g.op("Relu", g.op("MatMul", g.input("a", [16, 1152]), g.packed_weight([1152, 52], block=64))))


@case("f16 bf16")
def matmul_int4_zero_points(g):
    g.output(g.op("MatMul", g.input("a", [3, 256]), g.packed_weight([256, 40], "u4", block=128, zero_point=True)))


@case("f16 f32")
def matmul_int8_weights(g):
    """Weights of bytes, whose activations are not quantized."""
    g.output(g.op("MatMul", g.input("a", [3, 256]), g.packed_weight([256, 40], "u8", scale=0.003, block=32, zero_point=True)))


@case("f16")
def matmul_int4_small_groups(g):
    """Groups and depths of less than 16 bytes."""
    g.output(g.op("MatMul", g.input("a", [5, 80]), g.packed_weight([80, 36], block=16)))


@case("f16 f32")
def gemm_int4_many_rows(g):
    """Rows for tiles in shared memory; one scale for each row of the transposed weights."""
    g.output(g.op("Gemm", g.input("a", [70, 192]), g.packed_weight([50, 192], axis=1), g.weight([50]), transB=1))


@case("f16")
def matmul_int4_made_in_memory(g):
    """More rows than weights are unpacked for."""
    g.output(g.op("MatMul", g.input("a", [140, 96]), g.packed_weight([96, 40], block=32)))


@case("f16")
def int4_to_floats(g):
    """No product: elements at even and odd places."""
    w = g.packed_weight([33, 35], block=0, axis=0)
    g.output(g.op("Add", w, g.input("b", [33, 35])))
    g.output(g.op("Transpose", w, perm=[1, 0]))


@case("f16", options=["--int4-weights"], tolerance=0.2)
def matmul_int4_quantized(g):
    """`--int4-weights`; the reference has the weights as they were."""
    g.output(g.op("MatMul", g.input("a", [16, 512]), g.weight([512, 136], 0.1)))
