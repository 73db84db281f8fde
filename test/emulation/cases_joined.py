"""Kernels with inner anchors: products of normalized rows, two products of the same rows that an operation combines, and
caches that are updated at the same position."""
from graph import TYPES, case


def normalized(g, x):
    wide = g.op("Cast", x, to=TYPES["f32"])
    mean = g.op("ReduceMean", g.op("Mul", wide, wide), axes=[-1], keepdims=1)
    root = g.op("Sqrt", g.op("Add", mean, g.constant(1e-5, "f32")))
    return g.op("Cast", g.op("Div", wide, root), to=TYPES[g.float])


def gated(g, x, depth, columns):
    gate, up = (g.op("MatMul", x, g.weight([depth, columns], depth ** -0.5)) for _ in range(2))
    return g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)


@case("f16 bf16", short=True)
def joined_norm_one_row(g):
    g.output(g.op("MatMul", normalized(g, g.input("x", [1, 512])), g.weight([512, 72], 0.05)))


@case("f16 bf16")
def joined_norm_rows(g):
    """The rows differ in size, so that a wrong scale shows."""
    x = g.op("Mul", g.input("x", [7, 1024]), g.constant([[4.0 ** i] for i in range(-3, 4)]))
    g.output(g.op("MatMul", normalized(g, x), g.weight([1024, 136], 0.05)))


@case("f16 bf16", short=True)
def joined_gate(g):
    g.output(gated(g, g.input("x", [1, 520]), 520, 72))


@case("f16 bf16")
def joined_gate_rows(g):
    g.output(gated(g, normalized(g, g.input("x", [16, 512])), 512, 200))


@case("f16")
def joined_gate_many_rows(g):
    """Each anchor in a launch of its own."""
    g.output(gated(g, normalized(g, g.input("x", [40, 512], 3.0)), 512, 72))
