"""lm-eval by its model local-completions: likelihoods of texts, each compared with the logits that the command line gives for the same
ids, and texts. Data and tokenizer are local, and nothing is asked of a hub."""

import glob
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

import tokenizers

from client_tests import KEY, MODEL, TinyCase, generated, logits

TASKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lm_eval_tasks")
PREFIX = "<|im_end|>"  # lm-eval puts bos in front of a text that has no context, and this where a tokenizer has none


class Likelihoods(TinyCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tokenizer = tokenizers.Tokenizer.from_file(os.path.join(MODEL, "tokenizer.json"))
        cls.scratch = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.scratch.cleanup()

    def evaluate(self, task, batch=1, **options):
        """The samples of a task."""
        output = tempfile.mkdtemp(dir=self.scratch.name)
        home = self.scratch.name
        env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": home, "OPENAI_API_KEY": KEY}
        arguments = {"model": "tiny", "base_url": self.url + "/v1/completions", "tokenizer": MODEL, "tokenizer_backend": "huggingface",
                     "max_length": "512", "max_retries": "1", **options}
        result = subprocess.run(
            [sys.executable, "-S", "-B", "-m", "lm_eval", "run", "--model", "local-completions", "--model_args",
             ",".join(f"{name}={value}" for name, value in arguments.items()), "--tasks", task, "--include_path", TASKS,
             "--batch_size", str(batch), "--output_path", output, "--log_samples"],
            cwd=TASKS, env=env, capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        path, = glob.glob(os.path.join(output, "**", f"samples_{task}_*.jsonl"), recursive=True)
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def likelihood(self, text, begin):
        """Of a text's tokens from there on: the sum of their log probabilities, and whether each is the likeliest in its place."""
        ids = self.ids(text)
        told, rows = logits(text, len(ids))
        self.assertEqual(told, ids)
        total, greedy = 0.0, True
        for i in range(begin, len(ids)):
            row = rows[i - 1]
            total += row[ids[i]] - math.log(math.fsum(math.exp(x) for x in row))
            greedy = greedy and row[ids[i]] == max(row)
        return total, greedy

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def test_of_choices(self):
        samples = self.evaluate("canopy_choices")
        self.assertEqual(len(samples), 5)
        seen = set()
        for sample in samples:
            document = sample["doc"]
            told = [response[0] for response in sample["resps"]]
            expected = []
            for choice in document["choices"]:
                context, whole = document["context"], document["context"] + choice
                # lm-eval sends other ids than those of the text where a token goes over the seam; the data has none.
                self.assertEqual(self.ids(whole)[: len(self.ids(context))], self.ids(context))
                expected.append(self.likelihood(whole, len(self.ids(context))))
            for (value, greedy), (wanted, wanted_greedy) in zip(told, expected, strict=True):
                self.assertAlmostEqual(float(value), wanted, delta=1e-6)
                self.assertEqual(str(greedy), str(wanted_greedy))
                seen.add(wanted_greedy)
            best = max(range(len(expected)), key=lambda i: expected[i][0])
            self.assertEqual(sample["acc"], float(best == document["gold"]))
        self.assertEqual(seen, {True, False})  # else the texts would say nothing of what is greedy
        # Several at a time, and several in a request, are the same.
        again = self.evaluate("canopy_choices", batch=3, num_concurrent="4")
        self.assertEqual([sample["resps"] for sample in again], [sample["resps"] for sample in samples])

    def test_of_whole_texts(self):
        for sample in self.evaluate("canopy_rolling"):
            text = PREFIX + sample["doc"]["context"]
            self.assertAlmostEqual(float(sample["resps"][0][0]), self.likelihood(text, 1)[0], delta=1e-6)

    def test_what_is_written(self):
        for sample in self.evaluate("canopy_written"):
            wanted = generated("adaptive", "--raw", "-p", sample["doc"]["context"], "-n", "8")["text"]
            self.assertEqual(sample["resps"][0][0], wanted.split("\n\n\n")[0])


if __name__ == "__main__":
    unittest.main()
