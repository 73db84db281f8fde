"""Exceptions, one for each status of the C interface (runtime/kiln.h). All of them are KilnError, whose message is one
line `THING: what is wrong; what to do`, and whose `status` is the name in docs/errors.md."""

from __future__ import annotations


class KilnError(Exception):
    """Base of all exceptions of this package."""

    status = "internal"


class UsageError(KilnError, ValueError):
    """An argument makes no sense."""

    status = "usage"


class InvalidShapeError(KilnError, ValueError):
    """The model does not take these sizes, or an input of this shape or type."""

    status = "invalid_shape"


class InvalidSequenceError(KilnError, ValueError):
    """A language model was given an id outside of its vocabulary, an empty prompt, or a mask that contradicts it."""

    status = "invalid_sequence"


class ContextFullError(KilnError):
    """A sequence has no room for more ids."""

    status = "context_full"


class MismatchError(KilnError):
    """What was checked does not hold."""

    status = "mismatch"


class UnsupportedError(KilnError, NotImplementedError):
    """Valid, but nothing that this Kiln can do."""

    status = "unsupported"


class InternalError(KilnError, RuntimeError):
    """A broken invariant of Kiln itself."""

    status = "internal"


class OutOfMemoryError(KilnError, MemoryError):
    """Memory of the host or of a device is used up."""

    status = "out_of_memory"


class FileError(KilnError):
    """A file cannot be used. Base of the classes below."""


class MissingFileError(FileError, FileNotFoundError):
    status = "missing_file"


class DamagedFileError(FileError):
    """The file is truncated or corrupted, or the model breaks its own rules."""

    status = "damaged_file"


class NewerVersionError(FileError):
    """A newer Kiln wrote the file."""

    status = "newer_version"


class NotNativeError(FileError):
    """The file's kernels are not finalized."""

    status = "not_native"


class UntrustedError(FileError):
    """No trusted key has signed the file's machine code."""

    status = "untrusted"


class FileAccessError(FileError, OSError):
    """The operating system refused to read or write."""

    status = "io"


class CompileError(KilnError):
    """Kernels cannot be made. Base of the classes below."""


class CompileFailedError(CompileError):
    status = "compile_failed"


class CompileTimeoutError(CompileError, TimeoutError):
    status = "timed_out"


class NotBuiltInError(CompileError):
    """This installation lacks a component, such as the compiler."""

    status = "not_built_in"


class NotCachedError(CompileError):
    """Only cached kernels were allowed, and one is missing."""

    status = "not_cached"


class UnreachableError(CompileError, ConnectionError):
    """A cache server does not answer."""

    status = "unreachable"


class DeviceError(KilnError):
    """A device cannot be used. Base of the classes below."""


class NoDriverError(DeviceError):
    status = "no_driver"


class NoDeviceError(DeviceError):
    status = "no_device"


class WrongDeviceError(DeviceError):
    """The device is here, but cannot run this code."""

    status = "wrong_device"


class DeviceLostError(DeviceError):
    """The device stopped working: open the session again."""

    status = "device_lost"


def _leaves(base: type[KilnError]) -> list[type[KilnError]]:
    below = base.__subclasses__()
    return [leaf for c in below for leaf in _leaves(c)] if below else [base]


_classes = {leaf.status: leaf for leaf in _leaves(KilnError)}
# The command line tells kinds apart that share a status (docs/errors.md).
_statuses = {"truncated": "damaged_file", "corrupted": "damaged_file", "invalid_model": "damaged_file"}


def of_status(status: str, message: str) -> KilnError:
    """The exception for a status or a kind of error, by its name."""
    return _classes.get(_statuses.get(status, status), InternalError)(message)
