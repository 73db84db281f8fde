"""The pages of `inspect --html` and `perf --html`, and `inspect --dot`: they need no network and no scripts, every link leads
somewhere, texts of the model are no markup, and figures are right. With Chromium (Debian: chromium) the pages are also drawn."""
import html.parser
import os
import re
import shutil
import subprocess
import unittest

import numpy as np
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, main, tensor

VOID = {"meta", "input", "br", "img", "link"}
OPTIONAL_END = {"tr", "td", "th", "p", "html", "li"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.tags, self.open, self.problems = set(), [], [], [], []
        self.text = ""
        self.feed(text)
        self.problems += [f"<{t}> is not closed" for t in self.open if t not in OPTIONAL_END]

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        attributes = dict(attributes)
        if "id" in attributes:
            if attributes["id"] in self.ids:
                self.problems.append(f"id {attributes['id']} is there twice")
            self.ids.add(attributes["id"])
        self.links += [attributes[k] for k in ("href", "src", "xlink:href") if k in attributes]
        self.problems += [f"{k} in <{tag}>" for k in attributes if k.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in OPTIONAL_END:
            self.open.pop()
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.text += data


class Pages(KilnCase):
    def page(self, name):
        with open(self.path(name)) as f:
            text = f.read()
        page = Page(text)
        self.assertEqual(page.problems, [])
        self.assertNotIn("script", page.tags)
        self.assertNotRegex(text, r"https?://|url\(|@import")
        for link in page.links:
            self.assertTrue(link.startswith("#") and link[1:] in page.ids, link)
        self.drawn(name)
        return page

    def drawn(self, name):
        """Chromium draws the page and says nothing about it."""
        browser = shutil.which("chromium")
        if not browser or kiln_case.SANITIZER:
            print(f"{name}: not drawn ({'a sanitizer' if browser else 'chromium is not installed'})")
            return
        picture = self.path("page.png")
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={self.path('browser')}",
                               "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1240,2000", f"--screenshot={picture}", "file://" + self.path(name)], capture_output=True, text=True, timeout=240)
        self.assertTrue(os.path.exists(picture), done.stderr[-2000:])
        self.assertGreater(os.path.getsize(picture), 20000)
        self.assertNotIn("CONSOLE", done.stderr)
        os.remove(picture)

    def test_inspect_draws_graph_fusions_kernels_and_memory(self):
        file = self.compiled(self.conv_model(batch="N"))
        summary = self.json("inspect", file, "--html", self.path("open.html"))
        page = self.page("open.html")
        for kernel in summary["kernels"]:
            self.assertIn(f"kernel-{kernel['hash'][:16]}", page.ids)
        self.assertIn("the plan needs --dim N=...", page.text)
        self.assertIn("convolution", page.text)
        self.kiln("inspect", file, "--html", self.path("four.html"), "--dim", "N=4")
        self.assertIn("For N = 4. The arena takes", self.page("four.html").text)
        self.assertIn("dimension 'M'", self.kiln("inspect", file, "--html", self.path("x.html"), "--dim", "M=4", code=2).stderr)

    def test_the_plan_of_memory_is_that_of_a_run(self):
        file = self.path("squeezenet.kiln")
        self.kiln("compile", os.path.join(kiln_case.MODELS, "squeezenet1_1.onnx"), "-o", file)
        self.kiln("inspect", file, "--html", self.path("page.html"))
        planned = float(re.search(r"The arena takes ([\d.]+) MB", self.page("page.html").text)[1])
        # Kernels of the host that need scratch memory make it larger.
        arena = self.json("perf", file, "-n", "1")["arena_bytes"] / 1e6
        self.assertLessEqual(planned, arena + 0.001)
        self.assertGreater(planned, arena * 0.5)

    def test_names_of_a_model_are_no_markup(self):
        name = "<script>alert(1)</script>&'\""
        node = helper.make_node("Relu", [name], ["y"], name=name)
        file = self.compiled(self.save("name.onnx", [node], [tensor(name, [2, 3])], [tensor("y", [2, 3])]))
        self.kiln("inspect", file, "--html", self.path("page.html"), "--dot", self.path("graph.dot"))
        self.assertIn(name, self.page("page.html").text)
        self.kiln("perf", file, "-n", "2", "--html", self.path("perf.html"))
        self.page("perf.html")
        with open(self.path("graph.dot")) as f:
            self.assertIn(name.replace('"', '\\"'), f.read())

    def test_dot_has_every_kernel_and_tensor(self):
        file = self.compiled(self.conv_model())
        summary = self.json("inspect", file, "--dot", self.path("graph.dot"))
        with open(self.path("graph.dot")) as f:
            text = f.read()
        self.assertRegex(text, r'^digraph "main" \{\n')
        self.assertEqual(len(re.findall(r"^  n\d+ \[label=", text, re.M)), summary["code_objects"] + summary["interpreted"] + 2)
        nodes = set(re.findall(r"^  (n\d+) \[", text, re.M))
        edges = re.findall(r"^  (n\d+) -> (n\d+) \[label=\"f32\[", text, re.M)
        self.assertTrue(edges and all(a in nodes and b in nodes for a, b in edges))
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg", "-o", self.path("graph.svg"), self.path("graph.dot")], check=True, timeout=60)

    def test_operations_of_launches_are_counted(self):
        rng = np.random.default_rng(0)
        weight = numpy_helper.from_array(rng.standard_normal((64, 32)).astype(np.float32), "w")
        filters = numpy_helper.from_array(rng.standard_normal((16, 8, 3, 3)).astype(np.float32), "f")
        nodes = [helper.make_node("MatMul", ["a", "w"], ["p"]), helper.make_node("Conv", ["x", "f"], ["c"], pads=[1, 1, 1, 1])]
        inputs = [tensor("a", ["N", 64]), tensor("x", ["N", 8, 20, 20])]
        outputs = [tensor("p", ["N", 32]), tensor("c", ["N", 16, 20, 20])]
        file = self.compiled(self.save("two.onnx", nodes, inputs, outputs, [weight, filters]))
        document = self.json("perf", file, "--dim", "N=5", "-n", "2", "--html", self.path("perf.html"))
        counted = {row["symbol"].split("_")[0]: row["operations"] for row in document["per_kernel"]}
        self.assertEqual(counted["dot"], 2 * 5 * 32 * 64)
        self.assertEqual(counted["convolution"], 2 * 5 * 16 * 20 * 20 * 8 * 9)
        page = self.page("perf.html")
        self.assertIn("Roofs:", page.text)
        self.assertIn("GFLOP/s", page.text)

    def test_wrong_use(self):
        file = self.compiled()
        kernel = self.json("inspect", file)["kernels"][0]["hash"]
        self.kiln("inspect", file, "--kernel", kernel, "--html", self.path("x.html"), code=2)
        self.kiln("inspect", file, "--dot", self.path("no/folder/x.dot"), code=3)


if __name__ == "__main__":
    main()
