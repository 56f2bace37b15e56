"""canopy-cli make-model: models of random weights that open, run and are inspected like the ones they are shaped after."""

import json
import os
import tempfile
import unittest

from cli import run


class MakeModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = os.path.join(folder.name, "model.gguf")
        self.drafter = os.path.join(folder.name, "drafter.gguf")

    def inspected(self, path):
        return json.loads(run("inspect", path, "--json").stdout)

    def test_writes_a_pair_in_the_shape_and_types_asked_for(self):
        result = run("make-model", "tiny-q4_k_m", self.model, "--drafter", self.drafter)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("model.gguf", result.stdout)
        config = self.inspected(self.model)["config"]
        self.assertEqual([config[key] for key in ("architecture", "layers", "hidden", "heads", "kv_heads", "head_dim",
                                                  "ffn", "vocab", "tied_head", "quantization")],
                         ["qwen3", 2, 256, 4, 2, 64, 512, 1024, True, "Q4_K"])
        drafter = self.inspected(self.drafter)["config"]
        self.assertEqual(drafter["hidden"], 256)
        self.assertEqual(drafter["quantization"], "Q8_0")
        again = run("make-model", "tiny-q4_k_m", self.model)
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists already", again.stderr)
        before = os.path.getsize(self.model)
        self.assertEqual(run("make-model", "tiny-q4_k_m", self.model, "--overwrite").returncode, 0)
        self.assertEqual(os.path.getsize(self.model), before)

    def test_experts_lie_together_as_in_published_files(self):
        self.assertEqual(run("make-model", "tiny-moe-q4_k", self.model, "--drafter", self.drafter).returncode, 0)
        file = self.inspected(self.model)
        self.assertEqual(file["config"]["architecture"], "qwen3moe")
        self.assertEqual([file["config"]["experts"][key] for key in ("count", "used", "ffn", "layers")], [16, 4, 256, 2])
        self.assertEqual(self.inspected(self.drafter)["config"]["hidden"], 256)

    def test_hybrids_and_gemma_are_written_as_published_files_have_them(self):
        for shape, expected in (("tiny-next-q4_k", ["qwen3next", 4]), ("tiny-gemma-q4_k", ["gemma3", 6]),
                                ("tiny-gemma4-q4_k", ["gemma4", 6]), ("tiny-gemma4-e-q4_k", ["gemma4", 5]),
                                ("tiny-gemma4-moe-q4_k", ["gemma4", 6])):
            result = run("make-model", shape, self.model, "--drafter", self.drafter, "--overwrite")
            self.assertEqual(result.returncode, 0, result.stderr)
            config = self.inspected(self.model)["config"]
            self.assertEqual([config[key] for key in ("architecture", "layers")], expected)
            self.assertEqual(config["quantization"], "Q4_K")
            self.assertEqual(self.inspected(self.drafter)["config"]["quantization"], "Q8_0")

    def test_refuses_by_name(self):
        result = run("make-model", "qwen9-1b-q4_k", self.model)
        self.assertEqual(result.returncode, 1)
        self.assertIn("qwen9-1b-q4_k", result.stderr)
        self.assertIn("qwen3-8b", result.stderr)
        result = run("make-model", "tiny-q4_k", os.path.join(self.model, "no", "folder.gguf"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot be saved", result.stderr)
        self.assertEqual(os.listdir(os.path.dirname(self.model)), [])


if __name__ == "__main__":
    unittest.main()
