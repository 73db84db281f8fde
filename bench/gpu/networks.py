#!/usr/bin/env python3
"""Networks of any batch on an NVIDIA GPU, one or more kilns beside PyTorch, checked first and measured in one run.

    bench/gpu/networks.py OUT MODELS KILN [KILN ...] --cases resnet50:32:f16 lstm_gru:1:f32 [--tune bert_base:1:f16 ...]
                          [--history FILE]

MODELS holds skeletons of models and fill.py. A case is a model, a batch and a type; the model of another batch than 1 is
MODELS/NAME_bBATCH.onnx where that exists, otherwise the graph is rewritten (rebatch.py). The answers of each kiln are
compared with onnxruntime's on random inputs. PyTorch runs the network of its libraries, or the graph itself
(network_peers.py), as a CUDA graph: eager, eager with channels last, and torch.compile (--tune: with max-autotune). Times are
medians of runs that are queued. OUT/networks.jsonl has a line for each step; the table comes last. --history FILE appends
the ratios of the last kiln (../history.py). A comparison that is not
compiled --deadline seconds after the start is left out.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import onnx

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.dirname(here)]
import history  # noqa: E402
from rebatch import rebatch  # noqa: E402

BEGIN, LOCK = time.time(), threading.Lock()


def say(o, **line):
    with LOCK, open(f"{o.out}/networks.jsonl", "a") as log:
        log.write(json.dumps(line | {"t": round(time.time() - BEGIN, 1)}) + "\n")


def fill(models, work, name, batch):
    sys.path.insert(0, models)
    import fill as filler
    own = f"{models}/{name}_b{batch}.onnx"
    model = onnx.load(own if os.path.exists(own) else f"{models}/{name}.onnx")
    filler.fill_graph(model.graph)
    if not os.path.exists(own) and (batch > 1 or "dynbatch" in name):
        model = rebatch(model, batch)
    onnx.save(model, f"{work}/{name}_b{batch}.onnx")


def call(kiln, *arguments):
    done = subprocess.run([kiln, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip())[-300:])
    return done.stdout


def prepare(o, case):
    """Compiles, runs and checks a case with each kiln."""
    import onnxruntime
    name, batch, kind = case
    model = onnx.load(f"{o.work}/{name}_b{batch}.onnx", load_external_data=False)
    random, arrays, given = np.random.default_rng(batch), {}, []
    for i in model.graph.input:
        t = i.type.tensor_type
        dims = [d.dim_value for d in t.shape.dim]
        integers = np.array([30], np.int64) if i.name == "pos" else np.ones(dims, np.int64)
        floats = random.standard_normal(dims, np.float32).astype(np.float16 if t.elem_type == onnx.TensorProto.FLOAT16 else np.float32)
        arrays[i.name] = integers if t.elem_type == onnx.TensorProto.INT64 else floats
        np.save(f"{o.work}/{name}_b{batch}.{i.name}.npy", arrays[i.name])
        given += ["--input", f"{i.name}={o.work}/{name}_b{batch}.{i.name}.npy"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 4, 3
    expected = onnxruntime.InferenceSession(f"{o.work}/{name}_b{batch}.onnx", options, providers=["CPUExecutionProvider"]).run(None, arrays)
    for k, kiln in enumerate(o.kilns):
        file = f"{o.work}/{name}_b{batch}_{kind}.{k}"
        call(kiln, "compile", f"{o.work}/{name}_b{batch}.onnx", "-o", file + ".kiln", "--quiet", *(["--fp16"] if kind == "f16" and "fp16" not in name else []))
        call(kiln, "run", file + ".kiln", "--device", o.device, "--cache", f"{o.work}/cache{k}", "--output-dir", file + ".out", "--quiet", *given)
        errors = []
        for output, want in zip(model.graph.output, expected):
            got, want = np.load(f"{file}.out/{output.name}.npy").astype(np.float64), want.astype(np.float64)
            errors.append(float(np.linalg.norm(got - want) / (np.linalg.norm(want) + 1e-30)))
        say(o, prepared=case, kiln=k, errors=errors)
    return max(errors)


class Peer:
    def __init__(self, o, case, tune):
        self.o, self.case, self.ready = o, case, None
        name, batch, kind = case
        environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="2", OMP_NUM_THREADS="2", TORCHINDUCTOR_CACHE_DIR=f"{o.work}/inductor_{name}_{batch}_{kind}")
        self.process = subprocess.Popen([sys.executable, f"{here}/network_peers.py", name, f"{o.work}/{name}_b{batch}.onnx", str(batch), kind, str(int(tune))],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        line = self.process.stdout.readline()
        self.ready = json.loads(line)["ready"] if line else {}
        say(self.o, peer=self.case, ready=self.ready)

    def time(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass


def measure(o, log, case, peer, error):
    name, batch, kind = case
    ours = []
    for k, kiln in enumerate(o.kilns):
        file = f"{o.work}/{name}_b{batch}_{kind}.{k}.kiln"
        found = json.loads(call(kiln, "perf", file, "--device", o.device, "--cache", f"{o.work}/cache{k}", "--graph", "on", "-n", 40 if batch > 1 else 100, "--json"))
        ours.append((found["queued_ms"], found["launches"]))
    theirs = peer.time() if peer and peer.ready else {}
    best = min(theirs.values(), default=float("nan"))
    say(o, case=case, ours=ours, peer=theirs)
    times = ", ".join(f"{ms:.4f} ({launches})" for ms, launches in ours)
    print(f"{name:24} {batch:3} {kind}  error {error:.1e}  ms (launches) {times}  PyTorch {json.dumps(theirs)}  ratio {best / ours[-1][0]:.2f}", flush=True)
    if theirs:
        way = min(theirs, key=theirs.get)
        log.add(history.gpu(o.device), history.case(name, batch, kind), f"{history.version_of('torch')}, {way}", ours[-1][0], best)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("models")
    p.add_argument("kilns", nargs="+")
    p.add_argument("--cases", nargs="+", required=True)
    p.add_argument("--tune", nargs="*", default=[], help="cases with max-autotune")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--work", default="/tmp/networks")
    p.add_argument("--deadline", type=float, default=300)
    p.add_argument("--at-once", type=int, default=14, help="networks that PyTorch compiles at the same time")
    history.add_options(p)
    o = p.parse_args()
    log = history.Log(o, o.kilns[-1])
    os.makedirs(o.work, exist_ok=True)
    os.makedirs(o.out, exist_ok=True)

    def parsed(text):
        name, batch, kind = text.split(":")
        return name, int(batch), kind
    cases = [parsed(c) for c in o.cases]
    with concurrent.futures.ProcessPoolExecutor(8) as pool:
        for done in [pool.submit(fill, o.models, o.work, *pair) for pair in sorted({c[:2] for c in cases})]:
            done.result()
    preparing = concurrent.futures.ThreadPoolExecutor(6)
    prepared = {c: preparing.submit(prepare, o, c) for c in cases}
    peers, waiting = {}, list(cases)
    while time.time() < BEGIN + o.deadline:
        for c in waiting[:max(0, o.at_once - sum(w.ready is None for w in peers.values()))]:
            peers[c] = Peer(o, c, ":".join(map(str, c)) in o.tune)
            waiting.remove(c)
        if not waiting and all(w.ready is not None for w in peers.values()):
            break
        time.sleep(0.2)
    for w in peers.values():
        if w.ready is None:
            w.end()
    failed = 0
    errors = {}
    for c, done in prepared.items():
        try:
            errors[c] = done.result()
        except Exception as e:
            failed += 1
            print(*c, "FAILED", str(e)[-300:], flush=True)
    for c in errors:
        measure(o, log, c, peers.get(c), errors[c])
    for w in peers.values():
        w.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
