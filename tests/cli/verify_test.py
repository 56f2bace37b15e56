"""canopy-cli verify: a recording whose text is plain decoding's, ones whose text is not, and what cannot be checked."""

import json
import os
import struct
import tempfile
import unittest

from cli import GOLDEN, run
from trace_test import HEADER, PREFILL, REPLY_BEGIN, ROUND, header, prologue, record, whole_trace

ICD = os.environ.get("CANOPY_TEST_ICD", "")
MODEL = ("--model", os.path.join(GOLDEN, "tiny-qwen3"), "--context", "512")
DRAFTER = ("--drafter", os.path.join(GOLDEN, "tiny-qwen3-dflash-b8"))
SAME, DIFFERS, CANNOT = 0, 1, 2


def records(content):
    """The kind and the payload of each record of a trace."""
    at = 16
    while at < len(content):
        size, kind = struct.unpack_from("<IB", content, at + 4)
        yield kind, content[at + 9:at + 9 + size]
        at += 9 + size


def rewritten(content, wanted, change):
    """The trace with the JSON of its records of one kind changed."""
    out = content[:16]
    for kind, payload in records(content):
        if kind == wanted:
            value = json.loads(payload)
            change(value)
            payload = json.dumps(value).encode()
        out += record(kind, payload)
    return out


class VerifyCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def put(self, content, name="run.canopytrace"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def verify(self, path, *arguments, code=SAME, icd=ICD):
        result = run("verify", path, *MODEL, *arguments, icd=icd)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def refused(self, words, content, *arguments, icd=ICD):
        result = self.verify(self.put(content, "refused.canopytrace"), *arguments, code=CANNOT, icd=icd)
        self.assertIn(words, result.stderr)
        self.assertNotIn("same text", result.stdout)


class WithoutADevice(VerifyCase):
    """What is wrong with a file is said before anything is loaded."""

    def test_files_that_are_none(self):
        for words, content in (("does not begin like one", b"no trace at all, really"), ("no reply", prologue() + header()),
                               ("without texts and tokens", rewritten(whole_trace(), HEADER,
                                                                      lambda h: h.update(redacted=True)))):
            self.refused(words, content, icd="/nonexistent")
        self.verify(os.path.join(self.folder, "missing"), code=CANNOT, icd="/nonexistent")

    def test_without_a_model_the_recordings_is_named(self):
        path = self.put(whole_trace())
        result = run("verify", path, "--model", os.path.join(self.folder, "none.gguf"), icd="/nonexistent")
        self.assertEqual(result.returncode, CANNOT)
        recorded = next(json.loads(payload) for kind, payload in records(whole_trace()) if kind == HEADER)
        self.assertIn(f"made with '{recorded['target']['file_name']}'", result.stderr)

    def test_modes_that_are_none(self):
        result = self.verify(self.put(whole_trace()), "--mode", "fast", code=CANNOT, icd="/nonexistent")
        self.assertIn("allowed: recorded, ar, chain", result.stderr)


@unittest.skipUnless(os.path.exists(ICD), "lavapipe is not installed")
class OnDevice(VerifyCase):
    @classmethod
    def setUpClass(cls):
        cls.traces = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.traces.cleanup)
        cls.greedy = cls.recorded("greedy", "--mode", "tree", "--budget", "8")
        cls.drawn = cls.recorded("drawn", "--mode", "chain", "--temperature", "0.9", "--seed", "7")

    @classmethod
    def recorded(cls, name, *arguments):
        path = os.path.join(cls.traces.name, name)
        result = run("generate", *MODEL, *DRAFTER, "--raw", "--prompt", "def add(a, b):", "--max-tokens", "24", "--trace",
                     path, "--no-self-test", *arguments, icd=ICD)
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
        with open(path, "rb") as file:
            return file.read()

    def test_what_was_written_here_is_the_same(self):
        for content in (self.greedy, self.drawn):
            words = self.verify(self.put(content)).stdout
            self.assertIn("same text, 24 of 24 tokens", words)
            self.assertIn("The text is the one that plain decoding writes here: 1 reply, 24 tokens.", words)
            self.assertIn("model     tiny-qwen3, the same here", words)

    def test_in_another_mode_too(self):
        result = self.verify(self.put(self.greedy), "--mode", "chain", *DRAFTER, "--json")
        told = json.loads(result.stdout)
        self.assertTrue(told["same"])
        self.assertEqual([(r["mode"], r["verdict"], r["tokens"]) for r in told["replies"]],
                         [("ar", "same", 24), ("chain", "same", 24)])
        self.assertTrue(told["recorded"]["device"])
        self.assertEqual(told["recorded"]["device"], told["here"]["device"])

    def test_another_seed_differs_and_it_is_said_where(self):
        other = rewritten(self.drawn, REPLY_BEGIN, lambda begin: begin["sampling"].update(seed=8))
        told = json.loads(self.verify(self.put(other), "--json", code=DIFFERS).stdout)
        self.assertFalse(told["same"])
        found = told["replies"][0]["difference"]
        begin = next(json.loads(payload) for kind, payload in records(other) if kind == REPLY_BEGIN)
        self.assertEqual(found["position"], len(begin["prompt_ids"]) + found["token"])
        self.assertNotEqual(found["recorded"]["token"], found["here"]["token"])
        self.assertGreater(found["lead_nats"], 0, "what is drawn here is preferred here")
        words = self.verify(self.put(other), code=DIFFERS).stdout
        self.assertIn(f"differs at token {found['token'] + 1} of 24", words)

    def test_another_first_token_differs_at_once(self):
        def change(prefill):
            prefill["first_token"] = (prefill["first_token"] + 1) % 200

        told = json.loads(self.verify(self.put(rewritten(self.greedy, PREFILL, change)), "--json", code=DIFFERS).stdout)
        self.assertEqual(told["replies"][0]["difference"]["token"], 0)

    def test_a_recording_that_was_cut_off_is_compared_as_far_as_it_goes(self):
        rounds = [i for i, (kind, _) in enumerate(records(self.greedy)) if kind == ROUND]
        half = self.greedy[:16] + b"".join(record(*each) for each in list(records(self.greedy))[:rounds[2]])
        result = self.verify(self.put(half))
        self.assertRegex(result.stdout, r"same text, \d+ of \d+ tokens")
        self.assertNotIn("24 of 24", result.stdout)

    def test_of_another_model_it_is_refused_or_compared_all_the_same(self):
        other = rewritten(self.greedy, HEADER, lambda h: h["target"].update(quantization="Q2_K"))
        self.refused("of another model", other)
        self.refused("type of weights is 'Q2_K'", other)
        self.verify(self.put(other), "--any-model")
        self.refused("type of keys and values", self.greedy, "--kv", "q8_0")

    def test_values_that_contradict_are_refused(self):
        def tokens(begin):
            begin["prompt_ids"] = [1 << 31]

        self.refused("token", rewritten(self.greedy, REPLY_BEGIN, tokens))
        self.refused("goes on from", rewritten(self.greedy, REPLY_BEGIN, lambda b: b.update(begun_tokens=1 << 20)))


if __name__ == "__main__":
    unittest.main()
