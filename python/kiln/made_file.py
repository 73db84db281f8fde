"""A `.kiln` file that a command makes of a model."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, Mapping, Sequence

from .command import run_command
from .onnx_source import onnx_file


def source_options(
    external_weights: str | os.PathLike[str] | None,
    custom_ops: Sequence[str | os.PathLike[str]],
    time_limit: str | None,
    memory_limit: str | None,
) -> list[str]:
    """The options of commands that say where the parts of a model are, and what it may cost."""
    options = []
    for option, given in [("--external-weights", external_weights), ("--time-limit", time_limit), ("--memory-limit", memory_limit)]:
        if given is not None:
            options += [option, os.fspath(given)]
    for path in custom_ops:
        options += ["--custom-op", os.fspath(path)]
    return options


def make_file(
    before: Sequence[str],
    model: Any,
    options: Sequence[str],
    output: str | os.PathLike[str] | None,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
) -> tuple[str, str | None]:
    """Runs the command `before` on the model, and returns its file and the temporary folder that holds it, if any."""
    folder = tempfile.mkdtemp(prefix="kiln-") if output is None else None
    try:
        with tempfile.TemporaryDirectory(prefix="kiln-onnx-") as scratch:
            source = onnx_file(model, scratch, args, kwargs, dynamic_shapes)
            target = os.fspath(output) if output is not None else os.path.join(str(folder), "model.kiln")
            run_command([*before, source, "-o", target, *options])
        return target, folder
    except BaseException:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        raise
