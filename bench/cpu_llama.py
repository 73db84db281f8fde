#!/usr/bin/env python3
"""`kiln generate` on a CPU beside onnxruntime-genai and llama.cpp: ids per second of a llama of any size.

    cpu_llama.py KILN [--shape 6,288,6,6,768,32000] [--weights f32|int4] [--prompt 33] [--new 128] [--threads 2] [--turns 3]
                 [--llama-bench FILE] [--keep DIR] [--history FILE]

shape: layers, width, heads, heads of keys and values, width of the feed-forward part, vocabulary; weights are random.
int4: blocks of 32 with a scale. Kiln and onnxruntime-genai get MatMulNBits with accuracy_level 0 and with 4, as its builder
writes for CPUs: activations may be rounded to bytes, which both do; llama.cpp gets Q4_0 (bytes, too).
The ids of level 0 are compared. Each turn is a process of its own that loads the model, reads the prompt and chooses greedily;
times are of the best turn. Needs numpy, onnx; onnxruntime-genai and gguf from PyPI for the peers; llama-bench is built
from the sources in llama-cpp-python."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import history
from llama_model import EPSILON, THETA, Llama

BLOCK = 32


def genai_folder(llama, folder, threads):
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(f"{folder}/model.onnx"):
        llama.save(f"{folder}/model.onnx")
    decoder = {"session_options": {"intra_op_num_threads": threads, "provider_options": []}, "filename": "model.onnx", "head_size": llama.head,
               "hidden_size": llama.width, "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"},
               "outputs": {"logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"},
               "num_attention_heads": llama.heads, "num_hidden_layers": llama.layers, "num_key_value_heads": llama.kv}
    model = {"bos_token_id": 1, "eos_token_id": llama.vocabulary - 1, "pad_token_id": 0, "context_length": llama.context, "decoder": decoder, "type": "llama", "vocab_size": llama.vocabulary}
    search = {"do_sample": False, "max_length": llama.context, "num_beams": 1, "past_present_share_buffer": True, "top_k": 1}
    with open(f"{folder}/genai_config.json", "w") as f:
        json.dump({"model": model, "search": search}, f)


def genai_turn(folder, prompt_file, new):
    """In a process of its own: {"first_ms", "tokens_per_second", "tokens"}."""
    import onnxruntime_genai as og
    prompt = np.load(prompt_file)
    begin = time.perf_counter()
    model = og.Model(folder)
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(do_sample=False, max_length=len(prompt) + new)
    generator = og.Generator(model, parameters)
    loaded = time.perf_counter()
    generator.append_tokens(prompt.astype(np.int32))
    times = []
    for _ in range(new):
        generator.generate_next_token()
        times.append(time.perf_counter())
    print(json.dumps({"first_ms": 1e3 * (times[0] - begin), "prompt_ms": 1e3 * (times[0] - loaded), "tokens_per_second": (new - 1) / (times[-1] - times[0]), "tokens": [int(t) for t in generator.get_sequence(0)[len(prompt):]]}))


def write_gguf(llama, path, quantized):
    import gguf
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(llama.context), writer.add_embedding_length(llama.width), writer.add_block_count(llama.layers)
    writer.add_feed_forward_length(llama.inner), writer.add_head_count(llama.heads), writer.add_head_count_kv(llama.kv)
    writer.add_layer_norm_rms_eps(EPSILON), writer.add_rope_freq_base(THETA), writer.add_rope_dimension_count(llama.head)
    writer.add_vocab_size(llama.vocabulary), writer.add_tokenizer_model("no_vocab")

    def tensor(name, array, packed):
        array = np.ascontiguousarray(array.astype(np.float32))
        if not packed:
            return writer.add_tensor(name, array)
        kind = gguf.GGMLQuantizationType.Q4_0
        writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)

    ones, w, kv = np.ones(llama.width, np.float32), llama.width, llama.kv * llama.head
    names = {"o": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
    tensor("output_norm.weight", ones, False)
    for i in range(llama.layers):
        tensor(f"blk.{i}.attn_norm.weight", ones, False), tensor(f"blk.{i}.ffn_norm.weight", ones, False)
    for name, array in llama.weights():
        layer, _, part = name.partition(".")
        if name == "embed":
            tensor("token_embd.weight", array, quantized)
        elif name == "head":
            tensor("output.weight", array.T, quantized)
        elif part == "qkv":
            for piece, t in zip("qkv", np.split(array.T, [w, w + kv])):
                tensor(f"blk.{layer}.attn_{piece}.weight", t, quantized)
        else:
            tensor(f"blk.{layer}.{names[part]}.weight", array.T, quantized)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:3])}: {done.stderr[-600:]}")
    return json.loads(done.stdout)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("kiln")
    arguments.add_argument("--shape", default="6,288,6,6,768,32000")
    arguments.add_argument("--weights", choices=["f32", "int4"], default="f32")
    arguments.add_argument("--prompt", type=int, default=33)
    arguments.add_argument("--new", type=int, default=128)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--llama-bench")
    arguments.add_argument("--no-genai", action="store_true")
    arguments.add_argument("--keep", help="folder for the models and the cache")
    history.add_options(arguments)
    o = arguments.parse_args()
    log = history.Log(o, o.kiln)
    work = o.keep or tempfile.mkdtemp()
    shape = [int(n) for n in o.shape.split(",")]
    models = {level: Llama(shape, 2048, np.float32, BLOCK if o.weights == "int4" else 0, level) for level in ([0, 4] if o.weights == "int4" else [0])}
    for level, llama in models.items():
        genai_folder(llama, f"{work}/genai{level}", o.threads)
    prompt = np.random.default_rng(7).integers(0, shape[-1], o.prompt)
    np.save(f"{work}/prompt.npy", prompt)
    for level in models:
        subprocess.run([o.kiln, "compile", f"{work}/genai{level}/model.onnx", "-o", f"{work}/m{level}.kiln", "--quiet"], check=True)
    if o.llama_bench and not os.path.exists(f"{work}/m.gguf"):
        write_gguf(models[0], f"{work}/m.gguf", o.weights == "int4")

    def ours(level):
        return run(o.kiln, "generate", f"{work}/m{level}.kiln", "--prompt-ids", f"{work}/prompt.npy", "--max-new-tokens", str(o.new), "--threads", str(o.threads), "--cache", f"{work}/cache", "--json")

    def genai(level):
        program = f"import cpu_llama; cpu_llama.genai_turn({work + f'/genai{level}'!r}, {work + '/prompt.npy'!r}, {o.new})"
        folders = [os.path.dirname(os.path.abspath(__file__)), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(folders))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(done.stderr[-600:])
        return json.loads(done.stdout.splitlines()[-1])

    def llama_cpp():
        results = run(o.llama_bench, "-m", f"{work}/m.gguf", "-p", str(o.prompt), "-n", str(o.new), "-t", str(o.threads), "-r", "1", "-o", "json")
        return {"tokens_per_second": results[1]["avg_ts"], "prompt_ms": 1e3 * o.prompt / results[0]["avg_ts"]}

    for level in models:
        print(f"kiln, level {level}, cold: first id after {ours(level)['time_to_first_token_ms']:.0f} ms", flush=True)
    sides = {f"kiln, level {level}": (lambda level=level: ours(level)) for level in models}
    if not o.no_genai:
        sides |= {f"genai, level {level}": (lambda level=level: genai(level)) for level in models}
    if o.llama_bench:
        sides["llama.cpp"] = llama_cpp
    turns = {name: [] for name in sides}
    for _ in range(o.turns):
        for name, side in sides.items():
            turns[name].append(side())
    best = {name: max(t["tokens_per_second"] for t in of) for name, of in turns.items()}
    for name, of in turns.items():
        first = min(t.get("time_to_first_token_ms", t.get("first_ms", 0)) for t in of)
        prompts = min(t.get("prefill_ms", t.get("prompt_ms", 0)) for t in of)
        ratios = ", ".join(f"{best[f'kiln, level {level}'] / best[name]:.2f}" for level in models)
        print(f"{name:16} {best[name]:9.1f} ids/s  kiln / it {ratios:>10}  first id with loading {first:7.1f} ms  prompt {prompts:7.1f} ms")
    for level in models:
        step = history.case(f"llama {o.shape}", 1, o.weights, f"step after {o.prompt}", f"level {level}")
        for name, version in ((f"genai, level {level}", "onnxruntime-genai"), ("llama.cpp", None)):
            if name in best:
                peer = history.version_of(version) if version else name
                log.add(history.processor(o.threads), step, peer, 1e3 / best[f"kiln, level {level}"], 1e3 / best[name])
    if not o.no_genai:
        mine, theirs = turns["kiln, level 0"][0]["tokens"], turns["genai, level 0"][0]["tokens"]
        mine = mine[0] if isinstance(mine[0], list) else mine
        print(f"the first {next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b), o.new)} ids of Kiln and genai (level 0) are equal")


if __name__ == "__main__":
    main()
