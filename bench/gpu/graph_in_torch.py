"""An ONNX graph as a module of PyTorch, for networks that PyTorch's libraries do not have (network_peers.py). Only the
operators of the shared models are known: one row of a table each. What depends on shapes alone is computed once with
numpy (ON_HOST), everything else with tensors (ON_DEVICE)."""
import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional as F

FLOATS = (np.float16, np.float32, np.float64)
HOST_TYPES = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}


def integers(values):
    return [int(i) for i in np.atleast_1d(values)]


def is_host(value):
    return value is None or isinstance(value, (np.ndarray, np.generic))


def convolution(g, a, x, w, bias=None):
    pads = a.get("pads", [0, 0, 0, 0])
    assert pads[:2] == pads[2:]
    return F.conv2d(x, w, bias, a.get("strides", [1, 1]), pads[:2], a.get("dilations", [1, 1]), a.get("group", 1))


def binary(function):
    def apply(g, a, x, y):
        x, y = g.on_device(x), g.on_device(y)
        return function(x if isinstance(x, torch.Tensor) else torch.tensor(x, device=g.device, dtype=y.dtype), y)
    return apply


def divided(x, y):
    return torch.div(x, y) if x.is_floating_point() else torch.div(x, y, rounding_mode="floor")


def sliced(g, a, x, starts, ends, axes=None):
    axes = range(len(integers(starts))) if axes is None else integers(axes)
    for start, end, axis in zip(integers(starts), integers(ends), axes):
        size = x.shape[axis]
        start, end = max(start + size, 0) if start < 0 else min(start, size), end + size if end < 0 else min(end, size)
        x = x.narrow(axis, start, end - start)
    return x


def gathered(g, a, x, at):
    axis = a.get("axis", 0)
    if isinstance(at, torch.Tensor):
        x = g.on_device(x)
        return x[at] if axis == 0 else torch.index_select(x, axis, at.flatten()).reshape(*x.shape[:axis], *at.shape, *x.shape[axis + 1:])
    return x.select(axis, int(at)) if at.ndim == 0 else torch.index_select(x, axis, g.on_device(at))


def unsqueezed(g, a, x, axes):
    for axis in sorted(integers(axes)):
        x = x.unsqueeze(axis)
    return x


def flattened(g, a, x):
    axis = a.get("axis", 1)
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


def resized(g, a, x, roi=None, scales=None, sizes=None):
    wanted = integers(sizes) if sizes is not None else [int(d * f) for d, f in zip(x.shape, scales.tolist())]
    return F.interpolate(x, size=wanted[2:], mode="nearest")


ON_DEVICE = {
    "Identity": lambda g, a, x: x,
    "Conv": convolution,
    "ConvTranspose": lambda g, a, x, w, bias=None: F.conv_transpose2d(x, w, bias, a.get("strides", [1, 1]), a.get("pads", [0, 0])[:2]),
    "InstanceNormalization": lambda g, a, x, scale, bias: F.instance_norm(x, weight=scale, bias=bias, eps=a["epsilon"]),
    "MaxPool": lambda g, a, x: F.max_pool2d(x, a["kernel_shape"], a["strides"], a["pads"][:2]),
    "AveragePool": lambda g, a, x: F.avg_pool2d(x, a["kernel_shape"], a["strides"], a["pads"][:2]),
    "Sigmoid": lambda g, a, x: torch.sigmoid(x),
    "Neg": lambda g, a, x: -x,
    "Sqrt": lambda g, a, x: torch.sqrt(x),
    "Not": lambda g, a, x: ~x,
    "Mul": binary(torch.mul),
    "Add": binary(torch.add),
    "Sub": binary(torch.sub),
    "Div": binary(divided),
    "Pow": binary(torch.pow),
    "Mod": binary(torch.remainder),
    "Equal": binary(torch.eq),
    "LessOrEqual": binary(torch.le),
    "MatMul": lambda g, a, x, y: x @ y,
    "Softmax": lambda g, a, x: torch.softmax(x, a.get("axis", -1)),
    "Reshape": lambda g, a, x, shape: x.reshape([d or x.shape[i] for i, d in enumerate(integers(shape))]),
    "Transpose": lambda g, a, x: x.permute(a["perm"]),
    "Concat": lambda g, a, *x: torch.cat([g.on_device(v) for v in x], a["axis"]),
    "Split": lambda g, a, x, lengths: list(torch.split(x, integers(lengths), a.get("axis", 0))),
    "Slice": sliced,
    "Gather": gathered,
    "GatherElements": lambda g, a, x, at: torch.gather(x, a.get("axis", 0), at),
    "ScatterElements": lambda g, a, x, at, updates: x.scatter(a["axis"], at, updates),
    "Unsqueeze": unsqueezed,
    "Expand": lambda g, a, x, shape: x.expand(*torch.broadcast_shapes(tuple(x.shape), tuple(integers(shape)))),
    "Where": lambda g, a, *x: torch.where(*map(g.on_device, x)),
    "Cast": lambda g, a, x: x.to(g.types[a["to"]]),
    "ReduceSum": lambda g, a, x, axes: x.sum(integers(axes), keepdim=bool(a.get("keepdims", 1))),
    "ReduceMax": lambda g, a, x, axes=None: x.amax(a.get("axes") or integers(axes), keepdim=bool(a.get("keepdims", 1))),
    "ReduceMean": lambda g, a, x: x.mean(a["axes"], keepdim=bool(a.get("keepdims", 1))),
    "TopK": lambda g, a, x, k: list(torch.topk(x, integers(k)[0], a.get("axis", -1))),
    "Flatten": flattened,
    "Resize": resized,
}


def host_unsqueezed(a, x, axes):
    for axis in sorted(integers(axes)):
        x = np.expand_dims(x, axis)
    return x


def host_filled(a, shape):
    value = numpy_helper.to_array(a["value"]) if "value" in a else np.zeros(1, np.float32)
    return np.full(integers(shape), value[0], value.dtype)


def host_sliced(a, x, starts, ends, axes=None):
    at = [slice(None)] * np.ndim(x)
    for start, end, axis in zip(starts, ends, range(len(starts)) if axes is None else axes):
        at[int(axis)] = slice(int(start), int(end))
    return np.asarray(x)[tuple(at)]


ON_HOST = {
    "Shape": lambda a, x: np.array(list(x.shape), np.int64),
    "Identity": lambda a, x: x,
    "Gather": lambda a, x, at: np.take(x, at, a.get("axis", 0)),
    "Add": lambda a, x, y: np.add(x, y),
    "Sub": lambda a, x, y: np.subtract(x, y),
    "Mul": lambda a, x, y: np.multiply(x, y),
    "Div": lambda a, x, y: x // y if np.issubdtype(x.dtype, np.integer) else x / y,
    "Sqrt": lambda a, x: np.sqrt(x),
    "Cast": lambda a, x: np.asarray(x).astype(HOST_TYPES[a["to"]]),
    "Unsqueeze": host_unsqueezed,
    "Concat": lambda a, *x: np.concatenate([np.atleast_1d(v) for v in x], a["axis"]),
    "ConstantOfShape": host_filled,
    "Equal": lambda a, x, y: x == y,
    "Where": lambda a, c, x, y: np.where(c, x, y),
    "Slice": host_sliced,
    "Reshape": lambda a, x, shape: np.reshape(x, integers(shape)),
    "Expand": lambda a, x, shape: np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(integers(shape)))).copy(),
}


class Graph(torch.nn.Module):
    """Call record() with inputs before anything else. Floats become f16 if `half`."""

    def __init__(self, path, half):
        super().__init__()
        self.graph = onnx.load(path).graph
        floats = torch.float16 if half else torch.float32
        self.types = {1: floats, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16, 11: torch.float32}
        # Values on the host by name, the names of weights' buffers, what depends on shapes alone; arrays as tensors by
        # their identity, and these arrays, so that the identities stay theirs.
        self.known, self.weights, self.static, self.tensors, self.kept = {}, {}, None, {}, []
        constants = [(t.name, t) for t in self.graph.initializer] + [(n.output[0], n.attribute[0].t) for n in self.graph.node if n.op_type == "Constant"]
        for i, (name, tensor) in enumerate(constants):
            array = numpy_helper.to_array(tensor)
            if array.dtype.type in FLOATS and array.size and array.ndim:
                self.register_buffer(f"w{i}", torch.from_numpy(array.copy()).to(torch.float16 if array.dtype == np.float16 else floats))
                self.weights[name] = f"w{i}"
            else:
                self.known[name] = array

    def record(self, *inputs):
        """Finds what depends on shapes alone; later calls have it from here."""
        values = self.compute(inputs, self.known, {})
        self.static = {name: v for name, v in values.items() if isinstance(v, (np.ndarray, np.generic))}

    def forward(self, *inputs):
        values = self.compute(inputs, self.static, self.static)
        return tuple(values[o.name] for o in self.graph.output)

    def compute(self, inputs, known, done):
        values = dict(known) | {name: getattr(self, buffer) for name, buffer in self.weights.items()}
        values |= {i.name: x for i, x in zip(self.graph.input, inputs)}
        self.device = inputs[0].device
        for n in self.graph.node:
            if n.op_type == "Constant" or all(o in done for o in n.output if o):
                continue
            operands, a = [values[i] if i else None for i in n.input], {x.name: onnx.helper.get_attribute_value(x) for x in n.attribute}
            if n.op_type == "Shape" or all(map(is_host, operands)):
                result = ON_HOST[n.op_type](a, *operands)
            else:
                result = ON_DEVICE[n.op_type](self, a, *operands)
            values.update(zip(n.output, result if isinstance(result, list) else [result]))
        return values

    def on_device(self, value):
        """A tensor, or a number for a scalar."""
        if value is None or isinstance(value, torch.Tensor):
            return value
        if value.ndim == 0:
            return value.item()
        if id(value) not in self.tensors:
            self.tensors[id(value)] = torch.from_numpy(np.array(value)).to(self.device)
            self.kept.append(value)
        return self.tensors[id(value)]
