#!/usr/bin/env python3
"""Compare the importer and the reference against onnxruntime on whole models.

    import_models.py --check BUILD/test/aot/onnx/onnx_import_check MODEL.onnx...

Each model runs on seeded random inputs (integers stay small, named dimensions become 2). The largest difference,
relative to the largest magnitude of the output, must stay below 2e-4 (2e-2 for float16).
"""
import argparse, os, subprocess, sys, tempfile, time
import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}


def make_input(spec, rng):
    shape = [d if isinstance(d, int) else 2 for d in spec.shape]
    dtype = TYPES[spec.type]
    if dtype == np.int64:
        return rng.integers(0, 2, shape, dtype=np.int64)
    return rng.standard_normal(shape).astype(dtype)


def check(path, program):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    inputs = {i.name: make_input(i, rng) for i in session.get_inputs()}
    wanted = session.run(None, inputs)
    with tempfile.TemporaryDirectory() as folder:
        for i, array in enumerate(inputs.values()):
            with open(f"{folder}/input_{i}.pb", "wb") as f:
                f.write(numpy_helper.from_array(array).SerializeToString())
        start = time.time()
        subprocess.run([program, path, folder], check=True)
        worst = 0.0
        for i, expected in enumerate(wanted):
            got = numpy_helper.to_array(onnx.load_tensor(f"{folder}/kiln_output_{i}.pb"))
            if got.shape != expected.shape or got.dtype != expected.dtype:
                print(f"{path}: output {i} is {got.dtype}{got.shape}, expected {expected.dtype}{expected.shape}")
                return False
            a, b = got.astype(np.float64), expected.astype(np.float64)
            worst = max(worst, float(np.max(np.abs(a - b)) / max(1e-9, np.max(np.abs(b)))))
        limit = 2e-2 if any(w.dtype == np.float16 for w in wanted) else 2e-4
        good = worst <= limit
        print(f"{os.path.basename(path)}: {'ok' if good else 'WRONG'}, relative error {worst:.2e}, {time.time() - start:.1f} s", flush=True)
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", required=True)
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    results = [check(m, options.check) for m in options.models]
    print(f"{sum(results)} of {len(results)} models agree with onnxruntime")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
