"""tools/bench_llamacpp without llama.cpp: its arguments, the patch, the order of runs, and the report's arithmetic."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "tools", "bench_llamacpp")
sys.path[:0] = [os.path.join(ROOT, "tools", "lib"), os.path.join(ROOT, "tools", "llamacpp")]

import agreement  # noqa: E402
import peer_build  # noqa: E402
import report as reports  # noqa: E402
import source_patch  # noqa: E402
import speed  # noqa: E402

_loader = importlib.machinery.SourceFileLoader("bench_llamacpp", SCRIPT)
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_llamacpp", _loader))
_loader.exec_module(bench)

CUT, SWAP = source_patch.EDITS
SOURCE = f"before;\n    {CUT.first}\n    middle;\n    {CUT.last}\n    create(flags, {SWAP.old}\nafter;\n"

# A canopy-cli and a probe that answer at once: {0} is the file they take notes in.
FAKE_CANOPY = """#!/usr/bin/env python3
import json, sys
model = " " + sys.argv[sys.argv.index("--model") + 1] if sys.argv[1] == "logits" else ""
open({0!r}, "a").write("canopy " + sys.argv[1] + model + "\\n")
if sys.argv[1] == "devices":
    print(json.dumps([{{"index": 0, "name": "Toy", "type": "cpu", "driver": "toydrv", "driver_version": "7", "usable": True}}]))
elif sys.argv[1] == "bench":
    print(json.dumps({{"device": "Toy", "driver": "toydrv", "model": "m.gguf", "peak": {{}}, "decode_tokens_per_second": 50.0,
                      "prefill_tokens_per_second": 100.0, "pass_ms": {{"1": 20, "2": 30, "4": 40, "8": 60, "16": 100}}}}))
else:
    print(json.dumps({{"ids": [5, 6], "window": 500, "top": [[[1, 3.0], [2, 2.0]], [[4, 1.0], [3, 0.5]]]}}))
"""
FAKE_PROBE = """#!/usr/bin/env python3
import json, os, shutil, sys
if sys.argv[1] == "widen":
    open({0!r}, "a").write("widen\\n")
    shutil.copy(sys.argv[2], sys.argv[3])
    sys.exit(0)
backend = sys.argv[sys.argv.index("--backend") + 1]
open({0!r}, "a").write(backend + " devices=" + os.environ["GGML_VK_VISIBLE_DEVICES"] + "\\n")
if sys.argv[1] == "logits":
    open({0!r}, "a").write("logits of " + sys.argv[sys.argv.index("--model") + 1] + "\\n")
    print(json.dumps({{"top": [[[1, 3.5], [2, 2.0]], [[3, 0.75], [4, 0.5]]]}}))
    sys.exit(0)
slow = 10 if backend == "vulkan" else 1
print(json.dumps({{"backend": backend, "device": {1!r}, "threads": 2}}), flush=True)
for line in sys.stdin:
    open({0!r}, "a").write(backend + "\\n")
    print(json.dumps({{"prefill_ms": 640 * slow, "decode_ms": [20 * slow, 900, 20 * slow],
                      "pass_ms": {{w: int(w) * 10 * slow for w in ("1", "2", "4", "8", "16")}}}}), flush=True)
"""


class Arguments(unittest.TestCase):
    def refuse(self, *arguments):
        result = subprocess.run([sys.executable, "-B", SCRIPT, *arguments], capture_output=True, text=True, check=False,
                                timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def test_wrong_ones_are_refused_before_anything_starts(self):
        self.assertIn("0 is not a positive number", self.refuse("--rounds", "0"))
        self.assertIn("'vulkan,metal' is not vulkan, cpu", self.refuse("--backends", "vulkan,metal"))
        self.assertIn("--model: there is no file /no/such.gguf", self.refuse("--model", "/no/such.gguf"))
        self.assertIn("--canopy-cli: there is no file", self.refuse("--canopy-cli", "/no/such"))
        self.assertIn("--as-f32 is for the agreement, which --only speed", self.refuse("--as-f32", "--only", "speed"))
        self.assertIn("invalid choice: 'everything'", self.refuse("--only", "everything"))


class Patch(unittest.TestCase):
    def refuse(self, text, message):
        with self.assertRaisesRegex(source_patch.PatchError, message):
            source_patch.patched(text)

    def test_cuts_the_settings_and_nothing_else(self):
        self.assertEqual(source_patch.patched(SOURCE), f"before;\n    create(flags, {SWAP.new}\nafter;\n")

    def test_an_unknown_source_is_refused(self):
        self.refuse("int main() {}\n", "0 times; exactly once is expected")
        self.refuse(SOURCE.replace(CUT.last, "other();"), "0 times")
        self.refuse(SOURCE.replace(SWAP.old, "extensions);"), "0 times")
        self.refuse(SOURCE + CUT.first + "\n", "2 times")

    def test_a_patched_source_is_refused(self):
        self.refuse(source_patch.patched(SOURCE), "0 times")

    def test_a_block_that_grew_or_turned_around_is_refused(self):
        self.refuse(SOURCE.replace("    middle;\n", "    middle;\n" * 20), "22 lines long")
        swapped = SOURCE.replace(CUT.first, "#").replace(CUT.last, CUT.first).replace("#", CUT.last)
        self.refuse(swapped, "-1 lines long")

    def test_a_further_use_is_refused(self):
        self.refuse(SOURCE + "vk::LayerSettingEXT more;\n", "still uses LayerSettingEXT")


class PreparedSource(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.published = os.path.join(self.folder, "published")
        self.target = os.path.join(self.folder, "built", "source")
        os.makedirs(os.path.dirname(self.target))
        self.write(SOURCE)

    def write(self, text):
        path = os.path.join(self.published, source_patch.FILE)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_the_copy_is_patched_and_the_original_is_not(self):
        peer_build._prepare_source(self.published, self.target)
        with open(os.path.join(self.target, source_patch.FILE), encoding="utf-8") as file:
            self.assertEqual(file.read(), source_patch.patched(SOURCE))
        with open(os.path.join(self.published, source_patch.FILE), encoding="utf-8") as file:
            self.assertEqual(file.read(), SOURCE)

    def test_an_unknown_source_leaves_nothing(self):
        self.write("something newer\n")
        with self.assertRaisesRegex(peer_build.BuildError, "cannot be patched.*exactly once is expected"):
            peer_build._prepare_source(self.published, self.target)
        self.assertEqual(os.listdir(os.path.dirname(self.target)), [])

    def test_what_a_killed_run_left_is_removed(self):
        folder = os.path.dirname(self.target)
        os.makedirs(os.path.join(folder, peer_build.PARTIAL + "x", "source"))
        with peer_build._locked(folder):
            self.assertEqual(os.listdir(folder), [".lock"])

    def test_another_archive_patch_or_option_is_another_build(self):
        pin = {"version": "1.0", "sha256": "a" * 64}
        first = peer_build.recipe_id(pin)
        self.assertTrue(first.startswith("1.0-"))
        self.assertNotEqual(peer_build.recipe_id({**pin, "sha256": "b" * 64}), first)
        with mock.patch.dict(peer_build.OPTIONS, GGML_NATIVE="OFF"):
            self.assertNotEqual(peer_build.recipe_id(pin), first)

    def test_what_the_shader_compiler_lacks_is_read_from_the_log(self):
        with open(os.path.join(self.folder, "build.log"), "w", encoding="utf-8") as file:
            file.write("-- GL_KHR_a not supported by glslc\n-- GL_EXT_b supported by glslc\n[1/2] Building\n")
        self.assertEqual(peer_build._missing_extensions(self.folder), ["GL_KHR_a"])

    def test_a_failing_command_is_told_with_its_last_words(self):
        log = os.path.join(self.folder, "log")
        with self.assertRaisesRegex(peer_build.BuildError, "(?s)status 3.*the reason"):
            peer_build._logged(log, [sys.executable, "-c", "import sys; print('the reason'); sys.exit(3)"])


def figures(decode, prefill, passes):
    return {"decode_tokens_per_second": decode, "prefill_tokens_per_second": prefill,
            "pass_ms": dict(zip(("1", "2", "4", "8", "16"), passes))}


class ProbeFolder(unittest.TestCase):
    def test_a_folder_configured_by_another_checkout_is_emptied(self):
        for source, stays in ((peer_build.HERE, True), ("/elsewhere/tools/llamacpp", False)):
            with tempfile.TemporaryDirectory() as folder:
                build = os.path.join(folder, "probe")
                os.mkdir(build)
                with open(os.path.join(build, "CMakeCache.txt"), "w", encoding="utf-8") as file:
                    file.write(f"X:BOOL=ON\nCMAKE_HOME_DIRECTORY:INTERNAL={source}\n")
                peer_build._forget_other_sources(build)
                self.assertEqual(os.path.exists(build), stays)


class Ratios(unittest.TestCase):
    def test_above_one_is_faster_in_rates_and_in_times(self):
        ours, theirs = figures(30, 90, (40, 50, 80, 140, 250)), figures(3, 12, (440, 500, 800, 1400, 3000))
        self.assertEqual(speed.ratios(ours, theirs), {"decode": 10, "prefill": 7.5, "width1": 11, "width2": 10,
                                                      "width4": 10, "width8": 10, "width16": 12})

    def test_medians_are_taken_over_rounds_before_dividing(self):
        ours = [figures(d, 100, (d,) * 5) for d in (10, 1000, 20)]
        theirs = [figures(d, 10, (d,) * 5) for d in (4, 2, 1)]
        report = speed.compare({"canopy": ours, "llamacpp": theirs})
        self.assertEqual(report["ratios"]["decode"], 10)  # 20 / 2
        self.assertEqual(report["ratios"]["width16"], 0.1)  # 2 / 20
        self.assertEqual([r["decode"] for r in report["ratios_by_round"]], [2.5, 500, 20])
        self.assertEqual(report["llamacpp"]["rounds"], theirs)
        self.assertNotIn("ratios_to_cpu_backend", report)
        self.assertIn("decode 2.50 to 500.00", reports.spread(report))

    def test_the_probe_s_times_become_the_same_fields(self):
        raw = {"decode_ms": [400.0, 100.0, 200.0], "prefill_ms": 6400.0, "pass_ms": {"1": 1.0}}
        got = speed.peer_figures(raw)
        self.assertEqual((got["decode_tokens_per_second"], got["prefill_tokens_per_second"]), (5, 20))

    def test_every_round_has_each_program_once_and_the_first_rotates(self):
        order = []

        class Contestant:
            def __init__(self, name):
                self.name = name

            def round(self):
                order.append(self.name)
                return len(order)

        results = speed.measure([Contestant("a"), Contestant("b")], 3, lambda _: None)
        self.assertEqual(order, ["a", "b", "b", "a", "a", "b"])
        self.assertEqual(results, {"a": [1, 4, 5], "b": [2, 3, 6]})


class Agreement(unittest.TestCase):
    def test_counts_positions_and_measures_what_both_list(self):
        ours = [[[1, 3.0], [2, 2.0]], [[4, 1.0], [3, 0.75]], [[7, 5.0], [8, 4.0]]]
        theirs = [[[1, 3.5], [9, 2.0]], [[3, 1.0], [4, 0.5]], [[7, 5.0], [8, 4.0]]]
        got = agreement.compare(ours, theirs)
        self.assertEqual((got["positions"], got["same_top1"], got["compared_logits"]), (3, 2, 5))
        self.assertEqual(got["largest_difference"], 0.5)
        self.assertAlmostEqual(got["mean_difference"], (0.5 + 0.5 + 0.25) / 5)
        self.assertEqual(got["differing"],
                         [{"position": 1, "ours": 4, "theirs": 3, "our_gap": 0.25, "their_gap": 0.5}])

    def test_lists_of_different_lengths_are_an_error(self):
        with self.assertRaisesRegex(speed.RunError, "1 positions of ours .* 0 of llama.cpp's"):
            agreement.compare([[[1, 3.0], [2, 2.0]]], [])


class WholeScript(unittest.TestCase):
    """The script with fake programs that answer at once."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.notes = os.path.join(self.folder, "notes")
        self.programs = (self.write("canopy-cli", FAKE_CANOPY.format(self.notes)), None)
        self.use_probe(FAKE_PROBE.format(self.notes, "Toy"))
        self.model = self.write("m.gguf", "")

    def use_probe(self, text):
        self.programs = (self.programs[0], peer_build.Peer("0.0", self.write("probe", text), ["GL_NEW_thing"]))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def start(self, *arguments):
        """(exit status, standard output, standard error)"""
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(bench, "provide_programs", lambda *_: self.programs), \
                mock.patch.object(sys, "argv", [SCRIPT, "--model", self.model, *arguments]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            return bench.main(), out.getvalue(), err.getvalue()

    def noted(self):
        with open(self.notes, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_json_has_the_ratios_and_all_raw_figures(self):
        status, out, err = self.start("--json", "--rounds", "2")
        self.assertEqual(status, 0, err)
        got = json.loads(out)
        self.assertEqual((got["device"], got["driver"], got["model"]), ("Toy", "toydrv 7", "m.gguf"))
        self.assertEqual(got["widths"], [1, 2, 4, 8, 16])
        self.assertEqual(got["ratios"], {"decode": 10, "prefill": 5, "width1": 5, "width2": 200 / 30, "width4": 10,
                                         "width8": 800 / 60, "width16": 16})
        self.assertEqual((got["ratios_to_cpu_backend"]["decode"], got["ratios_to_cpu_backend"]["prefill"]), (1, 0.5))
        self.assertEqual([len(got[name]["rounds"]) for name in ("canopy", "llamacpp", "llamacpp_cpu")], [2, 2, 2])
        self.assertEqual([got["agreement"]["backends"][b]["share"] for b in ("vulkan", "cpu")], [0.5, 0.5])

    def test_the_programs_alternate_and_see_the_right_devices(self):
        self.start("--only", "speed", "--rounds", "2")
        self.assertEqual(self.noted(), ["canopy devices", "vulkan devices=0", "cpu devices=", "canopy bench", "vulkan", "cpu",
                                        "vulkan", "cpu", "canopy bench"])

    def test_the_table_shows_the_same_figures(self):
        status, out, _ = self.start("--rounds", "1")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"decode, tok/s +50\.00 +5\.00 +50\.00 +10\.00x +1\.00x")
        self.assertRegex(out, r"width 16, ms +100\.00 +1600\.00 +160\.00 +16\.00x +1\.60x")
        self.assertIn("built without GL_NEW_thing", out)
        self.assertIn("likeliest token the same at 1 of 2 positions (50.00%)", out)

    def test_llamacpp_reads_the_copy_as_f32_and_canopy_the_model(self):
        status, out, err = self.start("--only", "agreement", "--as-f32")
        self.assertEqual(status, 0, err)
        ours, widen, *theirs = self.noted()[1:]
        self.assertEqual((ours, widen), ("canopy logits " + self.model, "widen"))
        read = {line.removeprefix("logits of ") for line in theirs if line.startswith("logits of ")}
        self.assertEqual(len(read), 1, theirs)
        self.assertNotEqual(read, {self.model})
        self.assertFalse(os.path.exists(read.pop()), "the copy is removed")
        self.assertIn("llama.cpp vulkan with the weights as F32: likeliest token the same at 1 of 2", out)

    def test_without_it_both_read_the_model(self):
        status, out, _ = self.start("--only", "agreement", "--backends", "cpu")
        self.assertEqual(status, 0)
        self.assertEqual(self.noted()[1:], ["canopy logits " + self.model, "cpu devices=", "logits of " + self.model])
        self.assertNotIn("F32", out)

    def test_a_copy_that_cannot_be_written_ends_the_comparison(self):
        self.use_probe("#!/bin/bash\nexit 7\n")
        status, out, err = self.start("--only", "agreement", "--as-f32")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("llamacpp_probe widen ended with status 7", err)

    def test_another_device_on_their_side_is_refused(self):
        self.use_probe(FAKE_PROBE.format(self.notes, "Other"))
        status, _, err = self.start()
        self.assertEqual(status, 1)
        self.assertIn("device 0 is Toy for Canopy, but Other for llama.cpp", err)

    def test_an_unknown_index_lists_the_devices(self):
        status, _, err = self.start("--device", "3")
        self.assertEqual(status, 1)
        self.assertIn("usable Vulkan devices: 0: Toy. Choose with --device: none has index 3.", err)

    def test_a_probe_that_dies_ends_the_comparison(self):
        self.use_probe("#!/bin/bash\nexit 5\n")
        status, out, err = self.start()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("llamacpp_probe ended with status 5", err)

    def test_a_probe_that_dies_between_rounds_too(self):
        self.use_probe("#!/bin/bash\nprintf '%s\\n' '{\"device\": \"Toy\"}'\nexit 6\n")
        status, out, err = self.start()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("llamacpp_probe ended with status 6", err)


if __name__ == "__main__":
    unittest.main()
