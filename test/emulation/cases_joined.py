"""Kernels with inner anchors: products of normalized rows, two products of the same rows that an operation combines, and
caches that are updated at the same position."""
import numpy as np

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


def appended(g, batch, heads, room, depth, position, share=4):
    """Attention of one query of each sequence in two layers, which append their keys and values to stacks of all layers' caches."""
    def shape(*dims):
        return g.constant(np.array(dims), "i64")

    def of_queries(cache):
        wide = g.op("Expand", g.op("Unsqueeze", cache, shape(2)), shape(batch, heads, share, room, depth))
        return g.op("Reshape", wide, shape(batch, heads * share, room, depth))

    at = g.op("Expand", g.op("Reshape", g.given("position", [position], "i64"), shape(1, 1, 1, 1)), shape(batch, heads, 1, depth))
    updated = {}
    for name in "kv":
        stack = g.input(name, [2, batch, heads, room, depth])
        for layer in range(2):
            cache = g.op("Gather", stack, g.constant(layer, "i64"), axis=0)
            rows = g.op("Mul", g.input(f"{name}{layer}", [batch, heads, 1, depth]), g.constant(2.0))
            updated[name, layer] = g.op("ScatterElements", cache, at, rows, axis=2)
    for layer in range(2):
        query = g.input(f"q{layer}", [batch, heads * share, 1, depth])
        scores = g.op("Mul", g.op("MatMul", query, g.op("Transpose", of_queries(updated["k", layer]), perm=[0, 1, 3, 2])), g.constant(depth ** -0.5))
        g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), of_queries(updated["v", layer])))
    for name in "kv":
        g.output(g.op("Concat", *(g.op("Unsqueeze", updated[name, layer], shape(0)) for layer in range(2)), axis=0))


@case("f16 bf16", short=True)
def appended_rows(g):
    """Waves read a block of keys each, all at once; the new row stays in registers."""
    appended(g, 8, 4, 64, 128, 40)


@case("f16")
def appended_rows_last(g):
    """Parts of the keys in workgroups of their own, several blocks of a wave; the new row is the last one of a cache with a block
    that is not full."""
    appended(g, 1, 2, 1051, 128, 1050)
