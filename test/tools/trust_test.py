"""Native code that this user did not make, brought in by every way that there is: none of it runs without consent, and
the answer stays right. trust_case.py makes the code."""
import json
import os
import re
import shutil
import stat
import subprocess
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import kiln_case
from kiln_case import tensor
from redis_server import WHY_NOT, RedisServer
from trust_case import MAGIC, NOBODY, TARGET, TrustCase, read, write


class Trust(TrustCase):
    def test_the_evil_kernel_would_run(self):
        """What the other tests refuse works where it may: they would notice."""
        self.answer = 11
        folder = self.evil_folder("mine")
        self.runs(*self.fresh(), env=self.layer(folder))

    # Layers and folders.

    def test_layers_that_others_can_change(self):
        self.evil_folder("layer")
        os.makedirs(self.path("above"))
        shutil.copytree(self.path("layer"), self.path("above/layer"))
        os.chmod(self.path("above/layer"), 0o700)
        os.symlink(self.path("above/layer"), self.path("link"))
        for mode in (0o777, 0o707, 0o770, 0o775):
            os.chmod(self.path("layer"), mode)
            self.refused(*self.fresh(), env=self.layer(self.path("layer")))
            self.refused(*self.fresh(), "--allow-unsigned-native", env=self.layer(self.path("layer")))
        for mode in (0o777, 0o775):
            os.chmod(self.path("above"), mode)
            self.refused(*self.fresh(), env=self.layer(self.path("above/layer")))
            self.refused(*self.fresh(), env=self.layer(self.path("link")))
            self.refused(*self.fresh(), env={"KILN_CACHE_PATH": "above/layer"}, cwd=self.dir)
        os.chmod(self.path("above"), 0o755)
        if os.geteuid() != 0:
            self.skipTest("only root can give a folder to another user")
        os.chmod(self.path("layer"), 0o755)
        for path in "layer", "above":
            os.chown(self.path(path), NOBODY, NOBODY)
        self.refused(*self.fresh(), env=self.layer(self.path("layer")))
        self.refused(*self.fresh(), env=self.layer(self.path("above/layer")))

    @unittest.skipIf(os.geteuid() != 0, "only root can make links of somebody else")
    def test_layers_behind_links_of_somebody_else(self):
        self.evil_folder("real/layer")
        for link, target in ("last", "real/layer"), ("middle", "real"):
            os.symlink(self.path(target), self.path(link))
            os.chown(self.path(link), NOBODY, NOBODY, follow_symlinks=False)
        for path in "last", "middle/layer":
            self.refused(*self.fresh(), env=self.layer(self.path(path)))
            self.refused("--cache", self.path(path))

    def test_entries_that_others_can_change(self):
        for place in "layer", "own":
            folder = self.evil_folder(place)
            entry = os.path.join(folder, self.name)
            where = dict(env=self.layer(folder)) if place == "layer" else {}

            def refused():
                # The own folder is repaired by the run: the evil entry is put back each time.
                self.refused(*(self.fresh() if place == "layer" else ["--cache", folder]), **where)

            def put(mode=0o600, owner=None):
                if os.path.lexists(entry):
                    os.remove(entry)
                write(entry, self.evil)
                os.chmod(entry, mode)
                if owner is not None:
                    os.chown(entry, owner, owner)

            for mode in 0o666, 0o660, 0o620, 0o602:
                put(mode)
                refused()
            if os.geteuid() == 0:
                put(0o644, NOBODY)
                refused()
                put(0o644, NOBODY)
                os.rename(entry, self.path("elsewhere"))
                os.link(self.path("elsewhere"), entry)
                refused()
                os.remove(self.path("elsewhere"))
            os.remove(entry)
            write(self.path("target"), self.evil)
            os.symlink(self.path("target"), entry)
            refused()

    def test_a_copied_cache_folder_of_somebody_else(self):
        if os.geteuid() != 0:
            self.skipTest("only root can keep the owner")
        folder = self.evil_folder("theirs")
        for path in folder, os.path.join(folder, self.name):
            os.chown(path, NOBODY, NOBODY)
        subprocess.run(["cp", "-a", folder, self.path("copied")], check=True)
        self.refused("--cache", self.path("copied"))
        os.chown(self.path("copied"), 0, 0)
        self.refused("--cache", self.path("copied"))

    def test_trust_asks_every_layer_for_a_signature(self):
        self.kiln("cache", "keygen", self.path("farm"))
        self.kiln("cache", "keygen", self.path("other"))
        self.runs("--cache", self.path("signed"), "--cache-sign-key", self.path("farm"))
        for key, hits in ("farm", 1), ("other", 0):
            done = self.runs(*self.fresh(), "--cache-trust", self.path(key + ".pub"), env=self.layer(self.path("signed")))
            self.assertEqual(json.loads(done.stdout)["cache"]["hits"], hits)
        self.refused(*self.fresh(), "--cache-trust", self.path("farm.pub"), env=self.layer(self.evil_folder("unsigned")))
        # The signature of the good kernel behind the evil one.
        signed = read(self.path("signed/" + self.name))
        write(self.path("signed/" + self.name), self.evil + signed[-104:])
        self.refused(*self.fresh(), "--cache-trust", self.path("farm.pub"), env=self.layer(self.path("signed")))

    # Entries inside a file.

    def embedded(self, entry):
        """A copy of the good file that holds this entry, as somebody with the same format makes it: embedded, then its
        bytes exchanged."""
        cache = self.path("embedding")
        shutil.rmtree(cache, ignore_errors=True)
        os.mkdir(cache, 0o700)
        write(os.path.join(cache, self.name), entry)
        file = self.path("embedded.kiln")
        shutil.copy(self.good, file)
        # Their own machine signs with their own key; --cache-sign-key is not needed.
        self.kiln("warm", file, *TARGET, "--cache", cache, "--embed", env=self.stranger)
        return file

    def test_embedded_entries(self):
        file = self.embedded(self.evil)
        for more in [], ["--cache-trust", self.key_of(self.path("config"))]:
            self.assertIn("without a trusted signature", self.refused(*more, *self.fresh(), file=file).stderr)
        self.assertEqual(json.loads(self.runs("--no-cache", file=file).stdout)["cache"]["hits"], 0)
        # Nor do they get into the own cache, or get this user's signature, on the way through another command.
        for command in (["warm", file, *TARGET, "--embed"], ["finalize", file, *TARGET, "-o", self.path("objects"), "--native-file", self.path("native.kiln")]):
            copy = shutil.copy(file, self.path("copy.kiln"))
            command[1] = copy
            cache = self.fresh()
            self.kiln(*command, *cache)
            self.runs(*cache, "--if-cached")
        self.runs("--no-cache", file=self.path("native.kiln"))
        self.assertFalse(any(k["hit"] for k in self.json("cache", "explain", file, *TARGET, *self.fresh())["kernels"]))
        # With consent they run.
        self.answer = 11
        self.runs(*self.fresh(), "--allow-unsigned-native", file=file)
        self.trust(self.path("stranger_config"))
        self.runs(*self.fresh(), file=file)

    def key_of(self, config):
        return os.path.join(config, "kiln", "key.pub")

    def trust(self, config):
        os.makedirs(self.path("config/kiln"), mode=0o700, exist_ok=True)
        with open(self.path("config/kiln/trusted_keys"), "ab") as f:
            f.write(read(self.key_of(config)))
        os.chmod(self.path("config/kiln/trusted_keys"), 0o644)

    def test_what_this_user_embeds_needs_no_setting_up(self):
        file = self.good
        self.kiln("warm", file, *TARGET, "--no-cache", "--embed")
        done = self.runs(*self.fresh(), file=file)
        self.assertEqual(json.loads(done.stdout)["cache"]["layers"]["embedded"], 1)
        self.assertEqual(done.stderr, "")

    # Native code objects.

    def test_native_files(self):
        mine = self.native()
        for more in [], ["--no-cache"], ["--cache-trust", self.key_of(self.path("config"))]:
            self.assertEqual(self.runs(*more, file=mine).stderr, "")
        theirs = self.native(self.stranger, "theirs.kiln")
        for more in [], ["--no-cache"], ["--cache-trust", self.key_of(self.path("config"))]:
            line = self.error_line(self.runs(*more, file=theirs, code=3))
            self.assertIn("theirs.kiln", line)
            self.assertIn("--allow-unsigned-native", line)
        self.error_line(self.runs("--cache-trust", self.key_of(self.path("stranger_config")), file=mine, code=3))
        for command in (["perf", theirs, "-n", "1"], ["tune", theirs], ["warm", theirs, *TARGET], ["finalize", theirs, *TARGET, "-o", self.path("o"), "--native-file", self.path("washed.kiln")]):
            self.kiln(*command, code=3)
        self.assertFalse(os.path.exists(self.path("washed.kiln")))
        self.kiln("inspect", theirs, "--check")  # looking is not running
        self.runs("--allow-unsigned-native", file=theirs)
        self.runs("--cache-trust", self.key_of(self.path("stranger_config")), file=theirs)
        self.kiln("run", theirs, "--allow-unsigned-native", "--cache-trust", self.key_of(self.path("config")), code=2)
        self.trust(self.path("stranger_config"))
        self.runs(file=theirs)

    def test_every_byte_of_a_native_file_is_vouched_for(self):
        mine = self.native()
        data = bytearray(read(mine))
        block = bytes(data).index(MAGIC)
        for at in [block + 8, block + 39, block + 40, block + 103]:
            changed = bytearray(data)
            changed[at] ^= 1
            write(self.path("changed.kiln"), changed)
            self.error_line(self.runs(file=self.path("changed.kiln"), code=3))

    # HIP kernels of custom operators, which can address anything.

    def custom(self, env=None, name="custom.kiln", *more):
        """A file with a custom operator, y = x - 1. Its kernel could do anything."""
        with open(self.path("less.hip"), "w") as out:
            out.write("#include <hip/hip_runtime.h>\n__global__ void less(const float* x, float* y, int64_t n) {\n"
                      "  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i] - 1;\n}\n"
                      'KILN_OPERATOR("my.ops", "Less")\nKILN_OUTPUT(0, float32, same_as(input0))\n'
                      "KILN_LAUNCH(less, per_element(elements(output0)), input0, output0, elements(output0))\n")
        graph = helper.make_graph([helper.make_node("Less", ["x"], ["y"], name="n", domain="my.ops")], "g", [tensor("x", [4, 8])], [tensor("y", [4, 8])])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), self.path("custom.onnx"))
        done = self.kiln("compile", self.path("custom.onnx"), "--custom-op", self.path("less.hip"), "-o", self.path(name), *more, env=env)
        self.assertEqual(done.stderr, "")
        return self.path(name)

    def test_custom_operators(self):
        mine = self.custom()
        for more in [], ["--no-cache"], ["--in-process"], ["--cache-trust", self.key_of(self.path("config"))]:
            self.assertEqual(self.runs("--quiet", *more, file=mine).stderr, "")
        # The code is in this user's cache by now; that does not make a stranger's file run.
        theirs, nobodys = self.custom(self.stranger, "theirs.kiln"), self.custom(None, "nobodys.kiln", "--unsigned")
        for file in theirs, nobodys:
            for more in [], ["--no-cache"], ["--in-process"], ["--if-cached"], ["--cache-trust", self.key_of(self.path("config"))]:
                line = self.error_line(self.runs(*more, file=file, code=3))
                self.assertIn("custom operators are HIP kernels, whose code", line)
                self.assertIn("--allow-unsigned-native", line)
            for command in (["perf", file, "-n", "1"], ["tune", file], ["warm", file, *TARGET], ["warm", file, *TARGET, "--archive", self.path("w.tar.zst"), "--no-cache"],
                            ["finalize", file, *TARGET, "-o", self.path("o"), "--native-file", self.path("washed.kiln")], ["cache", "explain", file, *TARGET]):
                self.kiln(*command, code=3)
            self.assertFalse(os.path.exists(self.path("washed.kiln")))
            self.assertEqual(self.json("cache", "import", self.path("w.tar.zst"), "--cache", self.path("empty"))["copied"], 0)
            self.kiln("inspect", file, "--check")
            self.runs("--allow-unsigned-native", file=file)
        self.runs("--cache-trust", self.key_of(self.path("stranger_config")), file=theirs)
        # Who checked a file can sign it, and then it is theirs.
        self.kiln("sign", nobodys)
        self.runs(file=nobodys)
        self.trust(self.path("stranger_config"))
        self.runs(file=theirs)

    def test_kernels_of_the_library_need_no_signature(self):
        node = helper.make_node("NonZero", ["x"], ["y"], name="n")
        file = self.compiled(self.save("library.onnx", [node], [tensor("x", [4, 8])], [tensor("y", [2, "n"], TensorProto.INT64)]))
        self.assertIn("amdgcnspirv", {k["format"] for k in self.json("inspect", file)["kernels"]})
        self.assertEqual(self.kiln("run", file, "--quiet").stderr, "")
        self.assertNotIn("signature", {s["kind"] for s in self.json("inspect", file)["sections"]})

    # What travels between machines.

    def test_archives(self):
        folder = self.evil_folder("theirs")
        archive = self.path("evil.tar.zst")
        for env in self.stranger, {"HOME": None, "XDG_CONFIG_HOME": None}:
            self.kiln("cache", "export", archive, "--cache", folder, env=env)
            for source in archive, folder:
                taken = self.json("cache", "import", source, *self.fresh())
                self.assertEqual((taken["copied"], taken["untrusted"]), (0, 1))
                self.assertEqual(json.loads(self.runs("--cache", self.path("fresh")).stdout)["cache"]["hits"], 0)
            os.remove(archive)
        # Somebody else's code in a folder of somebody else's is not exported under this user's name.
        if os.geteuid() == 0:
            os.chown(os.path.join(folder, self.name), NOBODY, NOBODY)
            self.assertEqual(self.json("cache", "export", archive, "--cache", folder)["copied"], 0)
            os.chown(folder, NOBODY, NOBODY)
            os.remove(archive)
            self.kiln("cache", "export", archive, "--cache", folder)
            self.assertEqual(self.json("cache", "import", archive, *self.fresh())["untrusted"], 1)
            for path in folder, os.path.join(folder, self.name):
                os.chown(path, 0, 0)
        # warm --archive does not take from an archive what it has no consent for.
        self.kiln("cache", "export", archive, "--cache", folder, env=self.stranger)
        cache = self.fresh()
        self.kiln("warm", self.good, *TARGET, *cache, "--archive", archive)
        self.runs(*cache, "--if-cached")
        # The user's own need no setting up.
        self.runs("--cache", self.path("own"))
        self.kiln("cache", "export", self.path("own.tar.zst"), "--cache", self.path("own"))
        taken = self.json("cache", "import", self.path("own.tar.zst"), *self.fresh())
        self.assertEqual((taken["untrusted"], taken["damaged"]), (0, 0))
        self.runs("--cache", self.path("fresh"), "--if-cached")

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_remote_entries(self):
        server = RedisServer(self.path("redis"))
        self.addCleanup(server.stop)
        remote = ["--cache-remote", server.url]
        key = "kiln:cache:" + self.name

        def put(entry):
            subprocess.run(["redis-cli", "-p", str(server.port), "-x", "set", key], input=entry, check=True, capture_output=True)

        def get():
            return subprocess.run(["redis-cli", "-p", str(server.port), "--raw", "get", key], check=True, capture_output=True).stdout[:-1]

        self.runs(*self.fresh(), *remote)
        good = get()
        self.assertEqual(json.loads(self.runs(*self.fresh(), *remote).stdout)["cache"]["layers"]["remote"], 1)
        for entry in self.evil, self.evil + good[-104:]:
            for more in [], ["--cache-trust", self.key_of(self.path("config"))]:
                put(entry)
                self.refused(*self.fresh(), *remote, *more)
                self.assertNotEqual(read(self.path("fresh/" + self.name))[:len(self.evil)], self.evil)
        # A stranger's machine fills the server.
        subprocess.run(["redis-cli", "-p", str(server.port), "flushall"], check=True, capture_output=True)
        self.runs(*self.fresh(), *remote, env=self.stranger)
        self.refused(*self.fresh(), *remote)
        subprocess.run(["redis-cli", "-p", str(server.port), "flushall"], check=True, capture_output=True)
        self.runs(*self.fresh(), *remote, env=self.stranger)
        self.trust(self.path("stranger_config"))
        self.assertEqual(json.loads(self.runs(*self.fresh(), *remote).stdout)["cache"]["layers"]["remote"], 1)

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_results_of_a_farm(self):
        """A worker of a stranger answers: its archive is imported only with consent."""
        server = RedisServer(self.path("redis"))
        self.addCleanup(server.stop)
        redis = ["--redis", server.url]
        os.mkdir(self.path("scratch"))
        self.kiln("farm", "submit", self.good, *TARGET, *redis)
        self.kiln("farm", "worker", "--drain", "--quiet", "--scratch", self.path("scratch"), *redis, env=self.stranger)
        self.kiln("farm", "submit", self.good, *TARGET, "--wait", "-o", self.path("results"), *redis)
        [archive] = os.listdir(self.path("results"))
        taken = self.json("cache", "import", self.path("results/" + archive), *self.fresh())
        self.assertEqual((taken["copied"], taken["untrusted"]), (0, 1))
        self.assertEqual(json.loads(self.runs("--cache", self.path("fresh")).stdout)["cache"]["hits"], 0)
        self.kiln("warm", self.good, *TARGET, *self.fresh(), "--archive", self.path("results/" + archive))
        self.runs("--cache", self.path("fresh"), "--if-cached")
        self.trust(self.path("stranger_config"))
        self.assertEqual(self.json("cache", "import", self.path("results/" + archive), *self.fresh())["copied"], 1)

    # Keys.

    def test_the_key_of_this_user(self):
        folder = self.path("config/kiln")
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(folder + "/key").st_mode), 0o600)
        self.assertEqual(sorted(os.listdir(folder)), ["key", "key.pub"])
        mine = self.native()
        # One that somebody else could have put there vouches for nothing.
        os.chmod(folder + "/key", 0o644)
        self.assertIn("key", self.error_line(self.runs(file=mine, code=3)))
        os.chmod(folder + "/key", 0o600)
        self.runs(file=mine)
        os.chmod(folder, 0o777)
        self.error_line(self.runs(file=mine, code=3))
        os.chmod(folder, 0o700)
        shutil.copy(self.key_of(self.path("config")), folder + "/trusted_keys")
        os.rename(folder + "/key", self.path("kept"))
        self.runs(file=mine)
        os.chmod(folder + "/trusted_keys", 0o666)
        self.error_line(self.runs(file=mine, code=3))
        # Without a home nothing is signed, and all else works.
        nowhere = {"HOME": None, "XDG_CONFIG_HOME": None}
        self.assertEqual(self.runs(*self.fresh(), env=nowhere).stderr, "")
        self.assertEqual(self.runs("--cache", self.path("fresh"), "--if-cached", env=nowhere).stderr, "")
        self.assertIn("not signed", self.error_line(self.kiln("finalize", self.good, *TARGET, "-o", self.path("objects"), "--native-file", self.path("n.kiln"), env=nowhere)))
        self.error_line(self.runs(file=self.path("n.kiln"), code=3))

    def test_lists_of_keys_that_others_can_change(self):
        """Whoever can change or replace the list of trusted keys could put their own key into it."""
        theirs = self.native(self.stranger, "theirs.kiln")

        def put(folder, mode=0o644, folder_mode=0o755, owner=None, folder_owner=None):
            shutil.rmtree(self.path(folder), ignore_errors=True)
            os.makedirs(self.path(folder))
            file = shutil.copy(self.key_of(self.path("stranger_config")), self.path(folder + "/list"))
            os.chmod(file, mode)
            os.chmod(self.path(folder), folder_mode)
            if owner is not None:
                os.chown(file, owner, owner)
            if folder_owner is not None:
                os.chown(self.path(folder), folder_owner, folder_owner)
            return file

        def linked(owner):
            link = put("linked") + ".link"
            os.symlink(self.path("linked/list"), link)
            os.chown(link, owner, owner, follow_symlinks=False)
            return link

        rows = [("group", lambda: put("keys", 0o664), "writable by its group"),
                ("everybody", lambda: put("keys", 0o666), "writable by everybody"),
                ("folder of everybody", lambda: put("keys", folder_mode=0o777), "lies in"),
                ("folder of the group", lambda: put("keys", folder_mode=0o775), "lies in")]
        if os.geteuid() == 0:
            rows += [("file of somebody else", lambda: put("keys", owner=NOBODY), "belongs to another user"),
                     ("folder of somebody else", lambda: put("keys", folder_owner=NOBODY), "belongs to another user"),
                     ("link of somebody else", lambda: linked(NOBODY), "belongs to another user")]
        for name, make, why in rows:
            with self.subTest(name):
                self.assertIn(why, self.error_line(self.runs("--cache-trust", make(), file=theirs, code=3)))
        self.assertIn("by its group", self.error_line(self.runs("--cache-trust", os.path.relpath(put("keys", 0o664), self.dir), file=theirs, code=3, cwd=self.dir)))
        # As it should be, also through an own link and a sticky folder.
        self.runs("--cache-trust", put("keys"), file=theirs)
        self.runs("--cache-trust", linked(os.geteuid()), file=theirs)
        self.runs("--cache-trust", put("keys", folder_mode=0o1777), file=theirs)

    def test_hints_and_packed_weights_bring_no_code(self):
        """Tuning records name configurations, and packed weights are data: a layer of them alone makes no kernel
        appear."""
        rng = np.random.default_rng(1)
        file = self.compiled(self.save("dot.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [tensor("x", [4, 64])], [tensor("y", [4, 512])],
                                       [numpy_helper.from_array(rng.standard_normal((64, 512)).astype(np.float32), "w")]))
        self.kiln("run", file, *TARGET, "--cache", self.path("theirs"))
        for name in os.listdir(self.path("theirs")):
            if name.endswith(".kernel"):
                os.rename(self.path("theirs/" + name), self.path("theirs/" + name.replace(".kernel", ".prepared")))
        os.makedirs(self.path("theirs/records"))
        write(self.path("theirs/records/x.kernel.json"), b'{"object": "/tmp/evil.so"}')
        document = self.json("run", file, *TARGET, *self.fresh(), env=self.layer(self.path("theirs")))
        self.assertEqual(document["cache"]["hits"], 0)

    def test_the_table_of_ways_names_tests(self):
        top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        rows = re.findall(r"^\| .* \| `(test/[^`]+)`: `(\w+)` \|$", read(os.path.join(top, "docs/trust.md")).decode(), re.M)
        self.assertGreaterEqual(len(set(rows)), 12)
        for file, name in rows:
            text = read(os.path.join(top, file)).decode()
            self.assertRegex(text, rf"def {name}\(self\)|TEST(_F)?\(\w+, {name}\)", f"docs/trust.md: {file} has no such test")


if __name__ == "__main__":
    kiln_case.main()
