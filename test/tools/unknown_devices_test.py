"""Devices that the table of targets does not name, on the stand-ins for the drivers: KILN_STAND_IN_HIP and KILN_STAND_IN
(CUDA) are those libraries, which report the architecture in KILN_STAND_IN_ARCHITECTURE."""
import os

import kiln_case
from kiln_case import KilnCase


class UnknownDevices(KilnCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("drivers"))
        os.symlink(os.environ["KILN_STAND_IN"], self.path("drivers/libcuda.so.1"))
        os.symlink(os.environ["KILN_STAND_IN_HIP"], self.path("drivers/libamdhip64.so.6"))

    def on(self, architecture):
        # LeakSanitizer crashes when it looks at the threads of a driver that was opened late.
        no_leaks = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))
        folders = os.pathsep.join(filter(None, [self.path("drivers"), os.environ.get("LD_LIBRARY_PATH")]))
        return {"ASAN_OPTIONS": no_leaks, "LD_LIBRARY_PATH": folders, "KILN_STAND_IN_ARCHITECTURE": architecture}

    def device(self, name, architecture):
        # The other driver cannot make sense of the name.
        other = "libcuda.so.1" if name.startswith("hip") else "libamdhip64.so.6"
        os.rename(self.path("drivers/" + other), self.path(other))
        try:
            rows = {d["name"]: d for d in self.json("devices", env=self.on(architecture))["devices"]}
            text = self.kiln("devices", env=self.on(architecture)).stdout
        finally:
            os.rename(self.path(other), self.path("drivers/" + other))
        return rows[name], text

    def test_devices_show_the_code_that_they_get(self):
        for name, architecture, target, generic in [
            ("hip:0", "gfx1151:xnack-", "gfx1151", "gfx11-generic"),
            ("hip:0", "gfx90a:sramecc+:xnack-", "gfx90a", None),
            ("cuda:0", "sm_86", "sm_86", None),
        ]:
            row, text = self.device(name, architecture)
            self.assertEqual((row["target"], row["generic_target"], row["note"]), (target, generic, ""))
            self.assertNotIn("no target describes", text)
        for name, architecture, target in [("hip:0", "gfx1154", "gfx11-generic"), ("hip:1", "gfx909:xnack+", "gfx909"), ("hip:0", "gfx941", "gfx9-4-generic"), ("cuda:0", "sm_99", "sm_89"), ("cuda:1", "sm_125", "sm_121")]:
            row, text = self.device(name, architecture)
            self.assertEqual(row["target"], target)
            self.assertEqual(row["architecture"], architecture)
            if row["target"] != "gfx909":
                self.assertIn(f"is {architecture}, which no target describes: it gets code for {target}", row["note"])
                self.assertIn(row["note"], text)
        row, text = self.device("hip:0", "gfx1299")
        self.assertEqual(row["target"], "none")
        self.assertIn("device hip:0 is gfx1299, which no target describes, and there is no generic code for its family", text)

    def test_a_made_up_device_is_refused_in_one_line(self):
        file = self.compiled()
        for name, architecture in [("hip:0", "gfx1299"), ("cuda:0", "sm_52")]:
            line = self.error_line(self.kiln("run", file, "--device", name, env=self.on(architecture), code=3))
            self.assertIn(f"device {name} is {architecture}", line)
        # A name that is not even one of an architecture.
        line = self.error_line(self.kiln("run", file, "--device", "hip:0", env=self.on("navi"), code=4))
        self.assertIn("'navi'", line)

    def test_names_of_no_target_say_what_they_may_mean(self):
        file = self.compiled()
        for name, says in [("gfx1154", "GPUs of this name run code for gfx11-generic, "), ("gfx940", "GPUs of this name run code for gfx9-4-generic, "), ("sm_99", "GPUs of this name run code for sm_89, "),
                           ("GFX942", "did you mean gfx942? "), ("sm_90a", "did you mean sm_90? "), ("gfx1299", ""), ("sm_52", ""), ("sm_", ""), ("gfx", ""), ("generic", ""), ("", "")]:
            line = self.error_line(self.kiln("finalize", file, "--target", name, "-o", self.path("objects"), code=2))
            self.assertIn(f"unknown target '{name}': {says}see kiln targets", line)

    def test_generic_entries_are_explained_as_what_devices_of_the_family_use(self):
        file = self.compiled()
        of = lambda target: self.json("cache", "explain", file, "--target", target)
        self.kiln("warm", file, "--target", "gfx11-generic")
        family = of("gfx1102")
        self.assertEqual((family["misses"], {k["target"] for k in family["kernels"]}), (0, {"gfx11-generic"}))
        self.assertIn(", code for gfx11-generic", self.kiln("cache", "explain", file, "--target", "gfx1102").stdout)
        self.assertEqual((of("gfx1201")["hits"], of("sm_80")["hits"]), (0, 0))
        self.kiln("warm", file, "--target", "gfx1102")
        self.assertEqual({k["target"] for k in of("gfx1102")["kernels"]}, {"gfx1102"})

    def test_generic_code_is_compiled_for_a_device_without_a_row(self):
        file = self.compiled()
        done = self.kiln("warm", file, "--device", "hip:0", env=self.on("gfx1154"))
        self.assertEqual(done.stderr.count("it gets code for gfx11-generic"), 1, done.stderr)
        # The entries are those of the generic target.
        events = self.json("warm", file, "--target", "gfx11-generic")
        self.assertEqual((events["compiled"], events["failed"]), (0, 0), events)

    def test_one_generic_entry_serves_the_family(self):
        file = self.compiled()
        missing = self.error_line(self.kiln("run", file, "--device", "hip:0", "--if-cached", env=self.on("gfx1100"), code=4))
        self.assertIn("not in the cache", missing)
        self.kiln("warm", file, "--target", "gfx11-generic")
        for architecture in ["gfx1100", "gfx1151", "gfx1154"]:
            # The stand-in refuses real code objects, but only once they were found.
            done = self.kiln("run", file, "--device", "hip:0", "--if-cached", env=self.on(architecture), code=4)
            self.assertNotIn("not in the cache", done.stderr)
            self.assertIn("the driver refuses the module", done.stderr)
        missing = self.kiln("run", file, "--device", "hip:0", "--if-cached", env=self.on("gfx1201"), code=4)
        self.assertIn("not in the cache", missing.stderr)

    def test_native_files_of_a_generic_target(self):
        file = self.compiled()
        self.kiln("finalize", file, "--target", "gfx9-4-generic", "--native-file", self.path("native.kiln"), "-o", self.path("objects"))
        line = self.error_line(self.kiln("run", self.path("native.kiln"), "--device", "hip:0", env=self.on("gfx1100"), code=3))
        self.assertIn("gfx9-4-generic", line)
        done = self.kiln("run", self.path("native.kiln"), "--device", "hip:0", env=self.on("gfx950"), code=4)
        self.assertIn("the driver refuses the module", done.stderr)


if __name__ == "__main__":
    kiln_case.main()
