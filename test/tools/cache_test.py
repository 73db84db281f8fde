"""Whatever state the cache folder is in, the run succeeds, with one warning where something is wrong."""
import json
import os
import resource
import shutil
import stat
import subprocess
import time

import numpy as np
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, blake3, tensor

NOBODY = 65534


class Cache(KilnCase):
    def setUp(self):
        super().setUp()
        self.file = self.compiled()
        self.kiln("run", self.file, "--no-cache", "--output-dir", self.path("want"))
        self.want = np.load(self.path("want/y.npy"))

    def run_with(self, folder, warnings, **more):
        os.makedirs(self.path("got"), exist_ok=True)
        os.chmod(self.path("got"), 0o777)
        done = self.kiln("run", self.file, "--cache", folder, "--output-dir", self.path("got"), **more)
        np.testing.assert_array_equal(np.load(self.path("got/y.npy")), self.want)
        os.remove(self.path("got/y.npy"))
        lines = [l for l in done.stderr.splitlines() if l.strip()]
        self.assertEqual(len(lines), warnings, done.stderr)
        return done

    def test_missing_folder_is_made_private(self):
        self.run_with(self.path("a/b/c"), 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("a/b/c")).st_mode), 0o700)

    def test_read_only_folder(self):
        # As an unprivileged user: root may write anywhere.
        os.mkdir(self.path("ro"))
        os.chown(self.path("ro"), NOBODY, NOBODY)
        os.chmod(self.path("ro"), 0o500)
        self.run_with(self.path("ro"), 1, user=NOBODY, group=NOBODY)

    def test_full_disk(self):
        def limit():
            import signal
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # the output fits, kernels do not
        self.run_with(self.path("full"), 1, preexec_fn=limit)
        for _, _, files in os.walk(self.path("full")):
            self.assertEqual([f for f in files if "tmp" in f], [])

    def test_foreign_owner(self):
        os.mkdir(self.path("foreign"))
        os.chown(self.path("foreign"), NOBODY, NOBODY)
        os.chmod(self.path("foreign"), 0o755)
        self.run_with(self.path("foreign"), 1)
        self.assertEqual(os.listdir(self.path("foreign")), [])

    def test_world_writable(self):
        os.mkdir(self.path("open"))
        os.chmod(self.path("open"), 0o777)
        self.run_with(self.path("open"), 1)
        self.assertEqual(os.listdir(self.path("open")), [])

    def test_not_a_folder(self):
        open(self.path("file"), "w").close()
        self.run_with(self.path("file"), 1)

    def test_garbage_is_repaired(self):
        cache = self.path("garbage")
        self.run_with(cache, 0)
        entries = [os.path.join(d, f) for d, _, files in os.walk(cache) for f in files]
        self.assertTrue(entries)
        for entry in entries:
            with open(entry, "wb") as f:
                f.write(os.urandom(200))
        with open(os.path.join(cache, "stray"), "w") as f:
            f.write("not an entry")
        self.run_with(cache, 1)
        document = self.json("run", self.file, "--cache", cache)
        self.assertEqual(document["cache"]["misses"], 0)

    def test_stats_verify_gc_explain(self):
        cache = self.path("c")
        before = self.json("cache", "explain", self.file, "--cache", cache)
        self.assertTrue(all(not k["hit"] for k in before["kernels"]))
        self.run_with(cache, 0)
        self.assertGreater(self.json("cache", "stats", "--cache", cache)["entries"], 0)
        self.assertEqual(self.json("cache", "verify", "--cache", cache)["bad"], 0)
        after = self.json("cache", "explain", self.file, "--cache", cache)
        self.assertTrue(all(k["hit"] for k in after["kernels"]))
        self.kiln("cache", "export", self.path("archive"), "--cache", cache)
        self.kiln("cache", "import", self.path("archive"), "--cache", self.path("d"))
        self.assertEqual(self.json("run", self.file, "--cache", self.path("d"))["cache"]["misses"], 0)
        self.kiln("cache", "gc", "--max-bytes", "0", "--cache", cache)
        self.assertEqual(self.json("cache", "stats", "--cache", cache)["entries"], 0)

    def test_keys_depend_on_nothing_of_the_process(self):
        def keys(file, **more):
            document = self.json("cache", "explain", file, "--cache", self.path("none"), **more)
            return sorted(k["key"] for k in document["kernels"])

        want = keys(self.file)
        self.assertTrue(want)
        elsewhere = self.path("folder with spaces/another name.kiln")
        os.makedirs(os.path.dirname(elsewhere))
        shutil.copy(self.file, elsewhere)
        os.utime(elsewhere, (1, 1))
        os.chmod(elsewhere, 0o644)
        os.chmod(os.path.dirname(elsewhere), 0o755)
        self.assertEqual(keys(elsewhere), want)
        for env in [{"TZ": "Pacific/Kiritimati"}, {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8"}, {"LANG": None}, {"HOME": None}, {"HOME": "/nowhere", "USER": "nobody"}, {"XDG_CACHE_HOME": "/nowhere"},
                    {"TMPDIR": "/nowhere"}, {"OMP_NUM_THREADS": "7"}, {"PATH": "/nowhere"}]:
            self.assertEqual(keys(self.file, env=env), want, env)
        self.assertEqual(keys(self.file, cwd="/"), want)
        self.assertEqual(keys(elsewhere, user=NOBODY, group=NOBODY, cwd="/"), want)
        self.assertEqual(keys(self.file, preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})), want, "one processor")
        self.assertEqual(keys(self.file, preexec_fn=lambda: os.nice(19)), want)
        self.assertEqual(keys(self.compiled(self.conv_model("again.onnx"))), want, "the model compiled again under another name")

    def test_archive_and_signatures(self):
        cache, archive = self.path("c"), self.path("out.tar.zst")
        self.run_with(cache, 0)
        self.kiln("cache", "keygen", self.path("key"))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("key")).st_mode), 0o600)
        self.kiln("cache", "keygen", self.path("key"), code=3)
        exported = self.json("cache", "export", archive, "--cache", cache, "--cache-sign-key", self.path("key"))
        self.assertGreater(exported["copied"], 0)
        self.kiln("cache", "keygen", self.path("stranger"))
        refused = self.json("cache", "import", archive, "--cache", self.path("d"), "--cache-trust", self.path("stranger.pub"))
        self.assertEqual((refused["copied"], refused["untrusted"]), (0, exported["copied"]))
        taken = self.json("cache", "import", archive, "--cache", self.path("d"), "--cache-trust", self.path("key.pub"))
        self.assertEqual((taken["copied"], taken["untrusted"], taken["damaged"]), (exported["copied"], 0, 0))
        self.assertEqual(self.json("run", self.file, "--cache", self.path("d"))["cache"]["misses"], 0)
        # As a shared layer: with the signer's key its kernels are used, with another's they are not, which costs one
        # warning.
        layer = {"KILN_CACHE_PATH": self.path("d")}
        document = self.json("run", self.file, "--cache", self.path("e"), "--cache-trust", self.path("key.pub"), env=layer)
        self.assertEqual((document["cache"]["misses"], document["cache"]["layers"]["folder"]), (0, 0))
        self.assertGreater(document["cache"]["layers"]["read_only"], 0)
        done = self.kiln("run", self.file, "--cache", self.path("f"), "--cache-trust", self.path("stranger.pub"), "--json", env=layer)
        self.assertEqual(json.loads(done.stdout)["cache"]["hits"], 0)
        self.assertIn("without a trusted signature", self.error_line(done))
        with open(archive, "r+b") as f:
            f.truncate(os.path.getsize(archive) // 2)
        self.error_line(self.kiln("cache", "import", archive, "--cache", self.path("g"), code=3))
        self.error_line(self.kiln("cache", "import", self.path("missing.tar.zst"), "--cache", self.path("g"), code=3))

    def several_kernels(self, count=6):
        """A model of `count` kernels that differ, and of which each stands in it twice."""
        rng = np.random.default_rng(3)
        nodes, weights, last = [], [], "x"
        for i in range(2 * count):
            size = 8 + i % count
            weights.append(numpy_helper.from_array(rng.standard_normal((24, size)).astype(np.float32), f"a{i}"))
            weights.append(numpy_helper.from_array(rng.standard_normal((size, 24)).astype(np.float32), f"b{i}"))
            nodes += [helper.make_node("MatMul", [last, f"a{i}"], [f"s{i}"]), helper.make_node("Softmax", [f"s{i}"], [f"t{i}"], axis=-1), helper.make_node("MatMul", [f"t{i}", f"b{i}"], [f"u{i}"]),
                      helper.make_node("ReduceMax", [f"u{i}"], [f"m{i}"], axes=[1], keepdims=1), helper.make_node("Sub", [f"u{i}", f"m{i}"], [f"v{i}"])]
            last = f"v{i}"
        return self.compiled(self.save("several.onnx", nodes, [tensor("x", [5, 24])], [tensor(last, [5, 24])], weights))

    def start(self, file, cache, *more):
        environment = {**os.environ, "KILN_CACHE_DIR": self.path("none")}
        return subprocess.Popen([kiln_case.KILN, "run", file, "--cache", cache, "--json", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def misses(self, process):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(err, "")
        return json.loads(out)["cache"]["misses"]

    def test_duplicate_kernels_are_compiled_once(self):
        file = self.several_kernels()
        compiled = self.json("finalize", file, "--target", kiln_case.HOST, "--no-cache", "-o", self.path("objects"))["compiled"]
        self.assertEqual(len({k["payload"] for k in compiled}), len(compiled))
        inside = self.json("inspect", file)["code_objects"]
        self.assertEqual(sum(k["occurrences"] for k in compiled), inside)
        self.assertGreaterEqual(inside, 2 * len(compiled))

    def test_processes_that_start_cold_together_compile_each_kernel_once(self):
        file = self.several_kernels()
        kernels = len(self.json("cache", "explain", file, "--cache", self.path("none"))["kernels"])
        for round, delay in enumerate([0, 0.1, 0, 0.3]):
            cache = self.path(f"pair{round}")
            first = self.start(file, cache)
            time.sleep(delay)
            second = self.start(file, cache)
            pair = [first, second] if round % 2 == 0 else [second, first]
            self.assertEqual(self.misses(pair[0]) + self.misses(pair[1]), kernels)
            self.assertEqual([n for n in os.listdir(cache) if n.startswith(".")], [])

    def test_killed_process_does_not_hold_up_the_other(self):
        file = self.several_kernels()
        kernels = len(self.json("cache", "explain", file, "--cache", self.path("none"))["kernels"])
        cache = self.path("cold")
        first = self.start(file, cache)
        while first.poll() is None and not (os.path.isdir(cache) and any(n.startswith(".lock-") for n in os.listdir(cache))):
            time.sleep(0.001)
        self.assertIsNone(first.poll(), "a lock is seen while kernels are compiled")
        second = self.start(file, cache)
        time.sleep(0.05)
        first.kill()
        first.communicate()
        self.assertLessEqual(self.misses(second), kernels)
        self.assertEqual(self.misses(self.start(file, cache)), 0)
        self.assertEqual(self.json("cache", "verify", "--cache", cache)["bad"], 0)

    def put_code_of(self, cache, key, under):
        """Another kernel's code, sound as an entry, under this one's key: what a compiler leaves that changes its code
        and not its version."""
        with open(os.path.join(cache, key + ".kernel"), "rb") as f:
            other = f.read()
        with open(os.path.join(cache, under + ".kernel"), "r+b") as f:
            entry = bytearray(f.read())
            end = lambda e: 144 + int.from_bytes(e[48:52], "little")
            entry[56:104] = other[56:104]  # sizes and the payload's hash
            entry[112:144] = blake3(bytes(entry[:112] + entry[144:end(entry)]))
            f.seek(0)
            stored = int.from_bytes(other[56:64], "little")
            f.write(entry[:end(entry)] + other[end(other):end(other) + stored])  # a signature would be of the other entry
            f.truncate()

    def test_recompiled_kernels_are_compared(self):
        cache = self.path("c")
        file = self.several_kernels(2)
        self.kiln("run", file, "--cache", cache)
        same = self.json("cache", "verify", "--recompile", file, "--cache", cache)
        self.assertGreater(same["compared"], 1)
        self.assertEqual((same["differ"], same["absent"]), ([], 0))
        keys = [k["key"] for k in self.json("cache", "explain", file, "--cache", cache)["kernels"]]
        self.put_code_of(cache, keys[1], keys[0])
        self.assertEqual(self.json("cache", "verify", "--cache", cache)["bad"], 0)
        found = self.json("cache", "verify", "--recompile", file, "--cache", cache, code=1)
        self.assertEqual([d["key"] for d in found["differ"]], [keys[0]])
        self.assertNotEqual(found["differ"][0]["cached"], found["differ"][0]["compiled"])
        self.assertEqual(len(found["differ"][0]["cached"]), 64)
        done = self.kiln("run", file, "--cache", cache, "--cache-verify", "--json")
        self.assertIn(found["differ"][0]["compiled"], self.error_line(done))
        self.assertEqual(self.json("cache", "verify", "--recompile", file, "--cache", cache)["differ"], [])
        self.kiln("cache", "verify", "--recompile", "--cache", cache, code=2)
        self.kiln("cache", "verify", file, "--cache", cache, code=2)

    def test_read_only_layer(self):
        self.run_with(self.path("layer"), 0)
        document = self.json("run", self.file, "--cache", self.path("own"), env={"KILN_CACHE_PATH": self.path("layer")})
        self.assertEqual(document["cache"]["misses"], 0)


if __name__ == "__main__":
    kiln_case.main()
