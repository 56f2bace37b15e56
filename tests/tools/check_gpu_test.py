"""tools/check_gpu and the script that it packs, with programs that stand for the real ones. With CANOPY_BUILD, the
folder of a build, also with the real ones on the driver of CANOPY_TEST_ICD."""

import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True
TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")
BUILD = os.environ.get("CANOPY_BUILD", "")
ICD = os.environ.get("CANOPY_TEST_ICD", "")
STEPS = ["golden", "ops", "report", "contract", "replies", "modes", "drafts"]

# Stands for canopy-cli: `report` writes what the real one would; SOFTWARE is whether the device is none of hardware,
# INTEGERS whether it has the kernels matrix_i8.
CLI = """#!/bin/sh
if [ "$1" = devices ]; then echo "0: Some device"; exit 0; fi
echo "$*" >>"$ASKED"
case "$*" in *matrix_i8*) [ "$INTEGERS" = true ] || exit 1 ;; *vulkan*) [ "$VULKAN" != false ] || exit 1; [ "$VULKAN" != software ] || SOFTWARE=true ;; esac
while [ $# -gt 0 ]; do case $1 in --out) out=$2 ;; esac; shift; done
printf '{\\n  "version": 1,\\n  "source": "measured",\\n  "device": {\\n    "id": "%s:0",\\n    "backend": "%s",\\n    "kernel_family": "%s",
    "is_software": %s},\\n  "models": [],\\n  "devices": []\\n}\\n' "$BACKEND" "$BACKEND" "$FAMILY" "$SOFTWARE" >"$out"
"""
TEST = """#!/bin/sh
echo "[       OK ] A.a (1 ms)"
echo "[       OK ] A.b (1 ms)"
"""
FAILED = """#!/bin/sh
echo "[       OK ] A.a (1 ms)"
echo "[  FAILED  ] A.b (1 ms)"
echo "[  FAILED  ] 1 test, listed below:"
echo "[  FAILED  ] A.b"
exit 1
"""
LLAMA = """#!/bin/sh
cat <<END
[
  {
    "build_commit": "abc",
    "build_number": 5000,
    "model_filename": "$4",
    "n_prompt": 128,
    "n_gen": 0,
    "avg_ts": 4000.5,
    "stddev_ts": 1.25,
    "samples_ns": [ 1, 2 ]
  },
  {
    "model_filename": "$4",
    "n_prompt": 0,
    "n_gen": 64,
    "avg_ts": 190.5,
    "stddev_ts": 0.5,
    "samples_ns": [ 1, 2 ]
  }
]
END
"""


def load_tool():
    loader = importlib.machinery.SourceFileLoader("check_gpu", os.path.join(TOOLS, "check_gpu"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_gpu", loader))
    loader.exec_module(module)
    return module


check_gpu = load_tool()


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, text, *names):
        os.makedirs(os.path.dirname(self.path(*names)), exist_ok=True)
        with open(self.path(*names), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(*names), 0o755)


class Checks(Folder):
    def setUp(self):
        super().setUp()
        self.write(CLI, "programs", "bin", "canopy-cli")
        for name in check_gpu.PROGRAMS[1:]:
            self.write(TEST, "programs", "bin", name)
        self.write("2.0\n", "programs", "lib", "libc-version")
        os.mkdir(self.path("packed"))
        shutil.copy(os.path.join(TOOLS, "gpu", "check"), self.path("packed", "check"))

    def check(self, *options, software="false", integers="false", backend="vulkan", family="matrix", vulkan="false",
              path=None):
        environment = dict(os.environ, ASKED=self.path("asked"), SOFTWARE=software, INTEGERS=integers, BACKEND=backend,
                           FAMILY=family, VULKAN=vulkan)
        if path:
            environment["PATH"] = path + ":" + environment["PATH"]
        with tarfile.open(self.path("packed", check_gpu.FILES), "w:gz") as archive:
            for name in ("bin", "lib"):
                archive.add(self.path("programs", name), arcname=name)
        return subprocess.run([self.path("packed", "check"), "--out", self.path("out"), *options], env=environment,
                              capture_output=True, text=True, check=False, timeout=120)

    def result(self):
        with open(self.path("out", "result.json"), encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn(self.folder, text)
        return json.loads(text)

    def states(self):
        return {step["name"]: step["state"] for step in self.result()["checks"]["steps"]}

    def test_the_result_is_the_report_with_the_checks(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.result()
        self.assertEqual((result["version"], result["devices"]), (1, []))
        self.assertEqual([step["name"] for step in result["checks"]["steps"]], STEPS)
        for step in result["checks"]["steps"]:
            self.assertEqual(step["state"], "passed")
            self.assertEqual((step["tests_passed"], step["tests_failed"]), (0, 0) if step["name"] == "report" else (2, 0))
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["logs", "result.json"])
        self.assertFalse(result["checks"]["tiny"])
        with open(self.path("asked"), encoding="utf-8") as file:
            self.assertIn("qwen3-8b-bf16", file.read())

    def test_integers_are_tested_where_the_device_has_them(self):
        self.write('#!/bin/sh\n[ "$*" != "--gtest_filter=On/*Linear*:On/*ProjectHeads*" ] || echo "family $CANOPY_TEST_FAMILY"\n',
                   "programs", "bin", "device_checks")
        self.assertEqual(self.check(integers="true").returncode, 0)
        self.assertEqual(list(self.states()), STEPS + ["ops_i8"])
        with open(self.path("out", "logs", "ops_i8.log"), encoding="utf-8") as file:
            self.assertIn("family matrix_i8", file.read())

    def test_an_nvidia_gpu_is_tested_through_cuda(self):
        self.write('#!/bin/sh\necho "$CANOPY_TEST_DEVICE, $CANOPY_TEST_SELECTOR, $CANOPY_TEST_KV"\n', "programs", "bin",
                   "device_checks")

        def log(step):
            with open(self.path("out", "logs", step + ".log"), encoding="utf-8") as file:
                return file.read().strip()
        self.assertEqual(self.check(backend="cuda", integers="true").returncode, 0)
        self.assertEqual(list(self.states()), STEPS)
        self.assertEqual({log(name) for name in ("golden", "ops", "modes")}, {"cuda, cuda:0, f16"})
        done = self.check(backend="cuda", family="warpgroups", vulkan="true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.states()), STEPS + ["matrix", "vulkan_ops", "vulkan_golden", "vulkan_report"])
        self.assertEqual((log("ops"), log("vulkan_ops")), ("cuda, cuda:0, f16", "vulkan, , f16"))
        result = self.result()
        self.assertEqual([result[name]["source"] for name in ("matrix", "vulkan")], ["measured"] * 2)
        with open(self.path("asked"), encoding="utf-8") as file:
            self.assertIn("--kernels matrix --shape qwen3-8b-q4_k --widths", file.read())
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["logs", "result.json"])
        # The processor's Vulkan says nothing of the GPU.
        self.assertEqual(self.check(backend="cuda", vulkan="software").returncode, 0)
        self.assertEqual(list(self.states()), STEPS)
        self.assertNotIn("vulkan", self.result())
        # Goldens as exact as they can be where kernels multiply in f32.
        self.assertEqual(self.check(family="fma").returncode, 0)
        self.assertEqual((log("golden"), log("modes")), ("vulkan, ,", "vulkan, , f16"))

    def test_software_devices_get_the_tiny_shapes(self):
        self.assertEqual(self.check(software="true").returncode, 0)
        self.assertTrue(self.result()["checks"]["tiny"])
        with open(self.path("asked"), encoding="utf-8") as file:
            self.assertNotIn("8b", file.read())

    def test_what_fails_or_hangs_is_named_and_the_rest_goes_on(self):
        self.write(f"""#!/bin/sh
case "$*" in
  *ModesTest*) {FAILED.split(chr(10), 1)[1].strip().replace(chr(10), "; ")} ;;
  *DrafterGolden*) exec sleep 60 ;;
esac
""", "programs", "bin", "device_checks")
        done = self.check("--seconds", "4")
        self.assertEqual(done.returncode, 1, done.stderr)
        states = self.states()
        self.assertEqual((states["ops"], states["modes"], states["drafts"]), ("passed", "failed", "ran_out_of_time"))
        modes = next(step for step in self.result()["checks"]["steps"] if step["name"] == "modes")
        self.assertEqual((modes["tests_passed"], modes["tests_failed"]), (1, 1))

    def test_of_llama_bench_only_figures_are_kept(self):
        self.write("GGUF", "model.gguf")
        self.write(LLAMA, "llama", "llama-bench")
        done = self.check("--model", self.path("model.gguf"), path=self.path("llama"))
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.result()
        self.assertEqual([(each["n_gen"], each["avg_ts"]) for each in result["llama_bench"]], [(0, 4000.5), (64, 190.5)])
        self.assertEqual(result["model"]["source"], "measured")

    def test_programs_that_cannot_be_unpacked_are_said(self):
        self.write("cut off", "files.tar.gz")
        shutil.copy(os.path.join(TOOLS, "gpu", "check"), self.path("check"))
        done = subprocess.run([self.path("check"), "--out", self.path("out")], capture_output=True, text=True, check=False,
                              timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("the programs could not be unpacked", done.stderr)

    def test_wrong_options_are_refused(self):
        for words, options in (("--seconds is 'x'", ("--seconds", "x")), ("unknown option", ("--fast",)),
                               ("needs a value", ("--device",)), ("there is no file", ("--model", "/no/such"))):
            done = self.check(*options)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)

    def test_a_machine_without_a_device_is_told(self):
        self.write("#!/bin/sh\necho 'no driver here'\nexit 1\n", "programs", "bin", "canopy-cli")
        done = self.check()
        self.assertEqual(done.returncode, 2)
        self.assertIn("no driver here", done.stderr)
        self.assertFalse(os.path.exists(self.path("out", "result.json")))


@unittest.skipUnless(shutil.which("strip") and shutil.which("ldd"), "binutils are not installed")
class Packing(Folder):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("build", "bin"))
        for name in check_gpu.PROGRAMS:
            shutil.copy("/bin/true", self.path("build", "bin", name))

    def pack(self, *arguments):
        return subprocess.run([sys.executable, "-B", os.path.join(TOOLS, "check_gpu"), "--no-build", "--build",
                               self.path("build"), *arguments], capture_output=True, text=True, check=False, timeout=120)

    def test_programs_run_with_what_is_packed_alone(self):
        self.write("kernels", "build", check_gpu.KERNELS)
        done = self.pack("--pack", self.path("packed"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with tarfile.open(self.path("packed", check_gpu.FILES)) as archive:
            archive.extractall(self.path("unpacked"))
        libraries = os.listdir(self.path("unpacked", "lib"))
        for name in ("libvulkan.so.1", "libc.so.6", "libm.so.6", "libc-version"):
            self.assertIn(name, libraries)
        with open(self.path("unpacked", check_gpu.KERNELS), encoding="utf-8") as file:
            self.assertEqual(file.read(), "kernels")
        self.assertTrue(os.access(self.path("packed", "check"), os.X_OK))
        self.assertTrue(os.path.exists(self.path("unpacked", "golden", "generate.json")))
        (starter,) = [name for name in libraries if name.startswith("ld-linux")]
        run = subprocess.run([self.path("unpacked", "lib", starter), "--library-path", self.path("unpacked", "lib"),
                              self.path("unpacked", "bin", "device_checks")], check=False, timeout=60)
        self.assertEqual(run.returncode, 0)

    def test_an_archive_holds_one_folder(self):
        done = self.pack("--pack", self.path("packed.tar.gz"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with tarfile.open(self.path("packed.tar.gz")) as archive:
            names = archive.getnames()
        self.assertEqual({name.split("/")[0] for name in names}, {"canopy-gpu-check"})
        self.assertIn("canopy-gpu-check/check", names)

    def test_refusals_say_what_to_do(self):
        os.remove(self.path("build", "bin", "device_checks"))
        self.write("x", "full", "file")
        for words, arguments in (("device_checks is missing", ("--pack", self.path("packed"))),
                                 ("is there already", ("--pack", self.path("full"))),
                                 ("go with --run", ("--pack", self.path("other"), "--", "--tiny")),
                                 ("required", ())):
            done = self.pack(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)


@unittest.skipUnless(os.path.isdir(BUILD) and os.path.exists(ICD), "not asked for")
class WholeCheck(Folder):
    def test_pack_and_run_on_a_software_device(self):
        environment = dict(os.environ, VK_ICD_FILENAMES=ICD, VK_DRIVER_FILES=ICD)
        done = subprocess.run([sys.executable, "-B", os.path.join(TOOLS, "check_gpu"), "--no-build", "--build", BUILD,
                               "--run", "--", "--out", self.path("out")], env=environment, capture_output=True, text=True,
                              check=False, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("out", "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        for step in result["checks"]["steps"]:
            self.assertEqual(step["state"], "passed", step)
            self.assertTrue(step["name"] == "report" or step["tests_passed"] > 0, step)
        self.assertEqual({entry["shape"] for entry in result["devices"]}, {"tiny-q4_k", "tiny-bf16"})
        page = subprocess.run([sys.executable, "-B", os.path.join(TOOLS, "measurement_page"),
                               self.path("out", "result.json"), "--out", "-"], capture_output=True, text=True, check=False)
        self.assertEqual(page.returncode, 0, page.stderr)
        self.assertIn("tiny-q4\\_k", page.stdout)


if __name__ == "__main__":
    unittest.main()
