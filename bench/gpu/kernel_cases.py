"""Kernels of small models, finalized for sm_90 on any machine and run on a GPU without kiln: what operator_kernels.py and
attention_kernels.py share. A case is NAME[:CONFIGURATION,...]; its folder holds what `kiln finalize` writes and the file
case.txt with its text. Needs PyTorch on the GPU's machine only."""
import json
import os
import subprocess


def make(kiln, folder, cases, build):
    """Finalizes every case; `build(path, name)` writes the ONNX file of a name."""
    os.makedirs(folder, exist_ok=True)
    for text in cases:
        name, _, configuration = text.partition(":")
        model = os.path.join(folder, name)
        if not os.path.exists(model + ".kiln"):
            build(model + ".onnx", name)
            subprocess.run([kiln, "compile", model + ".onnx", "-o", model + ".kiln", "--quiet"], check=True)
            os.remove(model + ".onnx")
        to = os.path.join(folder, text.replace(":", "__").replace("=", "-").replace(",", "_"))
        command = [kiln, "finalize", model + ".kiln", "--target", "sm_90", "-o", to, "--quiet"]
        for one in filter(None, configuration.split(",")):
            command += ["--configuration", one]
        subprocess.run(command, check=True)
        with open(os.path.join(to, "case.txt"), "w") as f:
            f.write(text)
    for name in os.listdir(folder):
        if name.endswith(".kiln"):
            os.remove(os.path.join(folder, name))


def run(folder, run_case):
    """Calls `run_case(path, text)`, which returns whether the answer was right, for every case. Returns the exit code."""
    import torch
    wrong = 0
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not os.path.exists(os.path.join(path, "case.txt")):
            continue
        with open(os.path.join(path, "case.txt")) as f:
            text = f.read()
        try:
            wrong += not run_case(path, text)
        except Exception as e:
            wrong += 1
            print(f"{text:58} FAILED {type(e).__name__} {str(e)[:300]}", flush=True)
            if any(word in str(e) for word in ("ILLEGAL", "LAUNCH", "illegal")):
                break  # the context is lost
        torch.cuda.empty_cache()
    print(f"{wrong} wrong or failed")
    return 1 if wrong else 0


def description(path):
    with open(os.path.join(path, "kernels.json")) as f:
        kernels = json.load(f)["kernels"]
    assert len(kernels) == 1, f"{len(kernels)} kernels"
    return kernels[0]


class Kernel:
    """The launches of the only kernel in a folder, bound to `inputs` and to an output filled with NaN. The scratch is
    filled with bytes of 255, or zeros where the kernel wants that."""

    def __init__(self, path, inputs, module=None):
        import driver
        import torch
        self.about = description(path)
        types = {"f32": torch.float32, "f16": torch.float16}
        element, dims = self.about["outputs"][0].rstrip("]").split("[")
        self.output = torch.full([int(d) for d in dims.split(",")], float("nan"), device="cuda", dtype=types[element])
        self.scratch = [torch.full((max(16, s["bytes"]),), 0 if s["zeroed"] else 255, dtype=torch.uint8, device="cuda") for s in self.about["scratch"]]
        memory = {"input": list(inputs), "output": [self.output], "scratch": self.scratch}
        self.module = module or driver.Module(os.path.join(path, self.about["object"]))
        self.launches = [(l, driver.Launch(self.module.function(l["symbol"], l["lds_bytes"]), l, [memory[a["kind"]][a["index"]].data_ptr() for a in l["arguments"]], early=True)) for l in self.about["launches"]]

    def calls(self, wanted=lambda launch: True):
        """One function for all launches whose description is wanted. What launches prepare is complete before others, which
        may read it early, as in kiln."""
        import torch
        chosen = [(call, launch["prepare"]) for launch, call in self.launches if wanted(launch)]

        def all_of_them():
            for call, prepares in chosen:
                call()
                if prepares and not torch.cuda.is_current_stream_capturing():
                    torch.cuda.synchronize()
        all_of_them.count = len(chosen)
        return all_of_them
