"""What a model says about one of its inputs or outputs."""

from __future__ import annotations

import dataclasses

import numpy

from . import arrays


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """A tensor's name, element type (as Kiln calls it: "f32", "i64") and shape: numbers, and texts for open
    dimensions."""

    name: str
    type: str
    shape: tuple[int | str, ...]

    @property
    def dtype(self) -> numpy.dtype:
        """The dtype of numpy or of ml_dtypes."""
        return arrays.dtypes[arrays.array_names[self.type]]

    def __str__(self) -> str:
        return f"{self.name}: {self.type}[{', '.join(map(str, self.shape))}]"


def spec_of(name: str, kind: str, dims: tuple[str, ...]) -> TensorSpec:
    return TensorSpec(name, kind, tuple(int(d) if d.lstrip("-").isdigit() else d for d in dims))


def signature(inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> str:
    return f"({', '.join(map(str, inputs))}) -> ({', '.join(map(str, outputs))})"
