"""canopy-cli with the CUDA backend on a made-up GPU: a library that stands for NVIDIA's driver, found as that is."""

import json
import os
import subprocess
import tempfile
import unittest

from cli import CLI, GOLDEN, environment

ICD = os.environ.get("CANOPY_TEST_ICD", "")
FAKE_CUDA = os.path.dirname(os.environ.get("CANOPY_FAKE_CUDA_LIBRARY", ""))
MODEL = os.path.join(GOLDEN, "tiny-qwen3")
TOKENS = 3


def run(*arguments, icd="/nonexistent", **machine):
    env = dict(environment(icd), LD_LIBRARY_PATH=FAKE_CUDA, CANOPY_FAKE_CUDA=json.dumps(machine))
    return subprocess.run([CLI, *arguments], env=env, capture_output=True, text=True, check=False, timeout=300)


class Cuda(unittest.TestCase):
    def succeed(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def generate(self, *arguments, prompt="def", **options):
        return run("generate", "--model", MODEL, "--context", "64", "--raw", "--kv", "f32", "--no-self-test",
                   "--temperature", "0", "--max-tokens", str(TOKENS), "--prompt", prompt, "--json", *arguments, **options)

    def test_devices_say_what_they_are_and_why_not(self):
        gpus = [{"name": "New", "capability": 120, "memory": 32 << 30}, {"name": "Old", "capability": 70}]
        result = self.succeed("devices", gpus=gpus)
        self.assertIn("0: New (discrete, CUDA 13.0, compute capability 12.0, 34.36 GB) [cuda:0]", result.stdout)
        self.assertIn("[cuda:1] — not usable: Its compute capability is 7.0", result.stdout)
        self.assertIn("Used unless --device says otherwise: 0 (cuda:0)", result.stdout)
        devices = json.loads(self.succeed("devices", "--json", gpus=gpus).stdout)
        self.assertEqual([(d["id"], d["backend"], d["usable"]) for d in devices if d["backend"] == "cuda"],
                         [("cuda:0", "cuda", True), ("cuda:1", "cuda", False)])
        self.assertEqual(devices[0]["compute_capability"], "12.0")

    def test_an_old_driver_and_one_that_does_not_start_are_said(self):
        self.assertIn("Its driver supports CUDA 12.4; 13.0 or later is needed",
                      self.succeed("devices", driver_version=12040).stdout)
        result = run("devices", init_result=803)
        self.assertIn("803", result.stdout + result.stderr)

    def test_a_reply_is_what_the_reference_writes_without_any_vulkan(self):
        with open(os.path.join(GOLDEN, "generate.json"), encoding="utf-8") as file:
            golden = next(p for p in json.load(file)["prompts"] if p["name"] == "one_token")
        for device in ("cuda", "cuda:0", "made-up", "0", ""):
            result = self.generate(*(("--device", device) if device else ()), prompt=golden["prompt"])
            self.assertEqual(result.returncode, 0, result.stderr)
            reply = json.loads(result.stdout)
            self.assertEqual((reply["device"], reply["backend"]), ("Made-up GPU", "cuda"))
            self.assertEqual(reply["output_ids"], golden["output_ids"][:TOKENS])
        self.assertEqual(self.generate("--device", "vulkan").returncode, 1)

    def test_a_trace_names_the_backend(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "a.trace")
            result = self.generate("--trace", trace)
            self.assertEqual(result.returncode, 0, result.stderr)
            shown = subprocess.run([CLI, "trace", "show", trace], capture_output=True, text=True, check=False)
            self.assertIn("Made-up GPU (CUDA 13.0), cuda", shown.stdout, shown.stderr)

    def test_a_bench_compares_passes_with_tensor_cores(self):
        options = ("bench", "--model", MODEL, "--context", "64", "--widths", "1,2", "--repeats", "1", "--decode-tokens", "2",
                   "--prefill-tokens", "8", "--at", "8")
        bench = json.loads(self.succeed(*options, "--json").stdout)
        peak = bench["peak"]["matrix_gflop_s"]
        self.assertGreater(peak, 0)
        self.assertEqual(list(bench["share_of_matrix_peak"]), ["1", "2"])
        for width, share in bench["share_of_matrix_peak"].items():
            self.assertGreater(share, 0)
            self.assertGreaterEqual(bench["share_of_roofline"][width], share)
        self.assertIn("of matrix peak", self.succeed(*options).stdout)

    @unittest.skipUnless(os.path.exists(ICD), "lavapipe is not installed")
    def test_both_backends_write_the_same(self):
        replies = {}
        for backend in ("cuda", "vulkan"):
            result = self.generate("--device", backend, icd=ICD)
            self.assertEqual(result.returncode, 0, result.stderr)
            replies[backend] = json.loads(result.stdout)
        self.assertNotEqual(replies["cuda"]["device"], replies["vulkan"]["device"])
        self.assertEqual(replies["cuda"]["output_ids"], replies["vulkan"]["output_ids"])

    def test_a_lost_gpu_and_one_that_is_full_are_errors_with_what_to_do(self):
        lost = self.generate(failures=[["launch_graph", 1, 719]])
        self.assertEqual(lost.returncode, 1)
        self.assertIn("must be opened again", lost.stderr)
        full = self.generate(gpus=[{"memory": 1 << 20}])
        self.assertEqual(full.returncode, 1)
        self.assertIn("memory", full.stderr)


if __name__ == "__main__":
    unittest.main()
