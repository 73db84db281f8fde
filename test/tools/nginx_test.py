"""A cache on a web server (--cache-remote https://, davs://) with a real nginx, that works and that fails in many ways: runs
go on, their results are the same bits, and nothing wrong is used."""
import filecmp
import os
import pathlib
import shutil
import subprocess
import time
import unittest

import numpy as np
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor
from nginx_server import WHY_NOT, NginxServer


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Nginx(KilnCase):
    LAYERS = 8  # of different sizes: that many kernels

    def setUp(self):
        super().setUp()
        self.server = NginxServer(self.path("nginx"))
        self.addCleanup(self.server.stop)
        self.caches = 0
        sizes = [6 + i for i in range(self.LAYERS + 1)]
        weights, nodes, before = [], [], "x"
        for i, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
            values = np.random.default_rng(i).standard_normal((rows, columns)).astype(np.float32)
            weights.append(numpy_helper.from_array(values, f"w{i}"))
            after = "y" if i == self.LAYERS - 1 else f"t{i}"
            nodes += [helper.make_node("MatMul", [before, f"w{i}"], [f"p{i}"]), helper.make_node("Tanh", [f"p{i}"], [after])]
            before = after
        self.file = self.compiled(self.save("m.onnx", nodes, [tensor("x", [3, sizes[0]])], [tensor("y", [3, sizes[-1]])], weights))
        self.expected = self.path("expected")
        self.kiln("run", self.file, "--no-cache", "--output-dir", self.expected, "--quiet")

    def run_with(self, scheme, *more, query="", **how):
        """A run of a machine with an empty cache, which must give the right result. Returns (its JSON, its warnings)."""
        self.caches += 1
        out = self.path(f"out{self.caches}")
        done = self.kiln("run", self.file, "--cache", self.path(f"cache{self.caches}"), "--cache-remote", self.server.url(scheme) + query,
                         "--output-dir", out, "--json", *more, **how)
        self.assertTrue(filecmp.cmp(os.path.join(self.expected, "y.npy"), os.path.join(out, "y.npy"), shallow=False))
        return kiln_case.json.loads(done.stdout)["cache"], done.stderr.splitlines()

    def fill(self):
        cache, warnings = self.run_with("dav")
        self.assertGreaterEqual(cache["misses"], self.LAYERS)
        self.assertEqual(warnings, [])
        self.assertGreaterEqual(len(self.server.entries()), self.LAYERS)

    def test_written_once_and_read_by_all(self):
        self.fill()
        for scheme in "dav", "http":
            cache, warnings = self.run_with(scheme, "--if-cached")
            self.assertEqual((cache["misses"], warnings), (0, []))
            self.assertGreaterEqual(cache["layers"]["remote"], self.LAYERS)

    def test_a_reader_writes_nothing(self):
        cache, warnings = self.run_with("http")
        self.assertEqual((self.server.entries(), warnings), ([], []))
        self.assertNotIn("PUT", "".join(self.server.calls()))

    def test_wrong_bytes_are_not_used(self):
        self.fill()
        entries = self.server.entries()
        contents = [pathlib.Path(e).read_bytes() for e in entries]

        def damaged(number, data):
            return [data[:len(data) // 2],                                    # cut
                    data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],             # a bit
                    contents[(number + 1) % len(contents)],                    # the entry of another kernel
                    b"<html>Sorry</html>", b"", data + b"\0" * 1000][number % 6]

        for number, (entry, data) in enumerate(zip(entries, contents)):
            pathlib.Path(entry).write_bytes(damaged(number, data))
        cache, warnings = self.run_with("http")
        self.assertGreaterEqual(cache["misses"], self.LAYERS)
        self.assertEqual(cache["layers"].get("remote", 0), 0)

    def test_answers_that_are_no_entries(self):
        self.fill()
        for location, words in [("deny all;", "403"), ("return 302 http://127.0.0.1:9/;", "redirect"), ("return 500;", "500"), ("return 401;", "access denied")]:
            for scheme in "http", "dav":
                with self.subTest(location, scheme=scheme):
                    self.server.restart(location=location)
                    cache, warnings = self.run_with(scheme)
                    self.assertGreaterEqual(cache["misses"], self.LAYERS)
                    self.assertEqual(len(warnings), 1, warnings)
                    self.assertIn(words, warnings[0])
        self.server.restart(location="return 404;")  # a miss like any other
        self.assertEqual(self.run_with("http")[1], [])

    def test_a_slow_server_costs_a_few_seconds(self):
        self.fill()
        self.server.restart(location="limit_rate 50;")
        begin = time.time()
        cache, warnings = self.run_with("http")
        self.assertGreaterEqual(cache["misses"], self.LAYERS)
        self.assertEqual(len(warnings), 1, warnings)
        self.assertLess(time.time() - begin, 60)

    def test_the_server_is_killed_in_a_run(self):
        for calls in 1, 3:
            with self.subTest(calls):
                self.server.restart()
                shutil.rmtree(self.server.files + "/cache", ignore_errors=True)
                before = len(self.server.calls())
                out = self.path(f"killed{calls}")
                child = subprocess.Popen([kiln_case.KILN, "run", self.file, "--cache", self.path(f"killed_cache{calls}"), "--cache-remote", self.server.url("dav"),
                                          "--output-dir", out, "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                while len(self.server.calls()) < before + calls and child.poll() is None:
                    time.sleep(0.001)
                self.server.stop()
                told = child.communicate(timeout=300)
                self.assertEqual(child.returncode, 0, told)
                self.assertTrue(filecmp.cmp(os.path.join(self.expected, "y.npy"), os.path.join(out, "y.npy"), shallow=False))
        # What it was sent is good or not there: a file appears only when it is complete.
        self.server.start()
        self.run_with("http")

    def test_nobody_listens(self):
        self.server.stop()
        cache, warnings = self.run_with("http")
        self.assertEqual(len(warnings), 1, warnings)
        self.assertIn("cannot be used", warnings[0])

    @unittest.skipUnless(shutil.which("openssl"), "no openssl on this machine, to make certificates")
    def test_tls(self):
        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.dir)

        for name in "ca", "other":
            openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN=test {name}")
        for name, address in ("good", "IP:127.0.0.1"), ("elsewhere", "DNS:cache.example"):
            openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=cache")
            with open(self.path(f"{name}.ext"), "w") as file:
                file.write(f"subjectAltName={address}\n")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")

        def serve(name, more=""):
            self.server.restart(server=f"ssl_certificate {self.path(name + '.pem')}; ssl_certificate_key {self.path(name + '.key')}; {more}")

        serve("good")
        trusted = "?ca-file=" + self.path("ca.pem")
        cache, warnings = self.run_with("davs", query=trusted)
        self.assertEqual(warnings, [])
        self.assertEqual(self.run_with("https", "--if-cached", query=trusted)[0]["misses"], 0)
        refused = [("good", "", ""), ("good", "?ca-file=" + self.path("other.pem"), ""), ("elsewhere", trusted, ""), ("good", trusted, "ssl_protocols TLSv1.1;")]
        for name, query, more in refused:
            with self.subTest(name, query=query, more=more):
                serve(name, more)
                cache, warnings = self.run_with("https", query=query)
                self.assertGreaterEqual(cache["misses"], self.LAYERS)
                self.assertEqual(len(warnings), 1, warnings)
        # A token is sent over TLS, and over nothing else.
        serve("good")
        self.server.restart(server=f"ssl_certificate {self.path('good.pem')}; ssl_certificate_key {self.path('good.key')};",
                            location='if ($http_authorization != "Bearer hush") { return 401; }')
        token = {"KILN_CACHE_HTTP_TOKEN": "hush"}
        self.assertEqual(self.run_with("https", "--if-cached", query=trusted, env=token)[0]["misses"], 0)
        self.assertIn("access denied", self.run_with("https", query=trusted)[1][0])
        self.server.restart(location='if ($http_authorization != "Bearer hush") { return 401; }')
        self.assertIn("access denied", self.run_with("http", env=token)[1][0])


if __name__ == "__main__":
    kiln_case.main()
