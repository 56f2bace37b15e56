"""tools/train_drafter against the reference data of tests/golden: forward passes, trees, tokenizers, files. Needs the
packages of tools/train_drafter/requirements.txt; without them it exits with 77, which ctest shows as skipped."""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.environ.get("CANOPY_GOLDEN_DIR", os.path.join(ROOT, "tests", "golden"))
sys.path.insert(0, os.path.join(ROOT, "tools", "train_drafter"))

try:
    import safetensors.torch
    import torch
    import acceptance
    import batches
    import dataset
    import decode
    import losses
    import train
    import tree
    from drafter_files import load_drafter, write_folder
    from errors import UserError
    from optimizer import orthogonal
    from rounds import decode_rounds
    from target import KvCache, load_target
    from text import chat_frame, load_text
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

torch.set_num_threads(1)


def golden(*names):
    return os.path.join(GOLDEN, *names)


def read(name):
    with open(golden(name), encoding="utf-8") as file:
        return json.load(file)


class Forward(unittest.TestCase):
    """One reply of the tiny pair, budget 16, as the published implementation computed it."""

    @classmethod
    def setUpClass(cls):
        cls.case = read("forward.json")
        cls.tensors = safetensors.torch.load_file(golden("forward.safetensors"))
        cls.target = load_target(golden("tiny-qwen3"))
        cls.drafter = load_drafter(golden("tiny-qwen3-dflash-b8"), cls.target.config)
        cls.prompt = torch.tensor([cls.case["prompt_ids"]])

    def near(self, actual, name, tolerance):
        expected = self.tensors[name]
        self.assertEqual(tuple(actual.shape), tuple(expected.shape), name)
        self.assertLess((actual - expected).abs().max().item(), tolerance, name)

    def test_prefill(self):
        cache = KvCache(self.target.config.sizes, 1, 64, self.target.norm.weight)
        taps = tuple(range(8))
        hidden, features = self.target(self.prompt, cache, taps)
        self.near(self.target.logits(hidden)[0], "prefill.logits", 2e-4)
        states = [self.target.embed_tokens(self.prompt)[0], *features[0].split(96, dim=-1)[:7], hidden[0]]
        self.near(torch.stack(states), "prefill.hidden_states", 2e-4)
        for layer in (0, 7):
            self.near(cache.keys[layer, 0, :, :53], f"prefill.layer{layer}.k", 1e-4)
            self.near(cache.values[layer, 0, :, :53], f"prefill.layer{layer}.v", 1e-4)

    @torch.no_grad()
    def test_rounds(self):
        cache = KvCache(self.target.config.sizes, 1, 128, self.target.norm.weight)
        _, features = self.target(self.prompt, cache, self.drafter.config.taps)
        for number, expected in enumerate(self.case["rounds"]):
            start = expected["start"]
            self.assertEqual(features.shape[1], start)
            hidden = self.draft(features, expected["root_token"], start)
            self.near(hidden, f"round{number}.drafter_hidden", 3e-4)
            logits = self.target.logits(hidden[1:])
            self.near(logits, f"round{number}.draft_logits", 3e-4)
            self.check_tree(logits, expected)
            if f"round{number}.verify_logits" in self.tensors:
                features = self.verify(cache, features, number, expected)

    def draft(self, features, root, start):
        block = self.target.embed_tokens(self.drafter.block_tokens(torch.tensor([[root]])))
        return self.drafter(block, self.drafter.context(features), torch.tensor([[start]]))[0, 0]

    def check_tree(self, logits, expected):
        top = logits.log_softmax(-1).topk(16)
        nodes = tree.best_first(top.values.double().tolist(), 16)
        self.assertEqual([top.indices[node.depth - 1, node.rank].item() for node in nodes], expected["node_token_ids"])
        self.assertEqual([node.parent + 1 for node in nodes], expected["parents"][1:])

    def verify(self, cache, features, number, expected):
        parents = expected["parents"]
        mask = torch.zeros(len(parents), expected["start"] + len(parents), dtype=torch.bool)
        mask[:, :expected["start"]] = True
        for node, parent in enumerate(parents):
            if parent >= 0:
                mask[node] = mask[parent]
            mask[node, expected["start"] + node] = True
        hidden, taps = self.target(torch.tensor([expected["verify_input_ids"]]), cache, self.drafter.config.taps,
                                   torch.tensor(expected["verify_position_ids"]), mask[None, None])
        self.near(self.target.logits(hidden)[0], f"round{number}.verify_logits", 2e-4)
        self.near(taps[0], f"round{number}.verify_taps", 2e-4)
        accepted = torch.tensor(expected["accepted_indices"])
        cache.keep_positions(expected["start"], expected["start"] + accepted)
        for layer in (0, 7):
            self.near(cache.keys[layer, 0, :, :cache.length], f"round{number}.layer{layer}.k", 1e-4)
        return torch.cat((features, taps[:, accepted]), dim=1)

    @torch.no_grad()
    def test_many_blocks_in_one_pass_are_the_blocks_alone(self):
        _, features = self.target(self.prompt, None, self.drafter.config.taps)
        anchors = torch.tensor([[5, 17, 40, 52]])
        roots = self.prompt[0, anchors]
        blocks = self.target.embed_tokens(self.drafter.block_tokens(roots))
        together = self.drafter(blocks, self.drafter.context(features), anchors)
        for i, anchor in enumerate(anchors[0].tolist()):
            alone = self.draft(features[:, :anchor], roots[0, i].item(), anchor)
            self.assertLess((together[0, i] - alone).abs().max().item(), 1e-4)


class Files(unittest.TestCase):
    def test_gguf_target_gives_the_logits_of_its_dequantised_weights(self):
        expected = safetensors.torch.load_file(golden("gguf_logits.safetensors"))
        prompt = torch.tensor([read("forward.json")["prompt_ids"]])
        for kind in ("f16", "q8_0"):
            target = load_target(golden(f"tiny-qwen3-{kind}.gguf"))
            logits = target.logits(target(prompt)[0])[0]
            self.assertLess((logits - expected[f"{kind}.prefill_logits"]).abs().max().item(), 5e-4)

    def test_llama3_scaling_and_untied_head(self):
        target = load_target(golden("tiny-llama3"))
        expected = safetensors.torch.load_file(golden("tiny-llama3.golden.safetensors"))
        for number, sequence in enumerate(read("tiny-llama3.golden.json")["sequences"]):
            logits = target.logits(target(torch.tensor([sequence["ids"]]))[0])[0]
            self.assertLess((logits - expected[f"seq{number}.logits"]).abs().max().item(), 2e-4)

    def test_gguf_drafter_is_the_folder_s(self):
        folder = load_drafter(golden("tiny-qwen3-dflash-b8"))
        file = load_drafter(golden("tiny-qwen3-dflash-b8-f16.gguf"))
        self.assertEqual(folder.config.taps, file.config.taps)
        for name, values in folder.state_dict().items():
            self.assertLess((values - file.state_dict()[name]).abs().max().item(), 1e-3, name)

    def test_a_written_drafter_reads_back_exactly(self):
        target = load_target(golden("tiny-qwen3"))
        drafter = load_drafter(golden("tiny-qwen3-dflash-b8"))
        with tempfile.TemporaryDirectory() as folder:
            write_folder(folder, drafter, target.config)
            again = load_drafter(folder, target.config)
        self.assertEqual(again.config, drafter.config)
        for name, values in drafter.state_dict().items():
            self.assertTrue(torch.equal(values, again.state_dict()[name]), name)


class Trees(unittest.TestCase):
    def test_published_builder_s_trees(self):
        tensors = safetensors.torch.load_file(golden("ddtree_build.safetensors"))
        cases = read("ddtree_build.json")
        cases = cases["cases"] if isinstance(cases, dict) else cases
        self.assertTrue(cases)
        for case in cases:
            budget, log_probs = case["budget"], tensors[case["logits"]].double().log_softmax(-1)
            top = log_probs.topk(min(max(budget, 1), log_probs.shape[-1]))
            nodes = tree.best_first(top.values.tolist(), budget)
            self.assertEqual([node.parent + 1 for node in nodes], case["parents"][1:])
            self.assertEqual([top.indices[node.depth - 1, node.rank].item() for node in nodes],
                             case["token_ids"])


class Decoding(unittest.TestCase):
    """Against the replies and rounds of the published loops."""

    @classmethod
    def setUpClass(cls):
        cls.target = load_target(golden("tiny-qwen3"))
        cls.drafter = load_drafter(golden("tiny-qwen3-dflash-b8"), cls.target.config)
        cls.prompts = [p for p in read("generate.json")["prompts"] if len(p["prompt_ids"]) < 100]

    def test_lockstep_rows_are_plain_greedy_replies(self):
        for limit in {prompt["max_new_tokens"] for prompt in self.prompts}:
            some = [prompt for prompt in self.prompts if prompt["max_new_tokens"] == limit]
            replies = decode.greedy_replies(self.target, [prompt["prompt_ids"] for prompt in some], limit)
            self.assertEqual(replies, [prompt["output_ids"] for prompt in some])

    def test_rounds_computed_from_a_reply_are_those_of_the_published_loops(self):
        for prompt in self.prompts:
            drafts = acceptance.drafts_of(self.target, self.drafter, prompt["prompt_ids"], prompt["output_ids"], 64)
            lengths = acceptance.round_lengths(drafts, prompt["output_ids"], [16, 64])
            published = {"chain": prompt["dflash"]["acceptance_lengths"],
                         "tree16": prompt["ddtree"]["16"]["acceptance_lengths"],
                         "tree64": prompt["ddtree"]["64"]["acceptance_lengths"]}
            for way, expected in published.items():  # theirs may run past the end, and once more behind the last token
                self.assertEqual(lengths[way][:-1], expected[:len(lengths[way]) - 1], way)
                self.assertIn(len(expected) - len(lengths[way]), (0, 1), way)
                self.assertEqual(sum(lengths[way]), len(prompt["output_ids"]) - 1)

    def test_speculative_rounds_give_the_plain_reply(self):
        prompt = min(self.prompts, key=lambda p: len(p["output_ids"]))
        for budget in (None, 16):
            reply, lengths = decode_rounds(self.target, self.drafter, prompt["prompt_ids"], prompt["max_new_tokens"],
                                           budget)
            self.assertEqual(reply, prompt["output_ids"])
            self.assertLess(len(lengths), len(reply) - 1)

    def test_plans_and_seeds(self):
        plan = [decode.Forced((1001, 5)), decode.Sampled(6), decode.Forced((1002, 7, 8)), decode.Greedy(9)]
        first, again = (decode.decode(self.target, [plan, plan[:2]], 64, seed=3) for _ in range(2))
        self.assertEqual([row.tokens for row in first], [row.tokens for row in again])
        tokens, answer = first[0].tokens, first[0].answer
        start = answer.index(True)
        self.assertEqual(tokens[start - 3:start], [1002, 7, 8])
        self.assertFalse(any(answer[:start]))
        self.assertTrue(all(answer[start:]))
        greedy = decode.greedy_replies(self.target, [tokens[:start]], len(tokens) - start)
        self.assertEqual(tokens[start:], greedy[0])

    def test_loops_are_seen(self):
        self.assertTrue(decode.loops([1, 2, 3] * 20))
        self.assertTrue(decode.loops([7] * 64))
        self.assertFalse(decode.loops(list(range(40)) + [1, 2, 3] * 8))


class Tokens(unittest.TestCase):
    def test_tokenizer_of_a_folder_and_of_a_gguf_file(self):
        strings, cases = read("tokenize.json")["strings"], read("tokenize.json")["tokenizers"]["tiny"]["cases"]
        folder, file = load_text(golden("tiny-qwen3")), load_text(golden("tiny-qwen3-f16.gguf"))
        for case in cases:
            text = strings[str(case["i"])]
            self.assertEqual(folder.encode(text), case["ids"], text)
            self.assertEqual(file.encode(text), case["ids"], text)

    def test_frame_around_the_turns(self):
        text = load_text(golden("tiny-qwen3"))
        frame = chat_frame(text)
        messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
                    {"role": "user", "content": "three"}]
        self.assertEqual([*frame.opening, *text.encode("one"), *frame.to_answer, *text.encode("two"), *frame.to_user,
                          *text.encode("three"), *frame.to_answer], text.encode(text.render(messages)))


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

    def run_train(self, name, *more):
        parser = argparse.ArgumentParser()
        train.add_options(parser)
        out = os.path.join(self.folder, name)
        with contextlib.redirect_stderr(io.StringIO()):
            train.run(parser.parse_args([
                "--target", golden("tiny-qwen3"), "--data", os.path.join(self.folder, "text.npz"), "--out", out,
                "--layers", "1", "--taps", "1,5", "--steps", "4", "--rows", "2", "--anchors", "6", "--max-length", "96",
                "--vocabulary", "256", "--held-out", "0.2", "--threads", "1", "--measure-every", "4", *more]))
        return load_drafter(out).state_dict()

    def test_a_resumed_run_is_the_unbroken_one(self):
        whole = self.run_train("whole")
        for _ in range(4):  # a step each
            broken = self.run_train("broken", "--minutes", "0.00001")
        for name, values in whole.items():
            self.assertTrue(torch.equal(values, broken[name]), name)
        with self.assertRaisesRegex(UserError, "another run: rate"):
            self.run_train("whole", "--rate", "0.1")

    def test_stored_features_are_the_target_s(self):
        live = self.run_train("live")
        for _ in range(2):  # filled, then read
            stored = self.run_train(f"stored{_}", "--cache-features", os.path.join(self.folder, "features"))
            for name, values in live.items():
                self.assertLess((values - stored[name]).abs().max().item(), 2e-2, name)
        with self.assertRaisesRegex(UserError, "another run .taps"):
            self.run_train("other", "--cache-features", os.path.join(self.folder, "features"), "--taps", "1,4")


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
        import random
        text = dataset.from_rows([(list(range(100, 120)), [False] * 8 + [True] * 12)], 1010)
        batch = batches.make_batch(text, [0], 4, random.Random(1), 64, "cpu")
        labels = batches.labels_of(batch, 8)
        self.assertTrue((batch.anchors >= 7).all())
        self.assertEqual((labels.tokens - 100).tolist(), labels.positions.tolist())
        self.assertTrue((labels.positions < 20).all())

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
        with unittest.mock.patch.object(losses, "LOGITS_AT_ONCE", 4000 * 9):  # in pieces of nine rows
            self.assertAlmostEqual(loss(0), whole, places=4)

    def test_orthogonal_updates(self):
        torch.manual_seed(1)
        for shape in ((3, 16, 40), (2, 40, 16)):
            values = torch.linalg.svdvals(orthogonal(torch.randn(shape), 5))
            self.assertTrue(((values > 0.5) & (values < 1.4)).all())


if __name__ == "__main__":
    unittest.main()
