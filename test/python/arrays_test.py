"""Arrays in and out: no copies, every element type, DLPack, arrays of the caller's to fill."""
import unittest

import kiln
import ml_dtypes
import numpy as np
from kiln import arrays
from onnx import TensorProto

from python_case import PythonCase, add_model, identity_like

TYPES = [
    (TensorProto.FLOAT, "float32"), (TensorProto.DOUBLE, "float64"), (TensorProto.FLOAT16, "float16"),
    (TensorProto.BFLOAT16, "bfloat16"), (TensorProto.INT64, "int64"), (TensorProto.INT32, "int32"),
    (TensorProto.INT16, "int16"), (TensorProto.INT8, "int8"), (TensorProto.UINT64, "uint64"),
    (TensorProto.UINT32, "uint32"), (TensorProto.UINT16, "uint16"), (TensorProto.UINT8, "uint8"),
    (TensorProto.BOOL, "bool"), (TensorProto.FLOAT8E4M3FN, "float8_e4m3fn"), (TensorProto.FLOAT8E5M2, "float8_e5m2"),
]  # fmt: skip


class only_dlpack:
    """An array that shows itself through DLPack alone."""

    def __init__(self, array):
        self.array, self.pointers = array, []

    def __dlpack__(self, **options):
        self.pointers.append(self.array.ctypes.data)
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Arrays(PythonCase):
    def open(self, model, **options):
        session = kiln.compile(model).session(threads=1, **options)
        self.addCleanup(session.close)
        return session

    def test_every_element_type_goes_in_and_out(self):
        for kind, name in TYPES:
            with self.subTest(name):
                session = self.open(identity_like(kind))
                x = np.arange(6).reshape(2, 3).astype(arrays.numpy_dtype(name))
                got = session(x)
                self.assertEqual(got.dtype, x.dtype)
                self.assertEqual(got.tobytes(), x.tobytes())

    def test_bits_stand_for_types_that_numpy_lacks(self):
        session = self.open(identity_like(TensorProto.BFLOAT16))
        x = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
        self.assertEqual(session(x.view(np.uint16)).dtype, ml_dtypes.bfloat16)
        with self.assertRaisesRegex(kiln.errors.UsageError, "'x': it is int16, and the model takes bfloat16"):
            session(x.view(np.int16))

    def test_packed_types_have_one_element_in_each_byte(self):
        rng = np.random.default_rng(6)
        for name, bits in arrays.packed_bits.items():
            with self.subTest(name):
                bytes_ = rng.integers(0, 1 << bits, 7, dtype=np.uint8)
                packed, shape = arrays.pack(bytes_.view(np.uint8), name, "x")
                self.assertEqual((len(packed), shape), (-(-7 * bits // 8), [7]))
                back = arrays.as_output(packed, name, (7,))
                self.assertEqual(back.dtype, arrays.numpy_dtype(name))
                self.assertTrue(np.array_equal(back.view(np.uint8) & ((1 << bits) - 1), bytes_))
        low = arrays.as_output(np.array([0xF8], np.uint8), "int4", (2,))
        self.assertEqual(low.astype(int).tolist(), [-8, -1])

    def test_an_input_is_used_where_it_lies(self):
        """A run that reads while the caller's array changes shows that there is no copy: the output is the array."""
        session = self.open(add_model())
        shared = only_dlpack(np.ones((2, 3), np.float32))
        total = session.run({"a": shared, "b": shared})["sum"]
        self.assertTrue((total == 2).all())
        self.assertEqual(shared.pointers, [shared.array.ctypes.data] * 2)
        with self.assertRaisesRegex(kiln.KilnError, "overlap"):  # the pointers are those of the arrays themselves
            a = np.ones((2, 3), np.float32)
            session.run({"a": a, "b": a}, {"sum": a})

    def test_outputs_fill_arrays_of_the_caller(self):
        session = self.open(add_model())
        a, b, total = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32), np.empty((2, 3), np.float32)
        results = session.run({"a": a, "b": b}, {"sum": total})
        self.assertIs(results["sum"], total)
        self.assertTrue((total == 3).all())
        self.assertTrue((results["difference"] == -1).all())
        for wrong in [np.empty((3, 2), np.float32), np.empty((2, 3)), np.empty((3, 2), np.float32).T, np.empty((2, 6), np.float32)[:, ::2]]:
            with self.assertRaisesRegex(kiln.errors.UsageError, "output 'sum'"):
                session.run({"a": a, "b": b}, {"sum": wrong})
        frozen = np.empty((2, 3), np.float32)
        frozen.flags.writeable = False
        with self.assertRaisesRegex(kiln.errors.UsageError, "output 'sum'"):
            session.run({"a": a, "b": b}, {"sum": frozen})

    def test_outputs_share_memory_with_others(self):
        session = self.open(add_model())
        a = np.ones((2, 3), np.float32)
        total = session.run({"a": a, "b": a})["sum"]
        again = np.from_dlpack(total)
        self.assertEqual(again.ctypes.data, total.ctypes.data)

    def test_results_of_earlier_runs_stay(self):
        session = self.open(add_model())
        a = np.ones((2, 3), np.float32)
        results = [session.run({"a": a * i, "b": a})["sum"] for i in range(5)]
        for i, total in enumerate(results):
            self.assertTrue((total == i + 1).all())

    def test_gaps_and_read_only_arrays_and_lists(self):
        session = self.open(add_model())
        wide = np.arange(12, dtype=np.float32).reshape(2, 6)
        frozen = np.ones((2, 3), np.float32)
        frozen.flags.writeable = False
        got = session.run({"a": wide[:, ::2], "b": frozen})["sum"]
        self.assertTrue(np.array_equal(got, wide[:, ::2] + 1))
        got = session.run({"a": [[1, 2, 3], [4, 5, 6]], "b": np.ones((3, 2), np.float32).T})["sum"]
        self.assertEqual(got.tolist(), [[2, 3, 4], [5, 6, 7]])
        odd = np.frombuffer(bytearray(25), np.uint8)[1:].view(np.float32).reshape(2, 3)  # not aligned
        self.assertEqual(session.run({"a": odd, "b": frozen})["sum"].tolist(), [[1, 1, 1]] * 2)

    def test_wrong_types_are_refused_by_name(self):
        session = self.open(add_model())
        good = np.ones((2, 3), np.float32)
        for wrong in [good.astype(np.float64), good.astype(np.int32), good.astype(np.complex64), good.astype(ml_dtypes.bfloat16), "text", None, object(), [["a"]]]:
            with self.subTest(type(wrong)):
                with self.assertRaisesRegex(kiln.errors.UsageError, "input 'b'"):
                    session.run({"a": good, "b": wrong})
        big_endian = good.astype(">f4")
        with self.assertRaisesRegex(kiln.errors.UsageError, "input 'b'"):
            session.run({"a": good, "b": big_endian})


if __name__ == "__main__":
    unittest.main()
