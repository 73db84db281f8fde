"""A name for what torch.compile's backend makes of a captured graph: equal names mean equal models, in any process.

The name hashes what the export and the compiler read: the graph with its constants, the values of the weights, shapes, types and
devices, the state of torch that steers an export, the options, and the versions of torch, onnx, Python and Kiln. A graph with parts
whose meaning cannot be read from it, such as a user's own operator, has no name.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib
import importlib.metadata
import os
import platform
import sys
from typing import Any, Mapping, Sequence

import torch

from .command import command
from .torch_graph import CapturedGraph

_PACKAGES = ("torch", "onnx", "onnxscript", "onnx-ir", "numpy")
_MODULES = ("torch", "operator", "_operator", "math", "builtins")  # their functions mean the same in every process
_OPERATORS = ("aten", "prims")
_CONSTANTS = (bool, int, float, complex, str, type(None), type(...), torch.dtype, torch.device, torch.layout, torch.memory_format)
_CONFIGURATIONS = ("torch._export.config", "torch._functorch.config", "torch.fx.experimental._config")


class NoName(Exception):
    """Why a graph has no name."""


def _text_of(value: Any, places: Mapping[torch.fx.Node, int]) -> str:
    """The argument of a node as text; other nodes are numbered by `places`. Raises NoName for values that differ between processes."""
    if isinstance(value, torch.fx.Node):
        return f"%{places[value]}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({','.join(_text_of(v, places) for v in value)})"
    if isinstance(value, dict):
        return f"dict({','.join(f'{_text_of(k, places)}:{_text_of(v, places)}' for k, v in value.items())})"
    if isinstance(value, slice):
        return f"slice{_text_of((value.start, value.stop, value.step), places)}"
    if isinstance(value, enum.Enum) and type(value).__module__.split(".")[0] == "torch":
        return f"{type(value).__qualname__}.{value.name}"
    if type(value) in _CONSTANTS:
        return f"{type(value).__name__} {value!r}"
    raise NoName(f"a constant of type {type(value).__name__}")


def _text_of_function(function: Any) -> str:
    """The name by which every process finds this function."""
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        if str(function).split(".")[0] not in _OPERATORS:
            raise NoName(f"the operator {function}")
        return f"torch.ops.{function}"
    name = torch.fx.node._get_qualified_name(function)
    parts = name.split(".") if "." in name else ["builtins", name]
    if parts[0] not in _MODULES or isinstance(function, torch._ops.HigherOrderOperator):
        raise NoName(f"the function {name}")
    found = functools.reduce(lambda at, part: getattr(at, part, None), parts[1:], sys.modules.get(parts[0]))
    if found is not function:
        raise NoName(f"the function {name}, which is not torch's")
    return name


def _add_tensor(hasher: Any, tensor: torch.Tensor) -> None:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg():
        raise NoName(f"a tensor of the kind {type(tensor).__name__}")
    hasher.update(f"tensor {tensor.dtype} {tuple(tensor.shape)} {tensor.stride()} {tensor.device.type};".encode())
    values = tensor.detach().contiguous().reshape(-1).view(torch.uint8).cpu()
    hasher.update(values.numpy())


def _add_graph(hasher: Any, graph: torch.fx.GraphModule) -> None:
    places = {node: i for i, node in enumerate(graph.graph.nodes)}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            what = ""
        elif node.op == "call_function":
            what = _text_of_function(node.target)
        elif node.op in ("call_method", "output"):
            what = node.target
        elif node.op == "get_attr" and isinstance(value := getattr(graph, node.target, None), torch.Tensor):
            what = ""
            _add_tensor(hasher, value)
        else:
            raise NoName(f"the module {node.target}")
        hasher.update(f"{node.op} {what} {_text_of(node.args, places)} {_text_of(node.kwargs, places)};".encode())


@functools.cache
def _versions() -> str:
    found = [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES]
    compiler = os.stat(command())
    return f"{found} {torch.version.git_version} {platform.python_version()} {compiler.st_size} {compiler.st_mtime_ns}"


def _state_of_torch() -> str:
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        raise NoName("a mode of torch that changes operators")
    cuda = torch.backends.cuda
    return repr(
        (
            [(d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")],
            torch.is_inference_mode_enabled(),
            torch.get_default_dtype(),
            torch.are_deterministic_algorithms_enabled(),
            (cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled(), cuda.cudnn_sdp_enabled()),
            torch.backends.mha.get_fastpath_enabled(),
            [importlib.import_module(name).get_hash() for name in _CONFIGURATIONS],
        )
    )


def name_of(graph: torch.fx.GraphModule, captured: CapturedGraph, arguments: Sequence[Any], options: Mapping[str, Any]) -> str:
    """The name of the model that these options make of the graph: a SHA-256 in hex. `arguments` are those of the captured call.
    Raises NoName with the reason if there is none."""
    hasher = hashlib.sha256()
    try:
        hasher.update(f"{_versions()};{_state_of_torch()};{_text_of(dict(sorted(options.items())), {})};".encode())
    except (ImportError, AttributeError, TypeError) as e:  # other releases of torch have other names
        raise NoName(f"this installation of torch: {e}") from None
    with torch.no_grad():
        _add_graph(hasher, graph)
        for place in captured.inputs:
            given = arguments[place]
            if type(given) not in (torch.Tensor, torch.nn.Parameter):
                raise NoName(f"a tensor of the kind {type(given).__name__}")
            hasher.update(f"input {place} {given.dtype} {tuple(given.shape)} {given.device.type};".encode())
        hasher.update(f"sizes {captured.module.sizes} open {captured.open_axes()} numbers {captured.numbers};".encode())
        hasher.update(f"results {[(kind, _text_of(what, {})) for kind, what in captured.results]};".encode())
        for place in captured.constants:
            hasher.update(f"weight {place};".encode())
            _add_tensor(hasher, arguments[place])
    return hasher.hexdigest()
