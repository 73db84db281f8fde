"""Convolutions and recurrent layers."""
from graph import case


def conv(g, x, w, pads=0, bias=True, relu=False, scale=0.2, **attributes):
    y = g.op("Conv", g.input("x", x), g.weight(w, scale), g.weight([w[0]]) if bias else None, pads=[pads] * 4, **attributes)
    return g.op("Relu", y) if relu else y


@case("f16 f32 bf16", short=True)
def conv_1x1(g):
    g.output(conv(g, [1, 24, 9, 7], [40, 24, 1, 1]))


@case("f16 f32 bf16", short=True)
def conv_3x3(g):
    g.output(conv(g, [1, 16, 11, 9], [24, 16, 3, 3], 1, relu=True))


@case("f16 f32")
def conv_3x3_stride(g):
    g.output(conv(g, [2, 16, 13, 11], [32, 16, 3, 3], 1, strides=[2, 2]))


@case("f16 f32")
def conv_7x7(g):
    g.output(conv(g, [1, 3, 23, 21], [16, 3, 7, 7], 3, strides=[2, 2], relu=True))


@case("f16 f32")
def conv_odd_channels(g):
    g.output(conv(g, [1, 13, 8, 9], [19, 13, 3, 3], 1))


@case("f16")
def conv_grouped(g):
    g.output(conv(g, [1, 24, 9, 7], [36, 8, 3, 3], 1, group=3))


@case("f16")
def conv_dilated(g):
    g.output(conv(g, [1, 16, 13, 12], [16, 16, 3, 3], 2, dilations=[2, 2]))


@case("f16 f32")
def conv_residual(g):
    g.output(g.op("Relu", g.op("Add", conv(g, [1, 16, 9, 8], [16, 16, 3, 3], 1), g.input("r", [1, 16, 9, 8]))))


@case("f16 f32", short=True)
def conv_of_halves(g):
    g.opset = 18  # Split with a number of outputs
    left, right = g.op("Split", conv(g, [1, 8, 9, 7], [64, 8, 1, 1]), axis=1, num_outputs=2, outputs=2)
    y = g.op("Add", g.op("Conv", right, g.weight([32, 32, 3, 3], 0.2), pads=[1] * 4), right)
    z = g.op("Conv", left, g.weight([32, 1, 3, 3], 0.2), pads=[1] * 4, group=32)
    pooled = g.op("MaxPool", left, kernel_shape=[3, 3], pads=[1] * 4)
    g.output(g.op("Concat", left, right, y, z, pooled, axis=1))


@case("f16 f32")
def conv_transposed(g):
    g.output(g.op("ConvTranspose", g.input("x", [1, 12, 7, 6]), g.weight([12, 10, 4, 4], 0.2), g.weight([10]), strides=[2, 2], pads=[1, 1, 1, 1]))


@case("f16")
def conv_one_dimension(g):
    g.output(g.op("Conv", g.input("x", [2, 16, 37]), g.weight([24, 16, 5], 0.2), g.weight([24]), pads=[2, 2]))


@case("f16 f32")
def depthwise_3x3(g):
    g.output(conv(g, [1, 20, 13, 11], [20, 1, 3, 3], 1, group=20, relu=True))


@case("f16")
def depthwise_5x5_stride(g):
    g.output(conv(g, [1, 20, 13, 11], [20, 1, 5, 5], 2, group=20, strides=[2, 2]))


@case("f16")
def depthwise_5x5_eight_channels_a_thread(g):
    g.output(g.op("Sigmoid", conv(g, [1, 32, 9, 7], [32, 1, 5, 5], 2, group=32)))


@case("f16 f32")
def depthwise_layer_norm(g):
    """A ConvNeXt block's beginning: one kernel normalizes a pixel's channels, which several waves compute."""
    for channels in (24, 96, 320):
        y = g.op("Conv", g.input(f"x{channels}", [1, channels, 5, 6]), g.weight([channels, 1, 5, 5], 0.2),
                 g.weight([channels]), pads=[2] * 4, group=channels)
        y = g.op("LayerNormalization", g.op("Transpose", y, perm=[0, 2, 3, 1]), g.weight([channels]),
                 g.weight([channels]), axis=-1)
        g.output(g.op("Add", y, g.input(f"r{channels}", [1, 5, 6, channels])))


@case("f32")
def conv_integers(g):
    x, w = g.integers("x", [1, 16, 9, 7], 0, 256, "u8"), g.constant(g.random.integers(0, 256, (24, 16, 3, 3)), "u8")
    g.output(g.op("ConvInteger", x, w, g.constant(128, "u8"), g.constant(120, "u8"), pads=[1, 1, 1, 1]), "i32")


@case("f32")
def conv_quantized(g):
    """Unsigned pixels by signed weights; the padding is the zero point."""
    x, w = g.integers("x", [2, 32, 9, 7], 0, 256, "u8"), g.constant(g.random.integers(-127, 128, (24, 32, 3, 3)), "i8")
    zero = g.constant(117, "u8")
    g.output(g.op("QLinearConv", x, g.constant(0.02), zero, w, g.constant(0.01), g.constant(0, "i8"), g.constant(0.5), zero, pads=[1, 1, 1, 1]), "u8")


@case("f32 f16")
def lstm(g):
    n, b, i, h = 5, 3, 12, 20
    y, last, cell = g.op("LSTM", g.input("x", [n, b, i]), g.weight([1, 4 * h, i], 0.3), g.weight([1, 4 * h, h], 0.3), g.weight([1, 8 * h]), outputs=3, hidden_size=h)
    for t in (y, last, cell):
        g.output(t)


@case("f32 f16")
def gru(g):
    n, b, i, h = 4, 2, 10, 18
    y, last = g.op("GRU", g.input("x", [n, b, i]), g.weight([1, 3 * h, i], 0.3), g.weight([1, 3 * h, h], 0.3), g.weight([1, 6 * h]), outputs=2, hidden_size=h, linear_before_reset=1)
    g.output(y)
    g.output(last)
