"""Runs the program of a kernels.json (docs/kernels_json.md) in the emulator: buffers for values, every launch of every
step in order."""
import json
import os
import random
import struct

import numpy as np

from memory import POISON, Arena, WrongWrite

# How the waves of a workgroup take turns between barriers, and in which order the workgroups run.
ORDERS = {
    "forward": lambda items: items,
    "reversed": lambda items: list(reversed(items)),
    "shuffled": lambda items: random.Random(7).sample(list(items), len(items)),
}
WAVE = {"gfx9": 64, "gfx1": 32}
# The processor that executes code for a family.
MEMBER = {"gfx9-4-generic": "gfx942", "gfx11-generic": "gfx1100", "gfx12-generic": "gfx1201"}
FLOATS = {"f16", "bf16", "f32", "f64"}


class Unsupported(Exception):
    """The program has a step that no kernel covers."""


class Program:
    """A folder that `kiln finalize --export-constants` wrote, opened in `runner` (the module amd_machine)."""

    def __init__(self, folder, runner, report):
        with open(os.path.join(folder, "kernels.json")) as f:
            document = json.load(f)
        self.folder, self.runner, self.report = folder, runner, report
        self.target, self.kernels, self.program = document["target"], document["kernels"], document["program"]
        self.objects = {}
        self.instructions = 0

    def has_order(self):
        """Whether any launch has several waves or workgroups, so that their order could matter."""
        wave = next(w for prefix, w in WAVE.items() if self.target.startswith(prefix))
        used = {s.get("kernel") for s in self.program["steps"]}
        launches = [l for i, k in enumerate(self.kernels) if i in used for l in k["launches"]]
        return any(l["block"][0] > wave or np.prod(l["grid"]) > 1 for l in launches)

    def run(self, inputs, order):
        """Outputs by name as raw bytes, for inputs by name as arrays."""
        arena = Arena(self.runner)
        try:
            return self._run(arena, inputs, order)
        finally:
            arena.release()

    def _run(self, arena, inputs, order):
        values = {}
        for v in self.program["values"]:
            if v["from"] == "empty":
                values[v["id"]] = arena.buffer(0, b"")
            elif v["from"] == "step":
                values[v["id"]] = arena.buffer(v["bytes"], None, POISON["f" if v["type"] in FLOATS else "i"])
            elif v["from"] == "alias":
                values[v["id"]] = values[v["of"]]
                continue
            else:
                data = inputs[v["name"]] if v["from"] == "input" else np.load(os.path.join(self.folder, v["file"]))
                content = np.ascontiguousarray(data).tobytes()
                if len(content) != v["bytes"]:
                    raise ValueError(f"value {v['id']} ({v.get('name', v.get('file'))}) has {len(content)} bytes, {v['bytes']} are due")
                values[v["id"]] = arena.buffer(v["bytes"], content)
            values[v["id"]].name = f"value {v['id']} ({v.get('name', v['from'])}, {v['type']}{v['dims']})"
        for number, step in enumerate(self.program["steps"]):
            if "kernel" not in step:
                raise Unsupported(f"step {number} is '{step['operation']}', which no kernel covers")
            self._step(arena, number, step, values, order)
        arena.check()
        return {o["name"]: values[o["value"]].bytes() for o in self.program["outputs"]}

    def _step(self, arena, number, step, values, order):
        kernel = self.kernels[step["kernel"]]
        scratch = [arena.buffer(b["bytes"], None, 0 if b["zeroed"] else POISON["f"]) for b in kernel["scratch"]]
        for i, b in enumerate(scratch):
            b.name = f"scratch {i} of {kernel['symbol']}"
        of_kind = {"input": [values[v] for v in step["inputs"]], "output": [values[v] for v in step["outputs"]], "scratch": scratch}
        for launch in sorted(kernel["launches"], key=lambda l: not l["prepare"]):
            if 0 in launch["grid"]:
                continue
            self.report(f"step {number} {kernel['symbol']} launch {launch['symbol']} order {order}")
            self._launch(kernel, launch, of_kind, order)
            for used in (b for buffers in of_kind.values() for b in buffers):
                used.check()
        for declared, buffer in zip(kernel["scratch"], scratch):
            if declared["zeroed"] and any(buffer.bytes()):
                raise WrongWrite(f"{buffer.name}: must be left zero")

    def _launch(self, kernel, launch, of_kind, order):
        runner, arrange = self.runner, ORDERS[order]
        if kernel["object"] not in self.objects:
            self.objects[kernel["object"]] = runner.Hsaco(os.path.join(self.folder, kernel["object"]))
        arguments = []
        for a in launch["arguments"]:
            if a["kind"] == "sizes":  # passed by value
                arguments.append(struct.pack(f"<{len(a['values'])}q", *a["values"]))
                continue
            buffer = of_kind[a["kind"]][a["index"]]
            if buffer.size != a["size"]:
                raise ValueError(f"{buffer.name} has {buffer.size} bytes, the launch says {a['size']}")
            arguments.append(buffer.address.to_bytes(8, "little"))
        x, y, z = launch["grid"]
        groups = arrange([(k, j, i) for k in range(z) for j in range(y) for i in range(x)])
        runner.ORDER = arrange
        done = runner.run(self.objects[kernel["object"]], launch["symbol"], MEMBER.get(self.target, self.target), launch["grid"], launch["block"], arguments, launch["lds_bytes"], groups)
        self.instructions += done["waveinst"]

    def resources(self):
        """What the objects' metadata says about each launch that ran: registers, spills, LDS, scratch memory."""
        rows = []
        for kernel in self.kernels:
            hsaco = self.objects.get(kernel["object"])
            for launch in kernel["launches"] if hsaco else []:
                facts = next((k for k in hsaco.meta.get("amdhsa.kernels", []) if k[".symbol"] == launch["symbol"] + ".kd"), {})
                rows.append({
                    "symbol": launch["symbol"], "object": kernel["object"], "grid": launch["grid"], "block": launch["block"][0],
                    "lds": facts.get(".group_segment_fixed_size", 0) + launch["lds_bytes"], "registers": facts.get(".vgpr_count", 0),
                    "accumulators": facts.get(".agpr_count", 0), "spills": facts.get(".vgpr_spill_count", 0), "private": facts.get(".private_segment_fixed_size", 0),
                })
        return rows
