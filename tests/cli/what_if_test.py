"""canopy-cli trace what-if and densify: what a recording would have been elsewhere.

Without a device: the recordings that come with Canopy. With one: recordings of a tiny pair, made here.
"""

import json
import os
import tempfile
import unittest

from cli import GOLDEN, ROOT, run

ICD = os.environ.get("CANOPY_TEST_ICD", "")
DEMO = os.path.join(ROOT, "assets", "demos", "code.canopytrace")
PAIR = ("--model", os.path.join(GOLDEN, "tiny-qwen3"), "--drafter", os.path.join(GOLDEN, "tiny-qwen3-dflash-b8"),
        "--context", "512")


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content)
        return self.path(name)

    def what_if(self, *arguments):
        result = run("trace", "what-if", *arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def refused(self, words, *arguments, code=1):
        result = run("trace", "what-if", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        for word in words if isinstance(words, tuple) else (words,):
            self.assertIn(word, result.stderr)
        return result.stderr


class Demo(Folder):
    def test_with_its_own_costs_it_is_what_was_recorded(self):
        stats = json.loads(run("trace", "stats", DEMO, "--json").stdout)
        own = self.what_if(DEMO, "--costs", "self")
        self.assertEqual(own["source"], "recorded")
        self.assertTrue(own["exact"], own["why_not"])
        self.assertEqual(own["rounds"], stats["rounds"])
        self.assertEqual(own["rounds_same_as_recorded"], stats["rounds"])
        self.assertEqual(own["tokens"], stats["emitted"])
        self.assertAlmostEqual(own["tokens_per_second"], stats["tokens_per_second"], places=6)
        self.assertEqual(own["decisions_same_as_recorded"], own["decisions"])
        self.assertEqual(self.what_if(DEMO), own)

    def test_on_devices_it_is_predicted(self):
        speeds = {}
        for device in ("h100", "rtx4090", "strix-halo"):
            there = self.what_if(DEMO, "--device", device, "--mode", "adaptive")
            self.assertEqual(there["source"], "predicted")
            self.assertEqual(there["decisions"], there["rounds"])
            self.assertEqual(sum(w["rounds"] for w in there["widths"]), there["rounds"])
            self.assertEqual(len(there["passes"]), there["rounds"])
            self.assertGreater(there["ar_tokens_per_second"], 0)
            self.assertAlmostEqual(there["ratio"], there["tokens_per_second"] / there["ar_tokens_per_second"])
            speeds[device] = there["ar_tokens_per_second"]
        self.assertGreater(speeds["h100"], speeds["strix-halo"])

    def test_a_narrower_tree_is_never_wider(self):
        there = self.what_if(DEMO, "--device", "h100", "--mode", "tree", "--budget", "3")
        self.assertLessEqual(max(w["width"] for w in there["widths"]), 4)
        plain = self.what_if(DEMO, "--device", "h100", "--mode", "ar")
        self.assertTrue(plain["exact"])
        self.assertAlmostEqual(plain["ratio"], 1, places=9)

    def test_what_it_would_be_is_a_recording(self):
        there = self.what_if(DEMO, "--device", "h100", "--mode", "ar", "-o", self.path("there.canopytrace"))
        shown = run("trace", "show", self.path("there.canopytrace"))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("H100", shown.stdout)
        self.assertIn("predicted, not recorded there", shown.stdout)
        stats = json.loads(run("trace", "stats", self.path("there.canopytrace"), "--json").stdout)
        self.assertEqual((stats["rounds"], stats["emitted"]), (there["rounds"], there["tokens"]))
        self.assertAlmostEqual(stats["tokens_per_second"], there["tokens_per_second"])
        self.refused("would overwrite", self.path("there.canopytrace"), "-o", self.path("there.canopytrace"))

    def test_text_names_the_source(self):
        shown = run("trace", "what-if", DEMO, "--device", "rx7900xtx").stdout
        self.assertIn("(predicted)", shown)
        self.assertIn("nothing was measured there", shown)

    def test_wrong_usage_is_code_2(self):
        self.refused("one of --costs and --device", DEMO, "--costs", "self", "--device", "h100", code=2)
        self.refused("--mode", DEMO, "--mode", "fast", code=2)

    def test_devices_and_files_that_are_none_are_refused_by_name(self):
        self.refused(("abacus", "h100"), DEMO, "--device", "abacus")
        self.refused(("none.json", "no readable file"), DEMO, "--costs", self.path("none.json"))
        for name, content, words in (
                ("empty.json", "", "cannot be used"),
                ("cut.json", '{"format": "canopy-cal', "cannot be used"),
                ("other.json", '{"format": "else", "version": 1}', "no calibration"),
                ("newer.json", '{"format": "canopy-calibration", "version": 9}', "version 9"),
                ("deep.json", "[" * 100000, "cannot be used"),
                ("long.json", " " * (2 << 20), "more than")):
            with self.subTest(name):
                refusal = self.refused((name, words), DEMO, "--costs", self.put(name, content))
                self.assertNotIn(DEMO, refusal, "the recording is all right")


@unittest.skipUnless(os.path.exists(ICD), "lavapipe is not installed")
class OnDevice(Folder):
    def succeed(self, *arguments):
        result = run(*arguments, icd=ICD)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def record(self, name, *arguments):
        self.succeed("generate", *PAIR, "--raw", "-p", "def read_file(path):", "-n", "40", "--json", "--trace",
                     self.path(name), *arguments)
        return self.path(name)

    def test_what_lacks_drafts_says_how_to_get_them(self):
        trace = self.record("sparse.canopytrace", "--mode", "tree", "--budget", "4")
        elsewhere = (trace, "--device", "strix-halo", "--mode", "tree", "--budget", "1")
        self.assertFalse(self.what_if(*elsewhere)["exact"])
        self.assertIn("trace densify", run("trace", "what-if", *elsewhere).stdout)
        self.refused(("cannot be written as a recording", "trace densify"), *elsewhere, "-o", self.path("there"))
        self.assertNotIn("trace densify", run("trace", "what-if", DEMO, "--device", "h100").stdout)

    def test_none_can_be_added_of_what_drafts_token_by_token(self):
        trace = self.path("head.canopytrace")
        self.succeed("generate", *PAIR[:2], "--drafter", os.path.join(GOLDEN, "tiny-qwen3-eagle3"), "--raw", "-p",
                     "def read_file(path):", "-n", "40", "--json", "--trace", trace, "--mode", "tree", "--budget", "4")
        elsewhere = (trace, "--device", "strix-halo", "--mode", "tree", "--budget", "1")
        self.assertFalse(self.what_if(*elsewhere)["exact"])
        self.assertNotIn("trace densify", run("trace", "what-if", *elsewhere).stdout)
        refusal = self.refused(("cannot be written as a recording",), *elsewhere, "-o", self.path("there"))
        self.assertNotIn("trace densify", refusal)

    def test_its_own_decisions_and_those_of_a_calibration(self):
        trace = self.record("adaptive.canopytrace", "--mode", "adaptive", "--dense")
        own = self.what_if(trace)
        self.assertTrue(own["exact"], own["why_not"])
        self.assertGreater(own["decisions"], 0)
        self.assertEqual(own["decisions"], own["rounds"])
        self.assertEqual(own["decisions_same_as_recorded"], own["rounds"])
        self.succeed("calibrate", *PAIR, "--seconds", "0.5", "-o", self.path("card.json"))
        # Drafts hold 64 candidates of a depth, and what a busy machine measures may choose trees that want more.
        narrow = ("--widest", "32")
        there = self.what_if(trace, "--costs", self.path("card.json"), *narrow)
        self.assertEqual((there["source"], there["device"]), ("measured elsewhere", "card"))
        self.assertTrue(there["exact"], there["why_not"])
        self.assertEqual(there["tokens"], own["tokens"])
        predicted = self.what_if(trace, "--device", "h100", *narrow)
        self.assertTrue(predicted["exact"], predicted["why_not"])
        with open(self.path("card.json"), encoding="utf-8") as file:
            card = json.load(file)
        card["table"]["verify"][0][2] = 0.001
        self.refused(("forged.json", "damaged"), trace, "--costs", self.put("forged.json", json.dumps(card)))

    def test_a_sparse_recording_says_so_until_it_is_dense(self):
        trace = self.record("tree.canopytrace", "--mode", "tree", "--budget", "12")
        narrow = ("--device", "h100", "--mode", "tree", "--budget", "2")
        sparse = self.what_if(trace, *narrow)
        self.assertFalse(sparse["exact"])
        self.assertIn("means over the recorded passes", sparse["why_not"])
        first = self.succeed("trace", "densify", trace, *PAIR).stdout
        self.assertRegex(first, r"1 replies, \d+ drafts added")
        self.assertTrue(self.what_if(trace, *narrow)["exact"])
        self.assertEqual(self.what_if(trace)["rounds"], sparse["rounds"])
        self.assertIn("dense already: 1", self.succeed("trace", "densify", trace, *PAIR).stdout)

    def test_dense_belongs_to_a_whole_recording(self):
        for arguments in (("--dense",), ("--dense", "--redact", "--trace", self.path("t.canopytrace"))):
            result = run("generate", *PAIR, "-p", "x", *arguments, icd=ICD)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("--dense", result.stderr)


if __name__ == "__main__":
    unittest.main()
