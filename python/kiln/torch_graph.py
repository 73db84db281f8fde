"""A graph that torch.compile has captured, as a module that torch.export takes: weights are constants, sizes come from
tensors, and only the tensors that change from call to call are inputs."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import torch

from .errors import UnsupportedError


@dataclasses.dataclass
class CapturedGraph:
    """Which arguments of a graph are what. Indices are those of the graph's placeholders."""

    module: torch.nn.Module  # takes the tensors of `inputs`, returns a tuple of tensors
    inputs: list[int]
    constants: list[int]  # weights and buffers: their values are in the module
    dynamic_shapes: Any
    results: list[tuple[str, Any]]  # of the graph: ("tensor", -), ("argument", index) or ("constant", value)
    numbers: dict[int, float]  # arguments that are numbers of the program, such as the eps of a norm: constants, too

    def open_axes(self) -> list[list[int]]:
        """Of each input, the axes whose sizes may change."""
        return [sorted(axes or ()) for axes in self.dynamic_shapes[0]]

    def outputs(self) -> int:
        return sum(kind == "tensor" for kind, _ in self.results)

    def merge(self, tensors: Sequence[Any], arguments: Sequence[Any]) -> Sequence[Any]:
        """The graph's results from the module's."""
        if len(tensors) == len(self.results):
            return tensors
        computed = iter(tensors)
        values = {"tensor": lambda _: next(computed), "argument": arguments.__getitem__, "constant": lambda value: value}
        return [values[kind](what) for kind, what in self.results]


def _is_weight(placeholder: torch.fx.Node, value: Any) -> bool:
    """Whether the argument is a parameter or buffer of a module: it has the same address in every call."""
    if isinstance(value, torch.nn.Parameter):
        return True
    facts = placeholder.meta.get("tensor_dict", {})
    return "_dynamo_static_input_type" in facts


def _is_number(placeholder: torch.fx.Node, value: Any) -> bool:
    """Whether the argument is a float that torch wraps in a tensor, as it does with dynamic=True."""
    if not isinstance(value, torch.Tensor) or value.dim() or value.dtype != torch.float64 or value.device.type != "cpu":
        return False
    return bool(placeholder.users) and all(u.op == "call_method" and u.target == "item" for u in placeholder.users)


def _with_numbers(graph: torch.fx.GraphModule, numbers: dict[int, float]) -> torch.fx.GraphModule:
    """A copy of the graph with these numbers in the place of what it reads of the arguments."""
    copied = torch.fx.Graph()
    copied.output(copied.graph_copy(graph.graph, {}))
    placeholders = [n for n in copied.nodes if n.op == "placeholder"]
    for place, number in numbers.items():
        for read in list(placeholders[place].users):
            for user in list(read.users):
                replaced = lambda a: number if a is read else a  # noqa: B023
                user.args, user.kwargs = torch.fx.node.map_arg((user.args, user.kwargs), replaced)
            copied.erase_node(read)
    return torch.fx.GraphModule(graph, copied)


class _Wrapper(torch.nn.Module):
    """Calls the graph with weights and sizes in their places."""

    def __init__(self, graph: torch.nn.Module, count: int, inputs: list[int], weights: dict[int, Any], sizes: dict[int, tuple[int, int]], results: list[tuple[str, Any]]) -> None:
        super().__init__()
        self.graph = graph
        self.count, self.inputs, self.sizes, self.results = count, inputs, sizes, results
        self.weight_places = {}
        for place, value in weights.items():
            if isinstance(value, torch.Tensor):
                self.register_buffer(f"weight_{place}", value.detach(), persistent=True)
                self.weight_places[place] = f"weight_{place}"

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        arguments: list[Any] = [None] * self.count
        for place, tensor in zip(self.inputs, tensors):
            arguments[place] = tensor
        for place, name in self.weight_places.items():
            arguments[place] = getattr(self, name)
        for place, (tensor, axis) in self.sizes.items():
            arguments[place] = arguments[tensor].shape[axis]
        return tuple(value for value, (kind, _) in zip(self.graph(*arguments), self.results) if kind == "tensor")


def _symbol(size: Any) -> str | None:
    return str(size.node.expr) if isinstance(size, torch.SymInt) else None


def _result_of(result: Any, placeholders: list[torch.fx.Node]) -> tuple[str, Any]:
    if not isinstance(result, torch.fx.Node):
        return "constant", result
    if isinstance(result.meta.get("example_value"), torch.Tensor):
        return "tensor", None
    if result in placeholders:
        return "argument", placeholders.index(result)
    raise UnsupportedError(f"result '{result}': it is computed and no tensor")


def capture(graph: torch.fx.GraphModule, arguments: Sequence[Any]) -> CapturedGraph:
    """Sorts the arguments of the first call. Throws UnsupportedError that names what cannot be exported."""
    placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    output = next(n for n in graph.graph.nodes if n.op == "output")
    inputs, weights, dynamic, sizes = [], {}, [], {}
    numbers = {i: value.item() for i, (node, value) in enumerate(zip(placeholders, arguments)) if _is_number(node, value)}
    where: dict[str, tuple[int, int]] = {}  # of a symbol: a tensor and an axis with this size
    for i, (node, value) in enumerate(zip(placeholders, arguments)):
        if i in numbers:
            continue
        if isinstance(value, torch.Tensor) and _is_weight(node, value):
            weights[i] = value
        elif isinstance(value, torch.Tensor):
            inputs.append(i)
            axes = {}
            for axis, size in enumerate(getattr(node.meta.get("example_value"), "shape", ())):
                if (symbol := _symbol(size)) is not None:
                    axes[axis] = torch.export.Dim.AUTO
                    where.setdefault(symbol, (i, axis))
            dynamic.append(axes or None)
    for i, (node, value) in enumerate(zip(placeholders, arguments)):
        if isinstance(value, torch.Tensor):
            continue
        symbol = _symbol(node.meta.get("example_value"))
        if not set(node.users) - {output}:
            continue  # only handed on
        if not isinstance(value, int) or symbol not in where:
            raise UnsupportedError(f"argument '{node.name}': a {type(value).__name__} that is no size of a tensor")
        sizes[i] = where[symbol]
    results = [_result_of(result, placeholders) for result in output.args[0]]
    if numbers:
        graph = _with_numbers(graph, numbers)
    module = _Wrapper(graph, len(placeholders), inputs, weights, sizes, results)
    return CapturedGraph(module, inputs, list(weights), (tuple(dynamic),), results, numbers)
