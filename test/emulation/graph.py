"""Small ONNX models with their inputs and their reference.

A case is a function that builds a model through Graph. It is called twice: with the element type under test, and with
f32 for the reference, which onnxruntime computes. Random data is drawn from the same seed and rounded to the type under
test both times, so that the two models see the same numbers and differ only in how they compute.
"""
import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper

TYPES = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT, "i64": TensorProto.INT64, "i32": TensorProto.INT32,
         "i8": TensorProto.INT8, "u8": TensorProto.UINT8, "bool": TensorProto.BOOL, "i4": TensorProto.INT4, "u4": TensorProto.UINT4}
NUMPY = {"f16": np.float16, "f32": np.float32, "i64": np.int64, "i32": np.int32, "i8": np.int8, "u8": np.uint8, "bool": np.bool_, "bf16": np.uint16}
# ||out - reference|| / ||reference||
TOLERANCE = {"f16": 2e-3, "bf16": 1e-2, "f32": 1e-5}


def to_bf16(data):
    """f32 → bf16 bits, to nearest even."""
    bits = np.ascontiguousarray(data, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (np.ascontiguousarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def rounded(data, dtype):
    """The f32 values nearest to `data` that `dtype` has."""
    data = np.asarray(data, np.float32)
    return from_bf16(to_bf16(data)).reshape(data.shape) if dtype == "bf16" else data.astype(NUMPY[dtype]).astype(np.float32)


class Graph:
    """`dtype`: the type whose values the data has. `reference`: floats are f32 in the model."""

    def __init__(self, dtype, reference, seed=1):
        self.dtype, self.reference, self.float = dtype, reference, "f32" if reference else dtype
        self.random, self.opset = np.random.default_rng(seed), 17
        self.nodes, self.inputs, self.outputs, self.constants, self.data, self.output_types = [], [], [], [], {}, {}

    # --- tensors ---

    def normal(self, dims, scale=1.0, shift=0.0):
        return rounded(self.random.standard_normal(dims) * scale + shift, self.dtype)

    def input(self, name, dims, scale=1.0, shift=0.0, data=None):
        """A float input with normal values (or `data`)."""
        values = self.normal(dims, scale, shift) if data is None else rounded(data, self.dtype)
        return self._input(name, values, self.float)

    def integers(self, name, dims, low, high, dtype="i64"):
        """An integer input with values in [low, high)."""
        return self._input(name, self.random.integers(low, high, dims).astype(NUMPY[dtype]), dtype)

    def given(self, name, data, dtype):
        return self._input(name, np.asarray(data, NUMPY[dtype]), dtype)

    def _input(self, name, values, dtype):
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[dtype], list(values.shape)))
        self.data[name] = to_bf16(values) if dtype == "bf16" else np.asarray(values).astype(NUMPY[dtype])
        return name

    def weight(self, dims, scale=1.0, shift=0.0):
        return self.constant(self.normal(dims, scale, shift))

    def constant(self, data, dtype=None):
        """A constant of the float type, or of the integer type `dtype`."""
        dtype, name = dtype or self.float, f"c{len(self.constants)}"
        data = np.asarray(data)
        raw = to_bf16(data) if dtype == "bf16" else data.astype(NUMPY[dtype])
        self.constants.append(helper.make_tensor(name, TYPES[dtype], data.shape, np.ascontiguousarray(raw).tobytes(), raw=True))
        return name

    def packed_weight(self, dims, dtype="i4", scale=0.05, block=0, axis=0, zero_point=False):
        """A dequantized constant of elements of 4 or 8 bits with scales (and zero points) for each index of the other
        axis and block along `axis`."""
        self.opset = 21
        count, signed = 16 if dtype.endswith("4") else 256, dtype.startswith("i")
        axis_dims = [dims[0] // block if axis == 0 else dims[0], dims[1] // block if axis == 1 else dims[1]] if block else [dims[1 - axis]]

        def packed(shape):
            values = self.random.integers(-count // 2 if signed else 0, count // 2 if signed else count, shape)
            if count == 256:
                return self.constant(values.astype(NUMPY[dtype]), dtype)
            flat = np.append(values.reshape(-1) & 15, np.zeros(values.size % 2, np.int64)).reshape(-1, 2)
            name = f"c{len(self.constants)}"
            self.constants.append(helper.make_tensor(name, TYPES[dtype], shape, (flat[:, 0] | flat[:, 1] << 4).astype(np.uint8).tobytes(), raw=True))
            return name

        inputs = [packed(dims), self.weight(axis_dims, scale / 4, scale)] + ([packed(axis_dims)] if zero_point else [])
        attributes = {"axis": axis, "block_size": block} if block else {"axis": 1 - axis}
        return self.op("DequantizeLinear", *inputs, **attributes)

    # --- nodes ---

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Adds a node; the name of its output, or a list of them. None is an absent input."""
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, [i or "" for i in inputs], names, name=f"{kind}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def output(self, tensor, dtype=None):
        name = f"y{len(self.outputs)}"
        self.nodes.append(helper.make_node("Identity", [tensor], [name], name=f"give_{name}"))
        self.output_types[name] = dtype or self.dtype
        self.outputs.append(helper.make_tensor_value_info(name, TYPES[dtype or self.float], None))

    def model(self):
        graph = helper.make_graph(self.nodes, "case", self.inputs, self.outputs, self.constants)
        domains = {n.domain for n in self.nodes} - {""}
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in domains)], ir_version=10 if self.opset > 17 else 8)


@dataclasses.dataclass
class Case:
    name: str
    build: object        # Graph -> None
    dtype: str
    options: tuple = ()  # more arguments of `kiln compile`
    tolerance: float = 0.0
    short: bool = False  # belongs to the short form of the test
    model: bool = False  # a whole model rather than a kernel


CASES = []


def case(dtypes="f16", options=(), tolerance=None, short=False, model=False):
    """Registers a case for each of the types; its name is the function's, the type behind it."""
    def register(build):
        for i, dtype in enumerate(dtypes.split()):
            CASES.append(Case(f"{build.__name__}_{dtype}", build, dtype, tuple(options), tolerance or TOLERANCE[dtype], short and i == 0, model))
        return build
    return register


def build(case):
    """The Graph under test and the Graph of the reference."""
    graphs = Graph(case.dtype, False), Graph(case.dtype, True)
    for g in graphs:
        case.build(g)
    return graphs


def reference(graph):
    """The outputs of a reference Graph by name, from onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    if graph.opset > 17:  # onnxruntime's product with weights of 4 bits rounds activations to 8
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(graph.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, graph.data)))


def save(graph, path):
    onnx.save(graph.model(), path)
