"""Elementwise kernels: scalar functions, broadcasting, comparisons, integers, tails of the 16-byte accesses."""
from graph import case


@case("f16 f32 bf16", short=True)
def add_relu(g):
    g.output(g.op("Relu", g.op("Add", g.input("a", [37, 53]), g.input("b", [37, 53]))))


@case("f16 bf16")
def add_channels(g):
    """Broadcast along the innermost dimensions."""
    g.output(g.op("Add", g.input("a", [2, 5, 7, 9]), g.input("b", [5, 1, 1])))


@case("f16 f32")
def multiply_outer(g):
    g.output(g.op("Mul", g.input("a", [33, 1]), g.input("b", [1, 65])))


@case("f16 f32 bf16", tolerance=1e-2)
def functions(g):
    """A chain of transcendental functions."""
    x = g.input("x", [3, 129])
    y = g.op("Add", g.op("Exp", g.op("Tanh", x)), g.op("Sigmoid", x))
    g.output(g.op("Sub", g.op("Sqrt", g.op("Abs", y)), g.op("Erf", x)))


@case("f16 f32")
def gelu(g):
    x = g.input("x", [5, 77])
    erf = g.op("Erf", g.op("Mul", x, g.constant(0.7071067811865475)))
    g.output(g.op("Mul", g.op("Mul", x, g.constant(0.5)), g.op("Add", erf, g.constant(1.0))))


@case("f16")
def large_tail(g):
    """Not a multiple of any vector width or workgroup."""
    g.output(g.op("Mul", g.input("a", [4099]), g.input("b", [4099])))


@case("f32 f16")
def divide_pow(g):
    x = g.input("x", [7, 31])
    g.output(g.op("Div", g.op("Pow", g.op("Abs", x), g.constant(1.5)), g.op("Add", g.op("Abs", g.input("b", [31])), g.constant(1.0))))


@case("f16")
def where_compare(g):
    a, b = g.input("a", [9, 41]), g.input("b", [9, 41])
    g.output(g.op("Where", g.op("Less", a, b), g.op("Neg", a), b))


@case("f32")
def integers(g):
    a, b = g.integers("a", [13, 17], -50, 50, "i32"), g.integers("b", [17], 1, 50, "i32")
    g.output(g.op("Sub", g.op("Mul", a, b), g.op("Div", a, b)), "i32")


@case("f32")
def integers64(g):
    a, b = g.integers("a", [5, 33], -1 << 40, 1 << 40), g.integers("b", [5, 33], -1 << 40, 1 << 40)
    g.output(g.op("Add", g.op("Max", a, b), g.op("Mul", a, g.constant(3, "i64"))), "i64")


@case("f16")
def casts(g):
    x = g.input("x", [3, 67], scale=20.0)
    g.output(g.op("Cast", x, to=6), "i32")
    g.output(g.op("Cast", g.op("Greater", x, g.constant(0.0)), to=9), "bool")


@case("f16")
def batch_norm(g):
    """Scale and shift by channel."""
    c = 11
    g.output(g.op("BatchNormalization", g.input("x", [2, c, 5, 7]), g.weight([c]), g.weight([c]), g.weight([c]), g.constant(abs(g.normal([c])) + 0.5)))


@case("f32")
def quantize(g):
    """f32 → u8 → f32."""
    scale, zero = g.constant(0.05), g.constant(128, "u8")
    q = g.op("QuantizeLinear", g.input("x", [5, 43]), scale, zero)
    g.output(q, "u8")
    g.output(g.op("DequantizeLinear", q, scale, zero))
