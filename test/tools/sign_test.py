"""Signed files and roots of trust: sign, verify-signature, trust."""
import os
import shutil
import unittest

import kiln_case
from kiln_case import KilnCase
from onnx import helper
from kiln_case import tensor

TARGET = ["--target", kiln_case.HOST]


class Sign(KilnCase):
    def setUp(self):
        super().setUp()
        self.model = self.compiled(self.save("m.onnx", [helper.make_node("Relu", ["x"], ["y"], name="r")], [tensor("x", [4, 8])], [tensor("y", [4, 8])]))
        for key in "root", "second", "farm", "laptop":
            self.kiln("cache", "keygen", self.path(key))

    def native(self, name="native.kiln", env=None):
        self.kiln("finalize", self.model, *TARGET, "-o", self.path("objects"), "--native-file", self.path(name), env=env)
        return self.path(name)

    def refused(self, words, *command, code=3, **more):
        self.assertIn(words, self.error_line(self.kiln(*command, code=code, **more)))

    def test_own_key_needs_no_setting_up(self):
        native = self.native()
        self.kiln("run", self.model, "--cache", self.path("c"))
        self.kiln("cache", "export", self.path("a.tar.zst"), "--cache", self.path("c"))
        self.kiln("tune", self.model, "--budget", "1s", "--cache", self.path("tuned"))
        [record] = os.listdir(self.path("tuned/records"))[:1]
        files = [self.model, native, self.path("a.tar.zst"), self.path("tuned/records/" + record)]
        self.kiln("sign", *files)
        rows = self.json("verify-signature", *files)["files"]
        self.assertEqual([r["native"] is not None for r in rows], [False, True, False, False])
        # A stranger does not trust them, unless the key is named.
        stranger = {"XDG_CONFIG_HOME": self.path("stranger")}
        for file in files:
            self.refused("not trusted", "verify-signature", file, env=stranger)
        self.kiln("verify-signature", *files, "--trust", self.path("config/kiln/key.pub"), env=stranger)
        for file in files:
            with open(file, "ab") as f:
                f.write(b"x")
            self.refused("not the file that was signed", "verify-signature", file, code=1)
            self.refused("cannot be read", "verify-signature", file + ".sig")

    def test_signing_makes_native_code_usable(self):
        native = self.native(env={"HOME": None, "XDG_CONFIG_HOME": None})  # not signed
        self.refused("not signed", "run", native)
        self.kiln("sign", native, "--key", self.path("farm"))
        self.refused("not trusted", "run", native)
        self.kiln("run", native, "--cache-trust", self.path("farm.pub"))
        # So do archives: every entry is signed again.
        self.kiln("run", self.model, *TARGET, "--cache", self.path("c"))
        self.kiln("cache", "export", self.path("a.tar.zst"), "--cache", self.path("c"))
        for key, copied in ("laptop", 0), ("farm", 1):
            self.kiln("sign", self.path("a.tar.zst"), "--key", self.path(key))
            self.assertEqual(self.json("cache", "import", self.path("a.tar.zst"), "--cache", self.path("new"), "--cache-trust", self.path("farm.pub"))["copied"], copied)

    def test_an_old_version_and_another_file_are_refused(self):
        self.kiln("sign", self.model, "--version", "3")
        self.kiln("verify-signature", self.model, "--at-least", "3")
        self.refused("version 3", "verify-signature", self.model, "--at-least", "4")
        for suffix in "", ".sig":
            shutil.copy(self.model + suffix, self.path("other.kiln" + suffix))
        self.refused("is called m.kiln", "verify-signature", self.path("other.kiln"), code=1)

    def test_a_fleet(self):
        """The ten lines of docs/trust.md, then rotation, expiry, revocation, rollback."""
        fleet, device = self.path("fleet.root"), {"XDG_CONFIG_HOME": self.path("device")}
        self.kiln("trust", "make", fleet, "--expires", "2999-12-31", "--key", self.path("farm.pub") + "=2999-01-31", "--sign-with", self.path("root"))
        self.kiln("trust", "update", fleet, env=device)
        native = self.native()
        self.kiln("sign", native, "--key", self.path("farm"))
        self.kiln("run", native, env=device)
        self.kiln("verify-signature", native, env=device)
        first = shutil.copy(fleet, self.path("first.root"))
        self.assertFalse(self.json("trust", "update", fleet, env=device)["changed"])
        # The farm's key is revoked, another one may sign.
        self.kiln("trust", "make", self.path("2.root"), "--after", fleet, "--expires", "2999-12-31", "--key", self.path("laptop.pub"), "--revoke", self.path("farm.pub"), "--sign-with", self.path("root"))
        self.kiln("trust", "update", self.path("2.root"), env=device)
        self.refused("was revoked", "run", native, env=device)
        self.refused("was revoked", "verify-signature", native, env=device)
        self.kiln("sign", native, "--key", self.path("laptop"))
        self.kiln("run", native, env=device)
        # The old root does not come back.
        self.refused("has version 1", "trust", "update", first, env=device)
        # Another root key: both must sign.
        third = self.path("3.root")
        self.kiln("trust", "make", third, "--after", self.path("2.root"), "--expires", "2999-12-31", "--root", self.path("second.pub"), "--sign-with", self.path("second"))
        self.refused("of the root that is there have signed it", "trust", "update", third, env=device)
        self.kiln("trust", "sign", third, "--sign-with", self.path("root"))
        self.kiln("trust", "update", third, env=device)
        shown = self.json("trust", "show", self.path("device/kiln/trusted_keys"))
        self.assertEqual((shown["root"]["version"], len(shown["root"]["signers"]), [k["comment"] for k in shown["revoked"]]), (3, 2, ["farm"]))
        self.kiln("run", native, env=device)
        # The old root key signs no more.
        self.kiln("trust", "make", self.path("4.root"), "--after", third, "--expires", "2999-12-31", "--root", self.path("root.pub"), "--sign-with", self.path("root"))
        self.refused("of the root that is there", "trust", "update", self.path("4.root"), env=device)
        # What has expired: a root, a key.
        self.kiln("trust", "make", self.path("old.root"), "--after", third, "--expires", "2020-12-31", "--sign-with", self.path("second"))
        self.refused("expired on 2020-12-31", "trust", "update", self.path("old.root"), env=device)
        self.refused("expired on 2020-12-31", "run", native, "--cache-trust", self.path("old.root"))
        self.kiln("trust", "make", self.path("5.root"), "--after", third, "--expires", "2999-12-31", "--key", self.path("laptop.pub") + "=2020-01-31", "--sign-with", self.path("second"))
        self.refused("expired on 2020-01-31", "run", native, "--cache-trust", self.path("5.root"))

    def test_who_can_change_a_root(self):
        fleet, device = self.path("fleet.root"), {"XDG_CONFIG_HOME": self.path("device")}
        self.kiln("trust", "make", fleet, "--expires", "2999-12-31", "--key", self.path("farm.pub"), "--sign-with", self.path("root"))
        before = os.umask(0)
        try:
            self.kiln("trust", "update", fleet, env=device)
        finally:
            os.umask(before)
        self.kiln("sign", self.model, "--key", self.path("farm"))
        self.kiln("verify-signature", self.model, env=device)
        there = self.path("device/kiln/trusted_keys")
        os.chmod(there, 0o664)
        self.refused("writable by its group", "trust", "update", fleet, env=device)
        self.refused("writable by its group", "verify-signature", self.model, env=device)
        os.remove(there)
        shutil.copy(self.path("farm.pub"), there)
        os.chmod(there, 0o644)
        self.refused("plain list", "trust", "update", fleet, env=device, code=2)

    def test_wrong_usage(self):
        for arguments in (["make", self.path("r"), "--sign-with", self.path("root")], ["make", self.path("r"), "--expires", "tomorrow", "--sign-with", self.path("root")],
                          ["make", self.path("r"), "--expires", "2999-01-01"], ["make", self.path("r"), "--expires", "2999-01-01", "--threshold", "2", "--sign-with", self.path("root")]):
            self.kiln("trust", *arguments, code=2)
        self.assertFalse(os.path.exists(self.path("r")))
        self.kiln("sign", self.model, env={"HOME": None, "XDG_CONFIG_HOME": None}, code=2)
        self.refused("no root of trust", "trust", "update", self.path("farm.pub"))


if __name__ == "__main__":
    kiln_case.main()
