#!/usr/bin/env python3
"""Node tests of ONNX with other element types: every type that an operator's schema allows and no node test has.

    retyped_cases.py FOLDER [--per 2]

Takes the smallest cases of one node from the installed onnx package, converts the inputs of one type parameter to each
type that is missing, and lets onnxruntime compute the results, or onnx.reference what onnxruntime lacks (the name of a
case says which). The folders are like those of onnx's packages: node_tests.py compiles and runs them, and
KILN_ONNX_NODE_CASES=FOLDER test_onnx_backend imports and interprets them. Some results of onnx.reference differ by
design: sums that it rounds to bfloat16 at each step, interpolation of integers, other random numbers.
"""
import argparse
import collections
import os
import signal
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

warnings.filterwarnings("ignore")
onnxruntime.set_default_logger_severity(4)
TYPES = {f"tensor({name})": getattr(TensorProto, name.upper()) for name in """float double float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool float8e4m3fn float8e4m3fnuz
float8e5m2 float8e5m2fnuz float8e8m0 int4 uint4 int2 uint2 float4e2m1""".split() if hasattr(TensorProto, name.upper())}
RANGES = {"INT2": (-2, 1), "UINT2": (0, 3), "INT4": (-8, 7), "UINT4": (0, 15), "INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-2**15, 2**15 - 1), "UINT16": (0, 2**16 - 1)}
SECONDS = 5  # for one case in Python


def numpy_type(kind):
    return np.dtype(helper.tensor_dtype_to_np_dtype(kind))


def retyped(array, kind):
    """The numbers in another type: integers are made of fractions times 3, and unsigned ones of their magnitudes."""
    name = TensorProto.DataType.Name(kind)
    x = np.asarray(array, np.float64)
    if name == "BOOL":
        return x > 0
    if "INT" not in name:
        return x.astype(numpy_type(kind)) if kind == TensorProto.DOUBLE else x.astype(np.float32).astype(numpy_type(kind))
    if np.asarray(array).dtype.kind in "fV":
        x = np.round(x * 3 if np.abs(x).max(initial=0) < 4 else x)
    low, high = RANGES.get(name, (0 if name[0] == "U" else -2**31, 2**31 - 1))
    x = np.abs(x) if low == 0 else x
    return np.clip(np.nan_to_num(x), low, high).astype(np.int64).astype(numpy_type(kind))


def results(model, feeds):
    """The outputs, and who computed them; None if nobody could."""
    try:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds), "onnxruntime"
    except Exception:  # onnxruntime's exceptions have no common base
        pass
    signal.alarm(SECONDS)
    try:
        return ReferenceEvaluator(model).run(None, feeds), "reference"
    except Exception:
        return None
    finally:
        signal.alarm(0)


def parameters_of(case):
    """For each type parameter of the case's node, the names of the inputs that have it and the types it allows."""
    node = case.model.graph.node[0]
    version = {o.domain: o.version for o in case.model.opset_import}.get(node.domain, 1)
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return {}
    allowed = {c.type_param_str: [TYPES[t] for t in c.allowed_type_strs if t in TYPES] for c in schema.type_constraints}
    found = {}
    for i, name in enumerate(node.input):
        parameter = schema.inputs[min(i, len(schema.inputs) - 1)].type_str
        if name and parameter in allowed:
            found.setdefault(parameter, (set(), allowed[parameter]))[0].add(name)
    return found


def declared(name, kind, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def with_type(case, names, kind):
    """The model and its inputs, with `names` in another type; None if the results have no type that onnx infers."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph, feeds = model.graph, {}
    for value, array in zip(case.model.graph.input, case.data_sets[0][0]):
        feeds[value.name] = retyped(array, kind) if value.name in names else array
    inputs = [declared(v.name, kind if v.name in names else v.type.tensor_type.elem_type, feeds[v.name].shape) for v in graph.input]
    outputs = [o.name for o in graph.output]
    del graph.input[:], graph.output[:], graph.value_info[:]
    graph.input.extend(inputs)
    graph.output.extend(onnx.ValueInfoProto(name=o) for o in outputs)
    model.ir_version = 10
    try:
        inferred = {o.name: o.type.tensor_type.elem_type for o in onnx.shape_inference.infer_shapes(model, check_type=True).graph.output}
    except onnx.shape_inference.InferenceError:
        return None
    del graph.output[:]
    graph.output.extend(declared(o, inferred[o]) for o in outputs)
    return (model, feeds) if all(inferred.values()) else None


def write(folder, model, feeds, wanted):
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for what, values, arrays in (("input", model.graph.input, [feeds[v.name] for v in model.graph.input]), ("output", model.graph.output, wanted)):
        for i, (value, array) in enumerate(zip(values, arrays)):
            with open(f"{data}/{what}_{i}.pb", "wb") as f:
                f.write(numpy_helper.from_array(np.asarray(array, numpy_type(value.type.tensor_type.elem_type), order="C"), value.name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--per", type=int, default=2, help="cases for each operator, type parameter and type")
    options = parser.parse_args()

    def too_long(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, too_long)
    cases = [c for c in collect_testcases() if c.model is not None and len(c.model.graph.node) == 1 and not c.model.functions and c.data_sets]
    cases = [c for c in cases if len(c.data_sets[0][0]) == len(c.model.graph.input) and all(isinstance(x, np.ndarray) and x.dtype.kind not in "OUS" for x in c.data_sets[0][0])]
    cases.sort(key=lambda c: sum(x.size for x in c.data_sets[0][0]))
    parameters = [parameters_of(c) for c in cases]
    covered = {(c.model.graph.node[0].op_type, p, v.type.tensor_type.elem_type) for c, ps in zip(cases, parameters) for p, (names, _) in ps.items() for v in c.model.graph.input if v.name in names}
    made = collections.Counter()
    for case, ps in zip(cases, parameters):
        operator = case.model.graph.node[0].op_type
        for parameter, (names, allowed) in ps.items():
            for kind in allowed:
                key = (operator, parameter, kind)
                if key in covered or made[key] == options.per:
                    continue
                changed = with_type(case, names, kind)
                computed = changed and results(*changed)
                if not computed or any(np.asarray(a).dtype != numpy_type(o.type.tensor_type.elem_type) for a, o in zip(computed[0], changed[0].graph.output)):
                    continue
                made[key] += 1
                name = f"{operator}_{parameter}_{TensorProto.DataType.Name(kind).lower()}_{computed[1]}_{case.name.removeprefix('test_')}"
                write(os.path.join(options.folder, name), *changed, computed[0])
    print(f"onnx {onnx.__version__}: {sum(made.values())} cases of {len({k[0] for k in made})} operators")


if __name__ == "__main__":
    main()
