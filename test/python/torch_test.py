"""torch: modules as models, tensors in and out, and torch.compile(backend="kiln"). Needs torch and onnxscript."""
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

import kiln
import numpy as np
from kiln import torch_backend

from python_case import PythonCase, add_model

warnings.simplefilter("ignore")


class small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = torch.nn.Linear(16, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))


class attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.dropout = torch.nn.Linear(16, 48), torch.nn.Dropout(0.5)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5 if self.training else 0.0)
        return self.dropout(y.transpose(1, 2).flatten(2))


class Torch(PythonCase):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        torch._dynamo.reset()
        self.before = torch_backend.graphs()

    def close(self, got, expected):
        self.assertIsInstance(got, torch.Tensor)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)

    def compiled(self, function, **options):
        return torch.compile(function, backend=torch_backend.kiln, options={"threads": 1, **options})

    def reports(self):
        return [r for r in torch_backend.graphs() if not any(r is old for old in self.before)]

    def test_modules_and_exported_programs_are_models(self):
        module, x = small().eval(), torch.randn(3, 16)
        expected = module(x).detach()
        batch = torch.export.Dim("batch")
        with kiln.compile(module, args=(x,), dynamic_shapes=({0: batch},)).session(threads=1) as session:
            self.assertEqual(session.inputs[0].shape, ("batch", 16))
            self.close(session(x), expected)
            y = torch.randn(5, 16)
            self.close(session(y), module(y).detach())
        with kiln.compile(torch.export.export(module, (x,))).session(threads=1) as session:
            self.close(session(x), expected)
        with self.assertRaisesRegex(kiln.errors.UsageError, "args: a torch module needs example inputs"):
            kiln.compile(module)

    def test_tensors_go_in_and_out_without_copies(self):
        with kiln.compile(add_model()).session(threads=1) as session:
            a, b, total = torch.ones(2, 3), torch.full((2, 3), 2.0), torch.empty(2, 3)
            results = session.run({"a": a, "b": b}, {"sum": total})
            self.assertIs(results["sum"], total)
            self.close(results["difference"], a - b)
            self.close(session(a.t().contiguous().t(), b)[0], a + b)  # gaps
            self.close(session(a.requires_grad_(), b)[0], (a + b).detach())
            self.assertIsInstance(session(np.ones((2, 3), np.float32), b)[0], torch.Tensor)
            with self.assertRaisesRegex(kiln.errors.UsageError, "input 'a': it is float64"):
                session(a.double(), b)

    def test_a_compiled_module_gives_the_answers_of_the_module(self):
        module = small().eval()
        compiled = self.compiled(module)
        with torch.no_grad():
            for n in [3, 5, 7, 2, 3]:  # the second graph is for any number of rows
                x = torch.randn(n, 16)
                self.close(compiled(x), module(x))
        self.assertEqual([r.refused for r in self.reports()], ["", ""])

    def test_weights_that_change_are_noticed(self):
        module, x = small().eval(), torch.randn(3, 16)
        compiled = self.compiled(module)
        with torch.no_grad():
            self.close(compiled(x), module(x))
            module.first.weight.mul_(2)
            self.close(compiled(x), module(x))
            module.load_state_dict(small().state_dict())
            self.close(compiled(x), module(x))
            module.norm.running_mean.add_(1)
            self.close(compiled(x), module(x))
            self.assertEqual([r.compiles for r in self.reports()], [4])

    def test_weights_are_looked_at_while_a_gpu_works(self):
        module, x = small().eval(), torch.randn(3, 16)
        compiled = self.compiled(module)

        class OnGpu:  # enqueues, as far as the backend sees
            waits = False

            def __init__(self, run):
                self.run, self.calls = run, 0

            def __call__(self, tensors):
                self.calls += 1
                return self.run(tensors)

        with torch.no_grad():
            compiled(x)
            (graph,) = [g for g, report in torch_backend._graphs.items() if report in self.reports()]
            on_gpu = graph.built.run = OnGpu(graph.built.run)
            self.close(compiled(x), module(x))
            self.assertEqual((on_gpu.calls, graph.report.compiles), (1, 1))
            module.first.weight.mul_(2)
            self.close(compiled(x), module(x))  # what ran with the old weights is dropped
            self.assertEqual((on_gpu.calls, graph.report.compiles), (2, 2))

    def test_what_kiln_refuses_runs_eagerly_and_says_why(self):
        def function(x):
            return torch.special.bessel_j0(x) + 1

        with self.assertLogs("kiln", "WARNING") as logged:
            self.close(self.compiled(function)(torch.ones(4)), function(torch.ones(4)))
        self.assertIn("bessel_j0", logged.output[0])
        self.assertIn("bessel_j0", self.reports()[0].refused)

    def test_side_effects_and_random_numbers_are_left_to_torch(self):
        def writes(x):
            x.add_(1)
            return x * 2

        a, b = torch.ones(4), torch.ones(4)
        with self.assertLogs("kiln", "WARNING") as logged:
            self.close(self.compiled(writes)(a), writes(b))
        self.close(a, b)
        self.assertIn("writes to its arguments", logged.output[0])
        torch._dynamo.reset()
        with self.assertLogs("kiln", "WARNING") as logged:
            self.compiled(lambda x: x + torch.rand(4))(a)
        self.assertIn("random", logged.output[0])

    def test_dropout_counts_in_training_only(self):
        function, x = attention().eval(), torch.randn(2, 5, 16)
        with torch.no_grad():
            self.close(self.compiled(function)(x), function(x))
            self.assertEqual([r.refused for r in self.reports()], [""])
            torch._dynamo.reset()
            with self.assertLogs("kiln", "WARNING") as logged:
                self.compiled(function.train())(x)
            self.assertIn("call eval() on the model", logged.output[0])

    def test_graph_breaks_and_sizes_in_results(self):
        def function(x):
            y = torch.softmax(x, -1) * x.shape[0]
            if y.sum() > 0:
                y = y + 1
            return y.reshape(-1, 2), x.shape[0]

        compiled = self.compiled(function)
        for n in [2, 4, 6]:
            x = torch.randn(n, 8)
            got, rows = compiled(x)
            self.close(got, function(x)[0])
            self.assertEqual(rows, n)
        self.assertEqual({r.refused for r in self.reports()}, {""})

    def test_views_of_other_sizes(self):
        model = small().eval()
        compiled = self.compiled(model)
        whole = torch.randn(8, 16)
        with torch.no_grad():
            for part in [whole, whole[:5], whole[2:5], torch.randn(16, 4).t()]:
                self.close(compiled(part), model(part))
        self.assertEqual({r.refused for r in self.reports()}, {""})

    def test_numbers_that_torch_makes_dynamic(self):
        """With dynamic=True the eps of a norm is an argument of the graph."""
        model = torch.nn.Sequential(torch.nn.Embedding(20, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)).eval()
        compiled = torch.compile(model, backend=torch_backend.kiln, options={"threads": 1}, dynamic=True)
        with torch.no_grad():
            for n in [3, 7]:
                ids = torch.randint(0, 20, (2, n))
                self.close(compiled(ids), model(ids))
            model[1].eps = 0.5
            self.close(compiled(ids), model(ids))
        self.assertEqual({r.refused for r in self.reports()}, {""})

    def test_training_is_refused_by_name(self):
        compiled = self.compiled(small().eval())
        with self.assertRaisesRegex(kiln.errors.UnsupportedError, "training"):
            compiled(torch.randn(3, 16))

    def test_options_reach_the_compiler_and_the_session(self):
        module, x = small().eval(), torch.randn(3, 16)
        with torch.no_grad():
            expected = module(x)
            got = self.compiled(module, precision="bf16")(x)
            self.assertEqual(got.dtype, torch.float32)
            torch.testing.assert_close(got, expected, rtol=0.05, atol=0.05)
            self.assertTrue((got != expected).any())
            torch._dynamo.reset()
            with self.assertRaisesRegex(kiln.errors.UsageError, "specialization"):
                self.compiled(module, specialization="sometimes")(x)

    def test_a_call_whose_kernels_cannot_be_made_runs_eagerly(self):
        module, x = small().eval(), torch.randn(3, 16)
        with torch.no_grad(), self.assertLogs("kiln", "WARNING") as logged:
            self.close(self.compiled(module, only_cached=True)(x), module(x))
        self.assertIn("cache", logged.output[0])
        self.assertEqual([r.refused_calls for r in self.reports()], [1])

    def test_torch_and_kiln_share_a_process_in_any_order(self):
        for first, second in [("torch", "kiln"), ("kiln", "torch")]:
            script = f"""
import {first}, {second}, numpy, onnx
model = kiln.compile({self.path('add.onnx')!r})
print(model.session(threads=1)(torch.ones(2, 3), torch.ones(2, 3))[0].sum().item())
"""
            with open(self.path("add.onnx"), "wb") as f:
                f.write(add_model().SerializeToString())
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stdout), (0, "12.0\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
