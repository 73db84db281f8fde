"""Every form in which a model may be given, as an ONNX file."""

from __future__ import annotations

import os
from typing import Any, Mapping

from .errors import UsageError


def _is_instance(model: Any, module: str, name: str) -> bool:
    """Whether the model is of a class of a module that may not be loaded."""
    for c in type(model).__mro__:
        if c.__name__ == name and (c.__module__ == module or c.__module__.startswith(module + ".")):
            return True
    return False


def onnx_file(model: Any, folder: str, args: tuple[Any, ...] | None, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any) -> str:
    """The path of an ONNX file with the model. What must be written goes into `folder`."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    path = os.path.join(folder, "model.onnx")
    if isinstance(model, (bytes, bytearray, memoryview)):
        with open(path, "wb") as file:
            file.write(model)
    elif _is_instance(model, "onnx", "ModelProto"):
        import onnx

        onnx.save(model, path, save_as_external_data=model.ByteSize() >= 1 << 30)
    elif _is_instance(model, "torch", "Module") or _is_instance(model, "torch", "ExportedProgram"):
        from .torch_export import export

        export(model, path, args, kwargs, dynamic_shapes)
    else:
        raise UsageError(
            f"model: a {type(model).__name__} is none of a path, bytes, onnx.ModelProto, torch.nn.Module or ExportedProgram"
        )
    return path
