"""Kernels that move elements: transposes, slices, concatenation, padding, gather, scatter, resize, selection."""
import numpy as np

from graph import case


@case("f16 f32", short=True)
def transpose_2d(g):
    g.output(g.op("Transpose", g.input("x", [67, 93]), perm=[1, 0]))


@case("f16 f32")
def transpose_nchw_nhwc(g):
    g.output(g.op("Transpose", g.input("x", [2, 13, 9, 11]), perm=[0, 2, 3, 1]))


@case("f16")
def transpose_heads(g):
    g.output(g.op("Transpose", g.input("x", [2, 17, 3, 24]), perm=[0, 2, 1, 3]))


@case("f16")
def transpose_reverse(g):
    g.output(g.op("Transpose", g.input("x", [5, 6, 7, 8]), perm=[3, 2, 1, 0]))


@case("f32")
def transpose_bytes(g):
    g.output(g.op("Transpose", g.integers("x", [70, 45], -128, 127, "i8"), perm=[1, 0]), "i8")


@case("f16")
def slices(g):
    i = lambda *v: g.constant(list(v), "i64")
    g.output(g.op("Slice", g.input("x", [9, 21, 15]), i(1, 20, 2), i(8, 3, 13), i(0, 1, 2), i(2, -3, 1)))


@case("f16 f32")
def concat(g):
    g.output(g.op("Concat", g.input("a", [3, 5, 7]), g.input("b", [3, 2, 7]), g.input("c", [3, 9, 7]), axis=1))


@case("f16")
def concat_inner(g):
    g.output(g.op("Concat", g.input("a", [11, 5]), g.input("b", [11, 8]), axis=-1))


@case("f16")
def split(g):
    for part in g.op("Split", g.input("x", [5, 24]), g.constant([7, 12, 5], "i64"), outputs=3, axis=1):
        g.output(part)


@case("f16")
def pad_constant(g):
    g.output(g.op("Pad", g.input("x", [3, 9, 7]), g.constant([0, 1, 2, 1, 3, 4], "i64"), g.constant(1.5)))


@case("f32")
def pad_reflect(g):
    g.output(g.op("Pad", g.input("x", [2, 9, 7]), g.constant([0, 2, 3, 0, 1, 2], "i64"), mode="reflect"))


@case("f16")
def gather_rows(g):
    g.output(g.op("Gather", g.input("table", [29, 40]), g.integers("i", [3, 5], -29, 29)))


@case("f32")
def gather_inner(g):
    g.output(g.op("Gather", g.input("table", [7, 19]), g.integers("i", [6], 0, 19), axis=1))


@case("f32")
def gather_elements(g):
    g.output(g.op("GatherElements", g.input("x", [7, 19]), g.integers("i", [4, 19], 0, 7), axis=0))


@case("f32")
def gather_nd(g):
    g.output(g.op("GatherND", g.input("x", [5, 6, 7]), g.integers("i", [8, 2], 0, 5)))


@case("f16 f32")
def scatter_nd(g):
    rows = g.random.permutation(11)[:4].reshape(4, 1)
    g.output(g.op("ScatterND", g.input("x", [11, 9]), g.given("i", rows, "i64"), g.input("u", [4, 9])))


@case("f32")
def scatter_add(g):
    g.output(g.op("ScatterElements", g.input("x", [5, 9]), g.integers("i", [3, 9], 0, 5), g.input("u", [3, 9]), axis=0, reduction="add"))


@case("f16")
def scatter_elements(g):
    order = np.stack([g.random.permutation(12)[:5] for _ in range(6)])
    g.output(g.op("ScatterElements", g.input("x", [6, 12]), g.given("i", order, "i64"), g.input("u", [6, 5]), axis=1))


@case("f16 f32")
def segment_sum(g):
    """The reference multiplies by a matrix of ones where a row belongs to a segment."""
    x, ids = g.input("x", [37, 12]), np.sort(g.random.integers(-1, 8, 37))
    given = g.given("ids", ids, "i64")
    member = g.constant(ids == np.arange(7)[:, None]) if g.reference else None
    g.output(g.op("MatMul", member, x) if g.reference else g.op("SegmentSum", x, given, domain="kiln", segments=7))


@case("f16 f32")
def resize_nearest(g):
    g.output(g.op("Resize", g.input("x", [1, 3, 5, 7]), None, None, g.constant([1, 3, 10, 14], "i64"), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"))


@case("f32")
def resize_linear(g):
    g.output(g.op("Resize", g.input("x", [1, 3, 5, 7]), None, None, g.constant([1, 3, 11, 13], "i64"), mode="linear", coordinate_transformation_mode="half_pixel"))


@case("f16")
def depth_to_space(g):
    g.output(g.op("DepthToSpace", g.input("x", [1, 12, 5, 7]), blocksize=2))


@case("f16")
def expand_tile(g):
    g.output(g.op("Tile", g.op("Expand", g.input("x", [3, 1, 7]), g.constant([2, 3, 5, 7], "i64")), g.constant([1, 1, 2, 3], "i64")))


@case("f32 f16")
def top_k(g):
    values, indices = g.op("TopK", g.input("x", [5, 67], data=g.random.permutation(335).reshape(5, 67)), g.constant([9], "i64"), outputs=2)
    g.output(values)
    g.output(indices, "i64")


@case("f32 f16")
def top_k_of_computed(g):
    """The kernel computes what it ranks. The sums are rounded in f16, so that many are equal: the first comes first."""
    rows = g.given("rows", g.random.permutation(11)[:5].repeat(37).reshape(1, 5, 37), "i64")
    x = g.input("x", [1, 11, 37], data=g.random.permutation(407).reshape(1, 11, 37))
    total = g.op("GatherElements", g.op("Add", x, g.constant([4096 if g.dtype == "f16" else 0.5])), rows, axis=1)
    if g.reference and g.dtype == "f16":
        total = g.op("Cast", g.op("Cast", total, to=10), to=1)
    values, indices = g.op("TopK", g.op("Reshape", total, g.constant([1, 185], "i64")), g.constant([60], "i64"), outputs=2)
    g.output(values)
    g.output(indices, "i64")


@case("f32 f16")
def rows_that_are_normalized(g):
    """The normalization's kernel also writes the rows that it looks up."""
    rows = g.op("Gather", g.input("table", [19, 96]), g.given("ids", g.random.integers(0, 19, 7), "i64"), axis=0)
    g.output(rows)
    g.output(g.op("LayerNormalization", rows, g.input("scale", [96]), axis=-1))


@case("f16")
def two_stacks(g):
    for name in "kv":
        g.output(g.op("Concat", *(g.op("CumSum", g.input(f"{name}{n}", [1, 5, 24]), g.constant(1, "i64")) for n in range(3)), axis=0))


@case("f32")
def cumulative_sum(g):
    g.output(g.op("CumSum", g.input("x", [5, 83]), g.constant(1, "i64")))


@case("f32")
def cumulative_sum_outer(g):
    g.output(g.op("CumSum", g.input("x", [23, 9]), g.constant(0, "i64"), exclusive=1, reverse=1))
