"""Makes the first inputs of the fuzz targets, test/fuzz/corpus/TARGET/NAME, with a kiln command and onnx.

    build/python/bin/python test/fuzz/make_corpus.py build/ci/tools/kiln

Inputs that once failed are added by hand, with the name of the fault; this script leaves them alone."""
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper

KILN = os.path.abspath(sys.argv[1])
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
SECTIONS = ["manifest", "program", "kernels", "weights_index", "tuning_hints", "objects", "weights", "signature", "steps"]


def keep(target, name, data):
    os.makedirs(os.path.join(CORPUS, target), exist_ok=True)
    with open(os.path.join(CORPUS, target, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def read(path):
    with open(path, "rb") as f:
        return f.read()


def unpacked(data):
    return subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout


def sections(data):
    for row in range(struct.unpack_from("<I", data, 12)[0]):
        kind, codec, offset, stored, _ = struct.unpack_from("<IIQQQ", data, 64 + 64 * row)
        raw = data[offset:offset + stored]
        yield SECTIONS[kind], unpacked(raw) if codec else raw


def model(nodes, inputs, outputs, constants=(), functions=(), opset=19):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info(n, k, d) for n, k, d in inputs], [h.make_tensor_value_info(n, k, d) for n, k, d in outputs],
                         [numpy_helper.from_array(a, n) for n, a in constants])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("f", 1)], ir_version=9, functions=list(functions)).SerializeToString()


def models():
    r = np.random.default_rng(1)
    body = h.make_graph([h.make_node("Add", ["s", "s"], ["t"]), h.make_node("Identity", ["c"], ["d"])], "b",
                        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []), h.make_tensor_value_info("s", T.FLOAT, [2])],
                        [h.make_tensor_value_info("d", T.BOOL, []), h.make_tensor_value_info("t", T.FLOAT, [2])])
    yes = h.make_graph([h.make_node("Relu", ["x"], ["a"])], "yes", [], [h.make_tensor_value_info("a", T.FLOAT, [2])])
    no = h.make_graph([h.make_node("Neg", ["x"], ["a"])], "no", [], [h.make_tensor_value_info("a", T.FLOAT, [2])])
    twice = h.make_function("f", "Twice", ["x"], ["y"], [h.make_node("Add", ["x", "x"], ["y"])], [h.make_opsetid("", 19)])
    yield "convolution", model([h.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), h.make_node("Relu", ["c"], ["r"]), h.make_node("MaxPool", ["r"], ["y"], kernel_shape=[2, 2])],
                               [("x", T.FLOAT, ["n", 2, 4, 4])], [("y", T.FLOAT, None)], [("w", r.standard_normal((3, 2, 3, 3)).astype(np.float32))])
    yield "product", model([h.make_node("MatMul", ["x", "w"], ["m"]), h.make_node("Softmax", ["m"], ["y"])], [("x", T.FLOAT, ["n", 8])], [("y", T.FLOAT, ["n", 5])], [("w", r.standard_normal((8, 5)).astype(np.float32))])
    yield "shapes", model([h.make_node("Shape", ["x"], ["s"]), h.make_node("Gather", ["s", "zero"], ["n"], axis=0), h.make_node("Concat", ["n", "rest"], ["t"], axis=0), h.make_node("Reshape", ["x", "t"], ["y"])],
                          [("x", T.FLOAT, ["n", 2, 3])], [("y", T.FLOAT, None)], [("zero", np.array([0])), ("rest", np.array([-1]))])
    yield "loop", model([h.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [("x", T.FLOAT, [2])], [("y", T.FLOAT, [2])], [("n", np.array(3))])
    yield "branch", model([h.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)], [("x", T.FLOAT, [2]), ("c", T.BOOL, [])], [("y", T.FLOAT, [2])])
    yield "function", model([h.make_node("Twice", ["x"], ["a"], domain="f"), h.make_node("Twice", ["a"], ["y"], domain="f")], [("x", T.FLOAT, [2])], [("y", T.FLOAT, [2])], functions=[twice])
    yield "recurrent", model([h.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2)], [("x", T.FLOAT, [3, 1, 2])], [("y", T.FLOAT, None)],
                             [("w", r.standard_normal((1, 8, 2)).astype(np.float32)), ("r", r.standard_normal((1, 8, 2)).astype(np.float32))])
    yield "quantized", model([h.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), h.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])], [("x", T.FLOAT, [4])], [("y", T.FLOAT, [4])],
                             [("s", np.array(0.5, np.float32)), ("z", np.array(3, np.uint8))])
    yield "counted", model([h.make_node("NonZero", ["x"], ["y"])], [("x", T.FLOAT, [2, 3])], [("y", T.INT64, None)])


with tempfile.TemporaryDirectory() as folder:
    def path(name):
        return os.path.join(folder, name)

    def kiln(*arguments):
        env = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": path("config"), "KILN_CACHE_DIR": path("cache")}
        subprocess.run([KILN, *arguments], check=True, env=env, stdout=subprocess.DEVNULL)

    for name, data in models():
        keep("onnx", name, data)
        with open(path("m.onnx"), "wb") as f:
            f.write(data)
        kiln("compile", path("m.onnx"), "-o", path(name + ".kiln"))
        for kind, raw in sections(read(path(name + ".kiln"))):
            if kind == "program":
                keep("program", name, raw)
    for name in "product", "shapes":
        keep("container", name, read(path(name + ".kiln")))
        keep("manifest", name, dict(sections(read(path(name + ".kiln"))))["manifest"])
    kiln("finalize", path("branch.kiln"), "--target", "x86-64-v3", "-o", path("objects"), "--native-file", path("native.kiln"))
    keep("container", "native", read(path("native.kiln")))
    kiln("finalize", path("product.kiln"), "--dim", "n=2", "--target", "x86-64-v3", "-o", path("objects"))
    for name in sorted(os.listdir(path("objects"))):
        if name.endswith(".o"):
            keep("elf_object", name.rsplit("_", 1)[0], read(os.path.join(path("objects"), name)))
    kiln("run", path("product.kiln"), "--dim", "n=2", "--target", "x86-64-v3")
    kiln("run", path("branch.kiln"), "--target", "x86-64-v3")
    for i, name in enumerate(sorted(n for n in os.listdir(path("cache")) if n.endswith((".kernel", ".prepared")))):
        entry = read(os.path.join(path("cache"), name))
        if len(entry) > 16384:
            continue
        keep("cache_entry", f"{i}{os.path.splitext(name)[1]}", entry)
        if name.endswith(".kernel"):
            fields, stored = struct.unpack_from("<I", entry, 48)[0], struct.unpack_from("<Q", entry, 56)[0]
            keep("native_kernel", str(i), unpacked(entry[144 + fields:144 + fields + stored]))
    kiln("tune", path("branch.kiln"), "--budget", "1s")
    for i, name in enumerate(sorted(os.listdir(path("cache/records")))[:3]):
        keep("tuning_record", str(i), read(os.path.join(path("cache/records"), name)))
    kiln("tune", path("branch.kiln"), "--budget", "1s", "--embed")
    keep("tuning_hints", "branch", dict(sections(read(path("branch.kiln"))))["tuning_hints"])
    kiln("run", path("branch.kiln"), "--target", "x86-64-v3", "--cache", path("small"))
    kiln("cache", "export", path("a.tar.zst"), "--cache", path("small"))
    keep("archive", "entries", read(path("a.tar.zst")))
    for name, array in [("floats", np.ones((2, 3), np.float32)), ("fortran", np.asfortranarray(np.arange(6).reshape(2, 3))), ("half", np.zeros(3, np.float16)), ("bools", np.array([True, False])), ("scalar", np.array(7, np.uint8))]:
        np.save(path("a.npy"), array)
        keep("npy", name, read(path("a.npy")))
    for name in "root", "farm":
        kiln("cache", "keygen", path(name))
    kiln("trust", "make", path("fleet.root"), "--expires", "2999-12-31", "--key", path("farm.pub") + "=2998-01-01", "--revoke", path("root.pub"), "--sign-with", path("root"))
    keep("trust_list", "root", read(path("fleet.root")))
    keep("trust_list", "list", b"# keys\n\n" + read(path("farm.pub")) + read(path("root.pub")).replace(b"public", b"revoked"))
    kiln("sign", path("branch.kiln"), "--version", "3")
    keep("trust_list", "signature", read(path("branch.kiln.sig")))

for name, text in [("simple", "+OK\r\n"), ("number", ":-12\r\n"), ("error", "-ERR no\r\n"), ("bulk", "$5\r\nhello\r\n$-1\r\n"), ("lists", "*2\r\n$1\r\na\r\n*2\r\n:1\r\n$0\r\n\r\n*-1\r\n"), ("stream", "*1\r\n*2\r\n$4\r\njobs\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$3\r\njob\r\n$2\r\n{}\r\n")]:
    keep("redis_reply", name, b"\x07" + text.encode())
HASH = "ab" * 32
JOB = '{"kind": "%s", "inputs": [{"name": "m.onnx", "hash": "' + HASH + '", "bytes": 12, "path": ""}%s], "options": ["--fp16"], "version": "kiln 0.1.0", "label": "m"}'
keep("farm_job", "compile", JOB % ("compile", ', {"name": "d/w.bin", "hash": "' + HASH + '", "bytes": 3, "path": "/srv/w.bin"}'))
keep("farm_job", "warm", JOB % ("warm", ""))
for name, array in [("floats", np.ones((2, 3), np.float32)), ("half", np.zeros(3, np.float16)), ("flags", np.array([True, False])), ("whole", np.array(7))]:
    keep("onnx_tensor", name, numpy_helper.from_array(array, "t").SerializeToString())
keep("onnx_tensor", "lists", h.make_tensor("t", T.FLOAT, [2], [1.0, 2.0]).SerializeToString())
keep("onnx_tensor", "texts", h.make_tensor("t", T.STRING, [2], [b"a", b"bc"]).SerializeToString())
keep("onnx_tensor", "int4", h.make_tensor("t", T.INT4, [3], [1, -2, 3]).SerializeToString())
for i, text in enumerate(["dbatch=3", "dbatch=1:8:2,4", "vn=1,2,-3", "ss=[2,3][2,5]", "ss=none", "rredis://user:p%40ss@[::1]:6379/3", "runix:///tmp/redis.sock?database=2", "hhttps://host:8080/a/b?ca-file=/etc/ca.pem", "hdav://host", "w\"a b\" --target sm_90",
                          "l# models\n\"with space.kiln\" --dim batch=1,8\n", 'l[{"file": "a.kiln", "options": ["--target", "gfx942"]}]']):
    keep("command_line", str(i), text)
for i, text in enumerate(["batch", "2*seq+1", "floor(batch/2)", "floor(a*b/a+b)", "min(512,seq)", "max(1,n-3)*4", "17"]):
    keep("dim_text", str(i), text)
