"""Kernels in Triton, compiled for AMD GPUs without one (for amd_peers.py). Products a[m,k] @ b[k,n] and attention
softmax(q k^T / sqrt(d)) v of f16, with sums in f32, as Triton's own tutorials divide them: a program computes a tile of
the result and goes along k, or along the keys."""
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


def variants(problem):
    """The kernel, the types of its arguments, and constants with options for each size of tile."""
    kind, *sizes = problem
    if kind == "product":
        m, n, k = sizes
        tiles = [(r, c, d, w) for r, c, d, w in itertools.product((16, 32, 64, 128, 256), (32, 64, 128, 256), (32, 64, 128), (4, 8)) if r <= m and r * c >= 16 * 32 * w // 2 and r * c <= 4096 * w and m % r == 0]
        if m >= 64:
            tiles = [t for t in tiles if t[0] >= 64 and t[1] >= 64 and t[2] <= 64]
        pointers = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16")
        return product, pointers, [(dict(M=m, N=n, K=k, ROWS=r, COLUMNS=c, DEPTH=d), w) for r, c, d, w in tiles]
    _, keys, depth = sizes
    arguments = dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "out_ptr"), "*fp16") | {"scale": "fp32"}
    return attention, arguments, [(dict(KEYS=keys, D=depth, ROWS=r, STEP=s), w) for r, s, w in itertools.product((64, 128), (32, 64), (4, 8))]


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
            programs = problem[1] // constants["ROWS"] * (problem[2] // constants["COLUMNS"]) if kernel is product else problem[1] * (problem[2] // constants["ROWS"])
            yield f"{tile} on {warps} waves", made.asm["hsaco"], (programs, warps)
