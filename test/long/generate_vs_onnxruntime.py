#!/usr/bin/env python3
"""Greedy ids of `kiln generate` beside those of a loop over onnxruntime, for every decoder of a folder of models.

    generate_vs_onnxruntime.py KILN MODELS [--steps 64] [--prompts 1,7,33] [--only TEXT] [--tolerance 1e-3] [--device cuda:0]

MODELS holds NAME.onnx files with weights. A decoder is a model with an input of ids and logits. Encoder-decoders are
found by their names: X_encoder, X_decoder, X_decoder_with_past and X_decoder_merged become folders as optimum writes
them, one with the merged decoder and one with the pair. Where the ids differ, the difference of onnxruntime's two best
logits at that step decides: below the tolerance (of the largest logit) the step is a tie, else the ids are wrong.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort


WINDOW = 16  # rows of caches that hold the last positions only


def session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 2
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def dtype(text):
    return {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}[text]


def zero_state(i, batch, encoder_length):
    """Zeros: one row for each sequence, as long as the encoder's prompt or empty."""
    dims = [batch]
    for d in i.shape[1:]:
        dims.append(d if isinstance(d, int) else encoder_length if "encoder" in d else 16 if d == "kv_cache_dim" else WINDOW if "sliding" in d else 0)
    return np.zeros(dims, dtype(i.type))


class Loop:
    """Greedy decoding with names as the exporters write them."""

    def __init__(self, decoder, first=None, encoder=None):
        self.later, self.first, self.encoder = session(decoder), session(first) if first else None, session(encoder) if encoder else None

    def step(self, s, ids, past, state, encoded):
        feed = {}
        names = {i.name: i for i in s.get_inputs()}
        states = [n for n in names if n.startswith("past")]
        for n, i in names.items():
            total = past + ids.shape[1]
            if n == "input_ids":
                value = ids
            elif n == "position_ids":
                value = np.arange(past, total)[None]
            elif n in ("encoder_attention_mask",):
                value = np.ones((1, encoded.shape[1]))
            elif n == "attention_mask":
                value = np.ones((1, total))
            elif n == "encoder_hidden_states":
                value = encoded
            elif n == "use_cache_branch":
                value = np.array([past > 0])
            else:
                value = state.get(n, zero_state(i, 1, encoded.shape[1] if encoded is not None else 0))
            feed[n] = np.asarray(value).astype(dtype(i.type))
        outputs = [o.name for o in s.get_outputs()]
        results = dict(zip(outputs, s.run(None, feed)))
        logits = next(o for o in outputs if "logits" in o) if any("logits" in o for o in outputs) else outputs[0]
        rest = [o for o in outputs if o != logits and o != "hidden_states"]
        named = {n.replace("past_key_values", "present"): n for n in states} | {n.replace("past", "present", 1): n for n in states}
        fresh = {named.get(o, o.replace("present", "past_key_values")): results[o] for o in rest} if not rest or rest[0].startswith("present") else {n: results[o] for n, o in zip(states, rest)}
        for n, value in fresh.items():
            if not ("encoder" in n and past > 0):      # computed once
                state[n] = value
        return results[logits][0, -1].astype(np.float64)

    def vocabulary(self):
        """Number of logits, or 250 where the model leaves it open."""
        sizes = [o.shape[-1] for o in self.later.get_outputs() if "logits" in o.name]
        return sizes[0] if sizes and isinstance(sizes[0], int) else 250

    def features(self):
        """The encoder's inputs that are no ids, by name: random, with open dimensions of 1."""
        if not self.encoder or any(i.name == "input_ids" for i in self.encoder.get_inputs()):
            return {}
        random = np.random.default_rng(0)
        return {i.name: random.standard_normal([d if isinstance(d, int) else 1 for d in i.shape]).astype(dtype(i.type)) for i in self.encoder.get_inputs()}

    def run(self, prompt, steps, start):
        state, encoded, made, margins = {}, None, [], []
        ids = prompt[None]
        if features := self.features():
            encoded = self.encoder.run(None, features)[0]
        elif self.encoder:
            encoded = self.encoder.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
            ids = np.array([[start]])
        past, every = 0, ids
        cached = any(i.name.startswith("past") for i in self.later.get_inputs())
        for _ in range(steps):
            s = self.first if self.first and past == 0 else self.later
            try:
                logits = self.step(s, ids, past, state, encoded)
            except Exception:
                if not made:
                    raise
                break  # onnxruntime refuses positions that the model does not have
            best = np.sort(logits)[-2:]
            margins.append((best[1] - best[0]) / max(np.abs(logits).max(), 1e-9))
            made.append(int(logits.argmax()))
            every = np.concatenate([every, [[made[-1]]]], 1)
            if cached:
                past, ids = past + ids.shape[1], every[:, -1:]
            else:
                ids = every
        return made, margins


def is_decoder(path):
    graph = onnx.load(path, load_external_data=False).graph
    inputs, outputs = [i.name for i in graph.input], [o.name for o in graph.output]
    if "input_ids" not in inputs or any("encoder" in n or "pixel" in n or "token_type" in n for n in inputs):
        return False
    return any(n.startswith("past") for n in inputs) or "no_past" in path


def is_quantized(path):
    if os.path.isdir(path):
        return any(is_quantized(os.path.join(path, f)) for f in os.listdir(path) if f.endswith(".onnx"))
    kinds = {n.op_type for n in onnx.load(path, load_external_data=False).graph.node}
    return bool(kinds & {"MatMulNBits", "DequantizeLinear", "GatherBlockQuantized", "MatMulInteger"})


def find_cases(folder, work):
    """(name, what kiln opens, the reference's loop)."""
    models = {f[:-5]: os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".onnx")}
    for name, path in models.items():
        if is_decoder(path):
            yield name, path, lambda p=path: Loop(p)
    for name, path in models.items():
        if not name.endswith("_decoder") or name[:-8] + "_encoder" not in models or name + "_with_past" not in models:
            continue
        encoder, later, merged = models[name[:-8] + "_encoder"], models[name + "_with_past"], models.get(name + "_merged")
        forms = {"pair": ({"decoder_model": path, "decoder_with_past_model": later}, lambda a=later, b=path, c=encoder: Loop(a, b, c))}
        if merged:
            forms["merged"] = ({"decoder_model_merged": merged}, lambda a=merged, c=encoder: Loop(a, None, c))
        for form, (files, reference) in forms.items():
            target = os.path.join(work, f"{name}_{form}")
            os.mkdir(target)
            for stem, file in {"encoder_model": encoder, **files}.items():
                os.symlink(os.path.abspath(file), os.path.join(target, stem + ".onnx"))
            with open(os.path.join(target, "config.json"), "w") as out:
                json.dump({"decoder_start_token_id": 0, "is_encoder_decoder": True}, out)
            yield f"{name} ({form})", target, reference


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("kiln"), arguments.add_argument("models")
    arguments.add_argument("--steps", type=int, default=64)
    arguments.add_argument("--prompts", default="1,7,33")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--device", default="host", help="that kiln runs on; onnxruntime runs on the host")
    arguments.add_argument("--tolerance", type=float, default=1e-3)
    arguments.add_argument("--quantized-tolerance", type=float, default=1e-2, help="of models with products of packed weights")
    a = arguments.parse_args()
    wrong = refused = right = 0
    with tempfile.TemporaryDirectory() as work:
        print(f"{'model':<40} {'ids':>4}  {'equal':>7}  result")
        for name, target, reference in find_cases(a.models, work):
            if a.only not in name:
                continue
            loop, tolerance = None, a.quantized_tolerance if is_quantized(target) else a.tolerance
            for length in map(int, a.prompts.split(",")):
                loop = loop or reference()
                prompt = np.random.default_rng(length).integers(1, min(250, loop.vocabulary()), length)
                np.save(os.path.join(work, "ids.npy"), prompt)
                features = []
                for key, data in loop.features().items():
                    np.save(os.path.join(work, "features.npy"), data)
                    features += ["--encoder-input", f"{key}={work}/features.npy"]
                done = subprocess.run([a.kiln, "generate", target, *features, "--prompt-ids", os.path.join(work, "ids.npy"), "--max-new-tokens", str(a.steps), "--device", a.device, "--json", "--cache", os.path.join(work, "cache")],
                                      capture_output=True, text=True)
                if done.returncode:
                    refused += 1
                    print(f"{name:<40} {length:>4}  {'':>7}  refused: {done.stderr.strip().splitlines()[-1]}", flush=True)
                    continue
                answer = json.loads(done.stdout)
                try:
                    want, margins = loop.run(prompt, a.steps, 0)
                except Exception as e:
                    print(f"{name:<40} {length:>4}  {'':>7}  no reference: {str(e).splitlines()[0][:120]}", flush=True)
                    continue
                got = answer["tokens"][:len(want)]
                equal = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w), min(len(got), len(want)))
                state = "ok" if got == want else "tie" if equal < len(margins) and margins[equal] < tolerance else "WRONG"
                wrong += state == "WRONG"
                right += state == "ok"
                extra = f"; logits differ by {margins[equal]:.1e}" if state != "ok" and equal < len(margins) else ""
                compiled = f"; {answer['compiled_after_first']} kernels compiled after the first step" if answer["compiled_after_first"] else ""
                print(f"{name:<40} {length:>4}  {equal:>3}/{len(want):<3}  {state}{extra}{compiled}", flush=True)
    print(f"{right} equal, {wrong} wrong, {refused} refused")
    return 1 if wrong or refused else 0


if __name__ == "__main__":
    sys.exit(main())
