"""Kiln compiles a neural network into one portable file and runs it on the CPU or GPU of the machine that opens it.

    model = kiln.compile("model.onnx", dims={"batch": (1, 64)})
    model.save("model.kiln")
    with kiln.open("model.kiln").session(device="host") as session:
        y = session.run({"x": x})["y"]

docs/python.md is a short tour.
"""

from . import errors
from .compiler import compile
from .decoder import Decoder, Sequences
from .errors import KilnError
from .model import DimRange, Model, open
from .session import Session
from .tensor_spec import TensorSpec

__all__ = ["Decoder", "DimRange", "KilnError", "Model", "Sequences", "Session", "TensorSpec", "compile", "errors", "open"]
