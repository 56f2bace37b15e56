"""A micro drafter for the tiny target of tests/golden: its text synthesized, trained for under a minute, exported, and
drafting in the engine far better than random weights. Exits with 77 where the packages of
tools/train_drafter/requirements.txt are missing."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.environ.get("CANOPY_GOLDEN_DIR", os.path.join(ROOT, "tests", "golden"))
CLI = os.environ.get("CANOPY_CLI", os.path.join(ROOT, "build", "release", "bin", "canopy-cli"))
TARGET = os.path.join(GOLDEN, "tiny-qwen3")
PROMPTS = os.path.join(ROOT, "tools", "train_drafter", "held_out.jsonl")
SETTINGS = ["--layers", "2", "--taps", "1,3,5", "--rows", "6", "--anchors", "24", "--max-length", "160", "--held-out",
            "0.05", "--threads", "1", "--vocabulary", "512"]

for package in ("torch", "numpy", "safetensors", "tokenizers", "jinja2", "gguf"):
    if importlib.util.find_spec(package) is None:
        print(f"skipped: the Python package {package} is not installed")
        sys.exit(77)


class EndToEnd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        keeper = tempfile.TemporaryDirectory()
        cls.addClassCleanup(keeper.cleanup)
        cls.folder = keeper.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def tool(self, *arguments):
        command = [sys.executable, "-B", os.path.join(ROOT, "tools", "train_drafter"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3000)
        self.assertEqual(done.returncode, 0, f"{arguments[0]}: {done.stderr}")
        return done

    def made(self, name, *options):
        """A drafter as a GGUF file, trained with these options."""
        self.tool("train", "--target", TARGET, "--data", self.path("data", "text.npz"), "--out", self.path(name),
                  *SETTINGS, *options)
        self.tool("export", "--target", os.path.join(GOLDEN, "tiny-qwen3-f16.gguf"), "--run", self.path(name), "--out",
                  self.path(f"{name}-hf"), "--gguf", self.path(f"{name}.gguf"), "--canopy-cli", CLI)
        return self.path(f"{name}.gguf")

    def accepted(self, drafter):
        """{mode: (rounds, tau)} in the engine, over replies that are the same as without a drafter."""
        env, icd = dict(os.environ), os.environ.get("CANOPY_TEST_ICD")
        if icd:
            env.update(VK_ICD_FILENAMES=icd, VK_DRIVER_FILES=icd)
        report = self.path("bench.json")
        subprocess.run([CLI, "bench", "-m", TARGET, "--drafter", drafter, "--modes", "chain,tree", "--budgets", "16",
                        "--prompts", PROMPTS, "--limit", "2", "-n", "48", "--repeats", "1", "--json", report],
                       env=env, check=True, capture_output=True, timeout=3000)
        with open(report, encoding="utf-8") as file:
            modes = [mode for mode in json.load(file)["modes"] if mode["category"] == "all"]
        self.assertTrue(all(mode["identical_to_ar"] for mode in modes))
        return {mode["mode"]: (mode["rounds"], mode["tau"]) for mode in modes}

    def test_a_micro_drafter(self):
        self.tool("synthesize", "--target", TARGET, "--out", self.path("data"), "--tokens", "15000", "--rows", "96",
                  "--max-length", "160", "--question", "40", "--threads", "1")
        random = self.accepted(self.made("random", "--steps", "0", "--init", "random"))
        trained = self.accepted(self.made("trained", "--steps", "150", "--rate", "0.004"))
        for mode in ("chain", "tree"):
            gained, by_chance = trained[mode][1] - 1, random[mode][1] - 1
            print(f"{mode}: tau {trained[mode][1]:.2f}, of random weights {random[mode][1]:.2f}")
            self.assertGreater(gained, 3 * by_chance + 0.1, mode)
        # The tool's own figures are the engine's.
        measured = self.path("measured.json")
        self.tool("evaluate", "--target", TARGET, "--drafter", self.path("trained.gguf"), "--prompts", PROMPTS,
                  "--limit", "2", "--max-tokens", "48", "--budgets", "16", "--json", measured, "--threads", "1")
        with open(measured, encoding="utf-8") as file:
            figures = json.load(file)
        self.assertEqual(figures["checked"], 6)
        for way, mode in (("chain", "chain"), ("tree16", "tree")):
            self.assertAlmostEqual(figures["tau"]["all"][way]["tau"] / trained[mode][1], 1, delta=0.02, msg=way)


if __name__ == "__main__":
    unittest.main()
