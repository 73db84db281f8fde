"""Two small whole models, run kernel by kernel: a convolutional network and a transformer of one layer."""
import numpy as np

from graph import case


@case("f16 f32", model=True, tolerance=1e-2)
def small_convnet(g):
    """Stem, a residual block, a depthwise block, pooling and a classifier, at 16x16."""
    def conv(x, c, k, pads=0, bias=True, **more):
        inputs = c[1] * k * k
        return g.op("Conv", x, g.weight([c[0], c[1], k, k], (2 / inputs) ** 0.5), g.weight([c[0]], 0.1) if bias else None, pads=[pads] * 4, **more)

    x = g.op("Relu", conv(g.input("x", [1, 3, 16, 16]), (16, 3), 3, 1, strides=[2, 2]))
    y = conv(g.op("Relu", conv(x, (16, 16), 3, 1)), (16, 16), 3, 1)
    x = g.op("Relu", g.op("Add", x, y))
    y = g.op("Clip", conv(x, (48, 16), 1), g.constant(0.0), g.constant(6.0))
    y = g.op("Clip", conv(y, (48, 1), 3, 1, group=48, strides=[2, 2]), g.constant(0.0), g.constant(6.0))
    x = conv(y, (24, 48), 1)
    x = g.op("Flatten", g.op("GlobalAveragePool", g.op("MaxPool", x, kernel_shape=[2, 2], strides=[1, 1])))
    g.output(g.op("Softmax", g.op("Gemm", x, g.weight([10, 24], 0.3), g.weight([10]), transB=1)))


@case("f16 f32", model=True, tolerance=1e-2)
def small_transformer(g):
    """Embedding, one encoder layer with masked attention of four heads, a tanh head."""
    n, d, heads = 21, 64, 4
    shape = lambda *dims: g.constant(list(dims), "i64")

    def linear(x, i, o):
        return g.op("Add", g.op("MatMul", x, g.weight([i, o], i ** -0.5)), g.weight([o], 0.1))

    def norm(x):
        return g.op("LayerNormalization", x, g.weight([d], 0.1, 1.0), g.weight([d], 0.1), axis=-1)

    def split(x, perm):
        return g.op("Transpose", g.op("Reshape", x, shape(1, n, heads, d // heads)), perm=perm)

    x = g.op("Gather", g.weight([50, d]), g.integers("ids", [1, n], 0, 50))
    x = norm(g.op("Add", x, g.weight([1, n, d], 0.2)))
    q, k, v = split(linear(x, d, d), [0, 2, 1, 3]), split(linear(x, d, d), [0, 2, 3, 1]), split(linear(x, d, d), [0, 2, 1, 3])
    mask = g.constant(np.where(np.arange(n) < n - 4, 0.0, -10000.0)[None, None, None])
    s = g.op("Softmax", g.op("Add", g.op("Mul", g.op("MatMul", q, k), g.constant((d // heads) ** -0.5)), mask), axis=-1)
    a = g.op("Reshape", g.op("Transpose", g.op("MatMul", s, v), perm=[0, 2, 1, 3]), shape(1, n, d))
    x = norm(g.op("Add", x, linear(a, d, d)))
    h = linear(x, d, 4 * d)
    h = g.op("Mul", g.op("Mul", h, g.constant(0.5)), g.op("Add", g.op("Erf", g.op("Mul", h, g.constant(0.7071067811865475))), g.constant(1.0)))
    x = norm(g.op("Add", x, linear(h, 4 * d, d)))
    g.output(g.op("Tanh", linear(g.op("Gather", x, g.constant(0, "i64"), axis=1), d, d)))
