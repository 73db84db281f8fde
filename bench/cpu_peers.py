"""onnxruntime and OpenVINO on the processor, which models.py, cpu_kinds.py and sweep.py compare Kiln with; and running `kiln`."""
import json
import os
import resource
import subprocess
import time

import numpy as np

import history

DISTURBED = 0.15  # processors that other programs may keep busy during a measurement
SECONDS = 0.3  # that a measurement takes at least; the kernel counts processor time in hundredths


def onnxruntime_peer(path, threads, feeds, weights_in_arena=True):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if threads > 1 else "0")
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "0" if weights_in_arena else "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)[0]


def openvino_peer(path, threads, feeds, precision="f32"):
    """Compiled for the shapes of `feeds`, which is its best case."""
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({name: list(array.shape) for name, array in feeds.items()})
    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
    compiled = core.compile_model(model, "CPU", options)
    request = compiled.create_infer_request()
    return lambda: request.infer(feeds, share_inputs=True, share_outputs=True)[0]


# Name of the package → makes of (path of a model, threads, {input: array}) a call that runs it once and returns the first output.
PEERS = {"onnxruntime": onnxruntime_peer, "openvino": openvino_peer}


def installed():
    """The names of the peers that can be imported. Prints a line for each other one."""
    found = []
    for name in PEERS:
        try:
            __import__(name)
            found.append(name)
        except ImportError as e:
            print(f"{name} is left out: {e}")
    return found


def kiln_json(*arguments, timeout=None):
    """The document of a command of Kiln. Raises RuntimeError with the end of its errors, TimeoutExpired after `timeout` seconds."""
    done = subprocess.run([*map(str, arguments), "--json"], capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def median_ms(run, count=1, seconds=0.0):
    """The median of at least `count` calls that take at least `seconds` together, in ms. Two calls before them do not count."""
    times = []
    for _ in range(2):
        run()
    end = time.perf_counter() + seconds
    while len(times) < count or time.perf_counter() < end:
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) * 1e3)
    return float(np.median(times))


def clocks():
    """Processor seconds of all programs since the machine started (those that a hypervisor took included), those of this
    process and its ended children, and the time."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, interrupts, soft, stolen = map(int, f.readline().split()[1:9])
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    all_programs = (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")
    return np.array([all_programs, sum(r.ru_utime + r.ru_stime for r in own), time.perf_counter()])


def undisturbed(measure):
    """(ms, processors that other programs kept busy meanwhile): repeated until those are few, four times at most."""
    tried = []
    for _ in range(4):
        before = clocks()
        ms = measure()
        everybody, own, wall = clocks() - before
        tried.append((ms, max(0.0, (everybody - own) / wall)))
        if tried[-1][1] <= DISTURBED:
            break
    return min(tried, key=lambda t: t[1])


def in_turn(runners, rounds=1):
    """Runs {name: measurement in ms} in turn. Returns {name: the best of the rounds} and the largest number of processors that
    other programs kept busy during one of these."""
    found = {name: [] for name in runners}
    for _ in range(rounds):
        for name, measure in runners.items():
            found[name].append(undisturbed(measure))
    calm = {name: [t for t in of if t[1] <= DISTURBED] or of for name, of in found.items()}
    best = {name: min(of) for name, of in calm.items()}
    return {name: ms for name, (ms, _) in best.items()}, max(others for _, others in best.values())


def record(log, threads, case, ms, others, ours="kiln"):
    """Appends the ratio of each peer in `ms` to a history.Log, unless other programs disturbed the measurement."""
    if log.path and others > DISTURBED:
        print(f"{case}, {threads} threads: not appended, other programs used {others:.1f} processors", flush=True)
        return
    for peer in PEERS:
        if peer in ms:
            log.add(history.processor(threads), case, history.version_of(peer), ms[ours], ms[peer])
