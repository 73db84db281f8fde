"""Kiln as an execution provider of ONNX Runtime: where the plug-in is, and what it is called.

    import onnxruntime, onnxruntime_ep_kiln as ep
    onnxruntime.register_execution_provider_library("kiln", ep.get_library_path())
    devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == ep.get_ep_name()]
"""
import pathlib

__all__ = ["get_ep_name", "get_ep_names", "get_gpu_ep_name", "get_library_path"]


def get_library_path() -> str:
    """Path of the plug-in, for onnxruntime.register_execution_provider_library."""
    path = pathlib.Path(__file__).parent / "lib" / "libonnxruntime_providers_kiln.so"
    if not path.is_file():
        raise RuntimeError(f"{path} is missing: install onnxruntime-ep-kiln again")
    return str(path)


def get_ep_name() -> str:
    """Name of the execution provider: `ep_name` of its devices."""
    return "KilnExecutionProvider"


def get_gpu_ep_name() -> str:
    """Name of the execution provider whose tensors are in the memory of a GPU. It has a device for each GPU."""
    return "KilnGpuExecutionProvider"


def get_ep_names() -> list[str]:
    """Names of all execution providers of this package."""
    return [get_ep_name(), get_gpu_ep_name()]
