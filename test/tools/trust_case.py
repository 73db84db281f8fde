"""A kernel whose code somebody else has put in place, for tests of who may run native code (trust_test.py).

Evil code is told from good code by what it computes. A kernel of f(x) = x + 1 is put under the key of f(x) = x - 1,
with every hash right and the signature of somebody else or of nobody: whoever runs it gets other numbers.
"""
import json
import os
import shutil
import struct

import numpy as np
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, blake3, tensor

NOBODY = 65534
MAGIC = b"\x89KLNS\r\n\x1a"
TARGET = ["--target", kiln_case.HOST]


def bare(entry):
    """An entry without its signature."""
    return entry[:-104] if entry[-104:-96] == MAGIC else entry


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


class TrustCase(KilnCase):
    def setUp(self):
        super().setUp()
        self.good, self.bad = self.model("good.onnx", -1.0), self.model("bad.onnx", 1.0)
        np.save(self.path("x.npy"), np.full((4, 8), 10, np.float32))
        self.entry = {}
        for name, file in [("good", self.good), ("bad", self.bad)]:
            self.kiln("run", file, *TARGET, "--cache", self.path("made_" + name))
            self.entry[name] = [f for f in os.listdir(self.path("made_" + name)) if f.endswith(".kernel")][0]
        self.evil = self.put_under_key(bare(read(self.path("made_bad/" + self.entry["bad"]))), read(self.path("made_good/" + self.entry["good"])))
        self.name = self.entry["good"]
        # Somebody else, with a key of their own.
        self.stranger = {"XDG_CONFIG_HOME": self.path("stranger_config")}

    def model(self, name, number):
        """Equal but for one number in the kernel."""
        return self.compiled(self.save(name, [helper.make_node("Add", ["x", "c"], ["a"], name="n"), helper.make_node("Relu", ["a"], ["y"], name="r")], [tensor("x", [4, 8])], [tensor("y", [4, 8])],
                                       [numpy_helper.from_array(np.array(number, np.float32), "c")]))

    def put_under_key(self, code, key):
        """The code of one entry with the header and fields of another, all hashes right."""
        def parts(entry):
            fields = struct.unpack_from("<I", entry, 48)[0]
            stored = struct.unpack_from("<Q", entry, 56)[0]
            return bytearray(entry[:144]), entry[144:144 + fields], entry[144 + fields:144 + fields + stored]
        header, fields, _ = parts(key)
        from_header, _, payload = parts(code)
        header[56:104] = from_header[56:104]  # both sizes and the payload's hash
        header[112:144] = blake3(bytes(header[:112]) + fields)
        return bytes(header) + fields + payload

    def runs(self, *more, file=None, code=0, env=None, **how):
        """Runs the good model; the answer must be its own. Returns the completed process."""
        shutil.rmtree(self.path("out"), ignore_errors=True)
        done = self.kiln("run", file or self.good, *TARGET, "--input", "x=" + self.path("x.npy"), "--output-dir", self.path("out"), "--json", *more, code=code, env=env, **how)
        if code == 0:
            self.assertEqual(np.load(self.path("out/y.npy")).flat[0], self.answer)
        return done

    answer = 9  # of the good kernel; the evil one gives 11

    def refused(self, *more, warnings=1, **how):
        """The evil kernel is not run: the good one is compiled, and somebody is told."""
        done = self.runs(*more, **how)
        self.assertEqual(json.loads(done.stdout)["cache"]["hits"], 0)
        lines = [l for l in done.stderr.splitlines() if l.strip()]
        self.assertEqual(len(lines), warnings, done.stderr)
        return done

    def evil_folder(self, name, mode=0o700):
        os.makedirs(self.path(name))
        os.chmod(self.path(name), mode)
        write(self.path(name + "/" + self.name), self.evil)
        os.chmod(self.path(name + "/" + self.name), 0o600)
        return self.path(name)

    def fresh(self):
        shutil.rmtree(self.path("fresh"), ignore_errors=True)
        return ["--cache", self.path("fresh")]

    def layer(self, *folders):
        return {"KILN_CACHE_PATH": ":".join(folders)}

    def native(self, env=None, name="native.kiln"):
        self.kiln("finalize", self.good, *TARGET, "-o", self.path("objects"), "--native-file", self.path(name), env=env)
        return self.path(name)
