"""More ways to bring native code of somebody else, by what came after trust_test.py: kernels for all sizes, files without
weights, folders of language models, TLS, jobs of the farm. The evil kernel adds where the good one subtracts."""
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

import numpy as np
from onnx import helper, numpy_helper

import kiln_case
import redis_tls_test
from kiln_case import tensor
from redis_server import RedisServer
from trust_case import TARGET, TrustCase, bare, read, write

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../long"))
from mutations import KilnFile  # noqa: E402


class Ways(TrustCase):
    def open_model(self, name, number):
        return self.compiled(self.save(name, [helper.make_node("Add", ["x", "c"], ["a"], name="n"), helper.make_node("Relu", ["a"], ["y"], name="r")], [tensor("x", ["rows", 8])], [tensor("y", ["rows", 8])],
                                       [numpy_helper.from_array(np.array(number, np.float32), "c")]))

    def entries_of(self, file, cache, *more):
        self.kiln("run", file, *TARGET, "--cache", self.path(cache), *more)
        return sorted(f for f in os.listdir(self.path(cache)) if f.endswith(".kernel"))

    @staticmethod
    def fields(entry):
        return entry[144:144 + struct.unpack_from("<I", entry, 48)[0]]

    def test_an_entry_for_all_sizes(self):
        """In a layer that others can change, and in a stranger's archive: refused for every set of sizes."""
        good, bad = self.open_model("open_good.onnx", -1.0), self.open_model("open_bad.onnx", 1.0)
        sizes = ["--dim", "rows=3", "--specialize", "off"]
        entries, evil_entries = ([read(self.path(cache + "/" + n)) for n in self.entries_of(file, cache, *sizes)] for file, cache in ((good, "open_good"), (bad, "open_bad")))
        self.assertEqual(len(entries), len(evil_entries))
        for folder in "layer", "theirs":
            os.mkdir(self.path(folder), 0o700)
        for name, entry in zip(sorted(f for f in os.listdir(self.path("open_good")) if f.endswith(".kernel")), entries):
            twin = min(evil_entries, key=lambda e: sum(a != b for a, b in zip(self.fields(e), self.fields(entry))) + abs(len(e) - len(entry)))
            for folder in "layer", "theirs":
                write(self.path(folder + "/" + name), self.put_under_key(bare(twin), entry))
                os.chmod(self.path(folder + "/" + name), 0o600)
        self.answer = 11
        np.save(self.path("x.npy"), np.full((3, 8), 10, np.float32))
        self.runs("--specialize", "off", *self.fresh(), env=self.layer(self.path("layer")), file=good)  # where it may, the evil kernel runs
        self.answer = 9
        os.chmod(self.path("layer"), 0o777)
        self.kiln("cache", "export", self.path("theirs.tar.zst"), "--cache", self.path("theirs"), env=self.stranger)
        for rows in 3, 5:
            np.save(self.path("x.npy"), np.full((rows, 8), 10, np.float32))
            self.runs("--specialize", "off", *self.fresh(), env=self.layer(self.path("layer")), file=good)
            cache = self.fresh()
            taken = self.json("cache", "import", self.path("theirs.tar.zst"), *cache)
            self.assertEqual((taken["copied"], taken["untrusted"]), (0, len(entries)))
            self.runs("--specialize", "off", *cache, file=good)

    def test_an_entry_of_a_trusted_farm_under_the_name_of_another_kernel(self):
        """The signature is right, the name is another kernel's."""
        self.kiln("cache", "keygen", self.path("farm"))
        self.kiln("run", self.bad, *TARGET, "--cache", self.path("signed"), "--cache-sign-key", self.path("farm"))
        os.rename(self.path("signed/" + self.entry["bad"]), self.path("signed/" + self.name))
        done = self.runs(*self.fresh(), "--cache-trust", self.path("farm.pub"), env=self.layer(self.path("signed")))
        self.assertEqual(json.loads(done.stdout)["cache"]["hits"], 0)

    def test_a_signed_entry_for_all_sizes_under_the_name_of_one_for_these_sizes(self):
        self.kiln("cache", "keygen", self.path("farm"))
        good, bad = self.open_model("open_good.onnx", -1.0), self.open_model("open_bad.onnx", 1.0)
        general = self.entries_of(bad, "signed", "--dim", "rows=4", "--specialize", "off", "--cache-sign-key", self.path("farm"))
        exact = self.entries_of(good, "exact", "--dim", "rows=4", "--specialize", "eager")
        os.rename(self.path("signed/" + general[0]), self.path("signed/" + exact[0]))
        self.runs(*self.fresh(), "--specialize", "eager", "--cache-trust", self.path("farm.pub"), env=self.layer(self.path("signed")), file=good)

    def test_a_plan_without_weights(self):
        """A stranger's plan brings their entries: neither `refit` nor `run --weights` makes them this user's."""
        source = self.path("good.onnx")
        self.kiln("compile", source, "--strip-weights", "-o", self.path("plan.kiln"))
        os.mkdir(self.path("embedding"), 0o700)
        write(self.path("embedding/" + self.name), self.evil)
        self.kiln("warm", self.path("plan.kiln"), *TARGET, "--cache", self.path("embedding"), "--embed", env=self.stranger)
        self.kiln("refit", self.path("plan.kiln"), "--weights", source, "-o", self.path("whole.kiln"))
        self.runs(*self.fresh(), file=self.path("whole.kiln"))
        self.runs(*self.fresh(), "--weights", source, file=self.path("plan.kiln"))

    def model_folder(self, name, decoder):
        os.makedirs(self.path(name), exist_ok=True)
        with open(self.path(name + "/genai_config.json"), "w") as file:
            json.dump({"model": {"decoder": {"filename": decoder}}}, file)
        return self.path(name)

    def test_a_configuration_that_names_a_file_elsewhere(self):
        theirs = self.native(self.stranger, "theirs.kiln")
        np.save(self.path("ids.npy"), np.zeros((1, 2), np.int64))
        for number, decoder in enumerate([theirs, "../theirs.kiln", "../../" + theirs, "theirs.kiln\0.onnx", "x" * 300, "/dev/zero"]):
            done = self.kiln("generate", self.model_folder(f"model{number}", decoder), "--prompt-ids", self.path("ids.npy"), "--max-new-tokens", "1", code=3)
            self.assertIn("holds no decoder", self.error_line(done))

    def test_native_code_beside_the_model_of_a_folder(self):
        """`generate` prefers the .kiln file of a folder: a stranger's native one is refused, not run."""
        folder = self.model_folder("model", "model.onnx")
        shutil.copy(self.path("good.onnx"), folder + "/model.onnx")
        shutil.copy(self.native(self.stranger, "theirs.kiln"), folder + "/model.kiln")
        np.save(self.path("ids.npy"), np.zeros((1, 2), np.int64))
        done = self.kiln("generate", folder, "--prompt-ids", self.path("ids.npy"), "--max-new-tokens", "1", code=3)
        self.assertIn("untrusted", self.error_line(done))

    def test_machine_code_in_place_of_a_portable_kernel(self):
        """An object of machine code, stated as MLIR's bytecode, with every hash right."""
        native = KilnFile(read(self.native()))
        code = [bytes(native.sections["kernels"][begin:begin + size]) for _, begin, size in native.payloads()]
        for payload in code[0], b"\x7fELF" + code[0], code[0][code[0].index(b"\x7fELF"):]:
            changed = KilnFile(read(self.good))
            changed.replace_payload(0, payload)
            write(self.path("changed.kiln"), changed.bytes())
            for more in [], ["--in-process"]:
                self.error_line(self.runs(*more, *self.fresh(), file=self.path("changed.kiln"), code=3))

    @unittest.skipIf(redis_tls_test.WHY_NOT, redis_tls_test.WHY_NOT)
    def test_a_server_with_a_good_certificate_vouches_for_nobody(self):
        tls = redis_tls_test.RedisTls
        for name in "openssl", "certificate", "serve", "url":
            setattr(self, name, getattr(tls, name).__get__(self) if name != "openssl" else tls.openssl)
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=ca", "-keyout", self.path("ca.key"), "-out", self.path("ca.pem"))
        self.certificate("server", "ca", "IP:127.0.0.1")
        self.serve()
        for entry in self.evil, self.evil + read(self.path("made_good/" + self.name))[-104:]:
            subprocess.run(["redis-cli", "-p", str(self.server.port), "-x", "set", "kiln:cache:" + self.name], input=entry, check=True, capture_output=True)
            self.refused(*self.fresh(), "--cache-remote", self.url())

    @unittest.skipIf(redis_tls_test.WHY_NOT, redis_tls_test.WHY_NOT)
    def test_a_job_that_brings_keys_of_its_own(self):
        """Inputs of a job that would be the configuration folder of the process that does it."""
        server = RedisServer(self.path("redis"))
        self.addCleanup(server.stop)
        redis = ["--redis", server.url]

        def cli(*words, data=None):
            return subprocess.run(["redis-cli", "-p", str(server.port), *(["-x"] if data is not None else []), *words], input=data, capture_output=True, check=True).stdout.decode().strip()
        os.mkdir(self.path("scratch"))
        self.kiln("farm", "submit", self.good, *TARGET, *redis)
        self.kiln("farm", "submit", self.path("good.onnx"), *redis)
        records = cli("KEYS", "kiln:farm:*:job:*").split()
        for record in records:
            spec = json.loads(cli("HGET", record, "spec"))
            for name in ".config/kiln/trusted_keys", ".config", "kiln/trusted_keys":
                job = {**spec, "inputs": [*spec["inputs"], {**spec["inputs"][0], "name": name}]}
                prefix, identity = record[:record.index("job:")], "evil" + name.replace("/", "") + spec["kind"]
                entry = cli("XADD", prefix + "jobs", "*", "job", identity)
                cli("HSET", prefix + "job:" + identity, "state", "queued", "label", "evil", "attempts", "0", "lost", "0", "keep", "1000", "entry", entry)
                cli("HSET", prefix + "job:" + identity, "spec", data=json.dumps(job).encode())
        done = self.json("farm", "worker", "--drain", "--attempts", "1", "--scratch", self.path("scratch"), *redis)
        dead = {d["id"]: d["error"] for d in self.json("farm", "status", *redis)["farms"][0]["dead"]}
        self.assertEqual(set(dead), {"evil" + n + "warm" for n in (".configkilntrusted_keys", ".config", "kilntrusted_keys")}, dead)
        # A job that compiles may have files of any name, and none is a configuration: its result is that of the model alone.
        self.assertEqual(done["done"], 5)
        results = {cli("HGET", r, "result") for r in cli("KEYS", "kiln:farm:*:job:*").split() if json.loads(cli("HGET", r, "spec"))["kind"] == "compile"}
        self.assertEqual(len(results), 1)

    def test_a_file_that_another_version_wrote(self):
        """A newer number of the dialect, of the frame, or of the entry is refused by name before anything of it is used."""
        data = bytearray(read(self.good))
        struct.pack_into("<I", data, 8, 99)
        write(self.path("newer.kiln"), data)
        self.error_line(self.runs(file=self.path("newer.kiln"), code=3))
        entry = bytearray(read(self.path("made_good/" + self.name)))
        struct.pack_into("<I", entry, 8, 99)
        cache = self.path("own")
        os.mkdir(cache, 0o700)
        write(cache + "/" + self.name, bytes(entry))
        self.assertEqual(json.loads(self.runs("--cache", cache).stdout)["cache"]["hits"], 0)

    def test_a_replaced_compile_worker_is_not_found_through_the_working_folder(self):
        """A program of that name in the working folder or beside the model is not started."""
        for name in "kiln-compile-worker", "kiln":
            write(self.path(name), b"#!/bin/sh\ntouch " + self.path("started").encode() + b"\n")
            os.chmod(self.path(name), 0o755)
        self.runs(*self.fresh(), cwd=self.dir)
        self.assertFalse(os.path.exists(self.path("started")))

    def test_names_in_a_listing_of_models(self):
        """A manifest or log of misses that names a stranger's native file warms nothing."""
        theirs = self.native(self.stranger, "theirs.kiln")
        with open(self.path("list"), "w") as file:
            file.write(f'"{theirs}" --target {kiln_case.HOST}\n')
        self.kiln("warm", "--manifest", self.path("list"), *self.fresh(), code=3)
        self.assertEqual([f for f in os.listdir(self.path("fresh")) if f.endswith(".kernel")] if os.path.isdir(self.path("fresh")) else [], [])


if __name__ == "__main__":
    kiln_case.main()
