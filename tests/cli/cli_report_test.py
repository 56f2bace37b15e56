"""canopy-cli report: the file that it writes, and that canopy-cli predict reads it. Without a device: what it refuses."""

import json
import os
import tempfile
import unittest

from cli import GOLDEN, run

ICD = os.environ.get("CANOPY_TEST_ICD", "")


class Refusals(unittest.TestCase):
    def test_refusals_say_what_is_allowed(self):
        for code, words, arguments in (
            (1, "MODEL-TYPE", ("--shape", "gpt-2-q4_0")),
            (1, "MODEL-TYPE", ("--shape", "tiny-q4_k,gpt-2-q4_0")),
            (1, "does not exist", ("--model", "/no/such.gguf")),
            (2, "--widths", ("--widths", "0")),
            (2, "--seconds", ("--seconds", "0")),
            (2, "--shape", ("--shape", "tiny-q4_k", "--model", "a.gguf")),
            (2, "--model", ("--drafter", "a.gguf")),
            (1, "Vulkan", ("--shape", "tiny-q4_k", "--device", "vulkan")),
        ):
            with self.subTest(arguments=arguments):
                result = run("report", *arguments)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertIn(words, result.stderr)


@unittest.skipUnless(os.path.exists(ICD), "lavapipe is not installed")
class Reports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "report.json")

    def report(self, *arguments):
        result = run("report", "--out", self.path, "--widths", "1,2,9", "--contexts", "0,64,4096", "--seconds", "30",
                     "--repeats", "3", *arguments, icd=ICD)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        for word in (self.folder, GOLDEN, os.path.expanduser("~"), ".gguf"):
            self.assertNotIn(word, text)
        return json.loads(text), result.stdout

    def check_passes(self, entry, shape, widths):
        self.assertEqual((entry["source"], entry["shape"], entry["clock"]), ("measured", shape, "device"))
        self.assertEqual(entry["widths"], widths)
        for i in range(len(widths)):
            self.assertGreater(entry["ms"][i], 0)
            self.assertGreater(entry["wall_ms"][i], 0)
            self.assertTrue(0 < entry["host_ms"][i] < entry["wall_ms"][i])
            self.assertAlmostEqual(entry["host_gap_ms"][i], entry["wall_ms"][i] - entry["ms"][i])
            self.assertTrue(1 <= entry["repeats"][i] <= 3)
        self.assertTrue(0 < entry["bandwidth_share"] <= 1)
        self.assertGreater(entry["peak_gb_s"], 0)

    def test_shapes_are_measured_and_read_by_predict(self):
        report, text = self.report("--shape", "tiny-q4_k,tiny-bf16", "--device", "software")
        self.assertEqual((report["version"], report["source"]), (1, "measured"))
        self.assertEqual(set(report), {"version", "source", "canopy", "host", "device", "models", "devices"})
        device = report["device"]
        self.assertTrue(device["is_software"] and device["usable"])
        self.assertIn("llvmpipe", device["name"])
        self.assertIn(device["kernel_family"], ("fma", "matrix"))
        self.assertIn("matrix_shapes", device)
        self.assertEqual([model["shape"] for model in report["models"]], ["tiny-q4_k", "tiny-bf16"])
        for model in report["models"]:
            self.assertEqual(model["weights"], "random")
            self.assertTrue(model["self_test"]["ran"] and model["self_test"]["passed"], model["self_test"])
            self.assertTrue(model["complete"])
            self.assertGreater(model["peak"]["read_gb_s"], 0)
        passes = report["devices"]
        self.assertEqual([(entry["shape"], entry["context"]) for entry in passes],
                         [(shape, context) for shape in ("tiny-q4_k", "tiny-bf16") for context in (0, 64, 4096)])
        for entry in passes:
            self.check_passes(entry, entry["shape"], [1, 2, 9])
        self.assertIn("measured for tiny-bf16 at context 64", text)

        result = run("predict", "-m", "tiny-q4_k", "-d", "b580", "--measured", self.path, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        beside = json.loads(result.stdout)["devices"]
        self.assertEqual([entry["source"] for entry in beside], ["predicted"] + ["measured"] * len(passes))
        for read, written in zip(beside[1:], passes):
            for field in ("name", "shape", "context", "widths", "ms", "bandwidth_share"):
                self.assertEqual(read[field], written[field])

    def test_a_model_with_a_drafter_is_measured(self):
        report, _ = self.report("--model", os.path.join(GOLDEN, "tiny-qwen3-f16.gguf"), "--drafter",
                                os.path.join(GOLDEN, "tiny-qwen3-dflash-b8-f16.gguf"))
        (model,) = report["models"]
        self.assertEqual(model["weights"], "file")
        self.assertRegex(model["shape"], r"^qwen3-\d+x\d+-f16$")
        self.assertTrue(model["self_test"]["passed"])
        self.assertEqual(model["drafter"]["block"], 8)
        for draft in model["drafter"]["passes"]:
            self.assertGreater(draft["ms"], 0)
        self.assertIn([0, 0], [[draft["context"], draft["backlog"]] for draft in model["drafter"]["passes"]])
        self.check_passes(report["devices"][0], model["shape"], [1, 2, 9])


if __name__ == "__main__":
    unittest.main()
