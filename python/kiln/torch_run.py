"""Runs of a session on torch's tensors by their addresses: a call needs no DLPack, and looks nothing up that stays the same."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from . import _core, arrays
from .session import Session

_MOST_BOUND = 64  # programs for sizes


def _current_stream_of(index: int) -> int:
    return torch.cuda.current_stream(index).cuda_stream


# The address of torch's current stream on a GPU; torch's own function makes no object for it.
_stream_of: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", _current_stream_of)


class TensorRuns:
    """Runs a session. Inputs have the types of the model and are all on one device. Any thread may call it."""

    def __init__(self, session: Session, device: torch.device, open_sizes: bool) -> None:
        self._core, self._device, self._open_sizes = session._core, device, open_sizes
        self._index = device.index or 0
        self._kinds = [getattr(torch, arrays.array_names.get(i.type, ""), None) for i in session.inputs]
        self._bound: dict[Any, tuple[_core.BoundProgram, list[tuple[Any, torch.dtype]]] | None] = {}

    @property
    def waits(self) -> bool:
        """Whether a run has ended when the call returns."""
        return self._device.type == "cpu"

    def __call__(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        given = [t if t.is_contiguous() else t.contiguous() for t in tensors]
        sizes = tuple(t.shape for t in given) if self._open_sizes else None
        try:
            bound = self._bound[sizes]
        except KeyError:
            bound = self._bind(sizes, given)
        if bound is None:
            return self._core.run([t.detach() for t in given], None, None)
        program, outputs = bound
        results = [torch.empty(shape, dtype=kind, device=self._device) for shape, kind in outputs]
        program.run([t.data_ptr() for t in given], [r.data_ptr() for r in results], None if self.waits else _stream_of(self._index))
        return results

    def _bind(self, sizes: Any, given: list[torch.Tensor]) -> Any:
        """None: the session has to look at the tensors, or at what it gives."""
        program = None
        if [t.dtype for t in given] == self._kinds and not any(t.is_neg() for t in given):
            program = self._core.bind([tuple(t.shape) for t in given], not self.waits)
        outputs = [(shape, getattr(torch, name, None)) for shape, name in program.outputs()] if program else []
        bound = (program, outputs) if program and all(kind is not None for _, kind in outputs) else None
        if len(self._bound) >= _MOST_BOUND:
            self._bound.clear()
        self._bound[sizes] = bound
        return bound
