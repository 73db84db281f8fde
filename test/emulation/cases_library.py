"""Kernels of the library in amdgcnspirv (spirv/library), as nodes of the domain "kiln". The reference has ONNX's
operator instead, or numbers made here where
ONNX has none, or results of another size."""
import numpy as np

from graph import case


def expect(g, *outputs):
    """Numbers as the outputs of a reference; (array, type) each."""
    for data, dtype in outputs:
        g.output(g.constant(data, dtype), dtype)


def distinct(g, name, dims):
    return g.input(name, dims, data=g.random.permutation(int(np.prod(dims))).reshape(dims) / 8)


def sort(g, dims, descending=0):
    x = distinct(g, "x", dims)
    if g.reference:
        values, order = g.op("TopK", x, g.constant([dims[-1]], "i64"), outputs=2, largest=descending)
    else:
        values, order = g.op("Sort", x, outputs=2, domain="kiln", descending=descending)
    g.output(values)
    g.output(order, "i64")


@case("f32")
def library_sort_short(g):
    sort(g, [3, 77])


@case("f32")
def library_sort_long(g):
    sort(g, [1, 2100], descending=1)


@case("f32")
def library_top_k(g):
    x = distinct(g, "x", [2, 501])
    values, order = g.op("TopK", x, g.constant([13], "i64"), outputs=2) if g.reference else g.op("TopK", x, outputs=2, domain="kiln", k=13)
    g.output(values)
    g.output(order, "i64")


@case("f32")
def library_cumulative_sum(g):
    x = g.input("x", [3, 1100], data=g.random.integers(-4, 5, [3, 1100]))
    g.output(g.op("CumSum", x, g.constant(1, "i64"), exclusive=1) if g.reference else g.op("CumulativeSum", x, domain="kiln", axis=1, exclusive=1))


@case("f32")
def library_cumulative_sum_outer(g):
    x = g.input("x", [33, 5], data=g.random.integers(-4, 5, [33, 5]))
    g.output(g.op("CumSum", x, g.constant(0, "i64"), reverse=1) if g.reference else g.op("CumulativeSum", x, domain="kiln", axis=0, reverse=1))


def scatter(g, reduction):
    """Small integers: the order of updates does not show."""
    data, updates = (g.input(name, dims, data=g.random.integers(1, 3, dims)) for name, dims in (("x", [7, 9]), ("u", [11, 9])))
    indices = g.given("i", g.random.integers(0, 7, [11, 9]), "i64")
    g.opset = 18
    g.output(g.op("ScatterElements", data, indices, updates, axis=0, reduction=reduction, **({} if g.reference else {"domain": "kiln"})))


@case("f32")
def library_scatter_add(g):
    scatter(g, "add")


@case("f32")
def library_scatter_mul(g):
    scatter(g, "mul")


@case("f32")
def library_scatter_max(g):
    scatter(g, "max")


@case("f32")
def library_non_zero(g):
    data = g.random.integers(0, 3, [2500])
    x = g.given("x", data, "i64")
    if not g.reference:
        places, count = g.op("NonZero", x, outputs=2, domain="kiln")
        g.output(places, "i64")
        return g.output(count, "i64")
    found = np.flatnonzero(data)
    expect(g, (np.append(found, np.full(data.size - found.size, -1)), "i64"), ([found.size], "i64"))


@case("f32")
def library_unique(g):
    data = g.random.integers(-20, 20, [300])
    x = g.given("x", data, "i64")
    if not g.reference:
        for output in g.op("Unique", x, outputs=5, domain="kiln"):
            g.output(output, "i64")
        return
    values, first, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    rest = data.size - values.size
    expect(g, *((part, "i64") for part in (np.append(values, np.zeros(rest, int)), np.append(first, np.full(rest, -1)), inverse.reshape(-1), np.append(counts, np.zeros(rest, int)), [values.size])))


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = np.prod(np.maximum(high - low, 0))
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


@case("f32")
def library_non_max_suppression(g):
    images, classes, count, most = 2, 2, 40, 5
    corners = g.random.integers(0, 20, [images, count, 2])
    data = np.concatenate([corners, corners + g.random.integers(4, 12, [images, count, 2])], -1).astype(np.float32)
    scores = (g.random.permutation(images * classes * count).reshape(images, classes, count) / 256).astype(np.float32)
    inputs = g.input("boxes", data.shape, data=data), g.input("scores", scores.shape, data=scores)
    if not g.reference:
        chosen, total = g.op("NonMaxSuppression", *inputs, outputs=2, domain="kiln", max_output_boxes_per_class=most, iou_threshold=0.4, score_threshold=0.2)
        g.output(chosen, "i64")
        return g.output(total, "i64")
    rows = []
    for image in range(images):
        for kind in range(classes):
            kept = []
            for box in np.argsort(-scores[image, kind]):
                if len(kept) < most and scores[image, kind, box] > np.float32(0.2) and all(overlap(data[image, box], data[image, other]) <= 0.4 for other in kept):
                    kept.append(box)
            rows += [[image, kind, box] for box in kept]
    expect(g, (np.array(rows + [[-1, -1, -1]] * (images * classes * most - len(rows))), "i64"), ([len(rows)], "i64"))


@case("f32")
def library_roi_align(g):
    corners = g.random.uniform(0, 8, [5, 2])
    boxes = g.input("boxes", [5, 4], data=np.concatenate([corners, corners + g.random.uniform(1, 6, [5, 2])], -1))
    g.output(g.op("RoiAlign", g.input("x", [2, 3, 15, 17]), boxes, g.integers("images", [5], 0, 2), output_height=3, output_width=4, sampling_ratio=2, spatial_scale=1.0))


def grid_sample(g, **attributes):
    inputs = g.input("x", [2, 3, 9, 11]), g.input("grid", [2, 5, 7, 2], data=g.random.uniform(-1.2, 1.2, [2, 5, 7, 2]))
    g.output(g.op("GridSample", *inputs, **(attributes if g.reference else attributes | {"domain": "kiln"})))


@case("f32")
def library_grid_sample_linear(g):
    grid_sample(g, mode="bilinear")


@case("f32")
def library_grid_sample_cubic(g):
    grid_sample(g, mode="bicubic", padding_mode="border", align_corners=1)


@case("f32")
def library_grid_sample_reflection(g):
    grid_sample(g, mode="bilinear", padding_mode="reflection")


def resize(g, mode, coordinates):
    x = g.input("x", [2, 2, 9, 11])
    how = {"mode": mode, "coordinate_transformation_mode": coordinates}
    g.output(g.op("Resize", x, None, None, g.constant([2, 2, 15, 7], "i64"), **how) if g.reference else g.op("Resize", x, domain="kiln", height=15, width=7, **how))


@case("f32")
def library_resize_linear(g):
    resize(g, "linear", "half_pixel")


@case("f32")
def library_resize_cubic(g):
    resize(g, "cubic", "align_corners")


@case("f32")
def library_resize_nearest(g):
    resize(g, "nearest", "asymmetric")


def philox(seed, count):
    """Philox 4x32-10 words of `count` counters from 0, as f32 in [0, 1)."""
    word = [np.arange(count, dtype=np.uint64), *(np.zeros(count, np.uint64) for _ in range(3))]
    low, keys = np.uint64(0xFFFFFFFF), [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * word[0], np.uint64(0xCD9E8D57) * word[2]
        word = [(b >> np.uint64(32)) ^ word[1] ^ np.uint64(keys[0]), b & low, (a >> np.uint64(32)) ^ word[3] ^ np.uint64(keys[1]), a & low]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return (np.stack(word, -1) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


@case("f32")
def library_random_uniform(g):
    if not g.reference:
        return g.output(g.op("RandomUniform", shape=[7, 9], seed=3.0, low=-1.0, high=2.0))
    expect(g, (philox(3, 16).reshape(-1)[:63].reshape(7, 9) * 3 - 1, "f32"))


@case("f32")
def library_random_normal(g):
    if not g.reference:
        return g.output(g.op("RandomNormal", shape=[63], seed=5.0, mean=0.5, scale=2.0))
    u = philox(5, 16).astype(np.float64).reshape(-1, 2)
    radius, angle = np.sqrt(-2 * np.log(1 - u[:, 0])), 2 * np.pi * u[:, 1]
    expect(g, (np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1)[:63] * 2 + 0.5, "f32"))
