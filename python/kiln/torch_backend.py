"""torch.compile(model, backend="kiln"): inference through Kiln. Graphs that Kiln refuses run eagerly, with the reason in the
log "kiln" and in graphs().

Options (torch.compile(..., options={...})) are those of kiln.compile (precision, int4_weights) and of Model.session
(threads, tune, tune_seconds, specialization, cache, ...).
"""

from __future__ import annotations

import dataclasses
import logging
import operator
import os
import tempfile
import threading
import weakref
from typing import Any, Callable, Sequence

import torch

from . import torch_cache
from .compiler import compile
from .errors import CompileError, InvalidShapeError, KilnError, UnsupportedError, UsageError
from .model import Model
from .session import Session
from .torch_export import export
from .torch_graph import CapturedGraph, capture
from .torch_key import NoName, name_of
from .torch_run import TensorRuns

log = logging.getLogger("kiln")

_MOST_COMPILES = 8  # of a graph with numbers that may change
_COMPILE_OPTIONS = ("precision", "int4_weights", "disable_passes", "time_limit", "memory_limit")


@dataclasses.dataclass
class GraphReport:
    """What became of one graph that torch captured."""

    nodes: int
    refused: str = ""  # why it runs eagerly; empty: Kiln runs it
    compiles: int = 0  # 1, and one more each time that weights have changed
    found: bool = False  # the last one was in the cache
    refused_calls: int = 0  # that ran eagerly, because Kiln refuses their sizes or cannot make their kernels


_graphs: weakref.WeakKeyDictionary[_CompiledGraph, GraphReport] = weakref.WeakKeyDictionary()


def graphs() -> list[GraphReport]:
    """Reports of the graphs that are alive, those that ran at least once."""
    return [report for report in _graphs.values() if report.compiles or report.refused]


def _device_of(tensors: Sequence[torch.Tensor]) -> torch.device:
    devices = {t.device for t in tensors}
    if len(devices) > 1:
        raise UnsupportedError(f"devices: the tensors are on {', '.join(sorted(map(str, devices)))}; move them to one")
    device = devices.pop() if devices else torch.device("cpu")
    if device.type not in ("cpu", "cuda"):
        raise UnsupportedError(f"device {device}: torch.compile with Kiln runs on CPUs and GPUs")
    return device


def _name_of(device: torch.device) -> str:
    if device.type == "cpu":
        return "host"
    return f"{'hip' if torch.version.hip else 'cuda'}:{device.index or 0}"


def _draws(node: torch.fx.Node) -> bool:
    """Whether a call draws random numbers, as dropout and attention do in training only."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    values = {a.name: a.default_value for a in node.target._schema.arguments}
    values.update(zip(values, node.args))
    values.update(node.kwargs)
    off = any(values.get(name) == 0 for name in ("p", "dropout", "dropout_p"))
    return not off and values.get("train", values.get("training")) is not False


def _refuse_random(program: torch.export.ExportedProgram) -> None:
    for node in program.graph.nodes:
        if _draws(node):
            raise UnsupportedError(f"{node.target}: it draws random numbers; call eval() on the model")


def _reason_of(failure: Exception) -> str:
    """The first line of what is at the bottom of an exception of torch."""
    if isinstance(failure, KilnError):
        return str(failure)
    while failure.__cause__ is not None:
        failure = failure.__cause__
    line = next(iter(str(failure).strip().splitlines()), "")
    return f"torch.onnx: {type(failure).__name__}: {line}"


_version_of = operator.attrgetter("_version")


def _picker(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda arguments: [arguments[i] for i in places]


def _input_names(captured: CapturedGraph) -> list[str]:
    return [f"input_{i}" for i in range(len(captured.inputs))]


def _output_names(captured: CapturedGraph) -> list[str]:
    return [f"output_{i}" for i in range(captured.outputs())]


def _fits(model: Model, captured: CapturedGraph) -> bool:
    """Whether the model takes and gives what the graph does; inputs that it does not need may be missing."""
    return [o.name for o in model.outputs] == _output_names(captured) and {i.name for i in model.inputs} <= set(_input_names(captured))


def _program_of(captured: CapturedGraph, arguments: Sequence[Any]) -> torch.export.ExportedProgram:
    # Copies, because torch.export takes a view's relation to its base for a condition on the sizes.
    tensors = tuple(arguments[i].detach().clone(memory_format=torch.contiguous_format) for i in captured.inputs)
    with torch.no_grad():
        program = torch.export.export(captured.module, tensors, dynamic_shapes=captured.dynamic_shapes, strict=False)
        program = program.run_decompositions({})  # shows what is written to
    _refuse_random(program)
    signature = program.graph_signature
    if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
        raise UnsupportedError("the graph writes to its arguments; Kiln's models have no side effects")
    return program


@dataclasses.dataclass
class _Built:
    run: TensorRuns
    captured: CapturedGraph
    pick_inputs: Callable[[Sequence[Any]], Sequence[torch.Tensor]]  # of the graph's arguments, in the session's order
    pick_weights: Callable[[Sequence[Any]], Sequence[torch.Tensor]]  # of the graph's arguments
    weights: tuple[list[int], list[int]]  # state of the weights that are in the session's model


class _CompiledGraph:
    """Compiles a graph when it is first called, since only a call has the weights."""

    def __init__(self, graph: torch.fx.GraphModule, options: dict[str, Any]) -> None:
        self.graph, self.options = graph, options
        self.lock = threading.Lock()
        self.report = GraphReport(len(graph.graph.nodes))
        self.built: _Built | None = None
        _graphs[self] = self.report

    def state_of_weights(self, weights: Sequence[torch.Tensor]) -> tuple[list[int], list[int]] | None:
        """What changes when somebody writes to a weight or replaces it. None: a weight tells nobody."""
        # An address cannot be used again: the captured module holds the memory. Maps, because each call looks at all weights.
        try:
            return list(map(torch.Tensor.data_ptr, weights)), list(map(_version_of, weights))
        except RuntimeError:  # weights of torch.inference_mode() count no versions
            return None

    def is_current(self, built: _Built, arguments: Sequence[Any]) -> bool:
        """Whether the weights and numbers of the model are those of this call."""
        if any(arguments[i].item() != number for i, number in built.captured.numbers.items()):
            return False
        return built.weights == self.state_of_weights(built.pick_weights(arguments))

    def build(self, arguments: Sequence[Any]) -> _Built:
        if self.built and self.built.captured.numbers and self.report.compiles >= _MOST_COMPILES:
            raise UnsupportedError("a number of the graph changes from call to call")
        captured = capture(self.graph, arguments)
        if not captured.inputs or not captured.outputs():
            raise UnsupportedError("the graph takes or gives no tensors")
        pick_weights = _picker(captured.constants)
        weights = self.state_of_weights(pick_weights(arguments))
        if weights is None:
            raise UnsupportedError("weights made under torch.inference_mode() tell nobody when they change")
        device = _device_of([a for i, a in enumerate(arguments) if isinstance(a, torch.Tensor) and i not in captured.numbers])
        model, self.report.found = self.model_of(captured, arguments)
        session = Session(model, _name_of(device), **{k: v for k, v in self.options.items() if k not in _COMPILE_OPTIONS})
        pick_inputs = _picker([captured.inputs[_input_names(captured).index(i.name)] for i in model.inputs])
        self.report.compiles += 1
        return _Built(TensorRuns(session, device, any(captured.open_axes())), captured, pick_inputs, pick_weights, weights)

    def model_of(self, captured: CapturedGraph, arguments: Sequence[Any]) -> tuple[Model, bool]:
        """The compiled model, and whether the cache had it."""
        chosen = {name: self.options[name] for name in _COMPILE_OPTIONS if name in self.options}
        name, folder = None, torch_cache.folder_of(self.options)
        if folder:
            try:
                name = name_of(self.graph, captured, arguments, chosen)
                if (model := torch_cache.find(folder, name)) and _fits(model, captured):
                    return model, True
            except NoName as e:
                log.info("a graph of %d nodes is not kept for other processes: %s", self.report.nodes, e)
        with tempfile.TemporaryDirectory(prefix="kiln-torch-") as scratch:
            path = os.path.join(scratch, "graph.onnx")
            export(_program_of(captured, arguments), path, input_names=_input_names(captured), output_names=_output_names(captured))
            model = compile(path, **chosen)
        if not _fits(model, captured):
            raise UnsupportedError(f"the exported model has other inputs and outputs than the graph: {model!r}")
        if folder and name and not self.report.compiles:  # not the weights that training makes
            torch_cache.keep(folder, name, model)
        return model, False

    def ready(self, arguments: Sequence[Any]) -> _Built | None:
        """Builds what is missing. None: the graph runs eagerly."""
        with self.lock:
            if self.report.refused:
                return None
            if self.built and self.is_current(self.built, arguments):
                return self.built
            try:
                self.built = self.build(arguments)
            except UsageError:
                raise  # an option that makes no sense
            except Exception as e:
                self.built, self.report.refused = None, _reason_of(e)
                log.warning("a graph of %d nodes runs eagerly: %s", self.report.nodes, self.report.refused)
            return self.built

    def __call__(self, *arguments: Any) -> Sequence[Any]:
        if torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
            raise UnsupportedError("training: Kiln computes no gradients; call the model under torch.no_grad()")
        built, results = self.built, None
        try:
            if built and not built.run.waits and not built.captured.numbers:
                # The GPU works while the weights are looked at. If they have changed, its results are dropped.
                results = built.run(built.pick_inputs(arguments))
                if not self.is_current(built, arguments):
                    results = None
            if results is None:
                built = self.ready(arguments)
                if built is None:
                    return self.graph(*arguments)
                results = built.run(built.pick_inputs(arguments))
        except (CompileError, InvalidShapeError, UnsupportedError) as e:  # of these sizes; others may run
            self.report.refused_calls += 1
            log.warning("a call of a graph of %d nodes runs eagerly: %s", self.report.nodes, e)
            return self.graph(*arguments)
        return built.captured.merge(results, arguments)


def kiln(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], **more: Any) -> Callable[..., Any]:
    """The backend, as the entry point group `torch_dynamo_backends` names it."""
    return _CompiledGraph(graph, dict(more.get("options") or {}))
