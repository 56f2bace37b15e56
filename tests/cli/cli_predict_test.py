"""canopy-cli predict: the table, the JSON object, what it refuses. Needs no device and no driver."""

import json
import os
import tempfile
import unittest

from cli import GOLDEN, run

OF_NVIDIA = ["rtx4060", "rtx3060", "rtx3090", "rtx4090", "rtx5090", "h100", "h200"]
GPUS = OF_NVIDIA + ["strix-halo", "rx9070xt", "rx7900xtx", "b580", "a770", "m4max"]
PROCESSORS = {"ryzen9-7950x": "avx512", "ryzen9-9950x": "avx512", "epyc-9654": "avx512", "i9-14900k": "vnni",
              "ultra7-155h": "vnni", "m4max-cpu": "neon"}


class Predictions(unittest.TestCase):
    def predicted(self, *arguments):
        result = run("predict", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_json_has_every_device(self):
        devices = json.loads(self.predicted("--model", "qwen3-8b-q4_k", "--device", "all", "--context", "0",
                                            "--json"))["devices"]
        self.assertEqual([device["name"] for device in devices], GPUS + list(PROCESSORS))
        for device in devices:
            self.assertEqual(len(device["widths"]), len(device["ms"]))
            self.assertEqual(device["widths"], sorted(device["widths"]))
            self.assertTrue({1, 2, 4, 8, 16, 32, 64, 128} <= set(device["widths"]))
            if device["name"] not in OF_NVIDIA:  # CUDA's wider tiles may fill a GPU better
                self.assertEqual(device["ms"], sorted(device["ms"]))
            self.assertTrue(0 < device["bandwidth_share"] < 1)
            self.assertEqual(device["source"], "predicted")
            self.assertEqual(device["shape"], "qwen3-8b-q4_k")
            of_gpu = "cuda" if device["name"] in OF_NVIDIA else "matrix"
            self.assertEqual(device["kernels"], PROCESSORS.get(device["name"], of_gpu))

    def test_processors_are_predicted_with_the_instructions_they_have(self):
        def names(*arguments):
            text = self.predicted("-m", "smollm2-135m-q4_1", "--widths", "1,8", "--json", *arguments)
            return [device["name"] for device in json.loads(text)["devices"]]
        self.assertEqual(names("-d", "processors"), list(PROCESSORS))
        self.assertEqual(names("-d", "gpus"), GPUS)
        self.assertEqual(names("--kernels", "avx512"), ["ryzen9-7950x", "ryzen9-9950x", "epyc-9654"])
        self.assertEqual(names("--kernels", "fma"), GPUS)
        text = self.predicted("-m", "smollm2-135m-q4_1", "-d", "ryzen9-9950x", "--kernels", "avx2", "--widths", "1,8")
        self.assertIn("Ryzen 9 9950X", text)
        self.assertIn("'avx2'", text.splitlines()[0])
        for line in text.splitlines()[2:]:
            self.assertIn("predicted", line)
        for words, arguments in (("no instructions for the kernels 'avx512'; allowed: avx2, vnni.",
                                  ("-d", "i9-14900k", "--kernels", "avx512")),
                                 ("are those of GPUs; allowed on processors: avx2", ("-d", "epyc-9654", "--kernels", "matrix")),
                                 ("is no processor", ("-d", "h100", "--kernels", "avx2")),
                                 ("--assume is for GPUs", ("-d", "epyc-9654", "--assume", "decode=2"))):
            with self.subTest(arguments=arguments):
                result = run("predict", "-m", "smollm2-135m-q4_1", *arguments)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(words, result.stderr)

    def test_share_and_time_agree(self):
        (device,) = json.loads(self.predicted("-m", "qwen3-8b-bf16", "-d", "h100", "--widths", "1", "--json"))["devices"]
        read = device["bandwidth_share"] * device["peak_gb_s"] * device["ms"][0] * 1e6
        self.assertAlmostEqual(read / 1e9, 15.14, delta=0.03)

    def test_table_labels_every_figure(self):
        for kernels in ("fma", "matrix"):
            text = self.predicted("--model", "llama-2-7b-q4_0", "--device", "rx7900xtx", "--context", "512", "--kernels",
                                  kernels)
            lines = text.splitlines()
            self.assertIn("predicted for llama-2-7b-q4_0 at context 512", lines[0])
            self.assertIn(f"'{kernels}'", lines[0])
            self.assertRegex(lines[1], r"^width +1 +2 .* 128$")
            for line in lines[2:]:
                self.assertIn("predicted", line)
            self.assertRegex(lines[-1], r"tokens/s, \d+% of 960 GB/s$")

    def test_ops_are_listed_with_their_limits(self):
        text = self.predicted("-m", "qwen3-8b-q4_k", "-d", "h100", "--widths", "1,64", "--ops")
        for words in ("A pass of 64 rows, predicted", "project_heads", "attention", "linear_swiglu", "argmax",
                      "limited by", " dispatches\n", " cache\n"):
            self.assertIn(words, text)

    def test_cuda_kernels_have_names_registers_and_shared_memory(self):
        (device,) = json.loads(self.predicted("-m", "qwen3-8b-q4_k_m", "-d", "h100", "--widths", "1,64", "--context",
                                              "4096", "--kernels", "cuda", "--ops", "--json"))["devices"]
        narrow, wide = device["passes"]
        kernels = {op["kernel"] for op in narrow["ops"]}
        self.assertTrue({"product_q4_k_8", "product_q4_k_8, product_q6_k_8", "attention_few_f16", "argmax"} <= kernels, kernels)
        kernels = {op["kernel"] for op in wide["ops"]}
        self.assertTrue({"product_q4_k_64_warpgroups_384", "attention_many_f16"} <= kernels, kernels)
        for op in narrow["ops"] + wide["ops"]:
            self.assertGreater(op["us"], 0, op)
            if op["kernel"].startswith(("product", "attention")):
                most = 192 if "_384" in op["kernel"] else 128  # of blocks of 384 rows, and of others
                self.assertTrue(32 <= op["registers"] <= most, op)
                self.assertGreater(op["shared_bytes"], 4096, op)
        by_default = json.loads(self.predicted("-m", "qwen3-8b-q4_k_m", "-d", "h100", "--widths", "1,64", "--context",
                                               "4096", "--json"))["devices"][0]
        self.assertEqual((by_default["kernels"], by_default["ms"]), ("cuda", device["ms"]))
        self.assertAlmostEqual(sum(op["us"] * op["times"] for op in wide["ops"]) / 1e3 + wide["host_ms"], wide["ms"])

    def test_a_file_is_taken_by_its_own_types(self):
        for name in ("tiny-qwen3-f16.gguf", "tiny-qwen3"):
            (device,) = json.loads(self.predicted("-m", os.path.join(GOLDEN, name), "-d", "b580", "--json"))["devices"]
            self.assertEqual(device["shape"], name)

    def test_assumptions_change_the_result(self):
        def ms(*arguments):
            return json.loads(self.predicted("-m", "qwen3-8b-q4_k", "-d", "h100", "--widths", "64", "--json",
                                             *arguments))["devices"][0]["ms"][0]
        self.assertLess(ms("--assume", "decode=0.5,columns_in_flight=256"), ms("--kernels", "matrix"))

    def measured(self, text, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "measured.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return run("predict", "-m", "qwen3-8b-q4_k", "-d", "b580", "--measured", path, *arguments)

    def test_measured_passes_stand_beside_the_predicted(self):
        entry = {"name": "Arc B580", "shape": "qwen3-8b-q4_k", "context": 7, "source": "measured", "widths": [1, 64],
                 "ms": [15.5, 31], "bandwidth_share": 0.6}
        text = json.dumps({"devices": [entry]})
        table = self.measured(text).stdout.splitlines()
        self.assertEqual(table[-4:-2], ["Arc B580: measured for qwen3-8b-q4_k at context 7",
                                        "width                    1     64"])
        self.assertIn("2.00", table[-1])
        devices = json.loads(self.measured(text, "--json").stdout)["devices"]
        self.assertEqual([device["source"] for device in devices], ["predicted", "measured"])
        self.assertEqual(devices[1], entry)

    def test_files_of_measured_passes_are_checked(self):
        def file(**changes):
            entry = {"name": "a", "shape": "b", "source": "measured", "widths": [1, 2], "ms": [1, 2]}
            return json.dumps({"devices": [{**entry, **changes}]})
        self.assertEqual(self.measured(file()).returncode, 0)
        for words, text in (("measured.json", "{"), ("devices", "{}"), ("devices", '{"devices": 3}'),
                            ("entry of 'devices'", '{"devices": [3]}'), ("name", file(name=3)),
                            ("source", file(source="predicted")), ("widths", file(widths=[2, 1])),
                            ("widths", file(widths=[1, 1.5])), ("widths", file(widths=[0, 1])),
                            ("widths", file(widths=[])), ("as many", file(ms=[1])), ("ms", file(ms=[1, -1])),
                            ("ms", file(ms=[1, None])), ("bandwidth_share", file(bandwidth_share=2))):
            with self.subTest(text):
                result = self.measured(text)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertIn(words, result.stderr)

    def test_refusals_say_what_is_allowed(self):
        for code, words, arguments in (
            (1, "rx7900xtx", ("-m", "qwen3-8b-q4_k", "-d", "gtx480")),
            (1, "qwen3-8b", ("-m", "gpt-2-q4_0")),
            (1, "/no/such/model.gguf", ("-m", "/no/such/model.gguf")),
            (1, "fma, matrix", ("-m", "qwen3-8b-q4_k", "--kernels", "opencl")),
            (1, "GPUs of NVIDIA", ("-m", "qwen3-8b-q4_k", "-d", "rx7900xtx", "--kernels", "cuda")),
            (1, "tile_rows", ("-m", "qwen3-8b-q4_k", "--assume", "rows=1")),
            (1, "0 to 131072", ("-m", "qwen3-8b-q4_k", "--context", "200000")),
            (2, "--widths", ("-m", "qwen3-8b-q4_k", "--widths", "0")),
            (2, "--widths", ("-m", "qwen3-8b-q4_k", "--widths", "5000")),
            (2, "--context", ("-m", "qwen3-8b-q4_k", "--context", "-1")),
            (2, "--model", ()),
        ):
            with self.subTest(arguments=arguments):
                result = run("predict", *arguments)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest.main()
