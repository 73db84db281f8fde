"""Decoders in the C interface: sequences beside onnxruntime, copies, drafts that are taken back, saved sequences, and what
a decoder refuses. KILN_LIBRARIES is the folder of the libraries."""
import ctypes
import os
import unittest

import numpy as np

import kiln_case
from generate_test import CONTEXT, VOCABULARY, decoder, greedy

I64, SIZE = ctypes.c_int64, ctypes.c_size_t


class Options(ctypes.Structure):
    """kiln_open_options up to `most_programs`."""
    _fields_ = [("size", SIZE), ("device", ctypes.c_char_p), ("threads", ctypes.c_uint), ("trusted_keys", ctypes.c_char_p), ("allow_unsigned", ctypes.c_int),
                ("dims", ctypes.c_void_p), ("dim_count", SIZE), ("cache_folder", ctypes.c_char_p), ("no_cache", ctypes.c_int), ("only_cached", ctypes.c_int),
                ("compile_worker", ctypes.c_char_p), ("most_programs", SIZE)]


class Sampling(ctypes.Structure):
    _fields_ = [("size", SIZE), ("method", ctypes.c_int), ("temperature", ctypes.c_double), ("top_k", SIZE), ("top_p", ctypes.c_double), ("repetition_penalty", ctypes.c_double), ("seed", ctypes.c_uint64)]


class Info(ctypes.Structure):
    _fields_ = [("vocabulary", I64), ("context", I64)]


@unittest.skipIf(kiln_case.SANITIZER, "a sanitizer's library is not loaded into Python")
class DecoderApi(kiln_case.KilnCase):
    def setUp(self):
        super().setUp()
        self.library = ctypes.CDLL(os.path.join(os.environ["KILN_LIBRARIES"], "libkiln_runtime.so.0"))
        self.library.kiln_last_error.restype = self.library.kiln_status_name.restype = ctypes.c_char_p
        decoder(self.path("model.onnx"))
        self.kiln("compile", self.path("model.onnx"), "-o", self.path("model.kiln"))
        self.decoder = self.opened()

    def check(self, status):
        self.assertEqual(status, 0, self.library.kiln_last_error())

    def refused(self, name, text, status):
        self.assertEqual(self.library.kiln_status_name(status).decode(), name, self.library.kiln_last_error())
        self.assertIn(text, self.library.kiln_last_error().decode())

    def opened(self, context=0, file="model.kiln"):
        result = ctypes.c_void_p()
        options = Options(size=ctypes.sizeof(Options), threads=1, cache_folder=self.path("cache").encode())
        self.check(self.library.kiln_decoder_open(self.path(file).encode(), ctypes.byref(options), I64(context), ctypes.byref(result)))
        self.addCleanup(self.library.kiln_decoder_close, result)
        return result

    def sequences(self, of=None):
        result = ctypes.c_void_p()
        self.check(self.library.kiln_sequences_create(of or self.decoder, ctypes.byref(result)))
        self.addCleanup(self.library.kiln_sequences_destroy, result)
        return result

    def try_append(self, sequences, rows, logits=None):
        ids = np.ascontiguousarray(np.atleast_2d(np.array(rows, np.int64)))
        pointer = ctypes.c_void_p(logits.ctypes.data if logits is not None else None)
        return self.library.kiln_sequences_append(sequences, SIZE(ids.shape[0]), SIZE(ids.shape[1]), ctypes.c_void_p(ids.ctypes.data), pointer)

    def append(self, sequences, rows):
        logits = np.full((np.atleast_2d(rows).shape[0], VOCABULARY), np.nan, np.float32)
        self.check(self.try_append(sequences, rows, logits))
        return logits

    def greedy(self, sequences, prompt, steps):
        made = [int(self.append(sequences, prompt)[0].argmax())]
        while len(made) < steps:
            made.append(int(self.append(sequences, [made[-1]])[0].argmax()))
        return made

    def length(self, sequences):
        rows, length = SIZE(), I64()
        self.check(self.library.kiln_sequences_get_length(sequences, ctypes.byref(rows), ctypes.byref(length)))
        return rows.value, length.value

    def test_sequences_take_turns(self):
        info = Info()
        self.check(self.library.kiln_decoder_get_info(self.decoder, ctypes.byref(info)))
        self.assertEqual((info.vocabulary, info.context), (VOCABULARY, CONTEXT))
        prompts = [[3, 1, 4], [9, 2, 6, 5], [7]]
        batches = [self.sequences() for _ in prompts]
        self.assertEqual(self.length(batches[0]), (0, 0))
        made = [[int(self.append(b, p)[0].argmax())] for b, p in zip(batches, prompts)]
        for _ in range(9):
            for b, ids in zip(batches, made):
                ids.append(int(self.append(b, [ids[-1]])[0].argmax()))
        self.assertEqual(made, [greedy(self.path("model.onnx"), p, 10) for p in prompts])
        self.assertEqual(self.length(batches[1]), (1, 13))

    def test_rows_of_a_batch(self):
        together = self.append(self.sequences(), [[3, 1, 4], [9, 2, 6]])
        for row, prompt in zip(together, [[3, 1, 4], [9, 2, 6]]):
            np.testing.assert_allclose(row, self.append(self.sequences(), prompt)[0], rtol=1e-4, atol=1e-4)

    def test_drafts_copies_and_resets(self):
        sequences, copy = self.sequences(), ctypes.c_void_p()
        self.append(sequences, [3, 1, 4])
        self.check(self.library.kiln_sequences_copy(sequences, ctypes.byref(copy)))
        self.addCleanup(self.library.kiln_sequences_destroy, copy)
        want = self.append(sequences, [5])
        self.append(sequences, [8, 8])
        self.check(self.library.kiln_sequences_rollback(sequences, I64(3)))
        np.testing.assert_array_equal(self.append(sequences, [5]), want)
        np.testing.assert_array_equal(self.append(copy, [5]), want)
        self.refused("usage", "rollback: 5 ids", self.library.kiln_sequences_rollback(copy, I64(5)))
        self.check(self.library.kiln_sequences_reset(copy))
        self.assertEqual(self.length(copy), (0, 0))
        self.assertEqual(self.greedy(copy, [3, 1, 4], 4), greedy(self.path("model.onnx"), [3, 1, 4], 4))

    def test_saved_sequences(self):
        sequences, loaded = self.sequences(), ctypes.c_void_p()
        self.append(sequences, [3, 1, 4])
        file = self.path("s.seq").encode()
        self.check(self.library.kiln_sequences_save(sequences, file))
        want = self.append(sequences, [5])
        other = self.opened()
        self.check(self.library.kiln_sequences_load(other, file, ctypes.byref(loaded)))
        self.addCleanup(self.library.kiln_sequences_destroy, loaded)
        np.testing.assert_array_equal(self.append(loaded, [5]), want)
        self.refused("missing_file", "absent", self.library.kiln_sequences_load(other, self.path("absent").encode(), ctypes.byref(loaded)))
        with open(file, "rb+") as f:
            f.truncate(os.path.getsize(file) - 1)
        self.refused("damaged_file", "s.seq: saved sequences", self.library.kiln_sequences_load(other, file, ctypes.byref(loaded)))

    def chosen(self, sequences, **sampling):
        ids = (I64 * 1)()
        options = Sampling(size=ctypes.sizeof(Sampling), **sampling)
        return self.library.kiln_sequences_choose(sequences, ctypes.byref(options), ids), ids[0]

    def test_ids_are_chosen_as_the_command_does(self):
        for arguments, sampling in [([], {}), (["--sample", "top-k", "--top-k", 20, "--temperature", 30, "--seed", 5], {"method": 1, "top_k": 20, "temperature": 30, "seed": 5}),
                                    (["--sample", "top-p", "--top-p", 0.95, "--temperature", 9, "--repetition-penalty", 1.5], {"method": 2, "top_p": 0.95, "temperature": 9, "repetition_penalty": 1.5})]:
            np.save(self.path("ids.npy"), np.array([3, 1, 4]))
            want = self.json("generate", self.path("model.kiln"), "--prompt-ids", self.path("ids.npy"), "--max-new-tokens", 8, *arguments)["tokens"]
            sequences, made = self.sequences(), []
            self.append(sequences, [3, 1, 4])
            for _ in range(8):
                status, id = self.chosen(sequences, **sampling)
                self.check(status)
                made.append(id)
                self.append(sequences, [id])
            self.assertEqual(made, want)
        self.refused("usage", "temperature", self.chosen(sequences, method=1, temperature=-1)[0])
        self.refused("usage", "no such method", self.chosen(sequences, method=7)[0])
        self.check(self.library.kiln_sequences_rollback(sequences, I64(1)))
        self.refused("usage", "append ids first", self.chosen(sequences)[0])

    def test_bad_input_leaves_the_sequences_as_they_were(self):
        sequences = self.sequences(self.opened(context=5))
        self.append(sequences, [3, 1, 4])
        self.refused("invalid_sequence", "id 40 is not in the vocabulary", self.try_append(sequences, [VOCABULARY]))
        self.refused("invalid_sequence", "id -1", self.try_append(sequences, [-1]))
        self.refused("context_full", "6 ids do not fit into the 5", self.try_append(sequences, [1, 2, 3]))
        self.refused("usage", "2 rows for 1", self.try_append(sequences, [[1], [2]]))
        self.assertEqual(self.length(sequences), (1, 3))
        np.testing.assert_array_equal(self.append(sequences, [1]), self.again([3, 1, 4], [1]))

    def again(self, *parts):
        sequences = self.sequences()
        for part in parts:
            logits = self.append(sequences, part)
        return logits

    def test_a_model_that_is_no_decoder(self):
        self.compiled()
        result = ctypes.c_void_p()
        file = next(f for f in os.listdir(self.path("")) if f.endswith(".kiln") and f != "model.kiln")
        self.refused("unsupported", "no input of token ids", self.library.kiln_decoder_open(self.path(file).encode(), None, I64(0), ctypes.byref(result)))
        self.assertIsNone(result.value)


if __name__ == "__main__":
    kiln_case.main()
