"""A model that is open on a device."""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from typing import Any, Callable, Mapping, Sequence

from . import _core, notebook
from .errors import UsageError
from .tensor_spec import TensorSpec, signature

TUNING = ("off", "quick", "full", "exhaustive")
SPECIALIZATION = ("lazy", "eager", "off")

# Kiln's threads must not call into an interpreter that is being shut down.
_open_sessions: weakref.WeakSet[_core.Session] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for session in list(_open_sessions):
        session.close()


def _index(name: str, value: str, choices: Sequence[str]) -> int:
    if value not in choices:
        raise UsageError(f"{name}: {value!r} is none of {', '.join(choices)}")
    return choices.index(value)


class Session:
    """Runs a model. Made by Model.session(); any thread may call it, and several threads may run it at once.

    Programs for the sizes of inputs are made when they are first met, and `most_programs` of them are kept. Inputs are
    used where they lie; only those with gaps between rows are copied. Outputs are new arrays of the inputs' kind: torch
    tensors for torch tensors, else numpy arrays.
    """

    def __init__(
        self,
        model: Any,
        device: str = "host",
        *,
        threads: int = 0,
        dims: Mapping[str, int] | None = None,
        tune: str = "off",
        tune_seconds: float = 0,
        specialization: str = "lazy",
        cache: str | os.PathLike[str] | None = None,
        no_cache: bool = False,
        only_cached: bool = False,
        trusted_keys: str | os.PathLike[str] | None = None,
        allow_unsigned: bool = False,
        most_programs: int = 8,
        progress: Callable[[int, int], object] | None = None,
        warn: Callable[[str], object] | None = None,
    ) -> None:
        self._model = model  # its file may be temporary
        self._core = _core.Session(
            os.fspath(model.path),
            device=device,
            threads=threads,
            dims=list((dims or {}).items()),
            tuning=_index("tune", tune, TUNING),
            tuning_seconds=tune_seconds,
            specialization=_index("specialization", specialization, SPECIALIZATION),
            cache=os.fspath(cache or ""),
            trusted_keys=os.fspath(trusted_keys or ""),
            no_cache=no_cache,
            only_cached=only_cached,
            allow_unsigned=allow_unsigned,
            most_programs=most_programs,
            progress=progress,
            warn=warn or logging.getLogger("kiln").warning,
        )
        _open_sessions.add(self._core)
        self._input_names = [spec.name for spec in model.inputs]
        self._output_names = [spec.name for spec in model.outputs]

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self._model.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self._model.outputs

    @property
    def device(self) -> str:
        return self._core.device

    @property
    def closed(self) -> bool:
        return self._core.closed

    def run(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None, *, stream: int | None = None
    ) -> dict[str, Any]:
        """Runs the model and returns its outputs by name.

        outputs: arrays to fill, by name; the others are new.
        stream: address of a stream of the GPU; the run is enqueued there, and nothing waits for it. Tensors of torch
        and cupy on a GPU use their library's current stream.
        """
        ordered = self._ordered("input", inputs, self._input_names)
        for name, array in zip(self._input_names, ordered):
            if array is None:
                raise UsageError(f"input '{name}': it is missing; the model takes {', '.join(self._input_names)}")
        filled = None if outputs is None else self._ordered("output", outputs, self._output_names)
        results = self._core.run(ordered, filled, stream)
        return {name: array for name, array in zip(self._output_names, results) if array is not None}

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Runs the model on inputs in its order, or by name. Returns the output, or a tuple if there are several."""
        if named:
            if len(inputs) > len(self._input_names):
                raise UsageError(f"inputs: {len(inputs)} are given, and the model has {len(self._input_names)}")
            given = dict(zip(self._input_names, inputs))
            for name in named:
                if name in given:
                    raise UsageError(f"input '{name}': it is given by place and by name")
            results = list(self.run({**given, **named}).values())
        else:
            results = [array for array in self._core.run(inputs, None, None) if array is not None]
        return results[0] if len(results) == 1 else tuple(results)

    @staticmethod
    def _ordered(what: str, given: Mapping[str, Any], names: list[str]) -> list[Any]:
        result = [given.get(name) for name in names]
        if len(given) > len(names) or any(name not in names for name in given):
            unknown = next(name for name in given if name not in names)
            raise UsageError(f"{what} '{unknown}': the model has none of this name; it has {', '.join(names)}")
        return result

    def last_program(self) -> dict[str, Any] | None:
        """Numbers about the program of the last run: kernels, launches, arena_bytes, constant_bytes, prepared_bytes,
        tuned, improved, tuning_done. None before the first run."""
        return self._core.last_program()

    def close(self) -> None:
        """Gives memory and threads back. Runs that are in progress end first."""
        self._core.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        return f"<kiln.Session on {self.device}{state}: {signature(self.inputs, self.outputs)}>"

    def _repr_html_(self) -> str:
        return notebook.html_of_session(self)
