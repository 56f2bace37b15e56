"""Cases of train_drafter_test.py: runs of train, and the computations of a training step."""

import argparse
import contextlib
import io
import math
import os
import random
import tempfile
import unittest
import unittest.mock

from train_drafter_golden import golden, read

import numpy
import torch

import batches
import dataset
import losses
import synthesize
import train
from decode import Forced, Greedy, Sampled, decode
from drafter_files import load_drafter
from errors import UserError
from feature_store import ENTRY, FeatureStore
from features import LiveFeatures, StoredFeatures
from identity import weights_digest
from optimizer import orthogonal
from recording import Recording
from target import load_target


class Runs(unittest.TestCase):
    """A few steps over the replies of generate.json."""

    @classmethod
    def setUpClass(cls):
        keeper = tempfile.TemporaryDirectory()
        cls.addClassCleanup(keeper.cleanup)
        cls.folder = keeper.name
        rows = [(p["prompt_ids"] + p["output_ids"], [False] * len(p["prompt_ids"]) + [True] * len(p["output_ids"]))
                for p in read("generate.json")["prompts"]]
        dataset.save(os.path.join(cls.folder, "text.npz"), dataset.from_rows(rows, 1010))

    def run_train(self, name, *more, data="text.npz", drafter=("--layers", "1", "--taps", "1,5")):
        """The drafter's weights after a run of four steps (or with the options `more`) in the folder of that name."""
        parser = argparse.ArgumentParser()
        train.add_options(parser)
        out = os.path.join(self.folder, name)
        with contextlib.redirect_stderr(io.StringIO()):
            train.run(parser.parse_args([
                "--target", golden("tiny-qwen3"), "--data", os.path.join(self.folder, data), "--out", out, *drafter,
                "--steps", "4", "--rows", "2", "--anchors", "6", "--max-length", "96", "--vocabulary", "256",
                "--held-out", "0.2", "--threads", "1", "--measure-every", "4", *more]))
        return load_drafter(out).state_dict()

    def test_a_resumed_run_is_the_unbroken_one(self):
        whole = self.run_train("whole")
        for _ in range(4):  # a step each
            broken = self.run_train("broken", "--minutes", "0.00001")
        for name, values in whole.items():
            self.assertTrue(torch.equal(values, broken[name]), name)
        with self.assertRaisesRegex(UserError, "another run: rate 0.002 instead of 0.1"):
            self.run_train("whole", "--rate", "0.1")

    def test_a_refused_run_leaves_the_folder_as_it_is(self):
        before = self.run_train("kept", "--steps", "1")
        with self.assertRaisesRegex(UserError, r"another run: taps \[1, 5\] instead of \[1, 4\]"):
            self.run_train("kept", "--steps", "1", "--taps", "1,4")
        after = load_drafter(os.path.join(self.folder, "kept"))
        self.assertEqual(after.config.taps, (1, 5))
        for name, values in before.items():
            self.assertTrue(torch.equal(values, after.state_dict()[name]), name)
        exported = os.path.join(self.folder, "exported")
        os.mkdir(exported)
        for name in ("config.json", "model.safetensors"):
            with open(os.path.join(exported, name), "w", encoding="utf-8") as file:
                file.write("{}")
        with self.assertRaisesRegex(UserError, "holds a model"):
            self.run_train("exported", "--steps", "1")
        with open(os.path.join(exported, "config.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "{}")

    def test_a_run_is_known_by_its_text_and_not_by_its_path(self):
        self.run_train("moved", "--steps", "1")
        text = dataset.load(os.path.join(self.folder, "text.npz"))
        dataset.save(os.path.join(self.folder, "same.npz"), text)
        self.run_train("moved", "--steps", "1", data="same.npz")
        grown = [text.row(i) for i in range(len(text))] + [([5, 6, 7], [False, True, True])]
        dataset.save(os.path.join(self.folder, "grown.npz"), dataset.from_rows(grown, 1010))
        with self.assertRaisesRegex(UserError, "--data is another text.*--out.*--start-from"):
            self.run_train("moved", "--steps", "1", data="grown.npz")
        text.answer[-1] = not text.answer[-1]
        dataset.save(os.path.join(self.folder, "answers.npz"), text)
        with self.assertRaisesRegex(UserError, "--data is another text"):
            self.run_train("moved", "--steps", "1", data="answers.npz")

    def test_a_mask_that_the_text_contains_is_refused(self):
        with self.assertRaisesRegex(UserError, "--mask-token: the token 1002 occurs"):
            self.run_train("mask", "--mask-token", "<|im_end|>")
        with self.assertRaisesRegex(UserError, "--mask-token 1010: neither"):
            self.run_train("mask", "--mask-token", "1010")

    def test_digits_name_the_mask_by_its_id(self):
        self.run_train("digits", "--mask-token", "9", "--steps", "0")
        self.assertEqual(load_drafter(os.path.join(self.folder, "digits")).config.mask_token, 9)

    def test_start_from_a_published_drafter(self):
        for number, start in enumerate(("tiny-qwen3-dflash-b8", "tiny-qwen3-dflash-b8-f16.gguf")):
            known = load_drafter(golden(start))
            options = ("--start-from", golden(start))
            same = self.run_train(f"from{number}", *options, "--steps", "0", drafter=())
            for name, values in known.state_dict().items():
                self.assertTrue(torch.equal(values, same[name]), name)
            config = load_drafter(os.path.join(self.folder, f"from{number}")).config
            self.assertEqual((config.sizes.layers, config.block_size, config.taps, config.mask_token, config.vocab,
                              config.target_layers), (2, 8, (1, 3, 5), 1003, 1010, 8))
            # What it has may be said again, and the block may differ.
            moved = self.run_train(f"more{number}", *options, "--block-size", "5", "--mask-token", "<|mask|>", drafter=(
                "--layers", "2", "--taps", "1,3,5"))
            self.assertTrue(any(not torch.equal(values, moved[name]) for name, values in same.items()))
            self.assertEqual(load_drafter(os.path.join(self.folder, f"more{number}")).config.block_size, 5)

    def test_start_from_refuses_what_its_weights_are_not_made_for(self):
        options = ("--start-from", golden("tiny-qwen3-dflash-b8"))
        for name, value, has in (("layers", "3", "2"), ("taps", "1,5", "1,3,5"), ("mask-token", "7", "1003")):
            with self.assertRaisesRegex(UserError, f"--{name} {value}: the drafter of --start-from .* has {has};"):
                self.run_train("refused", *options, f"--{name}", value, drafter=())
        for name, value, message in (("init", "warm", "--init warm: the weights"),
                                     ("taps", "1,x", "--taps 1,x: numbers"),
                                     ("block-size", "1", "--block-size 1: 2 to 64"),
                                     ("start-from", "nowhere", "nowhere: there is no such file")):
            with self.assertRaisesRegex(UserError, message):
                self.run_train("refused", *options, f"--{name}", value, drafter=())
        self.assertFalse(os.path.exists(os.path.join(self.folder, "refused")))

    def test_a_run_is_known_by_the_weights_that_it_started_from(self):
        self.run_train("base", "--steps", "2")
        start = ("--start-from", os.path.join(self.folder, "base"))
        self.run_train("next", *start, "--minutes", "0.00001")
        self.run_train("next", *start)  # goes on
        for options in ((), ("--start-from", os.path.join(self.folder, "next"))):
            with self.assertRaisesRegex(UserError, "the weights of --start-from are others"):
                self.run_train("next", *options)
        whole = self.run_train("unbroken", *start)
        for name, values in self.run_train("next", *start).items():
            self.assertTrue(torch.equal(values, whole[name]), name)

    def test_stored_features_are_the_target_s(self):
        target, text = load_target(golden("tiny-qwen3")), dataset.load(os.path.join(self.folder, "text.npz"))
        batch = batches.make_batch(text, [2, 0, 1], 6, random.Random(1), 96, "cpu")
        labels = batches.labels_of(batch, 8)
        self.assertGreater(len(labels.tokens), 50)
        live, (tokens, log_probs) = LiveFeatures(target, (1, 5), 4)(batch, labels)
        for _ in range(2):  # filled, then read
            folder = os.path.join(self.folder, "direct")
            with contextlib.closing(StoredFeatures(target, (1, 5), 4, text, folder)) as stored:
                features, (their_tokens, their_log_probs) = stored(batch, labels)
            for row, count in enumerate(batch.lengths.tolist()):  # padding is not stored
                self.assertTrue(torch.equal(features[row, :count], live[row, :count].bfloat16().float()))
            self.assertTrue(torch.equal(their_tokens, tokens))
            self.assertTrue(torch.equal(their_log_probs, log_probs.half().float()))

    def test_only_texts_that_are_not_stored_are_computed(self):
        target, text = load_target(golden("tiny-qwen3")), dataset.load(os.path.join(self.folder, "text.npz"))
        passes = []

        def counting(tokens, *arguments):
            passes.append(len(tokens))
            return target(tokens, *arguments)

        counting.config, counting.head_weight, counting.logits = target.config, target.head_weight, target.logits
        counting.named_parameters = target.named_parameters
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.closing(StoredFeatures(counting, (1, 5), 4, text, folder)) as stored:
                for indices in ([1], [0, 1, 2], [2, 0]):
                    batch = batches.make_batch(text, indices, 3, random.Random(1), 96, "cpu")
                    labels = batches.labels_of(batch, 4)
                    features, teacher = stored(batch, labels)
                    live, expected = LiveFeatures(target, (1, 5), 4)(batch, labels)
                    for row, count in enumerate(batch.lengths.tolist()):
                        self.assertTrue(torch.allclose(features[row, :count], live[row, :count], atol=0.02, rtol=0.02))
                    self.assertTrue(torch.equal(teacher[0], expected[0]))
        self.assertEqual(passes, [1, 2])

    def test_features_belong_to_their_target_and_taps(self):
        for _ in range(2):
            self.run_train(f"cached{_}", "--cache-features", os.path.join(self.folder, "features"))
        with self.assertRaisesRegex(UserError, r"features that were made otherwise: taps \[1, 5\] instead of \[1, 4\]"):
            self.run_train("other", "--cache-features", os.path.join(self.folder, "features"), "--taps", "1,4")

    def test_what_decoding_recorded_is_what_the_target_says_of_the_text(self):
        target = load_target(golden("tiny-qwen3"))
        # The first and the third row are done early and leave the batch: the others move up in it.
        plans = [[Forced((3, 14, 15, 92)[:count]), Sampled(5), Forced((65, 35)), Greedy(limit)]
                 for count, limit in ((2, 7), (4, 40), (3, 10), (2, 40))]
        recording = Recording(4, 30, target, (1, 5), 4)
        rows = decode(target, plans, 30, seed=1, recording=recording)
        self.assertLess(max(len(rows[0].tokens), len(rows[2].tokens)), 25)
        self.assertEqual((len(rows[1].tokens), len(rows[3].tokens)), (30, 30))
        for place, row in enumerate(rows):
            count = len(row.tokens)
            hidden, features = target(torch.tensor([row.tokens]), None, (1, 5))
            # Nothing computed the last position: its token was never read.
            there = recording.features[place, :count - 1].float()
            self.assertTrue(torch.allclose(there, features[0, :count - 1], atol=0.02, rtol=0.02))
            places = torch.tensor(row.answer[1:]).nonzero()[:, 0]
            self.assertGreater(len(places), 5)
            values, tokens = target.logits(hidden[0, places]).topk(4)
            self.assertTrue(torch.equal(recording.tokens[place, places].long(), tokens))
            log_probs = recording.log_probs[place, places].float()
            self.assertTrue(torch.allclose(log_probs, values.log_softmax(-1), atol=0.01))
            self.assertTrue((recording.log_probs[place, :int(places[0])] == 0).all())

    def test_roots_are_drawn_as_rounds_have_them(self):
        target, text = load_target(golden("tiny-qwen3")), dataset.load(os.path.join(self.folder, "text.npz"))
        with contextlib.closing(StoredFeatures(target, (1, 5), 4, text, os.path.join(self.folder, "sure"))) as stored:
            batch = batches.make_batch(text, [0, 1, 2], 12, random.Random(1), 96, "cpu", stored.certainty)
            sure = stored.certainty(batch)
            means = []
            for certainty in (None, stored.certainty):
                drawn = [batches.make_batch(text, [0, 1, 2], 4, random.Random(seed), 96, "cpu", certainty)
                         for seed in range(40)]
                means.append(float(torch.stack([sure.gather(1, each.anchors) for each in drawn]).mean()))
        for row in range(3):  # each once, in order, among the answers
            anchors = batch.anchors[row][batch.anchor_used[row]].tolist()
            self.assertEqual(anchors, sorted(set(anchors)))
            self.assertTrue(batch.answer[row, anchors].all())
            ids = batch.tokens[row]
            values, tokens = target.logits(target(ids[None])[0][0, anchors[0] - 1]).topk(4)
            chance = dict(zip(tokens.tolist(), values.softmax(-1).tolist()))[int(ids[anchors[0]])]
            self.assertAlmostEqual(float(sure[row, anchors[0]]), chance, places=2)
        self.assertLess(means[1], means[0] - 0.05)
        with self.assertRaisesRegex(UserError, "--roots rounds: needs --cache-features"):
            self.run_train("rooted", "--roots", "rounds")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "rooted")))
        whole = self.run_train("whole_rounds", "--roots", "rounds", "--cache-features",
                               os.path.join(self.folder, "one"))
        for _ in range(4):
            broken = self.run_train("broken_rounds", "--roots", "rounds", "--cache-features",
                                    os.path.join(self.folder, "two"), "--minutes", "0.00001")
        for name, values in whole.items():
            self.assertTrue(torch.equal(values, broken[name]), name)

    def test_drawing_prefers_by_weight(self):
        weights, counts = [1.0, 4.0, 1.0, 2.0], [0] * 4
        for seed in range(4000):
            counts[batches.drawn_roots([0, 1, 2, 3], 1, random.Random(seed), weights)[0]] += 1
        for count, weight in zip(counts, weights):
            self.assertAlmostEqual(count / 4000, weight / 8, delta=0.03)

    def test_train_reads_the_features_that_synthesize_wrote(self):
        folder = os.path.join(self.folder, "written")
        parser = argparse.ArgumentParser()
        synthesize.add_options(parser)
        with contextlib.redirect_stderr(io.StringIO()):
            synthesize.run(parser.parse_args([
                "--target", golden("tiny-qwen3"), "--out", folder, "--style", "text", "--tokens", "300", "--rows", "8",
                "--max-length", "64", "--question", "8", "--threads", "1", "--features", folder + "-features", "--taps",
                "1,5"]))
        files = [os.path.join(folder + "-features", name) for name in ("features.bin", "index.bin")]
        sizes = [os.path.getsize(file) for file in files]
        self.assertGreater(min(sizes), 0)
        self.run_train("reads", "--cache-features", folder + "-features", data="written/text.npz")
        self.assertEqual([os.path.getsize(file) for file in files], sizes)  # the target was not asked again

    def test_a_feature_store_survives_an_interruption(self):
        target, folder = load_target(golden("tiny-qwen3")), os.path.join(self.folder, "store")
        width = 2 * target.config.sizes.hidden
        features = [torch.full((count, width), float(count)) for count in (5, 7)]
        teachers = [(torch.full((count, 3), count), torch.full((count, 3), -1.0)) for count in (5, 7)]
        with contextlib.closing(FeatureStore(folder, target, (1, 5), 3)) as store:
            for name, one, teacher in zip((b"a" * 32, b"b" * 32), features, teachers):
                store.append(name, one, teacher)
                self.assertTrue(torch.equal(store.features(name).float(), one))
            with self.assertRaisesRegex(UserError, "another synthesize or train"):
                FeatureStore(folder, target, (1, 5), 3)
        for name, cut in (("teacher_log_probs.bin", 1), ("features.bin", 3), ("index.bin", 20)):
            path = os.path.join(folder, name)
            os.truncate(path, os.path.getsize(path) - cut)
            with contextlib.closing(FeatureStore(folder, target, (1, 5), 3)) as store:
                self.assertTrue(torch.equal(store.features(b"a" * 32).float(), features[0]))
                self.assertNotIn(b"b" * 32, store)
                store.append(b"b" * 32, features[1], teachers[1])
                self.assertTrue(torch.equal(store.teacher(b"b" * 32)[0].long(), teachers[1][0]))
                self.assertTrue(torch.equal(store.features(b"b" * 32).float(), features[1]))

    def test_a_feature_store_may_be_larger_than_memory(self):
        target, folder = load_target(golden("tiny-qwen3")), os.path.join(self.folder, "large")
        row, far = b"a" * 32, 1 << 32  # tokens, all but one of them holes
        with contextlib.closing(FeatureStore(folder, target, (1, 5), 0)) as store:
            width = store.width
            store.append(row, torch.ones(1, width))
        with open(os.path.join(folder, "index.bin"), "ab") as index:
            numpy.array([(b"b" * 32, far, 1)], ENTRY).tofile(index)
        with open(os.path.join(folder, "features.bin"), "r+b") as file:
            file.seek(far * width * 2)
            torch.full((width,), 2.0, dtype=torch.bfloat16).view(torch.int16).numpy().tofile(file)
        with contextlib.closing(FeatureStore(folder, target, (1, 5), 0)) as store:
            self.assertEqual(store.features(row).unique().tolist(), [1])
            self.assertEqual(store.features(b"b" * 32).unique().tolist(), [2])

    def test_weights_have_one_digest_in_every_precision(self):
        f32 = load_target(golden("tiny-qwen3"))
        digest = weights_digest(f32)
        self.assertEqual(digest, weights_digest(load_target(golden("tiny-qwen3"), dtype=torch.bfloat16)))
        f32.layers[3].self_attn.q_proj.weight.mul_(1.01)
        self.assertNotEqual(digest, weights_digest(f32))


class Training(unittest.TestCase):
    def test_texts_survive_a_file_and_are_split_by_prompt(self):
        rows = [([i, 2, 3, 4], [False, False, True, True]) for i in range(200)]
        rows += [([5, 2, 9], [False, False, True])]  # the prompt of row 5 again
        with tempfile.TemporaryDirectory() as folder:
            dataset.save(os.path.join(folder, "text.npz"), dataset.from_rows(rows, 1010))
            text = dataset.merged([dataset.load(os.path.join(folder, "text.npz"))], 1010)
        self.assertEqual(len(text), 200)
        self.assertEqual(text.row(7)[0].tolist(), [7, 2, 3, 4])
        training, held = dataset.split(text, 0.2)
        self.assertEqual(sorted(training + held), list(range(200)))
        self.assertTrue(20 < len(held) < 60)
        with self.assertRaisesRegex(UserError, "vocabulary of 1010"):
            dataset.merged([text], 1000)

    def test_labels_are_the_answers_behind_the_roots(self):
        text = dataset.from_rows([(list(range(100, 120)), [False] * 8 + [True] * 12)], 1010)
        batch = batches.make_batch(text, [0], 11, random.Random(1), 64, "cpu")
        labels = batches.labels_of(batch, 8)
        # The first root of a round is the first answer's token: that comes out of the prompt's own pass.
        self.assertEqual(batch.anchors.tolist(), [list(range(8, 19))])
        self.assertEqual((labels.tokens - 100).tolist(), labels.positions.tolist())
        self.assertTrue((labels.positions < 20).all())
        anchors = batch.anchors[:, :, None].expand(-1, -1, 7)[labels.picked]
        self.assertEqual(labels.depths.tolist(), (labels.positions - anchors).tolist())

    def test_no_row_is_labelled_behind_the_next_question(self):
        answer = [False] * 4 + [True] * 3 + [False] * 2 + [True] * 5  # two turns
        text = dataset.from_rows([(list(range(100, 114)), answer)], 1010)
        batch = batches.make_batch(text, [0], 6, random.Random(1), 64, "cpu")
        self.assertEqual(batch.anchors.tolist(), [[4, 5, 9, 10, 11, 12]])
        labels = batches.labels_of(batch, 8)
        self.assertEqual(labels.picked[0].sum(-1).tolist(), [2, 1, 4, 3, 2, 1])
        self.assertEqual(labels.positions.tolist(), [5, 6, 6, 10, 11, 12, 13, 11, 12, 13, 12, 13, 13])

    def test_loss_by_hand(self):
        # Two rows over three columns, of depths 1 and 3: logits (log 2, 0, 0) and (0, log 3, 0).
        head = torch.eye(3)
        hidden = torch.tensor([[math.log(2), 0, 0], [0, math.log(3), 0]])
        labels = batches.Labels(None, None, None, torch.tensor([0, 2]), torch.tensor([1, 3]))
        teacher = (torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0.75, 0.25], [0.5, 0.5]]).log())
        weights = losses.position_weights(4, 2, "cpu")
        for weight, expected in zip(weights.tolist(), (0, 1, math.exp(-0.5), math.exp(-1)), strict=True):
            self.assertAlmostEqual(weight, expected, places=6)
        loss, hits = losses.block_loss(hidden, head, labels, teacher, losses.Vocabulary(torch.ones(3), 0), None, 0.25,
                                       weights)
        # p = (1/2, 1/4, 1/4) and (1/5, 3/5, 1/5)
        entropy = [math.log(2), math.log(5)]
        divergence = [0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.25),
                      0.5 * math.log(0.5 / 0.6) + 0.5 * math.log(0.5 / 0.2)]
        rows = [0.75 * entropy[i] + 0.25 * divergence[i] for i in range(2)]
        expected = (rows[0] + math.exp(-1) * rows[1]) / (1 + math.exp(-1))
        self.assertAlmostEqual(loss.item(), expected, places=6)
        self.assertEqual(hits.tolist(), [True, False])

    def test_sampled_vocabulary_estimates_the_whole_one(self):
        torch.manual_seed(1)
        hidden, head = torch.randn(64, 32), torch.randn(4000, 32) * 0.2
        labels = batches.Labels(None, None, None, torch.randint(4000, (64,)), torch.ones(64, dtype=torch.int64))
        weights = losses.position_weights(8, 4, "cpu")
        counts = torch.randint(1, 100, (4000,))

        def loss(size):
            generator = torch.Generator().manual_seed(2)
            return losses.block_loss(hidden, head, labels, None, losses.Vocabulary(counts, size), generator, 0,
                                     weights)[0].item()

        self.assertAlmostEqual(loss(2000), loss(0), delta=0.05)
        whole = loss(0)
        with unittest.mock.patch.object(losses, "ROWS_AT_ONCE", 9), \
                unittest.mock.patch.dict(losses.LOGITS_AT_ONCE, cpu=1):  # in pieces of nine rows
            self.assertAlmostEqual(loss(0), whole, places=4)

    def test_gradient_of_the_loss(self):
        """Compared with the gradient by autograd of the same loss in its simplest form, in float64."""
        torch.manual_seed(3)
        rows, columns = 40, 30
        hidden = torch.randn(rows, 8, dtype=torch.float64, requires_grad=True)
        head = torch.randn(columns, 8, dtype=torch.float64)
        wanted, weight = torch.randint(columns, (rows,)), torch.rand(rows)
        tokens = torch.rand(rows, columns).topk(4).indices
        teacher = (tokens, torch.randn(rows, 4).log_softmax(-1))
        raised = torch.where(torch.arange(columns) < 20, 0.0, 0.7)
        for distribution, share in ((None, 0.0), (teacher, 0.3), (teacher, 1.0)):
            with unittest.mock.patch.dict(losses.LOGITS_AT_ONCE, cpu=1), \
                    unittest.mock.patch.object(losses, "ROWS_AT_ONCE", 7):  # the last piece is shorter
                loss, hits = losses.RowLosses.apply(hidden, head, raised, wanted, distribution, share, weight)
            logits = hidden @ head.T
            log_probs = (logits + raised).log_softmax(-1)
            plain = -(1 - share) * log_probs.gather(-1, wanted[:, None])[:, 0]
            if distribution:
                kl = torch.nn.functional.kl_div(log_probs.gather(-1, tokens), teacher[1].double(), reduction="none",
                                                log_target=True).sum(-1)
                plain = plain + share * kl
            plain = (plain * weight).sum()
            self.assertAlmostEqual(loss.item(), plain.item(), places=4)
            found, expected = (torch.autograd.grad(2 * value, hidden)[0] for value in (loss, plain))
            self.assertLess((found - expected).abs().max().item(), 1e-5)
            self.assertEqual(hits.tolist(), (logits.argmax(-1) == wanted).tolist())

    def test_orthogonal_updates(self):
        torch.manual_seed(1)
        for shape in ((3, 16, 40), (2, 40, 16)):
            values = torch.linalg.svdvals(orthogonal(torch.randn(shape), 5))
            self.assertTrue(((values > 0.5) & (values < 1.4)).all())
