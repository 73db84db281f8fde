"""PyTorch's side of networks.py: the networks of its libraries, or the ONNX graph itself as calls of PyTorch, traced once.

    network_peers.py NAME MODEL.onnx BATCH f16|f32 0|1    # prints how long each way took to build, then a line of times for each line it reads
"""
import onnx

LIBRARY = {"resnet50": "resnet50", "resnet18_dynbatch": "resnet18", "mobilenet_v2": "mobilenet_v2", "squeezenet1_1": "squeezenet1_1", "densenet121": "densenet121",
           "efficientnet_b0": "efficientnet_b0", "convnext_tiny": "convnext_tiny", "vit_b_16": "vit_b_16"}


def make(name, path, batch, half, device="cuda"):
    """module, inputs"""
    import torch
    dtype = torch.float16 if half else torch.float32
    torch.manual_seed(1)
    if name in LIBRARY:
        import torchvision
        return getattr(torchvision.models, LIBRARY[name])(weights=None).to(dtype).to(device).eval(), (torch.randn(batch, 3, 224, 224, device=device, dtype=dtype),)
    if name == "bert_base":
        from transformers import BertConfig, BertModel
        return BertModel(BertConfig()).to(dtype).to(device).eval(), (torch.randint(0, 30000, (batch, 128), device=device), torch.ones(batch, 128, dtype=torch.long, device=device))
    if name == "whisper_tiny_encoder":
        from transformers import WhisperConfig, WhisperModel
        c = WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, decoder_layers=1, decoder_attention_heads=6, decoder_ffn_dim=64)
        return WhisperModel(c).encoder.to(dtype).to(device).eval(), (torch.randn(batch, 80, 3000, device=device, dtype=dtype),)
    if name == "lstm_gru":
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.l, self.g, self.o = nn.LSTM(64, 128, 2, batch_first=True, bidirectional=True), nn.GRU(256, 64, batch_first=True), nn.Linear(64, 10)

            def forward(self, x):
                return self.o(self.g(self.l(x)[0])[0][:, -1])
        return Net().to(dtype).to(device).eval(), (torch.randn(batch, 32, 64, device=device, dtype=dtype),)
    from graph_in_torch import Graph
    module = Graph(path, half).to(device).eval()
    inputs = []
    for i in onnx.load(path, load_external_data=False).graph.input:
        dims = [d.dim_value for d in i.type.tensor_type.shape.dim]
        inputs.append(torch.ones(dims, dtype=torch.long, device=device) if i.type.tensor_type.elem_type == 7 else torch.randn(dims, device=device, dtype=dtype))
    from torch.fx.experimental.proxy_tensor import make_fx
    with torch.no_grad():
        module.record(*inputs)
        module(*inputs)
        traced = make_fx(module)(*inputs)
    return traced, tuple(inputs)


def worker(name, path, batch, half, tune):
    """Prints a JSON line when ready; for each line on standard input times the ways and prints JSON."""
    import json
    import sys
    import time

    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    module, inputs = make(name, path, batch, half)
    calls, notes = {}, {}

    def captured(f, args):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                f(*args)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            f(*args)
        return graph
    with torch.no_grad():
        def attempt(what, f):
            begin = time.time()
            try:
                calls[what] = f()
                notes[what] = round(time.time() - begin, 1)
            except Exception as e:
                notes[what] = "FAILED " + str(e)[-200:]
                torch.cuda.synchronize()
        attempt("eager", lambda: captured(module, inputs))
        if name in LIBRARY:
            last = (inputs[0].contiguous(memory_format=torch.channels_last),)
            module = module.to(memory_format=torch.channels_last)
            attempt("eager_nhwc", lambda: captured(module, last))
        mode = "max-autotune-no-cudagraphs" if tune else "default"
        attempt("max-autotune" if tune else "compile", lambda: captured(torch.compile(module, mode=mode, dynamic=False), inputs))
    print(json.dumps({"ready": notes}), flush=True)
    for _ in sys.stdin:
        found = {}
        for what, graph in calls.items():
            for _ in range(5):
                graph.replay()
            torch.cuda.synchronize()
            queued = []
            for _ in range(5):
                first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                first.record()
                for _ in range(10):
                    graph.replay()
                last.record()
                torch.cuda.synchronize()
                queued.append(first.elapsed_time(last) / 10)
            found[what] = round(sorted(queued)[2], 4)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    import sys
    name, path, batch, half, tune = sys.argv[1:6]
    worker(name, path, int(batch), half == "f16", tune == "1")
