"""PyTorch's side of networks.py: the networks of its libraries, or the ONNX graph itself as calls of PyTorch, traced once.

    network_peers.py NAME MODEL.onnx BATCH f16|f32 0|1    # prints how long each way took to build, then a line of times for each line it reads
"""
import numpy as np, onnx
from onnx import numpy_helper as nh

LIBRARY = {"resnet50": "resnet50", "resnet18_dynbatch": "resnet18", "mobilenet_v2": "mobilenet_v2", "squeezenet1_1": "squeezenet1_1", "densenet121": "densenet121",
           "efficientnet_b0": "efficientnet_b0", "convnext_tiny": "convnext_tiny", "vit_b_16": "vit_b_16"}


def graph_module(path, half):
    import torch
    from torch import nn
    from torch.nn import functional as F
    g = onnx.load(path).graph
    types = {1: torch.float16 if half else torch.float32, 10: torch.float16, 7: torch.int64, 6: torch.int32, 9: torch.bool, 11: torch.float32}

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.known, self.names, self.static, self.lifted, self.kept = {}, {}, None, {}, []
            tensors = [(t.name, nh.to_array(t)) for t in g.initializer]
            tensors += [(n.output[0], nh.to_array(n.attribute[0].t)) for n in g.node if n.op_type == "Constant"]
            for i, (name, a) in enumerate(tensors):
                if a.dtype in (np.float32, np.float16, np.float64) and a.size > 0 and a.ndim > 0:
                    t = torch.from_numpy(a.copy())
                    self.register_buffer(f"w{i}", t.half() if half or a.dtype == np.float16 else t.float())
                    self.names[name] = f"w{i}"
                else:
                    self.known[name] = a

        def record(self, *inputs):
            """Finds what depends on shapes alone."""
            values = dict(self.known)
            self.run(inputs, values, None)
            self.static = {k: v for k, v in values.items() if isinstance(v, np.ndarray) or isinstance(v, np.generic)}

        def forward(self, *inputs):
            return self.run(inputs, None, self.static)

        def run(self, inputs, recorded, static):
            env = dict(recorded if static is None else static)
            for name, b in self.names.items():
                env[name] = getattr(self, b)
            for i, x in zip(g.input, inputs):
                env[i.name] = x
            for n in g.node:
                if n.op_type == "Constant" or (static is not None and all(o in static for o in n.output if o)):
                    continue
                a = {x.name: onnx.helper.get_attribute_value(x) for x in n.attribute}
                out = self.node(n.op_type, [env[i] if i else None for i in n.input], a, n)
                for o, v in zip(n.output, out if isinstance(out, (list, tuple)) else [out]):
                    env[o] = v
                    if recorded is not None:
                        recorded[o] = v
            return tuple(env[o.name] for o in g.output)

        def node(self, op, x, a, n):
            ints = lambda v: [int(i) for i in np.atleast_1d(v)]
            if all(v is None or isinstance(v, (np.ndarray, np.generic)) for v in x) or op == "Shape":
                return self.host(op, x, a)
            dev = next(v for v in x if isinstance(v, torch.Tensor)).device
            def lift(v):
                if isinstance(v, torch.Tensor) or v is None: return v
                if v.size == 1 and v.ndim == 0: return v.item()
                if id(v) not in self.lifted: self.lifted[id(v)] = torch.from_numpy(np.array(v)).to(dev); self.kept.append(v)
                return self.lifted[id(v)]
            if op == "Identity": return x[0]
            if op == "Conv":
                p = a.get("pads", [0, 0, 0, 0])
                assert p[:2] == p[2:]
                return F.conv2d(x[0], x[1], x[2] if len(x) > 2 else None, a.get("strides", [1, 1]), p[:2], a.get("dilations", [1, 1]), a.get("group", 1))
            if op == "ConvTranspose":
                return F.conv_transpose2d(x[0], x[1], x[2] if len(x) > 2 else None, a.get("strides", [1, 1]), a.get("pads", [0, 0])[:2])
            if op == "InstanceNormalization":
                return F.instance_norm(x[0], weight=x[1], bias=x[2], eps=a["epsilon"])
            if op == "MaxPool": return F.max_pool2d(x[0], a["kernel_shape"], a["strides"], a["pads"][:2])
            if op == "AveragePool": return F.avg_pool2d(x[0], a["kernel_shape"], a["strides"], a["pads"][:2])
            if op == "Sigmoid": return torch.sigmoid(x[0])
            if op in ("Mul", "Add", "Sub", "Div", "Pow", "Mod", "Equal", "LessOrEqual"):
                l, r = lift(x[0]), lift(x[1])
                f = {"Mul": torch.mul, "Add": torch.add, "Sub": torch.sub, "Div": torch.div, "Pow": torch.pow, "Mod": torch.remainder, "Equal": torch.eq, "LessOrEqual": torch.le}[op]
                if op == "Div" and isinstance(l, torch.Tensor) and not l.is_floating_point(): return torch.div(l, r, rounding_mode="floor")
                if not isinstance(l, torch.Tensor): l = torch.tensor(l, device=dev, dtype=r.dtype)
                return f(l, r)
            if op == "Neg": return -x[0]
            if op == "Sqrt": return torch.sqrt(x[0])
            if op == "Not": return ~x[0]
            if op == "MatMul": return x[0] @ x[1]
            if op == "Softmax": return torch.softmax(x[0], a.get("axis", -1))
            if op == "Reshape":
                s = [d if d else x[0].shape[i] for i, d in enumerate(ints(x[1]))]
                return x[0].reshape(s)
            if op == "Transpose": return x[0].permute(a["perm"])
            if op == "Concat": return torch.cat([lift(v) for v in x], a["axis"])
            if op == "Split": return list(torch.split(x[0], ints(x[1]), a.get("axis", 0)))
            if op == "Slice":
                r = x[0]
                for s, e, d in zip(ints(x[1]), ints(x[2]), ints(x[3]) if len(x) > 3 and x[3] is not None else range(len(ints(x[1])))):
                    size = r.shape[d]
                    s, e = max(s + size, 0) if s < 0 else min(s, size), e + size if e < 0 else min(e, size)
                    r = r.narrow(d, s, e - s)
                return r
            if op == "Gather":
                axis = a.get("axis", 0)
                if isinstance(x[1], torch.Tensor):
                    t = lift(x[0])
                    if axis == 0: return t[x[1]]
                    i = x[1]
                    return torch.index_select(t, axis, i.flatten()).reshape(*t.shape[:axis], *i.shape, *t.shape[axis + 1:])
                if x[1].ndim == 0: return x[0].select(axis, int(x[1]))
                return torch.index_select(x[0], axis, lift(x[1]))
            if op == "GatherElements": return torch.gather(x[0], a.get("axis", 0), x[1])
            if op == "ScatterElements": return x[0].scatter(a["axis"], x[1], x[2])
            if op == "Unsqueeze":
                r = x[0]
                for d in sorted(ints(x[1])): r = r.unsqueeze(d)
                return r
            if op == "Expand":
                return x[0].expand(*torch.broadcast_shapes(tuple(x[0].shape), tuple(ints(x[1]))))
            if op == "Where":
                return torch.where(lift(x[0]), lift(x[1]), lift(x[2]))
            if op == "Cast": return x[0].to(types[a["to"]])
            if op == "ReduceSum": return x[0].sum(ints(x[1]), keepdim=bool(a.get("keepdims", 1)))
            if op == "ReduceMax": return x[0].amax(a.get("axes") or ints(x[1]), keepdim=bool(a.get("keepdims", 1)))
            if op == "ReduceMean": return x[0].mean(a["axes"], keepdim=bool(a.get("keepdims", 1)))
            if op == "TopK":
                v, i = torch.topk(x[0], int(np.atleast_1d(x[1])[0]), a.get("axis", -1))
                return [v, i]
            if op == "Flatten": return x[0].flatten(a.get("axis", 1)) if a.get("axis", 1) == 1 else x[0].reshape(int(np.prod(x[0].shape[:a["axis"]])), -1)
            if op == "Resize":
                s = [int(d) for d in x[3]] if len(x) > 3 and x[3] is not None else [int(d * f) for d, f in zip(x[0].shape, x[2].tolist() if isinstance(x[2], torch.Tensor) else x[2])]
                return F.interpolate(x[0], size=s[2:], mode="nearest")
            raise NotImplementedError(op)

        def host(self, op, x, a):
            if op == "Shape": return np.array(list(x[0].shape), np.int64)
            if op == "Identity": return x[0]
            if op == "Gather": return np.take(x[0], x[1], a.get("axis", 0))
            if op in ("Add", "Mul", "Sub"): return {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract}[op](x[0], x[1])
            if op == "Div": return x[0] // x[1] if np.issubdtype(x[0].dtype, np.integer) else x[0] / x[1]
            if op == "Sqrt": return np.sqrt(x[0])
            if op == "Cast": return np.asarray(x[0]).astype({1: np.float32, 7: np.int64, 10: np.float16, 6: np.int32, 9: np.bool_, 11: np.float64}[a["to"]])
            if op == "Unsqueeze":
                r = np.asarray(x[0])
                for d in sorted(int(i) for i in np.atleast_1d(x[1])): r = np.expand_dims(r, d)
                return r
            if op == "Concat": return np.concatenate([np.atleast_1d(v) for v in x], a["axis"])
            if op == "ConstantOfShape":
                v = nh.to_array(a["value"]) if "value" in a else np.zeros(1, np.float32)
                return np.full([int(i) for i in x[0]], v[0], v.dtype)
            if op == "Equal": return x[0] == x[1]
            if op == "Where": return np.where(x[0], x[1], x[2])
            if op == "Slice":
                s = [slice(None)] * np.asarray(x[0]).ndim
                for b, e, d in zip(x[1], x[2], x[3] if len(x) > 3 else range(len(x[1]))): s[int(d)] = slice(int(b), int(e))
                return np.asarray(x[0])[tuple(s)]
            if op == "Reshape": return np.reshape(x[0], [int(i) for i in x[1]])
            if op == "Expand": return np.broadcast_to(x[0], np.broadcast_shapes(x[0].shape, tuple(int(i) for i in x[1]))).copy()
            raise NotImplementedError("host " + op)

    return Graph()


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
    module = graph_module(path, half).to(device).eval()
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
            for _ in range(3): f(*args)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream): f(*args)
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
