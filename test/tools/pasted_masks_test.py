"""The loop with which torchvision's Mask R-CNN pastes masks into an image, beside onnxruntime."""
import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import kiln_case
from kiln_case import KilnCase, tensor


def pasting(shift=1):
    """masks [n, 1, 6, 5] and boxes [n, 4] -> [n, height, width]; `shift` is what the size of a box is more than the difference of its corners."""
    nodes, constants = [], {}

    def add(op, inputs, **attributes):
        name = f"t{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def number(value):
        name = f"k{len(constants)}"
        constants[name] = numpy_helper.from_array(np.array(value), name)
        return name

    zero, one, front = number(0), number(1), number([0])
    row = lambda scalar: add("Unsqueeze", [scalar, front])
    most = lambda op, scalar, other: add(op, [add("Concat", [row(scalar), other], axis=0)], keepdims=0)
    mask = add("Gather", [add("Gather", ["masks", "i"]), zero])
    box = add("Gather", ["corners", "i"])
    x1, y1, x2, y2 = (add("Gather", [box, number(k)]) for k in range(4))
    width, height = (most("ReduceMax", add("Add", [add("Sub", [high, low]), number(shift)]), number([1])) for high, low in ((x2, x1), (y2, y1)))
    sizes = add("Concat", [number([1, 1]), row(height), row(width)], axis=0)
    image = add("Resize", [add("Unsqueeze", [mask, number([0, 1])]), "", "", sizes], mode="linear", coordinate_transformation_mode="half_pixel")
    image = add("Squeeze", [image, number([0, 1])])
    x_0, y_0 = (most("ReduceMax", low, front) for low in (x1, y1))
    x_1, y_1 = (most("ReduceMin", add("Add", [high, one]), row(size)) for high, size in ((x2, "W"), (y2, "H")))
    for axis, (begin, end, low) in enumerate(((y_0, y_1, y1), (x_0, x_1, x1))):
        image = add("Slice", [image, row(add("Sub", [begin, low])), row(add("Sub", [end, low])), number([axis]), number([1])])
    for axis, (begin, end, size) in enumerate(((y_0, y_1, "H"), (x_0, x_1, "W"))):
        other = add("Slice", [add("Shape", [image]), number([1 - axis]), number([2 - axis]), front])
        zeros = [add("ConstantOfShape", [add("Concat", [row(n), other][:: 1 if axis == 0 else -1], axis=0)]) for n in (begin, add("Sub", [size, end]))]
        image = add("Concat", [zeros[0], image, zeros[1]], axis=axis)
    nodes += [helper.make_node("Unsqueeze", [image, front], ["each"]), helper.make_node("Concat", ["images", "each"], ["more"], axis=0), helper.make_node("Identity", ["go"], ["on"])]
    body = helper.make_graph(nodes, "body", [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("go", T.BOOL, []), tensor("images", [None] * 3)],
                             [helper.make_tensor_value_info("on", T.BOOL, []), tensor("more", [None] * 3)])
    outer = [helper.make_node("Cast", ["boxes"], ["corners"], to=T.INT64)]
    for name, axis in (("H", 2), ("W", 3)):
        outer += [helper.make_node("Shape", ["image"], [name + "s"], start=axis, end=axis + 1), helper.make_node("Squeeze", [name + "s"], [name])]
    outer += [helper.make_node("Concat", [front, "Hs", "Ws"], ["size"], axis=0), helper.make_node("ConstantOfShape", ["size"], ["none"]), helper.make_node("Shape", ["masks"], ["ns"], start=0, end=1),
              helper.make_node("Squeeze", ["ns"], ["n"]), helper.make_node("Loop", ["n", "true", "none"], ["y"], body=body)]
    return outer, [*constants.values(), numpy_helper.from_array(np.array(True), "true")]


class PastedMasks(KilnCase):
    def model(self, shift=1):
        nodes, constants = pasting(shift)
        return self.save("m.onnx", nodes, [tensor("masks", ["n", 1, 6, 5]), tensor("boxes", ["n", 4]), tensor("image", [1, 3, "h", "w"])], [tensor("y", [None] * 3)], constants, opset=17)

    def test_masks_are_pasted(self):
        model = self.model()
        self.kiln("compile", model, "-o", self.path("m.kiln"))
        session = onnxruntime.InferenceSession(model)
        rng = np.random.default_rng(0)
        for n, h, w in ((1, 20, 31), (7, 40, 25), (3, 16, 16)):
            low, high = rng.random((2, n, 2)) * (w, h)
            boxes = np.concatenate([np.minimum(low, high) - 1, np.maximum(low, high) + 1], 1).astype(np.float32).clip(-2, max(h, w))
            boxes = np.minimum(np.maximum(boxes, -2), np.array([w - 1, h - 1, w + 3, h + 3])).astype(np.float32)
            feeds = {"masks": rng.random((n, 1, 6, 5)).astype(np.float32), "boxes": boxes, "image": np.zeros((1, 3, h, w), np.float32)}
            given = []
            for name, array in feeds.items():
                np.save(self.path(name + ".npy"), array)
                given += ["--input", f"{name}={self.path(name + '.npy')}"]
            self.kiln("run", self.path("m.kiln"), "--output-dir", self.path("out"), *given)
            np.testing.assert_allclose(np.load(self.path("out/y.npy")), session.run(None, feeds)[0], atol=1e-5)

    def test_another_body_is_not_taken_for_it(self):
        """Boxes that are one pixel larger."""
        self.assertIn("Resize", self.error_line(self.kiln("compile", self.model(shift=2), "-o", self.path("m.kiln"), code=3)))


if __name__ == "__main__":
    kiln_case.main()
