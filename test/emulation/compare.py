"""An emulated output against its reference."""
import numpy as np

from graph import NUMPY, from_bf16


def decode(raw, dtype, dims):
    data = np.frombuffer(raw, NUMPY[dtype]).reshape(dims)
    return from_bf16(data).reshape(dims) if dtype == "bf16" else data


def difference(raw, want, dtype, tolerance):
    """(relative error, None), or (error, what is wrong) where the output is not good enough. Integers must agree
    exactly."""
    size = want.size * np.dtype(NUMPY[dtype]).itemsize
    if len(raw) != size:
        return None, f"{len(raw)} bytes, {size} are due"
    got = decode(raw, dtype, want.shape)
    if dtype in ("f16", "bf16", "f32"):
        got, want = got.astype(np.float64), want.astype(np.float64)
        finite = np.isfinite(want)
        wrong = ~np.isfinite(got) if finite.all() else np.isfinite(got) != finite
        if wrong.any():
            return None, f"{where(wrong)} not finite where the reference is, or the reverse"
        error = np.linalg.norm((got - want)[finite]) / max(np.linalg.norm(want[finite]), 1e-30)
        if error <= tolerance:
            return float(error), None
        far = np.abs(got - want) > 10 * tolerance * max(np.abs(want[finite]).max(), 1e-30)
        return float(error), f"relative error {error:.2e}, {tolerance:.0e} allowed; {where(far)} far off, {sample(got, want, far)}"
    wrong = got != want
    return (0.0, None) if not wrong.any() else (float(wrong.mean()), f"{where(wrong)} differ, {sample(got, want, wrong)}")


def where(wrong):
    """How many elements, and the box they lie in: often says which lanes or which tile."""
    at = np.argwhere(wrong)
    if not len(at):
        return "0"
    box = ", ".join(f"{a}..{b}" for a, b in zip(at.min(0), at.max(0)))
    return f"{len(at)} of {wrong.size} in [{box}]"


def sample(got, want, wrong):
    at = [tuple(int(k) for k in i) for i in np.argwhere(wrong)[:3]]
    return "; ".join(f"{list(i)}: {got[i]} for {want[i]}" for i in at)
