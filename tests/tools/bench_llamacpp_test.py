"""tools/bench_llamacpp without llama.cpp: its arguments, the choice of device and builds, the patch, the order of runs, and
the report's arithmetic."""

import array
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import math
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
import devices  # noqa: E402
import drafts  # noqa: E402
import peer_build  # noqa: E402
import report as reports  # noqa: E402
import source_patch  # noqa: E402
import speed  # noqa: E402

_loader = importlib.machinery.SourceFileLoader("bench_llamacpp", SCRIPT)
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_llamacpp", _loader))
_loader.exec_module(bench)

CUT, SWAP = source_patch.EDITS[source_patch.VULKAN]
(AMX_SWAP,) = source_patch.EDITS[source_patch.AMX]
SOURCE = f"before;\n    {CUT.first}\n    middle;\n    {CUT.last}\n    create(flags, {SWAP.old}\nafter;\n"
AMX_SOURCE = "    tc.rows[7] = 16;\n    _tile_loadconfig(&tc);\n    done = true;\n"

# A canopy-cli and a probe that answer at once: {0} is the file they take notes in.
FAKE_CANOPY = """#!/usr/bin/env python3
import array, json, sys
def option(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None
model = " " + option("--model") if sys.argv[1] == "logits" else ""
prompt = " prompt " + option("--prefill-tokens") if option("--device") == "1" and sys.argv[1] == "bench" else ""
open({0!r}, "a").write("canopy " + sys.argv[1] + model + prompt + "\\n")
if sys.argv[1] == "devices":
    print(json.dumps([{{"index": 0, "id": "vulkan:0", "backend": "vulkan", "name": "Toy", "type": "software", "driver": "toydrv",
                        "driver_version": "7", "usable": True}},
                      {{"index": 1, "id": "cpu:0", "backend": "cpu", "name": "Chip", "type": "cpu", "driver": "AVX9, 3 threads",
                        "threads": 3, "usable": True}}]))
elif sys.argv[1] == "bench":
    print(json.dumps({{"device": "Toy", "driver": "toydrv", "model": "m.gguf", "peak": {{}}, "decode_tokens_per_second": 50.0,
                      "prefill_tokens_per_second": 100.0, "pass_ms": {{"1": 20, "2": 30, "4": 40, "8": 60, "16": 100}}}}))
elif sys.argv[1] == "make-model":
    print("Wrote it.")
    open(sys.argv[3], "w").close()
else:
    if option("--rows"):
        array.array("f", [0.0, 3.0, 2.0, 0.0, 0.0, 1.0]).tofile(open(option("--rows"), "wb"))
    print(json.dumps({{"ids": [5, 6], "window": 500, "top": [[[1, 3.0], [2, 2.0]], [[4, 1.0], [3, 0.5]]]}}))
"""
FAKE_PROBE = """#!/usr/bin/env python3
import array, json, os, shutil, sys
def option(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None
if sys.argv[1] == "widen":
    open({0!r}, "a").write("widen\\n")
    shutil.copy(sys.argv[2], sys.argv[3])
    sys.exit(0)
backend = option("--backend")
threads = " threads=" + option("--threads") if option("--threads") else ""
open({0!r}, "a").write(backend + " devices=" + os.environ["GGML_VK_VISIBLE_DEVICES"] + threads + "\\n")
if sys.argv[1] == "logits":
    cache = ", f32 cache" if "--f32-cache" in sys.argv else ""
    open({0!r}, "a").write("logits of " + option("--model") + cache + "\\n")
    if option("--rows"):
        row = [0.0, 3.0, 2.0] if cache else [0.0, 3.0, 1.0]
        array.array("f", row + [0.0, 1.0, 0.0]).tofile(open(option("--rows"), "wb"))
    print(json.dumps({{"top": [[[1, 3.5], [2, 2.0]], [[3, 0.75], [4, 0.5]]]}}))
    sys.exit(0)
slow = {2} * (10 if backend == "vulkan" else 1)
print(json.dumps({{"backend": backend, "device": {1!r}, "threads": 2}}), flush=True)
for line in sys.stdin:
    open({0!r}, "a").write(backend + "\\n")
    print(json.dumps({{"prefill_ms": {{n: 5 * int(n) * slow for n in option("--prefill-tokens").split(",")}},
                      "decode_ms": [20 * slow, 900, 20 * slow],
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
        self.assertIn("name one", self.refuse("--model", SCRIPT, "--shape", "qwen3-0.6b"))
        self.assertIn("invalid choice: 'everything'", self.refuse("--only", "everything"))


class Devices(unittest.TestCase):
    def listed(self, *entries):
        result = []
        for index, (identity, kind, name) in enumerate(entries):
            result.append({"index": index, "id": identity, "backend": identity.partition(":")[0], "type": kind, "name": name,
                           "usable": True})
        return result

    def setUp(self):
        self.devices = self.listed(("vulkan:0", "discrete", "RX 7900"), ("vulkan:1", "software", "llvmpipe"),
                                   ("cuda:0", "discrete", "RTX 4090"), ("cpu:0", "cpu", "AMD EPYC"))

    def chosen(self, selector):
        return devices.choose(self.devices, selector)["id"]

    def test_the_words_are_those_of_canopy_cli(self):
        for selector, expected in (("0", "vulkan:0"), ("3", "cpu:0"), ("cpu", "cpu:0"), ("CPU:0", "cpu:0"), ("epyc", "cpu:0"),
                                   ("vulkan", "vulkan:0"), ("vulkan:1", "vulkan:1"), ("software", "vulkan:1"),
                                   ("7900", "vulkan:0"), ("discrete", "vulkan:0"), (None, "vulkan:0")):
            self.assertEqual(self.chosen(selector), expected, selector)

    def test_the_processor_comes_before_software(self):
        self.devices = self.devices[1:2] + self.devices[3:]
        self.assertEqual(self.chosen(None), "cpu:0")

    def test_what_llamacpp_is_not_built_for_or_does_not_exist_is_refused(self):
        for selector in ("cuda", "cuda:0", "2", "7", "4090", "vulkan:2", "integrated", "arc"):
            with self.assertRaisesRegex(devices.DeviceError, f"3: AMD EPYC .cpu:0.. None is called '{selector}'"):
                self.chosen(selector)
        self.devices[3]["usable"] = False
        with self.assertRaises(devices.DeviceError):
            self.chosen("cpu")

    def test_llamacpp_counts_vulkan_devices_alone(self):
        self.assertEqual(devices.number_in_backend(self.devices[1]), 1)


class Builds(unittest.TestCase):
    def names(self, flags):
        return [recipe.name for recipe in peer_build.cpu_recipes(set(flags.split()))]

    def test_those_that_may_be_the_fastest_on_a_processor(self):
        self.assertEqual(self.names("fma avx2"), ["native"])
        self.assertEqual(self.names("fma avx2 avx_vnni"), ["native"])
        self.assertEqual(self.names("avx2 avx512f avx512_vnni"), ["native", "avx2"])
        self.assertEqual(self.names("avx2 avx512f avx512_vnni amx_bf16 amx_tile amx_int8"), ["native", "no-amx", "avx2"])
        self.assertEqual(self.names(""), ["native"])

    def test_none_of_the_processor_has_vulkan(self):
        for recipe in (peer_build.NATIVE, peer_build.WITHOUT_AMX, peer_build.AVX2):
            self.assertNotIn("GGML_VULKAN", recipe.options)
            self.assertNotIn("ggml-vulkan", recipe.libraries)
        self.assertIn("ggml-vulkan", peer_build.VULKAN.libraries)

    def test_each_is_configured_with_its_options_in_its_folder(self):
        commands = []
        with tempfile.TemporaryDirectory() as folder, \
                contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(peer_build, "_logged", lambda log, command, append=False: commands.append(command)):
            os.makedirs(os.path.join(folder, "build"))
            peer_build._build_libraries(peer_build.WITHOUT_AMX, "/source", folder)
            peer_build._build_libraries(peer_build.WITHOUT_AMX, "/source", folder)  # finds the marker of the first
            self.assertEqual([command[0] for command in commands], ["cmake", "ninja"])
            self.assertIn(os.path.join(folder, "build"), commands[0])
        self.assertIn("-DCMAKE_CXX_FLAGS=-mno-amx-tile -mno-amx-int8 -mno-amx-bf16", commands[0])
        self.assertIn("-DGGML_NATIVE=ON", commands[0])
        self.assertEqual(commands[1][-4:], ["llama", "ggml", "ggml-base", "ggml-cpu"])


class Patch(unittest.TestCase):
    def refuse(self, text, message, file=source_patch.VULKAN):
        with self.assertRaisesRegex(source_patch.PatchError, message):
            source_patch.patched(file, text)

    def test_the_stores_before_the_tile_configuration_are_kept(self):
        got = source_patch.patched(source_patch.AMX, AMX_SOURCE)
        self.assertEqual(got, AMX_SOURCE.replace("_tile", 'asm volatile("" :: "r"(&tc) : "memory"); _tile'))
        self.refuse(got, "0 times", source_patch.AMX)
        self.refuse("nothing", "amx/mmq.cpp holds '_tile_loadconfig", source_patch.AMX)

    def test_cuts_the_settings_and_nothing_else(self):
        self.assertEqual(source_patch.patched(source_patch.VULKAN, SOURCE), f"before;\n    create(flags, {SWAP.new}\nafter;\n")

    def test_an_unknown_source_is_refused(self):
        self.refuse("int main() {}\n", "0 times; exactly once is expected")
        self.refuse(SOURCE.replace(CUT.last, "other();"), "0 times")
        self.refuse(SOURCE.replace(SWAP.old, "extensions);"), "0 times")
        self.refuse(SOURCE + CUT.first + "\n", "2 times")

    def test_a_patched_source_is_refused(self):
        self.refuse(source_patch.patched(source_patch.VULKAN, SOURCE), "0 times")

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
        self.write(AMX_SOURCE, source_patch.AMX)

    def write(self, text, name=source_patch.VULKAN):
        path = os.path.join(self.published, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_the_copy_is_patched_and_the_original_is_not(self):
        peer_build._prepare_source(self.published, self.target)
        for name, text in ((source_patch.VULKAN, SOURCE), (source_patch.AMX, AMX_SOURCE)):
            with open(os.path.join(self.target, name), encoding="utf-8") as file:
                self.assertEqual(file.read(), source_patch.patched(name, text))
            with open(os.path.join(self.published, name), encoding="utf-8") as file:
                self.assertEqual(file.read(), text)

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
        with mock.patch.dict(peer_build.OPTIONS, GGML_OPENMP="OFF"):
            self.assertNotEqual(peer_build.recipe_id(pin), first)
        with mock.patch.dict(peer_build.WITHOUT_AMX.options, GGML_NATIVE="OFF"):
            self.assertNotEqual(peer_build.recipe_id(pin), first)

    def test_what_the_shader_compiler_lacks_is_read_from_the_log(self):
        with open(os.path.join(self.folder, "build.log"), "w", encoding="utf-8") as file:
            file.write("-- GL_KHR_a not supported by glslc\n-- GL_EXT_b supported by glslc\n[1/2] Building\n")
        self.assertEqual(peer_build._missing_extensions(self.folder), ["GL_KHR_a"])

    def test_a_failing_command_is_told_with_its_last_words(self):
        log = os.path.join(self.folder, "log")
        with self.assertRaisesRegex(peer_build.BuildError, "(?s)status 3.*the reason"):
            peer_build._logged(log, [sys.executable, "-c", "import sys; print('the reason'); sys.exit(3)"])


def figures(decode, prefill, passes, longer=None):
    prompts = {"128": prefill} if longer is None else {"128": prefill, "512": longer}
    return {"decode_tokens_per_second": decode, "prefill": prompts, "pass_ms": dict(zip(("1", "2", "4", "8", "16"), passes))}


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
        self.assertEqual(speed.ratios(ours, theirs), {"decode": 10, "prefill": 7.5, "prefill128": 7.5, "width1": 11,
                                                      "width2": 10, "width4": 10, "width8": 10, "width16": 12})

    def test_prefill_is_the_lower_of_both_prompts(self):
        ours, theirs = figures(1, 90, (1,) * 5, 80), figures(1, 30, (1,) * 5, 40)
        got = speed.ratios(ours, theirs)
        self.assertEqual((got["prefill"], got["prefill128"], got["prefill512"]), (2, 3, 2))

    def test_ratios_are_to_the_fastest_build_of_each_column(self):
        results = {"canopy": [figures(20, 90, (10,) * 5, 90)], "llamacpp_native": [figures(10, 30, (30,) * 5, 45)],
                   "llamacpp_no-amx": [figures(8, 45, (20, 20, 20, 20, 50), 30)]}
        report = speed.compare(results, ["llamacpp_native", "llamacpp_no-amx"])
        self.assertEqual(report["ratios"], {"decode": 2, "prefill": 2, "prefill128": 2, "prefill512": 2, "width1": 2, "width2": 2,
                                            "width4": 2, "width8": 2, "width16": 3})
        self.assertEqual(report["ratios_by_build"]["llamacpp_native"]["width8"], 3)
        self.assertEqual(report["ratios_by_build"]["llamacpp_no-amx"]["decode"], 2.5)
        self.assertEqual(report["ratios_by_round"], [report["ratios"]])
        table = reports.speed_table(report)
        self.assertRegex(table, "Canopy  llama.cpp native  llama.cpp no-amx +ratio\n")
        self.assertRegex(table, r"prompt 512, tok/s +90\.00 +45\.00 +30\.00 +2\.00x")

    def test_medians_are_taken_over_rounds_before_dividing(self):
        ours = [figures(d, 100, (d,) * 5) for d in (10, 1000, 20)]
        theirs = [figures(d, 10, (d,) * 5) for d in (4, 2, 1)]
        report = speed.compare({"canopy": ours, "llamacpp": theirs}, ["llamacpp"])
        self.assertEqual(report["ratios"]["decode"], 10)  # 20 / 2
        self.assertEqual(report["ratios"]["width16"], 0.1)  # 2 / 20
        self.assertEqual([r["decode"] for r in report["ratios_by_round"]], [2.5, 500, 20])
        self.assertEqual(report["llamacpp"]["rounds"], theirs)
        self.assertNotIn("ratios_to_cpu_backend", report)
        self.assertIn("decode 2.50 to 500.00", reports.spread(report))

    def test_the_probe_s_times_become_the_same_fields(self):
        raw = {"decode_ms": [400.0, 100.0, 200.0], "prefill_ms": {"128": 6400.0, "512": 51200.0}, "pass_ms": {"1": 1.0}}
        got = speed.peer_figures(raw)
        self.assertEqual((got["decode_tokens_per_second"], got["prefill"]), (5, {"128": 20, "512": 10}))

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


class Drafts(unittest.TestCase):
    PROMPT = {"prompt_ids": [1, 2], "output_ids": [3, 4, 5],
              "chain": {"rounds": [{"start": 2, "node_token_ids": [4, 9], "path_logprob": [-1.0, -3.0]},
                                   {"start": 4, "node_token_ids": [8, 8], "path_logprob": [-0.5, -0.5]}]}}

    def test_texts_end_with_the_root_whatever_form_a_file_has(self):
        self.assertEqual(drafts.chains({"prompts": [self.PROMPT]}),
                         [([1, 2, 3], [4, 9], [-1.0, -3.0]), ([1, 2, 3, 4, 5], [8, 8], [-0.5, -0.5])])
        cases = [{"ids": [6, 7], "start": 2, "root": 8, "chain": [1]}, {"ids": [6, 7, 8], "start": 2, "root": 8, "chain": [1]},
                 {"ids": [], "start": 0, "root": 8, "chain": [1]}]
        self.assertEqual(drafts.chains({"cases": cases}), 2 * [([6, 7, 8], [1], None)])

    def test_paths_are_compared_up_to_the_first_token_that_differs(self):
        expected = drafts.chains({"prompts": [self.PROMPT]})
        same = [{"tokens": [4, 9], "log_p": [-1.0, -2.0]}, {"tokens": [8, 8], "log_p": [-0.5, -0.00025]}]
        result = drafts.compare(expected, same)
        self.assertEqual((result["texts"], result["tokens"], result["same"]), (2, 4, 4))
        self.assertAlmostEqual(result["largest_difference"], 0.00025)
        self.assertTrue(drafts.agree(result))
        other = [{"tokens": [5, 9], "log_p": [-70.0, -2.0]}, same[1]]
        self.assertEqual(drafts.compare(expected, other)["same"], 2)
        self.assertFalse(drafts.agree(drafts.compare(expected, other)))
        far = [same[0], {"tokens": [8, 8], "log_p": [-0.5, -0.1]}]
        self.assertFalse(drafts.agree(drafts.compare(expected, far)))

    def test_every_case_is_a_golden_file_with_its_models(self):
        folder = os.path.join(ROOT, "tests", "golden")
        for case in drafts.CASES:
            with open(os.path.join(folder, case.golden + ".json"), encoding="utf-8") as file:
                golden = json.load(file)
            self.assertGreater(len(drafts.chains(golden)), 0)
            for name in (case.target, golden["gguf"]):
                self.assertTrue(os.path.exists(os.path.join(folder, name)), name)

    def test_other_numbers_of_drafts_are_an_error(self):
        with self.assertRaises(speed.RunError):
            drafts.compare(drafts.chains({"prompts": [self.PROMPT]}), [])


class Distance(unittest.TestCase):
    def rows(self, *rows):
        path = os.path.join(self.folder, str(len(os.listdir(self.folder))))
        with open(path, "wb") as file:
            for row in rows:
                array.array("f", row).tofile(file)
        return path

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_divergence_is_that_of_the_distributions(self):
        p, q = [math.log(x) for x in (0.5, 0.25, 0.25)], [math.log(x) for x in (0.25, 0.25, 0.5)]
        expected = 0.5 * math.log(2) + 0.25 * math.log(0.5)
        self.assertAlmostEqual(agreement.divergence(p, q), expected, places=12)
        self.assertAlmostEqual(agreement.divergence([x + 40 for x in p], [x - 7 for x in q]), expected, places=12)
        self.assertEqual(agreement.divergence(p, p), 0)

    def test_small_ones_are_not_lost_in_rounding(self):
        p = [0.0, 1.0, 2.0]
        for shift in (1e-3, 1e-4):
            q = [0.0, 1.0, 2.0 + shift]
            share = math.exp(2) / sum(map(math.exp, p))
            expected = share * (1 - share) * shift * shift / 2  # to the second order
            self.assertAlmostEqual(agreement.divergence(p, q) / expected, 1, delta=1e-3)

    def test_mean_worst_and_likeliest_over_all_positions(self):
        got = agreement.distance(self.rows([0, 3], [1, 0]), self.rows([0, 3], [0, 1]), 2)
        worst = agreement.divergence([1, 0], [0, 1])
        self.assertEqual((got["worst_kl"], got["mean_kl"]), (worst, worst / 2))
        self.assertEqual((got["positions"], got["same_top1"], got["share"]), (2, 1, 0.5))

    def test_files_of_different_sizes_are_an_error(self):
        with self.assertRaisesRegex(speed.RunError, "has 8 bytes; 2 rows of 2 logits have 16"):
            agreement.distance(self.rows([0, 3], [1, 0]), self.rows([0, 3]), 2)


class WholeScript(unittest.TestCase):
    """The script with fake programs that answer at once."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.notes = os.path.join(self.folder, "notes")
        self.canopy = self.write("canopy-cli", FAKE_CANOPY.format(self.notes))
        self.use_probe(FAKE_PROBE.format(self.notes, "Toy", 1))
        self.model = self.write("m.gguf", "")
        self.named = ("--model", self.model)

    def use_probe(self, text):
        self.peers = [peer_build.Peer("0.0", peer_build.VULKAN, self.write("probe", text), ["GL_NEW_thing"])]

    def use_builds(self):
        """Of the processor; the first is twice as fast."""
        self.peers = []
        for slow, recipe in enumerate((peer_build.NATIVE, peer_build.AVX2), 1):
            probe = self.write("probe-" + recipe.name, FAKE_PROBE.format(self.notes, "Chip", slow))
            self.peers.append(peer_build.Peer("0.0", recipe, probe, []))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def start(self, *arguments, device="vulkan"):
        """(exit status, standard output, standard error)"""
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(bench, "provide_canopy", lambda *_: self.canopy), \
                mock.patch.object(bench, "provide_peers", lambda *_: self.peers), \
                mock.patch.dict(os.environ, CANOPY_CACHE_DIR=self.folder), \
                mock.patch.object(sys, "argv", [SCRIPT, *self.named, "--device", device, *arguments]), \
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
        self.assertGreaterEqual(got["load_average"], 0)
        self.assertEqual(got["ratios"], {"decode": 10, "prefill": 5, "prefill128": 5, "width1": 5, "width2": 200 / 30,
                                         "width4": 10, "width8": 800 / 60, "width16": 16})
        self.assertEqual((got["ratios_to_cpu_backend"]["decode"], got["ratios_to_cpu_backend"]["prefill"]), (1, 0.5))
        self.assertEqual([len(got[name]["rounds"]) for name in ("canopy", "llamacpp", "llamacpp_cpu")], [2, 2, 2])
        self.assertEqual([got["agreement"]["backends"][b]["share"] for b in ("vulkan", "cpu")], [0.5, 0.5])
        self.assertEqual([got[name]["prefill_tokens_per_second"] for name in ("canopy", "llamacpp", "llamacpp_cpu")],
                         [100, 20, 200])

    def test_on_the_processor_all_builds_are_compared_with_as_many_threads(self):
        self.use_builds()
        status, out, err = self.start("--json", "--rounds", "1", "--only", "speed", device="cpu")
        self.assertEqual(status, 0, err)
        got = json.loads(out)
        self.assertEqual((got["device"], got["driver"], got["threads"]), ("Chip", "AVX9, 3 threads", 3))
        self.assertEqual(got["ratios"], {"decode": 1, "prefill": 0.5, "prefill128": 0.5, "prefill512": 0.5, "width1": 0.5,
                                         "width2": 20 / 30, "width4": 1, "width8": 80 / 60, "width16": 1.6})
        self.assertEqual(got["ratios_by_build"]["llamacpp_native"], got["ratios"])
        self.assertEqual(got["ratios_by_build"]["llamacpp_avx2"]["decode"], 2)
        self.assertEqual(list(got["llama_cpp_builds"]), ["native", "avx2"])
        self.assertNotIn("ratios_to_cpu_backend", got)
        self.assertEqual(self.noted(), ["canopy devices", "cpu devices= threads=3", "cpu devices= threads=3",
                                        "canopy bench prompt 128", "canopy bench prompt 512", "cpu", "cpu"])

    def test_the_agreement_on_the_processor_is_of_each_build(self):
        self.use_builds()
        status, out, err = self.start("--only", "agreement", "--positions", "2", device="cpu")
        self.assertEqual(status, 0, err)
        self.assertIn("llama.cpp's CPU backend, 3 threads in both programs", out)
        for build in ("native", "avx2"):
            self.assertIn(f"llama.cpp {build}: likeliest token the same at 1 of 2", out)
            self.assertRegex(out, f"llama.cpp {build} against f32: KL [0-9.e-]+ on average, .* same at 2 of 2 positions")
        self.assertRegex(out, "Canopy against f32: KL [0-9.e-]+ on average, .* same at 1 of 2 positions")

    def test_a_large_model_is_not_written_as_f32_without_being_asked_to(self):
        with mock.patch.object(bench, "WIDENED_BYTES", -1):
            status, out, err = self.start("--only", "agreement", "--backends", "cpu")
            self.assertEqual(status, 0, err)
            self.assertNotIn("widen", self.noted())
            self.assertNotIn("against f32", out)
            self.assertIn("whole rows are not compared", err)
            self.assertIn("against f32", self.start("--only", "agreement", "--as-f32")[1])

    def test_backends_are_for_vulkan_devices(self):
        status, _, err = self.start("--backends", "cpu", device="cpu")
        self.assertEqual(status, 1)
        self.assertIn("--backends is for Vulkan devices", err)

    def test_a_shape_is_made_in_the_cache_and_measured(self):
        self.use_builds()
        for shape, whole in (("qwen3-0.6b", "qwen3-0.6b-q4_k_m"), ("tiny-q8_0", "tiny-q8_0"), ("tiny-moe-f16", "tiny-moe-f16")):
            self.named = ("--shape", shape)
            status, out, err = self.start("--only", "speed", "--rounds", "1", "--json", device="cpu")
            self.assertEqual(status, 0, err)
            self.assertTrue(os.path.isfile(os.path.join(self.folder, "shapes", whole + "-random.gguf")))
            self.assertEqual(json.loads(out)["llamacpp_native"]["prefill"], {"128": 200, "512": 200})

    def test_the_programs_alternate_and_see_the_right_devices(self):
        self.start("--only", "speed", "--rounds", "2")
        self.assertEqual(self.noted(), ["canopy devices", "vulkan devices=0", "cpu devices=", "canopy bench", "vulkan", "cpu",
                                        "vulkan", "cpu", "canopy bench"])

    def test_the_table_shows_the_same_figures(self):
        status, out, _ = self.start("--rounds", "1")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"prompt 128, tok/s +100\.00 +20\.00 +200\.00 +5\.00x +0\.50x")
        self.assertRegex(out, r"decode, tok/s +50\.00 +5\.00 +50\.00 +10\.00x +1\.00x")
        self.assertRegex(out, r"width 16, ms +100\.00 +1600\.00 +160\.00 +16\.00x +1\.60x")
        self.assertIn("built without GL_NEW_thing", out)
        self.assertIn("likeliest token the same at 1 of 2 positions (50.00%)", out)

    def test_llamacpp_reads_the_copy_as_f32_and_canopy_the_model(self):
        status, out, err = self.start("--only", "agreement", "--as-f32")
        self.assertEqual(status, 0, err)
        ours, widen, *theirs = self.noted()[1:]
        self.assertEqual((ours, widen), ("canopy logits " + self.model, "widen"))
        read = {line.removeprefix("logits of ").removesuffix(", f32 cache") for line in theirs if line.startswith("logits of ")}
        self.assertEqual(len(read), 1, theirs)
        self.assertNotEqual(read, {self.model})
        self.assertFalse(os.path.exists(read.pop()), "the copy is removed")
        self.assertIn("llama.cpp vulkan with the weights as F32: likeliest token the same at 1 of 2", out)

    def test_without_it_both_read_the_model(self):
        status, out, _ = self.start("--only", "agreement", "--backends", "cpu")
        self.assertEqual(status, 0)
        ours, theirs = "canopy logits " + self.model, ["cpu devices=", "logits of " + self.model]
        got = self.noted()[1:]
        reference = got.pop(6)  # of a copy that is removed
        self.assertRegex(reference, "^logits of .*, f32 cache$")
        self.assertEqual(got, [ours, "widen", *theirs, ours, "cpu devices=", *theirs])
        self.assertNotIn("F32", out)

    def test_a_copy_that_cannot_be_written_ends_the_comparison(self):
        self.use_probe("#!/bin/bash\nexit 7\n")
        status, out, err = self.start("--only", "agreement", "--as-f32")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("llamacpp_probe widen ended with status 7", err)

    def test_another_device_on_their_side_is_refused(self):
        self.use_probe(FAKE_PROBE.format(self.notes, "Other", 1))
        status, _, err = self.start()
        self.assertEqual(status, 1)
        self.assertIn("device 0 is Toy for Canopy, but Other for llama.cpp", err)

    def test_an_unknown_index_lists_the_devices(self):
        status, _, err = self.start("--device", "3")
        self.assertEqual(status, 1)
        self.assertIn("(Vulkan's and the processor): 0: Toy [vulkan:0]; 1: Chip [cpu:0]. None is called '3'.", err)

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
