#!/usr/bin/env python3
"""Kinds of networks beside onnxruntime and OpenVINO on the CPU, interleaved, with one and with two threads.

    bench/cpu_kinds.py export FOLDER [--only NAME ...]
    bench/cpu_kinds.py run KILN FOLDER_OF_MODELS [--only NAME ...] [--threads 1 2] [--rounds R] [-n RUNS] [--target T]
                       [--json FILE] [--history FILE]

`export` writes one network of each kind with random weights (needs torch and timm). `run` compares the outputs of all
three (relative error at most 1e-3) and then takes turns: in each round Kiln (`kiln perf`, its own process),
onnxruntime and OpenVINO run RUNS times each. A time is the best median of the rounds. The ratio is the better peer's
time over Kiln's: above 1 Kiln is faster. Prints a table and, for each number of threads, the geometric mean and the
worst ratio. --history appends the ratios of measurements that other programs did not disturb. Peers that are not
installed are left out, and the first line says so.
"""
import argparse, functools, glob, json, os, sys, tempfile
import numpy as np

import history
from cpu_peers import PEERS, SECONDS, in_turn, installed, kiln_json, median_ms, record

# Name of the network in timm → what its kind is.
NETWORKS = {
    "swin_tiny_patch4_window7_224": "shifted windows: roll, window partition, relative bias",
    "regnetx_004": "grouped convolutions of 16 channels",
    "regnety_004": "grouped convolutions of 8 channels with squeeze-excite",
    "resnext50_32x4d": "grouped convolutions of 4 to 32 channels",
    "poolformer_s12": "pooling as token mixer",
    "mobilevit_xs": "mobile convolutions and transformer: unfold and fold",
    "mobilevitv2_050": "mobile convolutions and linear attention",
    "mobilenetv3_small_100": "depthwise with hard-swish and squeeze-excite",
    "mobilenetv3_large_100": "depthwise with hard-swish and squeeze-excite",
    "lcnet_050": "depthwise with hard-swish",
    "levit_128s": "attention bias, strided attention",
    "efficientformer_l1": "pooling mixer, attention bias",
    "ghostnet_100": "cheap depthwise operations, concatenated",
    "maxvit_rmlp_pico_rw_256": "grid and block attention",
    "efficientvit_b0": "linear attention, depthwise",
    "edgenext_xx_small": "split depthwise, channel attention",
    "vgg11_bn": "3x3 convolutions of 64 to 512 channels",
    "densenet121": "concatenations of 32 channels",
}


def export(folder, only):
    import timm
    import torch

    os.makedirs(folder, exist_ok=True)
    for name in only or NETWORKS:
        torch.manual_seed(1)
        model = timm.create_model(name, pretrained=False).eval()
        with torch.no_grad():
            # No layer may be switched off: norms begin at 0 in some networks, and scales at 1e-5.
            for parameter in model.parameters():
                if parameter.numel() > 1 and parameter.max() == parameter.min():
                    parameter.uniform_(0.5, 1.5)
        image = torch.randn(1, *model.default_cfg["input_size"])
        torch.onnx.export(model, (image,), f"{folder}/{name}.onnx", input_names=["image"], output_names=["logits"],
                          dynamo=False, opset_version=17)
        print(name, f"{os.path.getsize(f'{folder}/{name}.onnx') / 1e6:.1f} MB", flush=True)


def feeds_of(path):
    """Name of each input → random values: normal ones, or integers from 0 to 7. Open dimensions are 1."""
    import onnx

    model = onnx.load(path, load_external_data=False).graph
    weights = {w.name for w in model.initializer}
    random, feeds = np.random.default_rng(7), {}
    for i in model.input:
        if i.name in weights:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        dims = [d.dim_value or 1 for d in i.type.tensor_type.shape.dim]
        values = random.standard_normal(dims) if np.issubdtype(kind, np.floating) else random.integers(0, 8, dims)
        feeds[i.name] = values.astype(kind)
    return feeds


def measure(o, path, threads, folder):
    """{runner: best median in ms}, and how many processors other programs used. Raises if an output differs from a peer's."""
    feeds = feeds_of(path)
    peers = {name: PEERS[name](path, threads, feeds) for name in o.peers}
    for k, (name, values) in enumerate(feeds.items()):
        np.save(f"{folder}/{k}.npy", values)
    target = ["--target", o.target] if o.target else []
    run = [f"{folder}/m.kiln", "--cache", f"{folder}/cache", "--threads", threads, *target]
    for k, name in enumerate(feeds):
        run += ["--input", f"{name}={folder}/{k}.npy"]
    first = kiln_json(o.kiln, "run", *run, "--output-dir", f"{folder}/out")["outputs"][0]["name"]
    got = np.load(f"{folder}/out/{first}.npy").astype(np.float32)
    for name, peer in peers.items():
        want = peer()
        error = float(np.linalg.norm(got - want) / np.linalg.norm(want))
        if not error <= (1e-3 if want.dtype == np.float32 else 2e-2):
            raise RuntimeError(f"{os.path.basename(path)}: differs from {name} by {error:.2e}")
    runners = {"kiln": lambda: kiln_json(o.kiln, "perf", *run, "-n", o.n, "--duration", f"{SECONDS}s")["p50_ms"]}
    runners |= {name: functools.partial(median_ms, peer, o.n, SECONDS) for name, peer in peers.items()}
    return in_turn(runners, o.rounds)


def run(o):
    o.peers, log = installed(), history.Log(o, o.kiln)
    if not o.peers:
        sys.exit("cpu_kinds: no peer is installed")
    paths = [p for p in sorted(glob.glob(f"{o.folder}/*.onnx")) if not o.only or os.path.basename(p)[:-5] in o.only]
    if not paths:
        sys.exit(f"cpu_kinds: no network in {o.folder}")
    print("| network | threads | kiln ms | " + " | ".join(f"{p} ms" for p in o.peers) + " | better peer / kiln |")
    print("|---" * (4 + len(o.peers)) + "|")
    ratios, rows = {t: [] for t in o.threads}, []
    for path in paths:
        name = os.path.basename(path)[:-5]
        with tempfile.TemporaryDirectory() as folder:
            kiln_json(o.kiln, "compile", path, "-o", f"{folder}/m.kiln")
            for threads in o.threads:
                times, others = measure(o, path, threads, folder)
                ratio = min(times[p] for p in o.peers) / times["kiln"]
                ratios[threads].append(ratio)
                rows.append({"network": name, "kind": NETWORKS.get(name), "threads": threads, "ratio": ratio, **times})
                cells = " | ".join(f"{t:.2f}" for t in times.values())
                print(f"| {name} | {threads} | {cells} | {ratio:.2f} |", flush=True)
                record(log, threads, history.case(name), times, others)
        if o.json:
            with open(o.json, "w") as f:
                json.dump(rows, f, indent=1)
    for threads, r in ratios.items():
        print(f"threads {threads}: geometric mean {np.exp(np.mean(np.log(r))):.3f}, worst {min(r):.3f} of {len(r)}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(dest="command", required=True)
    e = commands.add_parser("export")
    e.add_argument("folder")
    r = commands.add_parser("run")
    r.add_argument("kiln", type=os.path.abspath)
    r.add_argument("folder")
    r.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    r.add_argument("--rounds", type=int, default=3)
    r.add_argument("-n", type=int, default=15)
    r.add_argument("--target")
    r.add_argument("--json")
    history.add_options(r)
    for each in (e, r):
        each.add_argument("--only", nargs="*", default=[])
    o = p.parse_args()
    export(o.folder, o.only) if o.command == "export" else run(o)


if __name__ == "__main__":
    main()
