"""Arrays of other libraries as the extension needs them: numpy's types, packed elements, outputs of torch and cupy."""

from __future__ import annotations

import sys
from typing import Any, Callable, NamedTuple

import numpy

try:
    import ml_dtypes
except ImportError:  # Debian has no package of it
    ml_dtypes = None

from .errors import NotBuiltInError, UnsupportedError, UsageError

empty = numpy.empty

# Kiln's names of types and numpy's. Types that numpy lacks are those of ml_dtypes.
array_names = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn", "i64": "int64", "i32": "int32", "i16": "int16",
    "i8": "int8", "i4": "int4", "i2": "int2", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
    "u4": "uint4", "u2": "uint2", "bool": "bool",
}  # fmt: skip
packed_bits = {"float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def numpy_dtype(name: str) -> numpy.dtype:
    """The dtype with numpy's or ml_dtypes' name."""
    return numpy.dtype(getattr(ml_dtypes, name, name))


class _Types(dict):
    """Without ml_dtypes, some names have no type."""

    def __missing__(self, name: str) -> numpy.dtype:
        raise NotBuiltInError(f"{name}: numpy has no such type; install the Python package ml_dtypes")


_known = [name for name in array_names.values() if ml_dtypes is not None or name == "bool" or hasattr(numpy, name)]
dtypes = _Types({name: numpy_dtype(name) for name in _known})
# What an output is allocated as: the buffer protocol knows no types of ml_dtypes.
storage = _Types({n: t if t.kind in "biuf" and t.isbuiltin == 1 else numpy.dtype(f"uint{8 * t.itemsize}") for n, t in dtypes.items()})


def _numpy_of(given: Any, dtype: numpy.dtype, name: str) -> numpy.ndarray:
    if hasattr(given, "detach"):  # a tensor of torch that requires a gradient
        given = given.detach().numpy()
    try:
        if isinstance(given, numpy.ndarray):
            array = given
        else:
            array = numpy.asarray(given) if hasattr(given, "__array__") else numpy.asarray(given, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as e:
        raise UsageError(f"input '{name}': it is no array of {dtype}: {e}") from None
    return numpy.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])


def as_input(given: Any, type_name: str, name: str) -> numpy.ndarray:
    """An array that the extension can view: lists and numbers take the model's type, gaps are closed by a copy."""
    array = _numpy_of(given, dtypes[type_name], name)
    if array.dtype == dtypes[type_name]:
        return array.view(storage[type_name])
    if array.dtype.isbuiltin != 1 or array.dtype.kind not in "biuf":
        raise UsageError(f"input '{name}': it is {array.dtype}, and the model takes {type_name}")
    return array


def pack(given: Any, type_name: str, name: str) -> tuple[numpy.ndarray, list[int]]:
    """The bytes of a packed tensor, the first element in the low bits, and its shape. Elements come one per byte."""
    array = _numpy_of(given, dtypes[type_name], name)
    if array.dtype != dtypes[type_name] and array.dtype not in (numpy.dtype("uint8"), numpy.dtype("int8")):
        raise UsageError(f"input '{name}': it is {array.dtype}, and the model takes {type_name}, one in each byte")
    bits = packed_bits[type_name]
    elements = array.reshape(-1).view(numpy.uint8) & ((1 << bits) - 1)
    per_byte = 8 // bits
    elements = numpy.pad(elements, (0, -len(elements) % per_byte)).reshape(-1, per_byte)
    shifts = numpy.arange(per_byte, dtype=numpy.uint8) * bits
    return numpy.bitwise_or.reduce(elements << shifts, axis=1).astype(numpy.uint8), list(array.shape)


def empty_bytes(count: int) -> numpy.ndarray:
    return numpy.empty(count, numpy.uint8)


def as_output(array: numpy.ndarray, type_name: str, shape: tuple[int, ...]) -> numpy.ndarray:
    """An array of bits with the type that the model gives them."""
    bits = packed_bits.get(type_name)
    if bits is None:
        return array.view(dtypes[type_name])
    shifts = numpy.arange(8 // bits, dtype=numpy.uint8) * bits
    elements = (array[:, None] >> shifts) & numpy.uint8((1 << bits) - 1)
    elements = elements.reshape(-1)[: int(numpy.prod(shape, dtype=numpy.int64))].reshape(shape)
    if type_name == "float4_e2m1fn":
        return elements.view(dtypes[type_name])
    if type_name.startswith("i"):  # signed: the highest bit is the sign
        elements = ((elements.astype(numpy.int8) ^ (1 << (bits - 1))) - (1 << (bits - 1))).astype(numpy.int8)
    return elements.astype(dtypes[type_name])


def trim(array: Any, axis: int, count: Any) -> Any:
    """The first `count` elements along an axis, without a copy."""
    return array[(slice(None),) * axis + (slice(0, int(count.reshape(-1)[0])),)]


class Maker(NamedTuple):
    """Makes outputs of the kind of the inputs. `stream`: address of the GPU's stream on which their library works."""

    empty: Callable[[tuple[int, ...], str], Any]
    stream: int | None


def _torch_maker(torch: Any, like: Any) -> Maker:
    device = like.device

    def make(shape: tuple[int, ...], type_name: str) -> Any:
        kind = getattr(torch, type_name, None)
        if not isinstance(kind, torch.dtype):
            raise UnsupportedError(f"outputs: torch has no {type_name}; give the inputs as numpy arrays")
        return torch.empty(shape, dtype=kind, device=device)

    return Maker(make, torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None)


def _cupy_maker(cupy: Any) -> Maker:
    return Maker(lambda shape, name: cupy.empty(shape, dtypes[name]), cupy.cuda.get_current_stream().ptr)


def _no_maker(shape: tuple[int, ...], type_name: str) -> Any:
    raise UnsupportedError("inputs: they are on a GPU and of neither torch nor cupy; give arrays for all outputs")


def maker_for(inputs: Any, on_device: bool) -> Maker | None:
    """None: numpy. Torch's tensors give torch's tensors."""
    for given in inputs:
        if type(given) is numpy.ndarray:
            continue
        torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
        if torch is not None and isinstance(given, torch.Tensor):
            return _torch_maker(torch, given)
        if cupy is not None and isinstance(given, cupy.ndarray):
            return _cupy_maker(cupy)
    if on_device:
        facts = getattr(inputs[0], "__cuda_array_interface__", {})
        return Maker(_no_maker, facts.get("stream"))
    return None
