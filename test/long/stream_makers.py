"""Makers of random nodes of onnxruntime's domain for models with several residual streams (hyper-connections), n-gram
embeddings and routers with groups of experts. They join `MAKERS` of contrib_makers.py."""
import numpy as np

from contrib_makers import F16, F32, Case, maker, tolerance_of


def streams_of(r, dtype):
    """Streams as [batch, length, C, H] or flattened, and num_branches, which is 0 for grouped ones."""
    c, h, lead = r.some(1, 4), r.some(1, 6), [r.some(1, 3) for _ in range(r.some(1, 2))]
    flat = r.maybe()
    return r.normal_of(*lead, c, h, dtype=dtype).reshape(*lead, *([c * h] if flat else [c, h])), c, h, lead, c if flat else 0


def gates_of(r, lead, c, h, dtype, flat):
    return r.normal_of(*lead, *r.one_of([c], [c, 1], [c, h], *([[c * h]] if flat else [])), dtype=dtype)


@maker
def HyperConnectionPreMix(r):
    dtype = r.one_of(F32, F16)
    x, c, h, lead, branches = streams_of(r, dtype)
    return Case([("x", x), ("m", gates_of(r, lead, c, h, dtype, branches))], tolerance=tolerance_of(dtype), num_branches=branches, reduction_scale=float(r.one_of(1, 0.5)))


@maker
def HyperConnectionPostMix(r):
    dtype = r.one_of(F32, F16)
    x, c, h, lead, branches = streams_of(r, dtype)
    return Case([("x", x), ("b", r.normal_of(*lead, h, dtype=dtype)), ("p", gates_of(r, lead, c, h, dtype, False)), ("m", r.normal_of(*lead, c, c, dtype=dtype)) if r.maybe() else None],
                tolerance=tolerance_of(dtype), num_branches=branches)


def low_rank_reference(x, norm, down, up, inject, block=None, gate=None, num_branches=1, gate_mul=1.0, gate_div=1.0, silu_alpha=1.0, reduction_scale=1.0, epsilon=1e-5):
    wide = lambda a: a.astype(np.float64)
    cut = lambda a: wide(a.astype(x.dtype))
    sigmoid = lambda a: 1 / (1 + np.exp(-a))
    grouped = [*x.shape[:-1], num_branches, x.shape[-1] // num_branches]
    streams = wide(x).reshape(grouped)
    if block is not None:
        streams = cut(streams + wide(gate)[..., None] * wide(block)[..., None, :])
    hn = cut(streams / np.sqrt((streams ** 2).mean(-1, keepdims=True) + epsilon) * wide(norm).reshape(grouped[-2:]))
    row = hn.reshape(x.shape)
    z = cut(silu_alpha * cut(row @ wide(down)))
    gates = cut(sigmoid(cut(cut(z * cut(sigmoid(z))) @ wide(up)))).reshape(grouped)
    post = cut(sigmoid(cut(cut(row @ wide(inject)) / gate_div))) * gate_mul
    return tuple(a.astype(x.dtype) for a in (reduction_scale * (hn * gates).sum(-2), post, streams.reshape(x.shape)))


@maker
def HyperConnectionLowRankMix(r):
    dtype = r.one_of(F32, F16)
    c, h, rank, lead = r.some(1, 4), r.some(1, 6), r.some(1, 5), [r.some(1, 3), r.some(1, 3)]
    previous = r.maybe()
    return Case([("x", r.normal_of(*lead, c * h, dtype=dtype)), ("n", r.normal_of(c * h, dtype=dtype)), ("d", r.normal_of(c * h, rank, dtype=dtype)), ("u", r.normal_of(rank, c * h, dtype=dtype)),
                 ("i", r.normal_of(c * h, c, dtype=dtype)), ("b", r.normal_of(*lead, h, dtype=dtype)) if previous else None, ("g", r.normal_of(*lead, c, dtype=dtype)) if previous else None],
                outputs=["y", "p", "s"] if r.maybe() else ["y", "p"], numpy=low_rank_reference, tolerance=1e-4 if dtype == F32 else 1e-2, num_branches=c, gate_mul=float(r.one_of(1, 2)), gate_div=float(r.one_of(1, 3)),
                silu_alpha=float(r.one_of(1, 1.5)), reduction_scale=float(r.one_of(1, 0.5)), epsilon=1e-3)


@maker
def EngramGate(r):
    dtype = r.one_of(F32, F16)
    b, s, c, h = r.some(1, 3), r.some(1, 4), r.some(1, 3), r.some(2, 8)
    normed = r.maybe()
    rows = lambda *shape: r.normal_of(*shape, dtype=dtype)
    return Case([("k", rows(b, s, c, h)), ("q", rows(b, s, c, h)), ("v", rows(b, s, h)), ("kn", rows(c, h)), ("qn", rows(c, h)), ("cn", rows(c, h)) if normed else None],
                outputs=["y", "n"] if normed else ["y"], tolerance=1e-4 if dtype == F32 else 1e-2, epsilon=float(r.one_of(1e-5, 1e-2)))


@maker
def NGramHashMapping(r):
    kind = r.one_of(np.int64, np.int32)
    b, s, most, heads = r.some(1, 3), r.some(1, 6), r.some(2, 4), r.some(1, 3)
    ids = lambda *shape: r.integers(0, 50, shape).astype(kind)
    count = (most - 1) * heads
    return Case([("x", ids(b, s)), ("m", (2 * r.integers(1, 2000, most) + 1).astype(kind)), ("v", r.integers(1, 97, count).astype(kind)), ("p", ids(b, most - 1)) if r.maybe() else None,
                 ("o", (100 * np.arange(count)).astype(kind)) if r.maybe() else None, ("e", kind(r.some(0, 49))) if r.maybe() else None],
                outputs=["y", "n"] if r.maybe() else ["y"], max_ngram_size=most, n_head_per_ngram=heads, pad_id=r.some(0, 5))


def router_reference(logits, bias, n_group=1, topk_group=1, top_k=1, group_topk=2, router_sentinel=-10000.0):
    flat = logits.reshape(-1, logits.shape[-1]).astype(np.float64)
    chances = 1 / (1 + np.exp(-flat))
    biased = chances + bias
    groups = biased.reshape(len(flat), n_group, -1)
    best = np.sort(groups, -1)[..., ::-1][..., :group_topk].sum(-1)
    kept = np.argsort(-best, -1, kind="stable")[:, :topk_group]
    candidates = np.full_like(groups, -np.inf)
    np.put_along_axis(candidates, kept[..., None], np.take_along_axis(groups, kept[..., None], 1), 1)
    chosen = np.argsort(-candidates.reshape(flat.shape), -1, kind="stable")[:, :top_k]
    result = np.full_like(flat, router_sentinel)
    np.put_along_axis(result, chosen, np.log(np.maximum(np.take_along_axis(chances, chosen, -1), 1e-20)), -1)
    return result.astype(logits.dtype)


@maker
def MoEGroupRouter(r):
    groups, each = r.some(1, 4), r.some(2, 4)
    kept = r.some(1, groups)
    return Case([("x", r.normal_of(r.some(1, 3), r.some(1, 3), groups * each)), ("b", r.normal_of(groups * each, scale=0.1))], numpy=router_reference, n_group=groups, topk_group=kept,
                top_k=r.some(1, kept * each), group_topk=r.some(1, 2))
