"""tools/measurement_page: the page of a file, and files that are none."""

import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "measurement_page")
RESULT = {
    "checks": {"libc": "system", "seconds": 300, "tiny": False,
               "steps": [{"name": "ops", "state": "ran_out_of_time", "seconds": 150, "tests_passed": 12, "tests_failed": 1}]},
    "llama_bench": [{"n_prompt": 0, "n_gen": 64, "avg_ts": 190.5, "stddev_ts": 0.4}],
    "version": 1, "source": "measured", "canopy": {"version": "0.1.0", "commit": "abc"}, "host": {"cores": 16},
    "device": {"name": "Some | GPU <b>", "type": "discrete", "driver": "radv", "driver_version": "25", "memory_bytes": 2**34,
               "memory_available": 2**33, "kernel_family": "matrix",
               "matrix_shapes": [{"m": 16, "n": 16, "k": 16, "a": "f16", "result": "f32", "scope": "subgroup"}]},
    "models": [
        {"shape": "qwen3-8b-q4_k", "weights": "random", "complete": True, "peak": {"read_gb_s": 900.5, "fma_gflop_s": 3e4, "matrix_gflop_s": 6.5e5},
         "self_test": {"ran": True, "passed": False, "sentence": "Row 3 differs."},
         "drafter": {"block": 16, "passes": [{"context": 0, "backlog": 1, "ms": 1.25}],
                     "rounds": [{"context": 0, "width": 16, "emitted": 8, "ms": 9.5, "wall_ms": 9.75,
                                 "host_gap_ms": 0.25, "host_ms": 0.0625, "repeats": 5, "speedup": 5.5}]}},
        {"shape": "qwen3-32b-bf16", "weights": "random", "skipped": "It needs 75 GB."}],
    "devices": [{"name": "Some GPU", "shape": "qwen3-8b-q4_k", "context": 0, "widths": [1, 8], "ms": [7.0, 7.7],
                 "host_gap_ms": [0.1, 0.2], "bandwidth_share": 0.66}],
}


class Pages(unittest.TestCase):
    def page(self, result):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(result if isinstance(result, str) else json.dumps(result))
            return subprocess.run([sys.executable, "-B", TOOL, path, "--out", "-"], capture_output=True, text=True,
                                  check=False, timeout=60)

    def test_everything_of_the_file_is_on_the_page(self):
        done = self.page(RESULT)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in (r"# Some \| GPU \<b\>, measured", "16×16×16 f16→f32", "| ops | ran out of time | 150 | 12 | 1 |",
                      "**not exact**: Row 3 differs.", "| 900.5 | 30000 | 650000 |", "It needs 75 GB.", "| 66 % | 7.000 (1.00) | 7.700 (1.10) |",
                      "| 0.100 | 0.200 |", "| 0 | 1 | 1.250 |", "| 0 | 16 | 8 | 9.750 | 0.250 | 0.062 | 5.50 |", "| 0 | 64 | 190.5 | 0.4 |", "17.18 GB, of which 8.59 GB"):
            self.assertIn(words, done.stdout)

    def test_what_is_missing_is_left_out(self):
        result = copy.deepcopy(RESULT)
        del result["checks"], result["llama_bench"]
        result["devices"] = []
        done = self.page(result)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("## Checks", "## Passes", "llama.cpp"):
            self.assertNotIn(words, done.stdout)

    def test_other_files_are_refused(self):
        for words, result in (("version 2", dict(RESULT, version=2)), ("predicted", dict(RESULT, source="predicted")),
                              ("no JSON object", "[1]"), ("measurement_page:", "{"), ("lacks", dict(RESULT, device={})),
                              ("lacks", dict(RESULT, devices=[3])), ("lacks", dict(RESULT, models=None))):
            done = self.page(result)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertEqual(done.stdout, "")
            self.assertIn(words, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
