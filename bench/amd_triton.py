"""Kernels in Triton, compiled for AMD GPUs without one (for amd_peers.py). Products a[m,k] @ b[k,n], convolutions of
images in channels-last order and attention softmax(q k^T / sqrt(d)) v with sums in f32 (i32 for bytes), softmax and layer norm of
rows, as Triton's own tutorials divide them: a program computes a tile of the result and goes along k, or along the keys."""
import itertools

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    columns = N // COLUMNS
    tile = tl.program_id(0)
    m = (tile // columns) * ROWS + tl.arange(0, ROWS)
    n = (tile % columns) * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, DEPTH)
    a, b = a_ptr + m[:, None] * K + k[None, :], b_ptr + k[:, None] * N + n[None, :]
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for _ in range(0, K // DEPTH):
        sums = tl.dot(tl.load(a), tl.load(b), sums)
        a += DEPTH
        b += DEPTH * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], sums.to(tl.float16))


@triton.jit
def product_bytes(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    columns = N // COLUMNS
    tile = tl.program_id(0)
    m = (tile // columns) * ROWS + tl.arange(0, ROWS)
    n = (tile % columns) * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, DEPTH)
    a, b = a_ptr + m[:, None] * K + k[None, :], b_ptr + n[None, :] * K + k[:, None]
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.int32)
    for _ in range(0, K // DEPTH):
        sums = tl.dot(tl.load(a), tl.load(b), sums)
        a += DEPTH
        b += DEPTH
    tl.store(c_ptr + m[:, None] * N + n[None, :], sums)


@triton.jit
def product_int4(a_ptr, b_ptr, scale_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """Two weights in a byte, b[n, k / 2], with a scale for 32 along k; DEPTH is 32."""
    columns = N // COLUMNS
    tile = tl.program_id(0)
    m = (tile // columns) * ROWS + tl.arange(0, ROWS)
    n = (tile % columns) * COLUMNS + tl.arange(0, COLUMNS)
    k, half = tl.arange(0, DEPTH), tl.arange(0, DEPTH // 2)
    a, b, s = a_ptr + m[:, None] * K + k[None, :], b_ptr + n[:, None] * (K // 2) + half[None, :], scale_ptr + n * (K // 32)
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for _ in range(0, K // DEPTH):
        pair, scale = tl.load(b), tl.load(s)
        weights = tl.join((pair & 15).to(tl.int8) - 8, (pair >> 4).to(tl.int8) - 8).reshape(COLUMNS, DEPTH).to(tl.float16) * scale[:, None]
        sums = tl.dot(tl.load(a), tl.trans(weights), sums)
        a += DEPTH
        b += DEPTH // 2
        s += DEPTH // 32
    tl.store(c_ptr + m[:, None] * N + n[None, :], sums.to(tl.float16))


@triton.jit
def convolution(x_ptr, w_ptr, y_ptr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr, SIDE: tl.constexpr, STRIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
                DEPTH: tl.constexpr):
    """x[image, H, W, C], w[SIDE, SIDE, C, N], padding SIDE // 2."""
    columns = N // COLUMNS
    tile = tl.program_id(0)
    m = (tile // columns) * ROWS + tl.arange(0, ROWS)
    n = (tile % columns) * COLUMNS + tl.arange(0, COLUMNS)
    c = tl.arange(0, DEPTH)
    out_h, out_w = H // STRIDE, W // STRIDE
    image, y, x = m // (out_h * out_w), m // out_w % out_h, m % out_w
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(0, SIDE * SIDE * (C // DEPTH)):
        tap, first = step // (C // DEPTH), step % (C // DEPTH) * DEPTH
        row, column = y * STRIDE + tap // SIDE - SIDE // 2, x * STRIDE + tap % SIDE - SIDE // 2
        inside = (row >= 0) & (row < H) & (column >= 0) & (column < W)
        a = tl.load(x_ptr + (((image * H + row) * W + column) * C)[:, None] + (first + c)[None, :], mask=inside[:, None], other=0.0)
        b = tl.load(w_ptr + ((tap * C + first + c) * N)[:, None] + n[None, :])
        sums = tl.dot(a, b, sums)
    tl.store(y_ptr + m[:, None] * N + n[None, :], sums.to(tl.float16))


@triton.jit
def softmax_rows(x_ptr, y_ptr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * WIDTH + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < WIDTH
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + at, (weights / tl.sum(weights, 0)).to(tl.float16), mask=mask)


@triton.jit
def layer_norm_rows(x_ptr, scale_ptr, bias_ptr, y_ptr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    mask = j < WIDTH
    x = tl.load(x_ptr + tl.program_id(0) * WIDTH + j, mask=mask, other=0.0).to(tl.float32)
    centered = tl.where(mask, x - tl.sum(x, 0) / WIDTH, 0.0)
    factor = 1.0 / tl.sqrt(tl.sum(centered * centered, 0) / WIDTH + 1e-5)
    scale, bias = tl.load(scale_ptr + j, mask=mask, other=0.0).to(tl.float32), tl.load(bias_ptr + j, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + tl.program_id(0) * WIDTH + j, (centered * factor * scale + bias).to(tl.float16), mask=mask)


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, scale, KEYS: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr):
    head = tl.program_id(1) * KEYS * D
    m, d, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, D), tl.arange(0, STEP)
    q = tl.load(q_ptr + head + m[:, None] * D + d[None, :])
    q = (q * (scale * 1.44269504).to(tl.float16)).to(tl.float16)
    most, total = tl.full([ROWS], -float("inf"), tl.float32), tl.zeros([ROWS], tl.float32)
    result = tl.zeros([ROWS, D], tl.float32)
    k, v = k_ptr + head + j[None, :] * D + d[:, None], v_ptr + head + j[:, None] * D + d[None, :]
    for _ in range(0, KEYS, STEP):
        scores = tl.dot(q, tl.load(k))
        above = tl.maximum(most, tl.max(scores, 1))
        weights, old = tl.exp2(scores - above[:, None]), tl.exp2(most - above)
        total = total * old + tl.sum(weights, 1)
        result = tl.dot(weights.to(tl.float16), tl.load(v), result * old[:, None])
        most = above
        k += STEP * D
        v += STEP * D
    tl.store(out_ptr + head + m[:, None] * D + d[None, :], (result / total[:, None]).to(tl.float16))


def tiles_of(m, n, types, depths=None):
    """(rows, columns, depth, waves) worth trying."""
    tiles = [(r, c, d, w) for r, c, d, w in itertools.product((16, 32, 64, 128, 256), (32, 64, 128, 256), (32, 64, 128), (4, 8)) if r <= m and r * c >= 16 * 32 * w // 2 and r * c <= 4096 * w and m % r == 0 and n % c == 0]
    if m >= 64:
        tiles = [t for t in tiles if t[0] >= 64 and t[1] >= 64 and t[2] <= 64 * types]
    return [t for t in tiles if not depths or t[2] in depths]


def variants(problem):
    """The kernel, the types of its arguments, and constants with options for each size of tile."""
    kind, *sizes = problem
    if kind in ("product", "product_bf16", "product_i8", "product_int4"):
        m, n, k = sizes
        pointers = {"product": dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16"), "product_bf16": dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*bf16"),
                    "product_i8": {"a_ptr": "*i8", "b_ptr": "*i8", "c_ptr": "*i32"}, "product_int4": {"a_ptr": "*fp16", "b_ptr": "*u8", "scale_ptr": "*fp16", "c_ptr": "*fp16"}}[kind]
        kernel = {"product_i8": product_bytes, "product_int4": product_int4}.get(kind, product)
        tiles = tiles_of(m, n, 2 if kind == "product_i8" else 1, [32] if kind == "product_int4" else None)
        return kernel, pointers, [(dict(M=m, N=n, K=k, ROWS=r, COLUMNS=c, DEPTH=d), w) for r, c, d, w in tiles]
    if kind == "convolution":
        images, side, c, n, width, stride = sizes
        tiles = [t for t in tiles_of(images * (side // stride) ** 2, n, 1) if c % t[2] == 0]
        return convolution, dict.fromkeys(("x_ptr", "w_ptr", "y_ptr"), "*fp16"), [(dict(H=side, W=side, C=c, N=n, SIDE=width, STRIDE=stride, ROWS=r, COLUMNS=o, DEPTH=d), w) for r, o, d, w in tiles]
    if kind in ("softmax", "layer_norm"):
        names = ("x_ptr", "y_ptr") if kind == "softmax" else ("x_ptr", "scale_ptr", "bias_ptr", "y_ptr")
        width = sizes[1]
        return (softmax_rows if kind == "softmax" else layer_norm_rows), dict.fromkeys(names, "*fp16"), [(dict(WIDTH=width, BLOCK=triton.next_power_of_2(width)), w) for w in (1, 2, 4, 8)]
    _, keys, depth = sizes
    arguments = dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "out_ptr"), "*fp16") | {"scale": "fp32"}
    return attention, arguments, [(dict(KEYS=keys, D=depth, ROWS=r, STEP=s), w) for r, s, w in itertools.product((64, 128), (32, 64), (4, 8))]


def programs_of(problem, constants):
    kind, *sizes = problem
    if kind == "attention":
        return sizes[0] * (sizes[1] // constants["ROWS"])
    if kind == "convolution":
        return sizes[0] * (sizes[1] // sizes[5]) ** 2 // constants["ROWS"] * (sizes[3] // constants["COLUMNS"])
    return sizes[0] if kind in ("softmax", "layer_norm") else sizes[0] // constants["ROWS"] * (sizes[1] // constants["COLUMNS"])


def objects(problem, target):
    """Yields the tile's text, the code object, and the programs with the waves of one. A tile that Triton does not compile, or that does not fit, is left out."""
    kernel, arguments, tiles = variants(problem)
    aligned = {(i,): [["tt.divisibility", 16], ["tt.pointer_range", 32]] for i, t in enumerate(arguments.values()) if t.startswith("*")}
    wave = 64 if target.startswith("gfx9") else 32
    for constants, warps in tiles:
        options = {"num_warps": warps, "num_stages": 2}
        if wave == 64:
            options["matrix_instr_nonkdim"] = 16
        types = arguments | dict.fromkeys(constants, "constexpr")
        try:
            made = triton.compile(ASTSource(kernel, types, constants, aligned), target=GPUTarget("hip", target, wave), options=options)
        except Exception:  # out of LDS, or a layout that the target lacks
            continue
        if made.metadata.shared <= 65536:
            tile = "x".join(str(v) for n, v in constants.items() if n in ("ROWS", "COLUMNS", "DEPTH", "STEP"))
            yield f"{tile} on {warps} waves".strip(), made.asm["hsaco"], (programs_of(problem, constants), warps)
