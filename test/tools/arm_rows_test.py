"""Which row Kiln chooses on processors of 64-bit Arm, as qemu-user emulates them. For a build for Arm on another machine, inside
scripts/with_qemu.sh."""
import os
import platform
import unittest

import kiln_case
from kiln_case import KilnCase, main

ROWS = {"cortex-a53": "armv8-a", "cortex-a72": "armv8-a", "neoverse-n1": "armv8.2-a", "a64fx": "armv8-sve512", "max": "armv8.6-a",
        "max,sve=off": "armv8.6-a", "max,sve-max-vq=2": "armv8-sve256"}


@unittest.skipUnless(os.environ.get("KILN_PROCESSOR") == "aarch64" and platform.machine() != "aarch64", "this is not an emulated build for 64-bit Arm")
class ArmRows(KilnCase):
    def test_the_row_follows_the_processor(self):
        for processor, row in ROWS.items():
            with self.subTest(processor):
                device = self.json("devices", env={"QEMU_CPU": processor})["devices"][0]
                self.assertEqual(device["row"], row)
                self.assertEqual(device["vector_bits"], {"armv8-sve256": 256, "armv8-sve512": 512}.get(row, 128))
                runs = {t["name"] for t in self.json("targets", env={"QEMU_CPU": processor})["targets"] if t["runs_here"]}
                self.assertIn(row, runs)
                self.assertNotIn("x86-64-v2", runs)

    def test_processors_share_a_cache_and_no_code(self):
        file = self.compiled()
        misses = [self.json("run", file, env={"QEMU_CPU": p})["cache"]["misses"] for p in ("cortex-a53", "neoverse-n1", "cortex-a72", "max,sve-max-vq=2")]
        self.assertGreater(misses[0], 0)
        self.assertEqual(misses, [misses[0], misses[0], 0, misses[0]])  # a Cortex-A72 has the row of a Cortex-A53


if __name__ == "__main__":
    main()
