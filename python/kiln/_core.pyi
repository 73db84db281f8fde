"""The extension module; use kiln.Model and kiln.Session."""

from typing import Any, Callable, Sequence

def api_version() -> int: ...
def describe(
    path: str,
) -> tuple[
    list[tuple[str, str, tuple[str, ...]]], list[tuple[str, str, tuple[str, ...]]], list[tuple[str, int, int]]
]: ...
def load_compiler(library: str = "") -> None: ...

class Session:
    def __init__(
        self,
        path: str,
        *,
        device: str,
        threads: int,
        dims: list[tuple[str, int]],
        tuning: int,
        tuning_seconds: float,
        specialization: int,
        cache: str,
        trusted_keys: str,
        no_cache: bool,
        only_cached: bool,
        allow_unsigned: bool,
        most_programs: int,
        progress: Callable[[int, int], object] | None,
        warn: Callable[[str], object] | None,
    ) -> None: ...
    def run(self, inputs: Sequence[Any], outputs: Sequence[Any] | None, stream: int | None) -> list[Any]: ...
    def last_program(self) -> dict[str, Any] | None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def device(self) -> str: ...
