"""Cases of train_drafter_test.py: the options of synthesize, evaluate and rank, and damaged files."""

import argparse
import contextlib
import dataclasses
import io
import json
import math
import os
import random
import tempfile
import unittest
import unittest.mock

from train_drafter_golden import golden, read

import numpy
import torch

import acceptance
import dataset
import decode
import draft_tokens
import evaluate
import rank
import rounds
import synthesize
import templates
from drafter_files import load_drafter, write_folder
from errors import UserError
from identity import weights_digest
from target import load_target
from target_files import read_safetensors
from text import load_text


def run(command, *arguments):
    """The standard output of a command (module); UserError is not caught."""
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()) as printed:
        command.run(parser.parse_args([*arguments, "--threads", "1"]))
    return printed.getvalue()


class InFolder(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = keeper.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def written(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)


class Damaged(InFolder):
    """Files that are cut short anywhere are refused with a sentence."""

    def cuts(self, path, count):
        with open(path, "rb") as file:
            whole = file.read()
        for length in sorted({len(whole) * i // count for i in range(count)} | {len(whole) - 1}):
            yield length, whole[:length]

    def test_texts(self):
        rows = [(list(range(i, i + 30)), [False] * 10 + [True] * 20) for i in range(20)]
        dataset.save(self.path("whole.npz"), dataset.from_rows(rows, 1010))
        for length, data in self.cuts(self.path("whole.npz"), 300):
            with self.assertRaisesRegex(UserError, "cut.npz: not a text", msg=f"{length} bytes"):
                dataset.load(self.written("cut.npz", data))
        with open(self.path("whole.npz"), "rb") as file:
            whole = file.read()
        draw = random.Random(1)
        for _ in range(300):  # one byte changed: refused, or it does not matter
            place = draw.randrange(len(whole))
            changed = whole[:place] + bytes([draw.randrange(256)]) + whole[place + 1:]
            with contextlib.suppress(UserError):
                self.assertEqual(len(dataset.load(self.written("changed.npz", changed))), 20)

    def test_texts_of_another_form(self):
        numpy.save(self.path("one.npy"), numpy.arange(10))
        with self.assertRaisesRegex(UserError, "a single array; an .npz file"):
            dataset.load(self.path("one.npy"))
        good = {"tokens": numpy.arange(9), "offsets": numpy.array([0, 9]), "assistant": numpy.zeros(2, numpy.uint8)}
        for name, value, message in (("tokens", numpy.array([-1] * 9), "no list of ids"),
                                     ("tokens", numpy.zeros((3, 3)), "no list of ids"),
                                     ("assistant", numpy.zeros(1, numpy.uint8), "no list of ids"),
                                     ("offsets", numpy.array([[0, 9]]), "do not cut"),
                                     ("offsets", numpy.array([0, 8]), "do not cut")):
            numpy.savez(self.path("other.npz"), **{**good, name: value})
            with self.assertRaisesRegex(UserError, message, msg=name):
                dataset.load(self.path("other.npz"))
        with self.assertRaisesRegex(UserError, "missing.npz: not a text"):
            dataset.load(self.path("missing.npz"))

    def test_safetensors(self):
        drafter = load_drafter(golden("tiny-qwen3-dflash-b8"))
        write_folder(self.folder, drafter, load_target(golden("tiny-qwen3")).config)
        for length, data in self.cuts(self.path("model.safetensors"), 60):
            self.written("model.safetensors", data)
            with self.assertRaisesRegex(UserError, "model.safetensors: not a safetensors file", msg=f"{length} bytes"):
                read_safetensors(self.folder)

    def test_json(self):
        self.written("config.json", b"[1]")
        with self.assertRaisesRegex(UserError, "config.json: holds no JSON object"):
            load_drafter(self.folder)


class Synthesize(InFolder):
    SMALL = ("--target", golden("tiny-qwen3"), "--rows", "4", "--max-length", "64", "--question", "8")

    def test_options_out_of_range(self):
        for name, value in (("rows", "0"), ("tokens", "0"), ("question", "-1"), ("max-length", "0"), ("top-p", "0"),
                            ("top-p", "1.5"), ("second-turn", "2"), ("free", "0.9"), ("max-length", "12")):
            with self.assertRaisesRegex(UserError, f"--{name} ", msg=f"{name} {value}"):
                run(synthesize, *self.SMALL, "--out", self.path("data"), f"--{name}", value)
        self.assertFalse(os.path.exists(self.path("data")))

    def test_a_target_that_never_answers_ends_the_command(self):
        def silent(_, plans, *more):
            return [decode.Row(plan) for plan in plans]

        with unittest.mock.patch.object(synthesize, "decode", silent):
            with self.assertRaisesRegex(UserError, "None of the 4 texts of part 0 has an answer of 8 tokens"):
                run(synthesize, *self.SMALL, "--out", self.path("data"))

    def test_parts_belong_to_their_target_and_options(self):
        few = ("--out", self.path("data"), "--tokens", "20", "--style", "text")
        run(synthesize, *self.SMALL, *few)
        with open(self.path("data", "made_for.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), {
                "target": weights_digest(load_target(golden("tiny-qwen3"))), "style": "text", "max_length": 64,
                "question": 8, "free": 0.45, "opened": 0.35, "second_turn": 0.25, "top_p": 0.95, "rows": 4})
        before = dataset.load(self.path("data", "text.npz"))
        run(synthesize, *self.SMALL, *few, "--tokens", str(int(before.answer.sum()) + 1))  # goes on
        self.assertGreater(len(dataset.load(self.path("data", "text.npz"))), len(before))
        with self.assertRaisesRegex(UserError, "made otherwise: top_p 0.95 instead of 0.5"):
            run(synthesize, *self.SMALL, *few, "--top-p", "0.5")
        with self.assertRaisesRegex(UserError, "made otherwise: the weights of --target are others"):
            run(synthesize, *self.SMALL, *few, "--target", golden("tiny-qwen3-q8_0.gguf"))
        os.unlink(self.path("data", "made_for.json"))
        with self.assertRaisesRegex(UserError, "parts of a text, but no made_for.json"):
            run(synthesize, *self.SMALL, *few)

    def test_beginnings_longer_than_a_text_are_cut(self):
        target = load_target(golden("tiny-qwen3"))
        rows = decode.decode(target, [[decode.Forced(tuple(range(20))), decode.Greedy(9)]] * 2, 12)
        self.assertEqual([row.tokens for row in rows], [list(range(12))] * 2)

    def test_held_out_templates_are_finite(self):
        prompts = templates.held_out(31, random.Random(1))
        self.assertEqual(len(set(prompts)), 31 * len(templates.HELD_OUT))
        with self.assertRaisesRegex(UserError, "--templates 32: the family lists has 31 prompts; 0 to 31 are allowed"):
            templates.held_out(32, random.Random(1))


class Evaluate(InFolder):
    def setUp(self):
        super().setUp()
        self.written("prompts.jsonl", b"".join(
            json.dumps({"category": "a", "prompt": prompt}).encode() + b"\n" for prompt in ("one and two", "three")))
        self.small = ("--target", golden("tiny-qwen3"), "--drafter", golden("tiny-qwen3-dflash-b8"), "--prompts",
                      self.path("prompts.jsonl"), "--max-tokens", "12", "--budgets", "4,8", "--check-budget", "4",
                      "--json", self.path("figures.json"), "--replies", self.path("replies.json"))

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def test_a_check_that_holds(self):
        printed = run(evaluate, *self.small, "--precision", "f32")
        self.assertIn("1 replies decoded round by round", printed)
        figures = self.read("figures.json")
        self.assertEqual((figures["checked"], figures["different"]), (1, []))
        self.assertEqual(len(self.read("replies.json")), 2)

    def test_a_check_that_fails_leaves_the_figures(self):
        wrong = unittest.mock.patch.object(evaluate, "decode_rounds", lambda *arguments: ([5], []))
        with wrong, contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaisesRegex(UserError, "2 of 2 differ; in f32 that is a defect"):
                evaluate.run(self.options("--precision", "f32"))
        self.assertIn("| a | 2 |", printed.getvalue())
        self.assertEqual(len(self.read("figures.json")["different"]), 2)
        self.assertEqual(len(self.read("replies.json")), 2)
        with wrong:  # near-ties are to be expected
            self.assertIn("| a | 2 |", run(evaluate, *self.small, "--precision", "bf16"))
        self.assertEqual(len(self.read("figures.json")["different"]), 2)

    def options(self, *more):
        parser = argparse.ArgumentParser()
        evaluate.add_options(parser)
        return parser.parse_args([*self.small, "--threads", "1", *more])

    def test_replies_without_a_round_are_left_out_of_the_file(self):
        entries = [{"category": "a", "prompt_ids": [1001, 5], "output_ids": ids} for ids in ([7], [7, 8, 9])]
        self.written("forced.json", json.dumps(entries).encode())
        run(evaluate, *self.small, "--forced", self.path("forced.json"))
        self.assertEqual([entry["output_ids"] for entry in self.read("replies.json")], [[7, 8, 9]])

    def test_options_out_of_range(self):
        for name, value in (("limit", "0"), ("max-tokens", "0"), ("check", "-1"), ("check-budget", "0"),
                            ("templates", "-1"), ("budgets", "0"), ("json", self.path("nowhere", "figures.json"))):
            with self.assertRaisesRegex(UserError, f"--{name} ", msg=name):
                run(evaluate, *self.small, f"--{name}", value)


class Prompts(unittest.TestCase):
    def text(self, template, leading=None):
        text = load_text(golden("tiny-qwen3"))
        text.template, text.leading = template, leading
        return text

    def test_a_target_without_a_chat_template_takes_the_bare_prompt(self):
        for template in (None, ""):
            text = self.text(template)
            self.assertEqual(text.prompt("one and two"), text.encode("one and two"))
        self.assertEqual(self.text(None, 1000).prompt("one"), [1000, *self.text(None).encode("one")])

    def test_a_leading_token_is_not_repeated(self):
        text = self.text("<|endoftext|>{{ messages[0].content }}", 1000)
        self.assertEqual(text.prompt("one"), [1000, *text.encode("one")])

    def test_thinking_is_left_to_the_template(self):
        text = self.text("{% if enable_thinking is defined %}set{% else %}unset{% endif %}")
        self.assertEqual(text.render([{"role": "user", "content": "one"}]), "unset")


class Rank(InFolder):
    """The part of the vocabulary that a head is over: how it is chosen, measured, written and read back."""

    def test_the_most_frequent_tokens_and_the_special_ones(self):
        counts = numpy.array([0, 5, 0, 7, 5, 0, 9, 1])
        self.assertEqual(draft_tokens.most_frequent(counts, {2}, 4), (1, 2, 3, 6), "of equal counts the lower id")
        self.assertEqual(draft_tokens.most_frequent(counts, {2, 6}, 8), tuple(range(8)))
        self.assertAlmostEqual(draft_tokens.covered(counts, (3, 6)), 16 / 27)
        for size in (1, 9):
            with self.assertRaisesRegex(UserError, f"A head over {size} tokens was asked for; 2 to 8 are allowed"):
                draft_tokens.most_frequent(counts, {2}, size)

    def test_only_answers_are_counted(self):
        text = dataset.from_rows([([1, 2, 3], [0, 1, 1]), ([3, 3, 5], [0, 0, 1])], 8)
        self.assertEqual(draft_tokens.counts_of(text, [0, 1], 8).tolist(), [0, 0, 1, 1, 0, 1, 0, 0])
        self.assertEqual(draft_tokens.counts_of(text, [1], 8).tolist(), [0, 0, 0, 0, 0, 1, 0, 0])

    def test_the_likeliest_of_a_part(self):
        logits = torch.tensor([[0.0, 3.0, 1.0, 2.0]])
        tokens, log_probs = draft_tokens.likeliest(logits, (0, 2, 3), 2)
        self.assertEqual(tokens, [[3, 2]])
        total = math.log(sum(math.exp(value) for value in (0.0, 1.0, 2.0)))
        self.assertAlmostEqual(log_probs[0][0], 2 - total, places=6)
        self.assertEqual(draft_tokens.likeliest(logits, (2,), 5)[0], [[2]], "fewer where there are fewer")
        self.assertEqual(draft_tokens.likeliest(logits, (), 1)[0], [[1]])

    def test_a_folder_keeps_the_tokens(self):
        target = load_target(golden("tiny-qwen3"))
        drafter = load_drafter(golden("tiny-qwen3-dflash-b8"))
        drafter.config = dataclasses.replace(drafter.config, draft_tokens=(3, 4, 900))
        write_folder(self.folder, drafter, target.config)
        self.assertEqual(load_drafter(self.folder, target.config).config.draft_tokens, (3, 4, 900))
        for wrong, words in (([3, 3], "must ascend"), ([1, 1010], "a list of ids below 1010"), ("some", "a list of ids"),
                             ([1.5], "a list of ids")):
            with open(self.path("config.json"), encoding="utf-8") as file:
                config = json.load(file)
            config["dflash_config"]["draft_token_ids"] = wrong
            self.written("config.json", json.dumps(config).encode())
            with self.assertRaisesRegex(UserError, words):
                load_drafter(self.folder, target.config)

    def small(self):
        rows = [([1001, 5, 6, token % 300, (token * 7) % 300], [0, 0, 1, 1, 1]) for token in range(400)]
        dataset.save(self.path("text.npz"), dataset.from_rows(rows, 1010))
        entries = [{"category": "a", "prompt_ids": [1001, 5], "output_ids": [7, 8, 9, 10, 11, 12, 13, 14] * 3}]
        self.written("forced.json", json.dumps(entries).encode())
        return ("--target", golden("tiny-qwen3"), "--drafter", golden("tiny-qwen3-dflash-b8"), "--data",
                self.path("text.npz"), "--forced", self.path("forced.json"), "--budgets", "4", "--precision", "f32")

    def test_prints_what_parts_cover_and_lose(self):
        printed = run(rank, *self.small(), "--sizes", "1010,60", "--json", self.path("figures.json"), "--size", "60",
                      "--ids", self.path("ids.json"))
        self.assertRegex(printed, r"\| whole \| 100% \| \d\.\d{3} \(1\.000\) \|")
        with open(self.path("figures.json"), encoding="utf-8") as file:
            figures = json.load(file)
        self.assertEqual(figures["tau"]["1010"], figures["tau"]["whole"], "a part that is all of it loses nothing")
        self.assertEqual(figures["covered"]["1010"], 1)
        with open(self.path("ids.json"), encoding="utf-8") as file:
            ids = json.load(file)
        self.assertEqual(len(ids), 60)
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(self.evaluated(ids), figures["tau"]["60"], "what evaluate measures of a drafter with this part")

    def evaluated(self, ids):
        """The table of evaluate for the golden drafter with a head over these tokens."""
        drafter = load_drafter(golden("tiny-qwen3-dflash-b8"))
        drafter.config = dataclasses.replace(drafter.config, draft_tokens=tuple(ids))
        write_folder(self.path("ranked"), drafter, load_target(golden("tiny-qwen3")).config)
        run(evaluate, "--target", golden("tiny-qwen3"), "--drafter", self.path("ranked"), "--forced",
            self.path("forced.json"), "--budgets", "4", "--precision", "f32", "--json", self.path("evaluated.json"))
        with open(self.path("evaluated.json"), encoding="utf-8") as file:
            return json.load(file)["tau"]

    def test_options_out_of_range(self):
        for more, words in ((("--sizes", "few"), "--sizes few"), (("--size", "7", "--ids", "x"), "--size 7: one of"),
                            (("--size", "4096"), "--size says which part"), (("--ids", "x"), "--size says which part"),
                            (("--held-out", "1"), "--held-out 1.0"), (("--sizes", "2000"), "A head over 2000 tokens")):
            with self.assertRaisesRegex(UserError, words):
                run(rank, *self.small(), *more)

    def test_drafts_are_of_the_part_in_rounds_too(self):
        target, drafter = load_target(golden("tiny-qwen3")), load_drafter(golden("tiny-qwen3-dflash-b8"))
        prompt = [1001, *range(5, 25)]
        plain, _ = rounds.decode_rounds(target, drafter, prompt, 24, 8)
        drafter.config = dataclasses.replace(drafter.config, draft_tokens=tuple(range(0, 1010, 3)))
        reply, lengths = rounds.decode_rounds(target, drafter, prompt, 24, 8)
        self.assertEqual(reply, plain, "drafts do not change the text")
        drafts = acceptance.drafts_of(target, drafter, prompt, reply, 16)
        self.assertTrue(all(token % 3 == 0 for depths in drafts.tokens for some in depths for token in some))
        computed = acceptance.round_lengths(drafts, reply, [8])["tree8"]
        self.assertLessEqual(abs(len(computed) - len(lengths)), 1)
