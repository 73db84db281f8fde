"""torch.compile(backend="kiln"): models that later processes find in the cache. Needs torch and onnxscript."""
import os
import subprocess
import sys
import unittest
import warnings

try:
    import onnxscript  # noqa: F401
    import torch
except ImportError as e:
    print(f"skipped: {e.name} is not installed (pip install torch onnxscript)")
    sys.exit(77)

from kiln import torch_backend, torch_cache, torch_key
from kiln.torch_graph import capture

from python_case import PythonCase

warnings.simplefilter("ignore")

ANOTHER_PROCESS = """
import sys, torch, warnings
warnings.simplefilter("ignore")
from kiln import torch_backend
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.GELU(), torch.nn.Linear(8, 4)).eval()
x = torch.linspace(-1, 1, 48).reshape(3, 16)
with torch.no_grad():
    y = torch.compile(module, backend=torch_backend.kiln, options={"threads": 1})(x)
    torch.testing.assert_close(y, module(x), rtol=1e-4, atol=1e-4)
print([r.found for r in torch_backend.graphs()], "onnxscript" in sys.modules)
"""


def graph_of(function, *arguments, dynamic=None):
    """The first graph that torch captures of a call, and its arguments."""
    seen = []

    def backend(graph, example_inputs):
        def call(*given):
            seen.append((graph, given))
            return graph(*given)

        return call

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend=backend, dynamic=dynamic)(*arguments)
    return seen[0]


def name_of(function, *arguments, dynamic=None, **options):
    graph, given = graph_of(function, *arguments, dynamic=dynamic)
    return torch_key.name_of(graph, capture(graph, given), given, options)


class TorchCache(PythonCase):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.cache = self.path("cache")

    def another_process(self):
        env = {**os.environ, "KILN_CACHE_DIR": self.cache}
        done = subprocess.run([sys.executable, "-c", ANOTHER_PROCESS], capture_output=True, text=True, timeout=250, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip(), done.stderr

    def test_another_process_finds_the_model(self):
        self.assertEqual(self.another_process()[0], "[False] True")
        self.assertEqual(self.another_process()[0], "[True] False")  # and exports nothing
        (name,) = os.listdir(self.path("cache/torch"))
        path = self.path("cache/torch/" + name)
        with open(path, "r+b") as file:  # a damaged file is made again
            file.truncate(100)
        self.assertEqual(self.another_process()[0], "[False] True")
        self.assertGreater(os.stat(path).st_size, 100)
        os.chmod(path, 0o666)  # others could have changed it
        self.assertEqual(self.another_process()[0], "[False] True")

    def test_equal_graphs_have_one_name(self):
        def function(x, factor=2.0):
            return torch.softmax(x[:, 1:] * factor, -1)

        x = torch.randn(3, 8)
        name = name_of(function, x)
        self.assertEqual(name_of(function, torch.randn(3, 8)), name)
        self.assertEqual(name_of(lambda y: torch.softmax(y[:, 1:] * 2.0, -1), x), name)

    def test_what_steers_the_result_is_in_the_name(self):
        x = torch.randn(3, 8)
        layer = torch.nn.Linear(8, 4)
        with torch.no_grad():
            names = {
                "the layer": name_of(layer, x),
                "an option": name_of(layer, x, precision="fp16"),
                "another option": name_of(layer, x, precision="bf16"),
                "a size": name_of(layer, torch.randn(4, 8)),
                "open sizes": name_of(layer, x, dynamic=True),
                "a type": name_of(layer.double(), x.double()),
            }
            layer.float()
            self.assertEqual(name_of(layer, x), names["the layer"])
            layer.bias[3] += 1e-3
            names["a weight"] = name_of(layer, x)
            with torch.autocast("cpu", torch.bfloat16):
                names["autocast"] = name_of(layer, x)
            names |= {f"a constant {c!r}": name_of(lambda y: y * c, x) for c in [1, 1.0, True, -0.0, 0.0]}
            names |= {f"a function {f}": name_of(f, x) for f in [torch.sin, torch.cos, torch.Tensor.neg, torch.nn.functional.gelu]}
            names |= {f"{d}": name_of(lambda y: y.sum(d), x) for d in [0, 1, (0, 1)]}
            norm = torch.nn.LayerNorm(8)
            names["eps"] = name_of(norm, x, dynamic=True)
            norm.eps = 0.5
            names["another eps"] = name_of(norm, x, dynamic=True)
        self.assertEqual(len(set(names.values())), len(names), names)

    def test_what_cannot_be_read_has_no_name(self):
        @torch.library.custom_op("kiln_test::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        twice.register_fake(lambda x: torch.empty_like(x))

        @torch.compiler.allow_in_graph
        def hidden(x):
            return x * 3

        x = torch.randn(3)
        def branches(y):
            return torch.cond(y.sum() > 0, torch.sin, torch.cos, (y,))

        for function in [lambda y: torch.ops.kiln_test.twice(y) + 1, lambda y: hidden(y) + 1, branches]:
            with self.assertRaises(torch_key.NoName):
                name_of(function, x)

    def test_a_full_folder_gives_up_what_was_not_used_for_longest(self):
        folder = torch_cache.folder_of({"cache": self.cache})
        before, torch_cache.MOST_BYTES = torch_cache.MOST_BYTES, 250

        class made:
            path = self.path("model")

        try:
            with open(made.path, "wb") as file:
                file.write(bytes(100))
            for i in range(4):
                torch_cache.keep(folder, f"m{i}", made)
                os.utime(os.path.join(folder, f"m{i}.kiln"), (i, i))
            self.assertEqual(sorted(os.listdir(folder)), ["m2.kiln", "m3.kiln"])
        finally:
            torch_cache.MOST_BYTES = before

    def test_folders_that_others_may_change_are_not_used(self):
        chosen = {"cache": self.path("a/cache")}
        self.assertIsNotNone(torch_cache.folder_of(chosen))
        for part in ["a", "a/cache", "a/cache/torch"]:
            os.chmod(self.path(part), 0o777)
            with self.assertLogs("kiln", "WARNING") as said:
                self.assertIsNone(torch_cache.folder_of(chosen))
            self.assertIn("others", said.output[0])
            os.chmod(self.path(part), 0o700)
        os.symlink(self.path("a"), self.path("b"))
        self.assertIsNotNone(torch_cache.folder_of({"cache": self.path("b/cache")}))

    def test_nothing_is_kept_without_a_cache(self):
        self.assertIsNone(torch_cache.folder_of({"no_cache": True}))
        with open(self.path("file"), "w"):
            pass
        with self.assertLogs("kiln", "WARNING"):
            self.assertIsNone(torch_cache.folder_of({"cache": self.path("file")}))


if __name__ == "__main__":
    unittest.main()
