"""A Redis server behind TLS (rediss://) and with ACL users: what is refused, and the cache and the farm over it."""
import os
import shutil
import signal
import subprocess
import unittest

import numpy as np
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor
from redis_server import WHY_NOT, RedisServer, free_port

OPENSSL = shutil.which("openssl")
WHY_NOT = WHY_NOT or (None if OPENSSL else "no openssl on this machine")


@unittest.skipIf(WHY_NOT, WHY_NOT)
class RedisTls(KilnCase):
    def setUp(self):
        super().setUp()
        for name in "ca", "stranger":
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", self.path(name + ".key"), "-out", self.path(name + ".pem"))
        self.certificate("server", "ca", "IP:127.0.0.1,DNS:localhost")
        self.certificate("client", "ca", "DNS:client")

    @staticmethod
    def openssl(*words):
        subprocess.run([OPENSSL, *words], check=True, capture_output=True)

    def certificate(self, name, authority, hosts):
        with open(self.path("extensions"), "w") as file:
            file.write("subjectAltName=" + hosts)
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout", self.path(name + ".key"), "-out", self.path(name + ".csr"))
        self.openssl("x509", "-req", "-in", self.path(name + ".csr"), "-CA", self.path(authority + ".pem"), "-CAkey", self.path(authority + ".key"), "-CAcreateserial", "-days", "2", "-extfile", self.path("extensions"), "-out", self.path(name + ".pem"))

    def serve(self, certificate="server", clients="no", *more):
        self.tls_port = free_port()
        self.server = RedisServer(self.path("redis"), "--tls-port", str(self.tls_port), "--tls-cert-file", self.path(certificate + ".pem"), "--tls-key-file", self.path(certificate + ".key"),
                                  "--tls-ca-cert-file", self.path("ca.pem"), "--tls-auth-clients", clients, *more)
        self.addCleanup(self.server.stop)

    def url(self, *settings, login="", host="127.0.0.1", ca="ca.pem"):
        settings = ([f"ca-file={self.path(ca)}"] if ca else []) + list(settings)
        return f"rediss://{login}{host}:{self.tls_port}" + ("?" + "&".join(settings) if settings else "")

    def cli(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.server.port), *words], capture_output=True, check=True, text=True).stdout

    def status(self, url, code=0):
        return self.kiln("farm", "status", "--redis", url, code=code)

    def refused(self, words, url, code=2):
        """The certificate decides before a command, and so a password, is sent."""
        before = int(self.cli("INFO", "commandstats").count("cmdstat_auth"))
        done = self.status(url, code=code)
        self.assertRegex(self.error_line(done), words)
        self.assertNotIn("secret", done.stderr)
        self.assertEqual(int(self.cli("INFO", "commandstats").count("cmdstat_auth")), before)

    def product(self):
        weights = np.random.default_rng(1).standard_normal((8, 6)).astype(np.float32)
        return self.save("m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [tensor("x", [4, 8])], [tensor("y", [4, 6])], [numpy_helper.from_array(weights, "w")])

    def test_certificates(self):
        self.serve()
        self.status(self.url())
        self.status(self.url(host="localhost"))
        self.refused("certificate", self.url(ca=None, login=":secret@"))
        self.refused("certificate", self.url(ca="stranger.pem", login=":secret@"))
        self.refused("ca-file", self.url(ca="none.pem"))
        self.assertIn("ca-file", self.error_line(self.status(f"redis://127.0.0.1:{self.server.port}?ca-file=x", code=2)))

    def test_a_certificate_for_another_host_is_refused(self):
        self.certificate("other", "ca", "DNS:other.example")
        self.serve("other")
        self.refused("host|name|certificate", self.url(login=":secret@"))

    def test_client_certificates(self):
        self.serve("server", "yes")
        self.status(self.url(f"cert-file={self.path('client.pem')}", f"key-file={self.path('client.key')}"))
        done = self.status(self.url(), code=4)
        self.assertIn("cannot be used" if "cannot be used" in done.stderr else "does not answer", self.error_line(done))

    def test_a_server_without_tls_and_a_client_without(self):
        self.serve()
        self.tls_port, port = self.server.port, self.tls_port
        self.status(self.url(), code=4)
        self.status(f"redis://127.0.0.1:{port}", code=4)

    def test_a_shared_cache(self):
        self.serve()
        file = self.compiled(self.product())
        first = self.json("run", file, "--cache", self.path("a"), "--cache-remote", self.url())["cache"]
        self.assertGreater(first["misses"], 0)
        self.assertIn("kiln:cache:", self.cli("KEYS", "kiln:cache:*"))
        second = self.json("run", file, "--cache", self.path("b"), "--cache-remote", self.url())["cache"]
        self.assertEqual(second["misses"], 0)
        # An untrusted certificate costs a warning and the remote cache, never the run.
        done = self.kiln("run", file, "--cache", self.path("c"), "--cache-remote", self.url(ca="stranger.pem"))
        self.assertIn("certificate", done.stderr)

    def test_a_farm_and_a_restart_of_its_server(self):
        self.serve()
        model = self.product()
        self.kiln("farm", "submit", model, "--redis", self.url())
        self.server.restart(signal.SIGTERM)
        self.kiln("farm", "worker", "--redis", self.url(), "--drain", "--scratch", self.dir)
        self.kiln("farm", "submit", model, "--redis", self.url(), "--wait", "--timeout", "60", "-o", self.path("out"))
        self.kiln("compile", model, "-o", self.path("here.kiln"))
        with open(self.path("here.kiln"), "rb") as here, open(self.path("out/m.kiln"), "rb") as there:
            self.assertEqual(here.read(), there.read())

    def test_acl_users(self):
        self.serve()
        self.cli("ACL", "SETUSER", "cache", "on", ">secret", "~kiln:cache:*", "+select", "+getex", "+set")
        self.cli("ACL", "SETUSER", "farm", "on", ">secret", "~kiln:*", "+@all", "-@admin", "-@dangerous")
        self.cli("ACL", "SETUSER", "default", "off")
        with open(self.path("password"), "w") as file:
            file.write("secret\n")
        login = f"password-file={self.path('password')}"
        file, model = self.compiled(self.product()), self.path("m.onnx")
        self.assertGreater(self.json("run", file, "--cache", self.path("a"), "--cache-remote", self.url(login, login="cache@"))["cache"]["misses"], 0)
        self.assertEqual(self.json("run", file, "--cache", self.path("b"), "--cache-remote", self.url(login, login="cache@"))["cache"]["misses"], 0)
        done = self.kiln("farm", "submit", model, "--redis", self.url(login, login="cache@"), code=2)
        self.assertIn("NOPERM", self.error_line(done))
        self.assertNotIn("secret", done.stderr)
        for wrong in self.url(login="farm:wrong@"), self.url(), self.url(login="nobody:secret@"):
            self.assertRegex(self.error_line(self.status(wrong, code=2)), "WRONGPASS|NOAUTH|rejects the login")
        self.kiln("farm", "submit", model, "--redis", self.url(login, login="farm@"))
        done = self.json("farm", "worker", "--redis", self.url(login, login="farm@"), "--drain", "--scratch", self.dir)
        self.assertEqual(done["done"], 1)
        done = self.kiln("farm", "submit", model, "--redis", self.url(login, login="farm@"), "--wait", "--timeout", "60", "-o", self.path("out"))
        self.assertTrue(os.path.exists(self.path("out/m.kiln")))


if __name__ == "__main__":
    kiln_case.main()
