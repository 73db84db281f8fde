#!/usr/bin/env python3
"""Attention kernels in many configurations, without kiln on the GPU's machine:

  python3 bench/gpu/attention_kernels.py make KILN FOLDER CASE[:NAME=VALUE,...] ...    # anywhere; cases of attention.py
  python3 bench/gpu/attention_kernels.py run FOLDER                                    # on the GPU

`run` checks each on random data (outputs and scratch filled with NaN before) against attention in f32, then times it
beside PyTorch's fastest back end, and wants the same bits from the last run of the many as from the first. One line for
each; exit code 1 where one is wrong.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernel_cases  # noqa: E402


def run(folder):
    import attention
    import driver
    import torch
    peers, references = {}, {}

    def run_case(path, text):
        b, h, g, sq, sk, d, causal = case = attention.CASES[text.partition(":")[0]]
        torch.manual_seed(1)
        q, k, v = (torch.randn(b, n, s, d, device="cuda", dtype=torch.float16) for n, s in ((h, sq), (g, sk), (g, sk)))
        if case not in peers:
            peers[case] = attention.torch_time(q, k, v, causal)
            kk, vv = (x.float().repeat_interleave(h // g, 1) for x in (k, v))
            rows = []
            for part in range(h):
                scores = q[:, part].float() @ kk[:, part].transpose(-1, -2) * d ** -0.5
                if causal:
                    scores = scores.masked_fill(~torch.ones(sq, sk, dtype=torch.bool, device="cuda").tril(sk - sq), float("-inf"))
                rows.append(torch.softmax(scores, -1) @ vv[:, part])
            references[case] = torch.stack(rows, 1)
        best = min(peers[case].values())
        kernel = kernel_cases.Kernel(path, (q, k, v))
        launches = kernel.calls()
        launches()
        torch.cuda.synchronize()
        first, error = kernel.output.clone(), float(((kernel.output.float() - references[case]).norm() / references[case].norm()))
        ms = driver.time_ms([launches])
        kernel.output.fill_(float("nan"))
        launches()
        torch.cuda.synchronize()
        good = error < 2e-3 and torch.equal(first, kernel.output)
        print(f"{text:60s} {'ok' if good else 'WRONG'} {error:.1e}  {ms * 1e3:8.1f} us  peer {best * 1e3:8.1f} us  ratio {best / ms:.2f}", flush=True)
        kernel.module.unload()
        return good

    return kernel_cases.run(folder, run_case)


def build(path, name):
    import attention
    attention.build(path, attention.CASES[name])


if __name__ == "__main__":
    sys.exit(kernel_cases.make(*sys.argv[2:4], sys.argv[4:], build) if sys.argv[1] == "make" else run(sys.argv[2]))
