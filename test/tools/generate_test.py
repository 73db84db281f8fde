"""`kiln generate`: ids equal to those of onnxruntime, folders, batches, sampling, and bad input. The models are small and
random: a decoder with a cache of keys and values, rotary positions left out, named as optimum names it."""
import json
import os
import unittest

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import kiln_case

VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT = 40, 16, 2, 2, 32
HEAD, SPREAD = WIDTH // HEADS, 0.6


class Graph:
    """Nodes and weights; every method returns the name of a result."""

    def __init__(self, seed):
        self.nodes, self.weights, self.rng, self.count = [], [], np.random.default_rng(seed), 0

    def add(self, op, *inputs, out=None, **attributes):
        self.count += 1
        out = out or f"t{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def constant(self, values, dtype=np.int64):
        self.count += 1
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype), f"c{self.count}"))
        return f"c{self.count}"

    def weight(self, *dims):
        return self.constant(self.rng.standard_normal(dims) * SPREAD, np.float32)

    def heads(self, x):
        return self.add("Transpose", self.add("Reshape", x, self.constant([0, 0, HEADS, HEAD])), perm=[0, 2, 1, 3])

    def attention(self, q, k, v, bias):
        scores = self.add("Div", self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2])), self.constant(HEAD ** 0.5, np.float32))
        weights = self.add("Softmax", self.add("Add", scores, bias) if bias else scores, axis=-1)
        mixed = self.add("Transpose", self.add("MatMul", weights, v), perm=[0, 2, 1, 3])
        return self.add("MatMul", self.add("Reshape", mixed, self.constant([0, 0, WIDTH])), self.weight(WIDTH, WIDTH))


def value(name, dims, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def decoder(path, cached=True, encoder=False, mask=True, positions=True, kinds=1):
    """A decoder with learned positions. Without an input of positions it counts all keys, masked ones too. `kinds` is
    the number of positions of an id: its time, height and width in multimodal models."""
    g = Graph(3)
    total = "past_sequence_length + sequence_length" if cached else "sequence_length"
    inputs = [value("input_ids", ["batch_size", "sequence_length"], TensorProto.INT64)]
    inputs += [value("attention_mask", ["batch_size", total], TensorProto.INT64)] if mask else []
    inputs += [value("position_ids", [kinds] * (kinds > 1) + ["batch_size", "sequence_length"], TensorProto.INT64)] if positions else []
    if encoder:
        inputs += [value("encoder_hidden_states", ["batch_size", "encoder_sequence_length", WIDTH]), value("encoder_attention_mask", ["batch_size", "encoder_sequence_length"], TensorProto.INT64)]
    outputs = [value("logits", ["batch_size", "sequence_length", VOCABULARY])]
    place = "position_ids" if kinds == 1 else g.add("Gather", "position_ids", g.constant(kinds - 1))
    if not positions:
        past = g.add("Squeeze", g.add("Shape", "past_key_values.0.key", start=2, end=3))
        end = g.add("Add", past, g.add("Squeeze", g.add("Shape", "input_ids", start=1, end=2)))
        place = g.add("Range", past, end, g.constant(1))
    x = g.add("Add", g.add("Gather", g.weight(VOCABULARY, WIDTH), "input_ids"), g.add("Gather", g.weight(CONTEXT, WIDTH), place))
    bias = None
    cross = None
    for layer in range(LAYERS):
        q, k, v = (g.heads(g.add("MatMul", x, g.weight(WIDTH, WIDTH))) for _ in range(3))
        present = []
        for name, new in (("key", k), ("value", v)):
            if cached:
                past = f"past_key_values.{layer}.{name}"
                inputs.append(value(past, ["batch_size", HEADS, "past_sequence_length", HEAD]))
                outputs.append(value(f"present.{layer}.{name}", ["batch_size", HEADS, total, HEAD]))
                new = g.add("Concat", past, new, axis=2, out=f"present.{layer}.{name}")
            present.append(new)
        if bias is None:
            # Query i sees keys up to past + i; the mask hides padding.
            keys = g.add("Shape", present[0], start=2, end=3)
            queries = g.add("Shape", "input_ids", start=1, end=2)
            range_of = lambda n: g.add("Range", g.constant(0), g.add("Squeeze", n), g.constant(1))
            last = g.add("Add", g.add("Sub", keys, queries), range_of(queries))
            seen = g.add("LessOrEqual", g.add("Unsqueeze", range_of(keys), g.constant([0])), g.add("Unsqueeze", last, g.constant([1])))
            if mask:
                kept = g.add("Unsqueeze", g.add("Cast", "attention_mask", to=TensorProto.BOOL), g.constant([1, 2]))
                seen = g.add("And", seen, kept)
            bias = g.add("Where", seen, g.constant(0, np.float32), g.constant(-1e4, np.float32))
        x = g.add("Add", x, g.attention(q, *present, bias))
        if encoder:
            cross = cross or g.add("Where", g.add("Unsqueeze", g.add("Cast", "encoder_attention_mask", to=TensorProto.BOOL), g.constant([1, 2])), g.constant(0, np.float32), g.constant(-1e4, np.float32))
            q = g.heads(g.add("MatMul", x, g.weight(WIDTH, WIDTH)))
            k, v = (g.heads(g.add("MatMul", "encoder_hidden_states", g.weight(WIDTH, WIDTH))) for _ in range(2))
            x = g.add("Add", x, g.attention(q, k, v, cross))
        x = g.add("Add", x, g.add("MatMul", g.add("Tanh", g.add("MatMul", x, g.weight(WIDTH, 24))), g.weight(24, WIDTH)))
    g.add("MatMul", x, g.weight(WIDTH, VOCABULARY), out="logits")
    save(path, g, inputs, outputs)


def encoder(path):
    g = Graph(4)
    inputs = [value("input_ids", ["batch_size", "encoder_sequence_length"], TensorProto.INT64), value("attention_mask", ["batch_size", "encoder_sequence_length"], TensorProto.INT64)]
    kept = g.add("Unsqueeze", g.add("Cast", "attention_mask", to=TensorProto.FLOAT), g.constant([2]))
    g.add("Mul", g.add("Gather", g.weight(VOCABULARY, WIDTH), "input_ids"), kept, out="last_hidden_state")
    save(path, g, inputs, [value("last_hidden_state", ["batch_size", "encoder_sequence_length", WIDTH])])


def sound_encoder(path):
    g = Graph(5)
    g.add("Tanh", g.add("MatMul", "input_features", g.weight(6, WIDTH)), out="last_hidden_state")
    save(path, g, [value("input_features", ["batch_size", 9, 6])], [value("last_hidden_state", ["batch_size", 9, WIDTH])])


def waveform_encoder(path):
    """An encoder of samples whose mask has one element for each sample."""
    g = Graph(5)
    kept = g.add("Mul", "input_values", g.add("Cast", "attention_mask", to=TensorProto.FLOAT))
    frames = g.add("Reshape", kept, g.constant([0, -1, 6]))
    g.add("Tanh", g.add("MatMul", frames, g.weight(6, WIDTH)), out="last_hidden_state")
    save(path, g, [value("input_values", ["batch_size", "samples"]), value("attention_mask", ["batch_size", "samples"], TensorProto.INT64)], [value("last_hidden_state", ["batch_size", "frames", WIDTH])])


def recurrent(path):
    """An LSTM whose states are an input and an output each, of one shape and with names that say nothing."""
    g = Graph(6)
    state = ["layers", "batch_size", WIDTH]
    inputs = [value("tokens", ["batch_size", "sequence_length"], TensorProto.INT64), value("a", state), value("b", state)]
    inputs[1].type.tensor_type.shape.dim[0].dim_value = inputs[2].type.tensor_type.shape.dim[0].dim_value = 1
    x = g.add("Transpose", g.add("Gather", g.weight(VOCABULARY, WIDTH), "tokens"), perm=[1, 0, 2])
    g.nodes.append(helper.make_node("LSTM", [x, g.weight(1, 4 * WIDTH, WIDTH), g.weight(1, 4 * WIDTH, WIDTH), g.weight(1, 8 * WIDTH), "", "a", "b"], ["y", "c", "d"], hidden_size=WIDTH))
    rows = g.add("Transpose", g.add("Squeeze", "y", g.constant([1])), perm=[1, 0, 2])
    g.add("MatMul", rows, g.weight(WIDTH, VOCABULARY), out="scores")
    save(path, g, inputs, [value("scores", ["batch_size", "sequence_length", VOCABULARY])] + [value(n, [1, "batch_size", WIDTH]) for n in "cd"])


def save(path, g, inputs, outputs):
    graph = helper.make_graph(g.nodes, "g", inputs, outputs, g.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def greedy(path, prompt, steps, states=None):
    """Ids of onnxruntime, which sees all of them in every step."""
    s = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    ids, made = list(prompt), []
    for _ in range(steps):
        feed = {}
        for i in s.get_inputs():
            if i.name == "input_ids":
                feed[i.name] = np.array([ids])
            elif i.name == "position_ids":
                feed[i.name] = np.arange(len(ids))[None]
            elif i.name == "attention_mask":
                feed[i.name] = np.ones((1, len(ids)), np.int64)
            elif i.name == "encoder_hidden_states":
                feed[i.name] = states
            elif i.name == "encoder_attention_mask":
                feed[i.name] = np.ones((1, states.shape[1]), np.int64)
            else:
                feed[i.name] = np.zeros((1, HEADS, 0, HEAD), np.float32)
        made.append(int(s.run(["logits"], feed)[0][0, -1].argmax()))
        ids.append(made[-1])
    return made


class Generate(kiln_case.KilnCase):
    def ids(self, values, name="ids.npy"):
        np.save(self.path(name), np.array(values, dtype=np.int64))
        return self.path(name)

    def model(self, **more):
        decoder(self.path("model.onnx"), **more)
        return self.path("model.onnx")

    def generate(self, model, ids, *arguments, **more):
        return self.json("generate", model, "--prompt-ids", ids, *arguments, **more)

    def refused(self, code, kind, text, *arguments):
        line = self.error_line(self.kiln("generate", *arguments, code=code))
        self.assertIn(f"kiln: {kind}: ", line)
        self.assertIn(text, line)

    def test_greedy_ids_are_those_of_onnxruntime(self):
        model = self.model()
        for length in (1, 7, 20):
            prompt = [int(i) for i in np.random.default_rng(length).integers(0, VOCABULARY, length)]
            answer = self.generate(model, self.ids(prompt), "--max-new-tokens", 10)
            self.assertEqual(answer["tokens"], greedy(model, prompt, 10))
            self.assertEqual(answer["steps"], 10)
            self.assertEqual(answer["compiled_after_first"], 0)
            for key in ("prefill_ms", "tokens_per_second", "time_to_first_token_ms"):
                self.assertGreater(answer[key], 0)
            # One id, its position and the mask go up, one row of logits comes down: no cache crosses the host.
            self.assertLess(answer["copied_bytes_per_step"], 64 * 8 + 8 * CONTEXT + 4 * VOCABULARY)

    def test_positions_of_time_height_and_width(self):
        decoder(self.path("one.onnx"))
        want = greedy(self.path("one.onnx"), [3, 1, 4], 8)
        decoder(self.path("three.onnx"), kinds=3)
        self.assertEqual(self.generate(self.path("three.onnx"), self.ids([3, 1, 4]), "--max-new-tokens", 8)["tokens"], want)

    def test_caches_in_place_give_the_same_ids(self):
        model = self.model()
        self.kiln("compile", model, "-o", self.path("m.kiln"))
        ids = self.ids([3, 1, 4, 1, 5])
        in_place = self.generate(self.path("m.kiln"), ids, "--max-new-tokens", 12)
        copied = self.generate(self.path("m.kiln"), ids, "--max-new-tokens", 12, "--specialize", "lazy")
        self.assertEqual(in_place["tokens"], copied["tokens"])
        self.assertEqual(in_place["state_bytes"], copied["state_bytes"])

    def test_three_commands_from_a_folder(self):
        os.mkdir(self.path("folder"))
        decoder(self.path("folder/model.onnx"))
        prompt = [5, 6, 7]
        want = greedy(self.path("folder/model.onnx"), prompt, 6)
        with open(self.path("folder/genai_config.json"), "w") as file:
            json.dump({"model": {"context_length": CONTEXT, "eos_token_id": [want[2]], "decoder": {"filename": "model.onnx"}}}, file)
        self.kiln("compile", self.path("folder/model.onnx"), "-o", self.path("folder/model.kiln"), "--dim", f"past_sequence_length=0:{CONTEXT}")
        os.rename(self.path("folder/model.onnx"), self.path("elsewhere.onnx"))
        ids = self.ids(prompt)
        stop = want.index(want[2]) + 1
        self.assertEqual(self.generate(self.path("folder"), ids, "--max-new-tokens", 6)["tokens"], want[:stop])
        answer = self.generate(self.path("folder"), ids, "--max-new-tokens", 6, "--ignore-stop-ids", "--output-dir", self.path("out"))
        self.assertEqual(answer["tokens"], want)
        self.assertEqual(np.load(self.path("out/tokens.npy")).tolist(), want)
        lines = self.kiln("generate", self.path("folder"), "--prompt-ids", ids, "--max-new-tokens", 6, "--ignore-stop-ids").stdout.split()
        self.assertEqual([int(i) for i in lines], want)
        self.refused(6, "context_full", f"do not fit into {CONTEXT}", self.path("folder"), "--prompt-ids", ids, "--max-new-tokens", CONTEXT)

    def test_a_decoder_without_a_cache_and_an_encoder(self):
        model = self.model(cached=False)
        self.assertEqual(self.generate(model, self.ids([1, 2, 3]), "--max-new-tokens", 5)["tokens"], greedy(model, [1, 2, 3], 5))
        os.mkdir(self.path("pair"))
        encoder(self.path("pair/encoder_model.onnx"))
        decoder(self.path("pair/decoder_model_merged.onnx"), encoder=True)
        prompt = np.array([[4, 9, 2, 30]])
        states = ort.InferenceSession(self.path("pair/encoder_model.onnx")).run(None, {"input_ids": prompt, "attention_mask": np.ones_like(prompt)})[0]
        want = greedy(self.path("pair/decoder_model_merged.onnx"), [1], 6, states)
        ids = self.ids(prompt[0])
        self.assertEqual(self.generate(self.path("pair"), ids, "--max-new-tokens", 6, "--decoder-start-id", 1)["tokens"], want)
        self.refused(2, "usage", "--decoder-start-id", self.path("pair"), "--prompt-ids", ids)

    def test_states_of_an_lstm(self):
        recurrent(self.path("lstm.onnx"))
        s = ort.InferenceSession(self.path("lstm.onnx"), providers=["CPUExecutionProvider"])
        ids = [4, 8, 15, 16]
        want, zeros = [], np.zeros((1, 1, WIDTH), np.float32)
        for _ in range(8):
            want.append(int(s.run(["scores"], {"tokens": np.array([ids + want]), "a": zeros, "b": zeros})[0][0, -1].argmax()))
        answer = self.generate(self.path("lstm.onnx"), self.ids(ids), "--max-new-tokens", 8)
        self.assertEqual(answer["tokens"], want)
        self.assertEqual(answer["plans"], 2)  # one for the prompt, one for all other steps

    def test_an_encoder_of_sound(self):
        os.mkdir(self.path("sound"))
        sound_encoder(self.path("sound/encoder_model.onnx"))
        decoder(self.path("sound/decoder_model.onnx"), encoder=True)
        features = np.random.default_rng(1).standard_normal((1, 9, 6)).astype(np.float32)
        np.save(self.path("features.npy"), features)
        states = ort.InferenceSession(self.path("sound/encoder_model.onnx")).run(None, {"input_features": features})[0]
        ids, folder = self.ids([7, 3]), self.path("sound")
        answer = self.generate(folder, ids, "--max-new-tokens", 6, "--encoder-input", f"input_features={self.path('features.npy')}")
        self.assertEqual(answer["tokens"], greedy(self.path("sound/decoder_model.onnx"), [7, 3], 6, states))
        self.refused(2, "usage", "--encoder-input input_features=FILE", folder, "--prompt-ids", ids)
        self.refused(2, "usage", "there is no encoder with this input", folder, "--prompt-ids", ids, "--encoder-input", f"sound={self.path('features.npy')}")

    def test_an_encoder_of_sound_with_a_mask(self):
        os.mkdir(self.path("wave"))
        waveform_encoder(self.path("wave/encoder_model.onnx"))
        decoder(self.path("wave/decoder_model.onnx"), encoder=True)
        sound = np.random.default_rng(1).standard_normal((1, 54)).astype(np.float32)
        half = (np.arange(54)[None] < 30).astype(np.int64)
        np.save(self.path("sound.npy"), sound), np.save(self.path("mask.npy"), half)
        for mask, given in ((np.ones_like(half), []), (half, ["--encoder-input", f"attention_mask={self.path('mask.npy')}"])):
            states = ort.InferenceSession(self.path("wave/encoder_model.onnx")).run(None, {"input_values": sound, "attention_mask": mask})[0]
            answer = self.generate(self.path("wave"), self.ids([7, 3]), "--max-new-tokens", 6, "--encoder-input", f"input_values={self.path('sound.npy')}", *given)
            self.assertEqual(answer["tokens"], greedy(self.path("wave/decoder_model.onnx"), [7, 3], 6, states))
        self.refused(2, "usage", "--encoder-input input_values=FILE", self.path("wave"), "--prompt-ids", self.ids([7, 3]))

    def test_prompts_of_different_lengths(self):
        model = self.model()
        prompts = [[3, 1, 4, 1, 5], [9, 2], [6]]
        ids = self.ids([p + [0] * (5 - len(p)) for p in prompts])
        mask = self.ids([[1] * len(p) + [0] * (5 - len(p)) for p in prompts], "mask.npy")
        answer = self.generate(model, ids, "--prompt-mask", mask, "--max-new-tokens", 8)
        self.assertEqual(answer["tokens"], [greedy(model, p, 8) for p in prompts])
        self.refused(3, "unsupported", "padding changes the answer of this model to prompt", self.model(positions=False), "--prompt-ids", ids, "--prompt-mask", mask)
        self.assertEqual(self.generate(self.path("model.onnx"), self.ids(prompts[0], "one.npy"), "--max-new-tokens", 8)["tokens"], greedy(self.path("model.onnx"), prompts[0], 8))
        self.refused(3, "unsupported", "takes no mask", self.model(mask=False), "--prompt-ids", ids, "--prompt-mask", mask)

    def test_sampling(self):
        model, ids = self.model(), self.ids([1, 2])
        run = lambda *more: self.generate(model, ids, "--max-new-tokens", 8, *more)["tokens"]
        top = run("--sample", "top-k", "--top-k", 20, "--temperature", 30, "--seed", 5)
        self.assertEqual(top, run("--sample", "top-k", "--top-k", 20, "--temperature", 30, "--seed", 5))
        self.assertNotEqual(top, run("--sample", "top-k", "--top-k", 20, "--temperature", 30, "--seed", 6))
        self.assertEqual(run(), run("--sample", "top-k", "--top-k", 1))
        self.assertEqual(run(), run("--sample", "top-p", "--top-p", 1e-6))
        penalized = run("--repetition-penalty", 100)
        self.assertEqual(len(set(penalized + [1, 2])), 10)  # no id twice

    def test_bad_input(self):
        model, ids = self.model(), self.ids([1, 2])
        self.refused(6, "invalid_sequence", "id 40 is not in the vocabulary of 40 ids", model, "--prompt-ids", self.ids([1, 40], "a.npy"))
        self.refused(6, "invalid_sequence", "id -1", model, "--prompt-ids", self.ids([-1], "b.npy"))
        self.refused(6, "invalid_sequence", "it is empty", model, "--prompt-ids", self.ids([], "c.npy"))
        self.refused(6, "context_full", "do not fit into", model, "--prompt-ids", ids, "--max-new-tokens", CONTEXT)
        self.refused(6, "context_full", "do not fit into 5", model, "--prompt-ids", ids, "--max-new-tokens", 5, "--context", 5)
        # Positions that the model computes itself end with their table.
        self.assertEqual(len(self.generate(self.model(positions=False), ids, "--max-new-tokens", CONTEXT - 1)["tokens"]), CONTEXT - 1)
        self.refused(6, "context_full", f"do not fit into {CONTEXT}", model, "--prompt-ids", ids, "--max-new-tokens", CONTEXT)
        self.model()
        self.refused(6, "invalid_sequence", "the prompt has 1 x 2 ids", model, "--prompt-ids", ids, "--prompt-mask", self.ids([1], "d.npy"))
        self.refused(6, "invalid_sequence", "other than 0 and 1", model, "--prompt-ids", ids, "--prompt-mask", self.ids([1, 2], "e.npy"))
        self.refused(6, "invalid_sequence", "it is empty", model, "--prompt-ids", ids, "--prompt-mask", self.ids([0, 0], "f.npy"))
        self.refused(6, "invalid_sequence", "0 between ones", model, "--prompt-ids", self.ids([1, 2, 3], "g.npy"), "--prompt-mask", self.ids([1, 0, 1], "h.npy"))
        np.save(self.path("floats.npy"), np.ones(3, np.float32))
        self.refused(2, "usage", "not integers", model, "--prompt-ids", self.path("floats.npy"))
        self.refused(3, "unsupported", "no input of token ids", self.conv_model(), "--prompt-ids", ids)
        os.mkdir(self.path("empty"))
        self.refused(3, "missing_file", "holds no decoder", self.path("empty"), "--prompt-ids", ids)
        self.kiln("compile", model, "-o", self.path("model.kiln"), "--dim", f"past_sequence_length=1:{CONTEXT}")
        self.refused(3, "unsupported", "--dim past_sequence_length=0:MAX", self.path("model.kiln"), "--prompt-ids", ids)

    def test_a_compiled_file_may_have_an_empty_past_by_default(self):
        model = self.model()
        self.kiln("compile", model, "-o", self.path("model.kiln"))
        got = self.json("generate", self.path("model.kiln"), "--prompt-ids", self.ids([3, 1, 4]), "--max-new-tokens", "5")
        self.assertEqual(got["tokens"], self.json("generate", model, "--prompt-ids", self.ids([3, 1, 4]), "--max-new-tokens", "5")["tokens"])


if __name__ == "__main__":
    kiln_case.main()
