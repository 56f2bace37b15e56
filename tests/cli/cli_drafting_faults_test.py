"""canopy-cli with wrong drafters, budgets, calibrations and models: the exit code, the message on standard error, and
what must work in spite of the fault."""

import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

from cli import CLI, GOLDEN, environment, run

ICD = os.environ.get("CANOPY_TEST_ICD", "")
MODEL = os.path.join(GOLDEN, "tiny-qwen3")
DRAFTER = os.path.join(GOLDEN, "tiny-qwen3-dflash-b8")
DRAFTER_GGUF = os.path.join(GOLDEN, "tiny-qwen3-dflash-b8-f16.gguf")
USAGE = 2


def arguments(*more, model=MODEL, drafter=DRAFTER):
    return ("generate", "--model", model, "--drafter", drafter, "--raw", "--prompt", "def read_file(path):",
            "--context", "128", "--max-tokens", "8", "--no-self-test", *more)


@unittest.skipUnless(os.path.exists(ICD), "lavapipe is not installed")
class DraftingFaults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def refused(self, *command, code=1):
        """Checks that the command ends with this code, with nothing on stdout and one message on standard error."""
        result = run(*command, icd=ICD)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def drafter(self, **changes):
        """A copy of the golden drafter whose config has other fields."""
        folder = tempfile.mkdtemp(dir=self.folder)
        os.symlink(os.path.join(DRAFTER, "model.safetensors"), os.path.join(folder, "model.safetensors"))
        with open(os.path.join(DRAFTER, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        for field, value in changes.items():
            (config["dflash_config"] if field in config["dflash_config"] else config)[field] = value
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        return folder

    def test_pairs_that_do_not_fit(self):
        for model, drafter, reason in ((os.path.join(GOLDEN, "tiny-llama3"), DRAFTER, "does not fit the model"),
                                       (MODEL, MODEL, "is the model itself"),
                                       (DRAFTER, DRAFTER, "drafter"),
                                       (MODEL, os.path.join(self.folder, "none"), "none")):
            with self.subTest(reason):
                self.assertIn(reason, self.refused(*arguments("--mode", "tree", model=model, drafter=drafter)))

    def test_the_models_own_head(self):
        self.assertIn("has no head that predicts further tokens", self.refused(*arguments("--mode", "tree", drafter="mtp")))
        model = os.path.join(GOLDEN, "tiny-qwen3_5-mtp-f16.gguf")
        for drafter in ("mtp", os.path.join(GOLDEN, "mtp-tiny-qwen3_5-f16.gguf")):
            result = run(*arguments("--mode", "tree", "--budget", "8", "--sources", "mtp", "--json", model=model,
                                    drafter=drafter), icd=ICD)
            self.assertEqual(result.returncode, 0, result.stderr)
            nodes = [node for each in json.loads(result.stdout)["rounds"] for node in each["nodes"]]
            self.assertEqual({tuple(node["sources"]) for node in nodes}, {("mtp",)})

    def test_eagle_heads(self):
        self.assertIn("EAGLE-3 head", self.refused(*arguments(
            "--mode", "tree", model=os.path.join(GOLDEN, "tiny-qwen3-q8_0.gguf"),
            drafter=os.path.join(GOLDEN, "tiny-llama3-eagle31"))))
        for drafter in ("tiny-qwen3-eagle3", "tiny-qwen3-eagle3-f16.gguf"):
            result = run(*arguments("--mode", "tree", "--budget", "8", "--sources", "eagle3", "--json",
                                    model=os.path.join(GOLDEN, "tiny-qwen3-q8_0.gguf"),
                                    drafter=os.path.join(GOLDEN, drafter)), icd=ICD)
            self.assertEqual(result.returncode, 0, result.stderr)
            nodes = [node for each in json.loads(result.stdout)["rounds"] for node in each["nodes"]]
            self.assertEqual({tuple(node["sources"]) for node in nodes}, {("eagle3",)})

    def test_assistants(self):
        self.assertIn("reads keys and values of models of Gemma 4", self.refused(*arguments(
            "--mode", "tree", model=os.path.join(GOLDEN, "tiny-qwen3-q8_0.gguf"),
            drafter=os.path.join(GOLDEN, "tiny-gemma4-assistant"))))
        for drafter in ("tiny-gemma4-assistant", "tiny-gemma4-assistant-f16.gguf"):
            result = run(*arguments("--mode", "tree", "--budget", "8", "--sources", "assistant", "--json",
                                    model=os.path.join(GOLDEN, "tiny-gemma4-f16.gguf"),
                                    drafter=os.path.join(GOLDEN, drafter)), icd=ICD)
            self.assertEqual(result.returncode, 0, result.stderr)
            nodes = [node for each in json.loads(result.stdout)["rounds"] for node in each["nodes"]]
            self.assertEqual({tuple(node["sources"]) for node in nodes}, {("assistant",)})

    def test_drafters_whose_config_is_wrong(self):
        for field, value, reason in (("block_size", 0, "block size is 0; 2 to 64"),
                                     ("block_size", 1, "block size is 1; 2 to 64"),
                                     ("block_size", 1 << 31, "block size is 2147483648; 2 to 64"),
                                     ("mask_token_id", 1 << 30, "mask token is 1073741824, outside"),
                                     ("mask_token_id", -1, "'mask_token_id'"),
                                     ("target_layer_ids", [1, 99, 2], "99"),
                                     ("target_layer_ids", [], "0 target layers")):
            with self.subTest(field, value=value):
                message = self.refused(*arguments("--mode", "chain", drafter=self.drafter(**{field: value})))
                self.assertIn(reason, message)
                self.assertEqual(len(message.strip().splitlines()), 1, message)

    def test_drafters_that_are_cut_or_damaged(self):
        with open(DRAFTER_GGUF, "rb") as file:
            whole = file.read()
        path = os.path.join(self.folder, "drafter.gguf")
        for size in (0, 20, 700, len(whole) // 2, len(whole) - 1):
            with open(path, "wb") as file:
                file.write(whole[:size])
            with self.subTest(size):
                self.assertIn("drafter.gguf", self.refused(*arguments("--mode", "tree", drafter=path)))

    def test_budgets_that_cannot_be(self):
        for budget in ("0", "-1", "many", "1.5", "100000", "4294967295", "99999999999999999999"):
            with self.subTest(budget):
                result = run(*arguments("--mode", "tree", "--budget", budget), icd=ICD)
                self.assertIn(result.returncode, (1, USAGE), result.stderr)
                self.assertIn("budget", result.stderr)
                self.assertEqual(result.stdout, "")

    def test_budgets_beyond_the_vocabulary_and_the_scratch_count_as_what_fits(self):
        def reply(*more):
            result = run(*arguments("--json", *more), icd=ICD)
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout)
        plain = reply("--mode", "ar")["output_ids"]
        self.assertEqual(reply("--mode", "tree", "--budget", "1024")["output_ids"], plain)

    def test_what_needs_a_drafter_and_what_does_not(self):
        paper = arguments("--mode", "adaptive", "--policy", "paper", drafter="none")
        self.assertIn("The paper's rule needs a DFlash drafter", self.refused(*paper))
        ids = []
        for mode in ("ar", "chain", "tree", "adaptive"):
            result = run(*arguments("--mode", mode, "--json", drafter="none"), icd=ICD)
            self.assertEqual(result.returncode, 0, result.stderr)
            ids.append(json.loads(result.stdout)["output_ids"])
        self.assertEqual(ids, [ids[0]] * 4)
        result = run("calibrate", "--model", MODEL, "--drafter", "none", "--seconds", "0.5", "--json", icd=ICD)
        self.assertEqual(result.returncode, 0, result.stderr)
        table = json.loads(result.stdout)
        self.assertTrue(table["verify_ms"])
        self.assertEqual(table["draft_ms"], [])

    def test_a_calibration_that_cannot_be_used_is_told_and_made_again(self):
        variables = dict(environment(ICD), CANOPY_CACHE_DIR=self.folder)

        def adapt():
            result = subprocess.run([CLI, *arguments("--mode", "adaptive", "--json")], env=variables, check=False,
                                    capture_output=True, text=True, timeout=300)
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout)["output_ids"], result.stderr

        ids, errors = adapt()
        self.assertNotIn("warning", errors)
        [path] = [os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in names
                  if "calibration" in os.path.join(folder, name) and name.endswith(".json")]
        with open(path, encoding="utf-8") as file:
            good = file.read()
        # calibration_file_test has every other way in which a file can be unusable; measuring again takes seconds.
        with open(path, "w", encoding="utf-8") as file:
            file.write(good[:len(good) // 2])
        again, errors = adapt()
        self.assertEqual(again, ids)
        self.assertIn("warning: ", errors)
        self.assertNotIn("warning", adapt()[1], "it was made again")

    def broken_model(self):
        """The golden model with so large a last norm that no logit is finite."""
        folder = os.path.join(self.folder, "broken")
        shutil.copytree(MODEL, folder)
        path = os.path.join(folder, "model.safetensors")
        with open(path, "r+b") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            norm = json.loads(file.read(size))["model.norm.weight"]
            begin, end = norm["data_offsets"]
            largest = {"F32": b"\xff\xff\x7f\x7f", "BF16": b"\x7f\x7f"}[norm["dtype"]]
            file.seek(8 + size + begin)
            file.write(largest * ((end - begin) // len(largest)))
        return folder

    def test_logits_that_are_no_numbers_end_the_reply_and_its_trace(self):
        model = self.broken_model()
        trace = os.path.join(self.folder, "t.canopytrace")
        for mode in ("ar", "tree"):
            with self.subTest(mode):
                message = self.refused(*arguments("--mode", mode, "--trace", trace, model=model))
                self.assertIn("not numbers", message)
                shown = run("trace", "export", trace)
                self.assertEqual(shown.returncode, 0, shown.stderr)
                [reply] = json.loads(shown.stdout)["replies"]
                self.assertEqual(reply["end"]["finish_reason"], "failed")
                self.assertNotEqual(reply["prompt_ids"], [])


if __name__ == "__main__":
    unittest.main()
