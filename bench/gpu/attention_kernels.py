#!/usr/bin/env python3
"""Attention kernels in many configurations, without kiln on the GPU's machine:

  python3 bench/gpu/attention_kernels.py make KILN FOLDER CASE[:NAME=VALUE,...] ...    # anywhere; cases of attention.py
  python3 bench/gpu/attention_kernels.py run FOLDER                                    # on the GPU

`run` checks each on random data (outputs and scratch filled with NaN before) against attention in f32, then times it
beside PyTorch's fastest back end, and wants the same bits from the last run of the many as from the first. One line for
each; exit code 1 where one is wrong.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def make(kiln, folder, what):
    import attention
    os.makedirs(folder, exist_ok=True)
    for text in what:
        name, _, configuration = text.partition(":")
        model = os.path.join(folder, name)
        if not os.path.exists(model + ".kiln"):
            attention.build(model + ".onnx", attention.CASES[name])
            subprocess.run([kiln, "compile", model + ".onnx", "-o", model + ".kiln", "--quiet"], check=True)
            os.remove(model + ".onnx")
        to = os.path.join(folder, text.replace(":", "__").replace("=", "-").replace(",", "_"))
        command = [kiln, "finalize", model + ".kiln", "--target", "sm_90", "-o", to, "--quiet"]
        for one in filter(None, configuration.split(",")):
            command += ["--configuration", one]
        subprocess.run(command, check=True)
        with open(os.path.join(to, "case.json"), "w") as f:
            json.dump({"text": text, "case": attention.CASES[name]}, f)


def run(folder):
    import torch
    import attention
    import driver
    peers, references, wrong = {}, {}, 0
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not os.path.exists(os.path.join(path, "case.json")):
            continue
        with open(os.path.join(path, "case.json")) as f:
            about = json.load(f)
        with open(os.path.join(path, "kernels.json")) as f:
            kernel = json.load(f)["kernels"][0]
        b, h, g, sq, sk, d, causal = about["case"]
        torch.manual_seed(1)
        q, k, v = (torch.randn(b, n, s, d, device="cuda", dtype=torch.float16) for n, s in ((h, sq), (g, sk), (g, sk)))
        key = json.dumps(about["case"])
        if key not in peers:
            peers[key] = attention.torch_time(q, k, v, causal)
            kk, vv = (x.float().repeat_interleave(h // g, 1) for x in (k, v))
            rows = []
            for part in range(h):
                scores = q[:, part].float() @ kk[:, part].transpose(-1, -2) * d ** -0.5
                if causal:
                    scores = scores.masked_fill(~torch.ones(sq, sk, dtype=torch.bool, device="cuda").tril(sk - sq), float("-inf"))
                rows.append(torch.softmax(scores, -1) @ vv[:, part])
            references[key] = torch.stack(rows, 1)
        best = min(peers[key].values())
        try:
            y = torch.full((b, h, sq, d), float("nan"), device="cuda", dtype=torch.float16)
            memory = {"input": [q, k, v], "output": [y], "scratch": [torch.full((max(16, s["bytes"]),), 0 if s["zeroed"] else 255, dtype=torch.uint8, device="cuda") for s in kernel["scratch"]]}
            module = driver.Module(os.path.join(path, kernel["object"]))
            calls = [driver.Launch(module.function(l["symbol"], l["lds_bytes"]), l, [memory[a["kind"]][a["index"]].data_ptr() for a in l["arguments"]]) for l in kernel["launches"]]
            def all_calls():
                for call in calls:
                    call()
            all_calls()
            torch.cuda.synchronize()
            first, error = y.clone(), float(((y.float() - references[key]).norm() / references[key].norm()))
            ms = driver.time_ms([all_calls])
            y.fill_(float("nan"))
            all_calls()
            torch.cuda.synchronize()
            good = error < 2e-3 and torch.equal(first, y)
            wrong += not good
            print(f"{about['text']:60s} {'ok' if good else 'WRONG'} {error:.1e}  {ms * 1e3:8.1f} us  peer {best * 1e3:8.1f} us  ratio {best / ms:.2f}", flush=True)
        except Exception as e:
            print(f"{about['text']:60s} FAILED {e}", flush=True)
            wrong += 1
            if "ILLEGAL" in str(e) or "LAUNCH" in str(e):
                break
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(make(*sys.argv[2:4], sys.argv[4:]) if sys.argv[1] == "make" else run(sys.argv[2]))
