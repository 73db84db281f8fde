#!/usr/bin/env python3
"""How much longer one model takes to compile than another, such as a quantized model beside its float version.

    bench/aot_ratio.py KILN QUANTIZED.onnx=FLOAT.onnx ... [--rounds N]

Both take turns. Prints the medians of the processor time (user + system) of `kiln compile` in ms, and their ratio.
"""
import argparse
import os
import resource
import statistics
import subprocess
import tempfile


def processor_ms(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for pair in options.pairs:
        models = pair.split("=")
        times = [[], []]
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(options.rounds):
                for model, list_of_model in zip(models, times):
                    out = os.path.join(folder, "m.kiln")
                    list_of_model.append(processor_ms([options.kiln, "compile", model, "-o", out, "--quiet"]))
        first, second = (statistics.median(t) for t in times)
        names = " / ".join(os.path.basename(m) for m in models)
        print(f"{names}: {first:.0f} / {second:.0f} ms, ratio {first / second:.2f}")


if __name__ == "__main__":
    main()
