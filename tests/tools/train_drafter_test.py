"""tools/train_drafter against the reference data of tests/golden: forward passes, trees, tokenizers, files; with the
cases of train_drafter_commands.py and train_drafter_training.py. Needs the packages of
tools/train_drafter/requirements.txt; without them it exits with 77, which ctest shows as skipped."""

import tempfile
import unittest
import unittest.mock

from train_drafter_golden import golden, read  # first: it skips, and finds the tool's modules

import safetensors.torch
import torch

import acceptance
import decode
import drafter
import tree
from drafter_files import load_drafter, write_folder
from rounds import decode_rounds
from target import KvCache, load_target
from text import chat_frame, load_text
from train_drafter_commands import Damaged, Evaluate, Prompts, Rank, Synthesize
from train_drafter_training import Runs, Training


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
        with unittest.mock.patch.object(drafter, "BLOCKS_AT_ONCE", 3):  # the last group has one
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
    """Compared with the replies and rounds of the published implementations."""

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


if __name__ == "__main__":
    unittest.main()
