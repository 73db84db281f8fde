"""Decoders in Python: sequences beside onnxruntime, sampling, copies, drafts, saved sequences, errors."""
import os
import sys
import threading
import unittest

import numpy as np

import kiln
from python_case import PythonCase

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from generate_test import CONTEXT, VOCABULARY, decoder, greedy  # noqa: E402


class Decoder(PythonCase):
    def setUp(self):
        super().setUp()
        self.onnx = self.path("model.onnx")
        decoder(self.onnx)
        self.model = kiln.compile(self.onnx, output=self.path("model.kiln"))
        self.decoder = self.model.decoder(threads=1)
        self.addCleanup(self.decoder.close)

    def test_generate(self):
        self.assertEqual((self.decoder.vocabulary, self.decoder.context), (VOCABULARY, CONTEXT))
        sequences = self.decoder.sequences()
        made = [int(ids[0]) for ids in sequences.generate([3, 1, 4], 10)]
        self.assertEqual(made, greedy(self.onnx, [3, 1, 4], 10))
        self.assertEqual((sequences.rows, len(sequences)), (1, 12))
        sequences.reset()
        self.assertEqual([int(ids[0]) for ids in sequences.generate([3, 1, 4], 10, stop_ids=[made[2]])], made[: made.index(made[2]) + 1])

    def test_rows_end_one_by_one(self):
        prompts = [[3, 1, 4], [9, 2, 6]]
        want = [greedy(self.onnx, p, 8) for p in prompts]
        stop = next(i for i in want[0] if i not in want[1])
        made = np.array(list(self.decoder.sequences().generate(prompts, 8, stop_ids=[stop])))
        at = want[0].index(stop)
        self.assertEqual(made[:, 0].tolist(), want[0][: at + 1] + [-1] * (7 - at))
        self.assertEqual(made[:, 1].tolist(), want[1])

    def test_sampling(self):
        run = lambda seed: [int(i[0]) for i in self.decoder.sequences().generate([3, 1], 12, sample="top-k", top_k=20, temperature=30, seed=seed)]
        self.assertEqual(run(5), run(5))
        self.assertNotEqual(run(5), run(6))
        self.assertEqual(len(set([int(i[0]) for i in self.decoder.sequences().generate([3, 1], 12, repetition_penalty=100)] + [3, 1])), 14)

    def test_copies_drafts_and_files(self):
        sequences = self.decoder.sequences()
        sequences.append([3, 1, 4])
        copy = sequences.copy()
        sequences.save(self.path("s"))
        want = sequences.append([5])
        sequences.append([8, 8])
        sequences.rollback(3)
        for again in (sequences, copy, self.model.decoder().load(self.path("s"))):
            np.testing.assert_array_equal(again.append([5]), want)

    def test_errors_leave_the_sequences_as_they_were(self):
        sequences = self.model.decoder(context=5).sequences()
        sequences.append([3, 1, 4])
        with self.assertRaisesRegex(kiln.errors.InvalidSequenceError, "id 40 is not in the vocabulary"):
            sequences.append([40])
        with self.assertRaisesRegex(kiln.errors.ContextFullError, "do not fit into the 5"):
            sequences.append([1, 2, 3])
        with self.assertRaisesRegex(kiln.errors.UsageError, "no integers"):
            sequences.append([0.5])
        with self.assertRaisesRegex(kiln.errors.UsageError, "temperature"):
            sequences.choose("top-k", temperature=0)
        with self.assertRaisesRegex(kiln.errors.UsageError, "'beam' is none of"):
            sequences.choose("beam")
        other = self.decoder.sequences()
        other.append([3, 1, 4])
        np.testing.assert_array_equal(sequences.append([1]), other.append([1]))
        sequences.close()
        with self.assertRaisesRegex(kiln.errors.UsageError, "closed"):
            sequences.append([1])

    def test_threads_take_turns(self):
        want, got = greedy(self.onnx, [7, 7], 12), []
        work = lambda: got.append([int(ids[0]) for ids in self.decoder.sequences().generate([7, 7], 12)])
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, [want] * 4)


if __name__ == "__main__":
    unittest.main()
