"""A module of torch as an ONNX file, through torch.onnx."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import torch

from .errors import NotBuiltInError, UsageError


def export(
    model: torch.nn.Module | torch.export.ExportedProgram,
    path: str,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> None:
    """Writes the model to `path`, with its weights beside it."""
    try:
        import onnxscript  # noqa: F401
    except ImportError:
        raise NotBuiltInError("onnxscript: torch.onnx needs it to export; install it with pip") from None
    names = {"input_names": input_names, "output_names": output_names, "verbose": False}
    if isinstance(model, torch.export.ExportedProgram):
        exported = torch.onnx.export(model, dynamo=True, **names)
    else:
        if args is None and kwargs is None:
            raise UsageError("args: a torch module needs example inputs; give args=(x, ...), or export it with torch.export")
        with torch.no_grad():
            exported = torch.onnx.export(
                model, tuple(args or ()), kwargs=dict(kwargs or {}), dynamic_shapes=dynamic_shapes, dynamo=True, **names
            )
    exported.save(path, external_data=True)
