"""compile(): a model of any source as a `.kiln` file."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence, Union

import numpy

from .errors import UsageError
from .made_file import make_file, source_options
from .model import Model

# A value, (min, max), (min, max, [values to optimize for]), or the text of the option --dim.
DimSpec = Union[int, str, "tuple[int, int]", "tuple[int, int, Sequence[int]]"]

PRECISIONS = {None: [], "fp32": [], "fp16": ["--fp16"], "bf16": ["--bf16"]}


def _dim_text(name: str, spec: DimSpec) -> str:
    if isinstance(spec, (tuple, list)):
        if len(spec) not in (2, 3):
            raise UsageError(f"dims: {name}={spec!r} is none of VALUE, (MIN, MAX) and (MIN, MAX, [OPT, ...])")
        bounds = f"{int(spec[0])}:{int(spec[1])}"
        return f"{name}={bounds}" + (":" + ",".join(str(int(v)) for v in spec[2]) if len(spec) == 3 else "")
    return f"{name}={spec}"


def _value_text(name: str, value: Any) -> str:
    array = numpy.asarray(value)
    elements = (array.astype(int) if array.dtype == bool else array).ravel().tolist()
    return f"{name}=" + ",".join(map(str, elements))


def compile(
    model: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    dims: Mapping[str, DimSpec] | None = None,
    values: Mapping[str, Any] | None = None,
    sequences: Mapping[str, str] | None = None,
    may_be_one: Sequence[str] = (),
    precision: str | None = None,
    int4_weights: bool = False,
    strip_weights: bool = False,
    external_weights: str | os.PathLike[str] | None = None,
    custom_ops: Sequence[str | os.PathLike[str]] = (),
    disable_passes: Sequence[str] = (),
    time_limit: str | None = None,
    memory_limit: str | None = None,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Model:
    """Compiles a model into one portable file. Needs no device.

    model: path of an ONNX file, its bytes, an onnx.ModelProto, a torch.export.ExportedProgram, or a torch.nn.Module
    with example inputs in `args` and `kwargs` (and `dynamic_shapes` of torch.export).
    output: the file to write; without it the model lives in a temporary folder until save().
    dims: a value fixes an open dimension, (min, max) keeps it open within a range.
    precision: "fp16" or "bf16" computes and stores in it; inputs and outputs keep their types.
    strip_weights: leaves the weights out. Such a model does not run until Model.refit() gives it weights.
    The others are the options of `kiln compile` (docs/commands.md).

    The compiler works in a process of its own: a model that crashes it, or takes too much memory, harms nothing here.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"precision: {precision!r} is none of fp32, fp16, bf16")
    options = [*PRECISIONS[precision], *(["--int4-weights"] if int4_weights else [])]
    for name, spec in (dims or {}).items():
        options += ["--dim", _dim_text(name, spec)]
    for name, value in (values or {}).items():
        options += ["--value", _value_text(name, value)]
    for name, text in (sequences or {}).items():
        options += ["--sequence", f"{name}={text}"]
    for name in may_be_one:
        options += ["--may-be-one", name]
    if strip_weights:
        options.append("--strip-weights")
    options += source_options(external_weights, custom_ops, time_limit, memory_limit)
    for name in disable_passes:
        options += ["--disable-pass", name]
    path, folder = make_file(["compile"], model, options, output, args, kwargs, dynamic_shapes)
    return Model(path, folder=folder)
