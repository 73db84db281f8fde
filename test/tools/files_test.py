"""Damaged .kiln files: a typed error and exit 3. (Every byte and every truncation: test/ir/container and
test/long/damage.py.)"""
import random

import kiln_case
from kiln_case import KilnCase


class Files(KilnCase):
    def setUp(self):
        super().setUp()
        self.file = self.compiled()
        with open(self.file, "rb") as f:
            self.whole = f.read()

    def write(self, content):
        with open(self.path("bad.kiln"), "wb") as f:
            f.write(content)
        return self.path("bad.kiln")

    def test_truncations(self):
        for size in sorted({0, 1, 7, 8, 63, 64, len(self.whole) - 1, *random.Random(1).sample(range(len(self.whole)), 12)}):
            self.assertIn("bad.kiln", self.error_line(self.kiln("run", self.write(self.whole[:size]), code=3)))

    def test_flips(self):
        for at in sorted(random.Random(2).sample(range(len(self.whole)), 25)):
            damaged = bytearray(self.whole)
            damaged[at] ^= 0x10
            self.error_line(self.kiln("run", self.write(bytes(damaged)), code=3))
            self.error_line(self.kiln("inspect", "--check", self.path("bad.kiln"), code=3))

    def test_trailing_bytes(self):
        self.kiln("run", self.write(self.whole + b"x"), code=3)


if __name__ == "__main__":
    kiln_case.main()
