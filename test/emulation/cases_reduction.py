"""Reductions: softmax, normalizations, sums and extremes along different axes, pooling."""
import numpy as np

from graph import case


@case("f16 f32 bf16", short=True)
def softmax_rows(g):
    g.output(g.op("Softmax", g.input("x", [7, 130]), axis=-1))


@case("f16 f32")
def softmax_short(g):
    g.output(g.op("Softmax", g.input("x", [37, 5]), axis=-1))


@case("f16 f32")
def softmax_long(g):
    g.output(g.op("Softmax", g.input("x", [3, 5003], scale=3.0), axis=-1))


@case("f16")
def softmax_masked(g):
    """Scores with a mask of large negative numbers, as attention has them."""
    mask = np.where(np.arange(77)[None, :] <= np.arange(9)[:, None] * 8, 0.0, -10000.0)
    g.output(g.op("Softmax", g.op("Add", g.op("Mul", g.input("x", [2, 9, 77]), g.constant(0.125)), g.constant(mask)), axis=-1))


@case("f16")
def softmax_outer(g):
    g.output(g.op("Softmax", g.input("x", [3, 19, 23]), axis=1))


@case("f32")
def log_softmax(g):
    g.output(g.op("LogSoftmax", g.input("x", [6, 211]), axis=-1))


@case("f16 f32 bf16", short=True)
def layer_norm(g):
    n = 203
    g.output(g.op("LayerNormalization", g.input("x", [5, n], shift=1.0), g.weight([n]), g.weight([n]), axis=-1))


@case("f16 f32")
def layer_norm_long(g):
    n = 2560
    g.output(g.op("LayerNormalization", g.op("Add", g.input("x", [2, n]), g.input("r", [2, n])), g.weight([n]), g.weight([n]), axis=-1))


@case("f16 f32")
def rms_norm(g):
    n = 192
    x = g.input("x", [3, 7, n])
    mean = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
    scale = g.op("Div", g.constant(1.0), g.op("Sqrt", g.op("Add", mean, g.constant(1e-5))))
    g.output(g.op("Mul", g.op("Mul", x, scale), g.weight([n])))


@case("f16 f32")
def group_norm(g):
    """As exporters write it: InstanceNormalization of reshaped groups."""
    n, c, groups = 2, 12, 3
    x = g.op("Reshape", g.input("x", [n, c, 7, 5], shift=0.5), g.constant([n, groups, -1], "i64"))
    y = g.op("InstanceNormalization", x, g.constant(np.ones(groups)), g.constant(np.zeros(groups)))
    y = g.op("Reshape", y, g.constant([n, c, 7, 5], "i64"))
    g.output(g.op("Add", g.op("Mul", y, g.weight([c, 1, 1])), g.weight([c, 1, 1])))


@case("f16 f32 bf16")
def sum_inner(g):
    g.output(g.op("ReduceSum", g.input("x", [19, 133]), g.constant([1], "i64"), keepdims=0))


@case("f16 f32")
def sum_outer(g):
    g.output(g.op("ReduceSum", g.input("x", [133, 19]), g.constant([0], "i64"), keepdims=0))


@case("f32")
def sum_all(g):
    g.output(g.op("ReduceSum", g.input("x", [3, 41, 57], shift=0.5), keepdims=0))


@case("f16")
def mean_middle(g):
    g.output(g.op("ReduceMean", g.input("x", [3, 29, 17], shift=0.5), axes=[1], keepdims=1))


@case("f32")
def mean_long(g):
    g.output(g.op("ReduceMean", g.input("x", [2, 9001], shift=0.5), axes=[1], keepdims=0))


@case("f16 f32")
def max_inner(g):
    g.output(g.op("ReduceMax", g.op("Neg", g.input("x", [19, 131], shift=9.0)), axes=[1], keepdims=0))


@case("f32")
def max_integers(g):
    g.output(g.op("ReduceMax", g.integers("x", [9, 71], -1000, -3, "i32"), axes=[1], keepdims=0), "i32")


@case("f32")
def sum_of_squares(g):
    g.output(g.op("ReduceSumSquare", g.input("x", [11, 67]), axes=[1], keepdims=0))


@case("f16 f32")
def arg_max(g):
    x = g.input("x", [7, 211])
    g.output(g.op("ArgMax", x, axis=1, keepdims=0), "i64")


@case("f32")
def arg_min_outer(g):
    """Ties go to the first."""
    x = g.input("x", [23, 9], data=g.random.integers(0, 4, (23, 9)))
    g.output(g.op("ArgMin", x, axis=0, keepdims=0), "i64")


@case("f16 f32")
def max_pool(g):
    g.output(g.op("MaxPool", g.input("x", [1, 5, 13, 11]), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]))


@case("f16 f32")
def average_pool(g):
    g.output(g.op("AveragePool", g.input("x", [1, 5, 13, 11]), kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], count_include_pad=0))


@case("f16 f32")
def global_pool(g):
    g.output(g.op("GlobalAveragePool", g.input("x", [2, 9, 7, 7], shift=0.5)))


@case("f16")
def global_max(g):
    g.output(g.op("GlobalMaxPool", g.input("x", [2, 9, 7, 7])))
