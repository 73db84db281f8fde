"""A compiled model: a `.kiln` file."""

from __future__ import annotations

import os
import shutil
import weakref
from typing import Any, Mapping, NamedTuple, Sequence

from . import _core, notebook
from .command import run_command
from .decoder import Decoder
from .errors import MissingFileError, UnsupportedError
from .made_file import make_file, source_options
from .session import Session
from .tensor_spec import TensorSpec, signature, spec_of


class DimRange(NamedTuple):
    """The values that an open dimension may have."""

    min: int
    max: int


class Model:
    """A `.kiln` file. It needs no device until session() opens it.

    A model that compile() has made without `output` lives in a temporary folder, which goes with close() or with the
    last reference; save() keeps it. Sessions that are open go on.
    """

    def __init__(self, path: str | os.PathLike[str], *, folder: str | None = None) -> None:
        self._path = os.fsdecode(path)
        if "\0" in self._path:
            raise MissingFileError(f"{self._path!r}: no file can have this name")
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True) if folder else None
        try:
            inputs, outputs, dims, has_weights = _core.describe(self._path)
        except UnicodeDecodeError as e:
            raise UnsupportedError(f"{self._path}: the name of an input, output or dimension is not UTF-8") from e
        self.inputs: tuple[TensorSpec, ...] = tuple(spec_of(*port) for port in inputs)
        self.outputs: tuple[TensorSpec, ...] = tuple(spec_of(*port) for port in outputs)
        self.has_weights: bool = has_weights
        self.dims: dict[str, DimRange] = {name: DimRange(least, most) for name, least, most in dims}

    @property
    def path(self) -> str:
        return self._path

    def save(self, path: str | os.PathLike[str]) -> Model:
        """Copies the file to `path`, and returns the model that is there."""
        shutil.copyfile(self._path, path)
        return Model(path)

    def refit(
        self,
        weights: Any,
        output: str | os.PathLike[str] | None = None,
        *,
        external_weights: str | os.PathLike[str] | None = None,
        custom_ops: Sequence[str | os.PathLike[str]] = (),
        time_limit: str | None = None,
        memory_limit: str | None = None,
        args: tuple[Any, ...] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        dynamic_shapes: Any = None,
    ) -> Model:
        """A model with weights, of one that was compiled with `strip_weights`: the kernels, native objects and tuning
        records of this file, and the weights of another model.

        weights: a model with the same graph, in any form that compile() takes. Another graph raises MismatchError.
        output: the file to write; without it the model lives in a temporary folder until save().
        """
        options = source_options(external_weights, custom_ops, time_limit, memory_limit)
        path, folder = make_file(
            ["refit", self._path, "--weights"], weights, options, output, args, kwargs, dynamic_shapes
        )
        return Model(path, folder=folder)

    def session(self, device: str = "host", **options: Any) -> Session:
        """Opens the model on a device: "host", "cuda:N" or "hip:N". The options are those of Session."""
        return Session(self, device, **options)

    def decoder(self, device: str = "host", **options: Any) -> Decoder:
        """Opens the model as a decoder of text. The options are those of Decoder."""
        return Decoder(self, device, **options)

    def kernels(self) -> list[dict[str, Any]]:
        """The kernels of the file: hash, symbol, format, bytes, uses."""
        return run_command(["inspect", self._path])["kernels"]

    def close(self) -> None:
        """Removes the file if it is a temporary one."""
        if self._remove_folder:
            self._remove_folder()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        without = "" if self.has_weights else " without weights"
        return f"<kiln.Model {self._path!r}{without}: {signature(self.inputs, self.outputs)}>"

    def _repr_html_(self) -> str:
        return notebook.html_of_model(self)


def open(path: str | os.PathLike[str], *, weights: Any = None) -> Model:
    """A `.kiln` file as a model. `weights` gives weights to a file without: Model.refit()."""
    model = Model(path)
    return model if weights is None else model.refit(weights)
