"""torch.compile with Kiln beside eager torch and inductor: answers, the time of the first call, and the median of later ones.
Weights are random. Needs torch, onnxscript, torchvision and transformers, and Kiln's package.

    PYTHONPATH=build/ci/python python bench/torch_backend.py [--device cuda] [--threads 2] [MODEL...]
"""
import argparse
import statistics
import time
import warnings

import torch
from kiln import torch_backend


def image(name):
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)()
    if name.startswith("vit"):
        torch.nn.init.normal_(model.heads.head.weight)  # zeros otherwise, which any answer would equal
    return model, torch.randn(1, 3, 224, 224)


def text(kind):
    import transformers

    torch.manual_seed(0)
    if kind == "bert":
        config = transformers.BertConfig(num_hidden_layers=6, hidden_size=384, num_attention_heads=6, intermediate_size=1536)
        return transformers.BertModel(config), torch.randint(0, 30000, (1, 64))
    config = transformers.GPT2Config(n_layer=4, n_embd=384, n_head=6, use_cache=False)
    return transformers.GPT2Model(config), torch.randint(0, 50000, (1, 64))


MODELS = {
    "resnet18": lambda: image("resnet18"),
    "mobilenet_v3_small": lambda: image("mobilenet_v3_small"),
    "efficientnet_b0": lambda: image("efficientnet_b0"),
    "vit_b_16": lambda: image("vit_b_16"),
    "bert_6_layers_384": lambda: text("bert"),
    "gpt2_4_layers_384": lambda: text("gpt2"),
}
BACKENDS = {"kiln": torch_backend.kiln, "inductor": "inductor"}


def tensors_of(result):
    if isinstance(result, torch.Tensor):
        return [result]
    parts = result.to_tuple() if hasattr(result, "to_tuple") else result
    return [t for part in parts if part is not None for t in tensors_of(part)]


def timed(function, device):
    if device == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    result = function()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3, result


def median_ms(function, device, runs=30):
    return statistics.median(timed(function, device)[0] for _ in range(runs))


def measure(name, device, threads):
    model, x = MODELS[name]()
    model, x = model.eval().to(device), x.to(device)
    expected = tensors_of(model(x))
    print(f"{name}: eager {median_ms(lambda: model(x), device):.2f} ms", flush=True)
    for backend, function in BACKENDS.items():
        torch._dynamo.reset()
        before = torch_backend.graphs()
        options = {"options": {"threads": threads}} if backend == "kiln" else {}
        compiled = torch.compile(model, backend=function, **options)
        first, result = timed(lambda: compiled(x), device)
        error = max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(tensors_of(result), expected))
        refused = [r.refused for r in torch_backend.graphs() if r.refused and not any(r is old for old in before)]
        note = f"; eager graphs: {refused}" if refused else ""
        print(f"  {backend:9} {median_ms(lambda: compiled(x), device):8.2f} ms, first call {first / 1e3:5.1f} s, error {error:.1e}{note}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(chosen.threads)
    with torch.no_grad():
        for name in chosen.models:
            measure(name, chosen.device, chosen.threads)


if __name__ == "__main__":
    main()
