"""Whatever state the cache folder is in, the run succeeds, with one warning where something is wrong."""
import json
import os
import resource
import shutil
import stat

import numpy as np

import kiln_case
from kiln_case import KilnCase

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
        # As a shared layer: with the signer's key its kernels are used, with another's they are not, which costs one warning.
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

    def test_read_only_layer(self):
        self.run_with(self.path("layer"), 0)
        document = self.json("run", self.file, "--cache", self.path("own"), env={"KILN_CACHE_PATH": self.path("layer")})
        self.assertEqual(document["cache"]["misses"], 0)


if __name__ == "__main__":
    kiln_case.main()
