"""Decoding with a language model."""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from . import _core
from .errors import UsageError

SAMPLING = ("greedy", "top-k", "top-p")

# Kiln's threads must not call into an interpreter that is being shut down.
_open: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for handle in list(_open):
        handle.close()


class Sequences:
    """Sequences of ids that a Decoder continues: one, or a batch of one length. Made by Decoder.sequences()."""

    def __init__(self, core: _core.Sequences) -> None:
        self._core = core
        _open.add(core)

    def append(self, ids: Any) -> np.ndarray:
        """Appends ids [ids] or [rows, ids]. Returns the logits [rows, vocabulary] of the ids that follow. After a failure
        the sequences are as they were."""
        given = np.asarray(ids)
        if given.ndim not in (1, 2) or (given.size and given.dtype.kind not in "iu"):
            raise UsageError(f"ids: {given.dtype} {list(given.shape)} are no integers [ids] or [rows, ids]")
        return self._core.append(np.ascontiguousarray(np.atleast_2d(given), np.int64))

    def choose(
        self,
        sample: str = "greedy",
        *,
        temperature: float = 1,
        top_k: int = 50,
        top_p: float = 0.9,
        repetition_penalty: float = 1,
        seed: int = 0,
    ) -> np.ndarray:
        """Chooses the next id of each row from the last logits, [rows]. It does not append them."""
        if sample not in SAMPLING:
            raise UsageError(f"sample: {sample!r} is none of {', '.join(SAMPLING)}")
        for name, value in (("temperature", temperature), ("top_k", top_k), ("top_p", top_p), ("repetition_penalty", repetition_penalty)):
            if value <= 0:
                raise UsageError(f"{name}: {value} is not above 0")
        return self._core.choose(SAMPLING.index(sample), temperature, top_k, top_p, repetition_penalty, seed)

    def generate(self, ids: Any, max_new_tokens: int, *, stop_ids: Sequence[int] = (), **sampling: Any) -> Iterator[np.ndarray]:
        """Appends `ids`, then yields the next ids of the rows, one array [rows] for each step; -1 for a row that has ended
        with one of `stop_ids`. `sampling`: the options of choose()."""
        self.append(ids)
        ended = np.zeros(self.rows, bool)
        for step in range(max_new_tokens):
            chosen = self.choose(**sampling)
            yield np.where(ended, -1, chosen)
            ended |= np.isin(chosen, np.asarray(stop_ids, np.int64))
            if ended.all() or step + 1 == max_new_tokens:
                return
            self.append(chosen[:, None])

    @property
    def rows(self) -> int:
        """0 before the first ids."""
        return self._core.rows

    @property
    def length(self) -> int:
        return self._core.length

    def __len__(self) -> int:
        return self.length

    def rollback(self, count: int) -> None:
        """Takes back the last `count` ids of each row."""
        self._core.rollback(count)

    def reset(self) -> None:
        self._core.reset()

    def copy(self) -> Sequences:
        return Sequences(self._core.copy())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes ids and caches into a file for Decoder.load()."""
        self._core.save(os.fspath(path))

    def close(self) -> None:
        """Gives the memory of the caches back."""
        self._core.close()


class Decoder:
    """A decoder of a language model. Made by Model.decoder(). Any thread may use it; its calls wait for each other."""

    def __init__(
        self,
        model: Any,
        device: str = "host",
        *,
        context: int = 0,
        threads: int = 0,
        cache: str | os.PathLike[str] | None = None,
        no_cache: bool = False,
        only_cached: bool = False,
        trusted_keys: str | os.PathLike[str] | None = None,
        allow_unsigned: bool = False,
        progress: Callable[[int, int], object] | None = None,
        warn: Callable[[str], object] | None = None,
    ) -> None:
        self._model = model  # its file may be temporary
        self._core = _core.Decoder(
            os.fspath(model.path),
            device=device,
            threads=threads,
            context=context,
            cache=os.fspath(cache or ""),
            trusted_keys=os.fspath(trusted_keys or ""),
            no_cache=no_cache,
            only_cached=only_cached,
            allow_unsigned=allow_unsigned,
            progress=progress,
            warn=warn or logging.getLogger("kiln").warning,
        )
        _open.add(self._core)

    @property
    def vocabulary(self) -> int:
        return self._core.vocabulary

    @property
    def context(self) -> int | None:
        """Most ids of a sequence; None: nothing limits them."""
        return self._core.context or None

    @property
    def device(self) -> str:
        return self._core.device

    def sequences(self) -> Sequences:
        """New sequences without ids. Any number of them share the decoder."""
        return Sequences(self._core.sequences())

    def load(self, path: str | os.PathLike[str]) -> Sequences:
        """The sequences that Sequences.save() has written."""
        return Sequences(self._core.load(os.fspath(path)))

    def close(self) -> None:
        """Gives memory and threads back once all sequences are closed, too."""
        self._core.close()

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<kiln.Decoder on {self.device}{' closed' if self._core.closed else ''}: {self.vocabulary} ids>"
