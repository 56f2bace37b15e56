"""tools/run and tools/test in a copy of the tree, with fake commands (apt-get, cmake, ninja, ctest, the app) that only
record which of them are called, with which arguments, and when."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOTE = '#!/bin/bash\necho "{name} $*" >> "$CANOPY_TEST_NOTES"\n'


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.root = os.path.join(self.folder, "a tree")  # a blank in the path must not matter
        shutil.copytree(os.path.join(ROOT, "tools"), os.path.join(self.root, "tools"))
        shutil.copytree(os.path.join(ROOT, ".ci"), os.path.join(self.root, ".ci"))
        self.notes = os.path.join(self.folder, "notes")
        self.bin = os.path.join(self.folder, "bin")
        for name in ("apt-get", "cmake"):
            self.fake(name)
        # Two tests, of which one starts a program of the build.
        self.fake("ctest", body='echo \'{"tests": [{"name": "a_test"}, {"name": "checks"}]}\'\n')
        self.fake("sudo", body='exec "$@"\n', note=False)
        self.fake("dpkg-query", body=f'cat "{self.folder}/installed"\n', note=False)
        # `ninja -n` answers that all is built, unless the test says otherwise.
        self.fake("ninja", body=f'[[ -e "{self.folder}/stale" ]] || echo "ninja: no work to do."\n')
        self.fake("fetch_dependencies", folder=os.path.join(self.root, "tools"), body='echo "/the/model.gguf"\n')
        self.fake("canopy", folder=os.path.join(self.root, "build", "release", "bin"))
        for name in ("CMakeCache.txt", "build.ninja"):
            with open(os.path.join(self.root, "build", "release", name), "w", encoding="utf-8") as file:
                file.write(f"CMAKE_HOME_DIRECTORY:INTERNAL={self.root}\n")
        with open(os.path.join(self.root, "build", "release", "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
            file.write(f'add_test([=[a_test]=] "{self.root}/build/release/bin/a_test")\n'
                       f'set_tests_properties([=[a_test]=] PROPERTIES  LABELS "unit" _BACKTRACE_TRIPLES "{self.root};1;")\n'
                       f'add_test([=[other_test]=] "{self.root}/build/release/bin/other_test")\n'
                       f'add_test([=[checks]=] "python" "{self.root}/tools/check")\n'
                       f'set_tests_properties([=[checks]=] PROPERTIES  ENVIRONMENT "CLI={self.root}/build/release/bin/cli")\n')
        self.install(self.packages())

    def fake(self, name, folder=None, body="", note=True):
        path = os.path.join(folder or self.bin, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(NOTE.format(name=name) if note else "#!/bin/bash\n")
            file.write(body)
        os.chmod(path, 0o755)

    def packages(self):
        listing = 'set -euo pipefail; source tools/lib/setup.sh; echo "${packages_build[@]}" "${packages_test[@]}"'
        return subprocess.run(["bash", "-c", listing], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()

    def install(self, names):
        with open(os.path.join(self.folder, "installed"), "w", encoding="utf-8") as file:
            for name in names:  # as dpkg-query prints them, some with their architecture
                file.write(f"ii  {name}:amd64\n" if name.startswith("lib") else f"ii  {name}\n")
            file.write("rc  removed-package\n")

    def start(self, command, *arguments, **extra):
        env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "CANOPY_OFFLINE")}
        env.update(PATH=f"{self.bin}:{env['PATH']}", CANOPY_TEST_NOTES=self.notes)
        env.update({"CANOPY_FETCH_NVCC": "0", **extra})  # whatever this machine has
        return subprocess.run([os.path.join(self.root, command), *arguments], env=env, capture_output=True, text=True,
                              check=False, timeout=60)

    def noted(self):
        if not os.path.exists(self.notes):
            return []
        with open(self.notes, encoding="utf-8") as file:
            return file.read().splitlines()

    def last(self):
        return self.noted()[-1]

    def test_without_a_display_the_app_runs_off_screen(self):
        result = self.start("tools/run")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(self.last(), r"^canopy --offscreen --model /the/model\.gguf --shot .*/out/canopy\.png$")
        self.assertTrue(os.path.isdir(os.path.join(self.root, "out")))

    def test_with_a_display_the_window_opens(self):
        for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
            self.assertEqual(self.start("tools/run", **{variable: ":7"}).returncode, 0)
            self.assertEqual(self.last(), "canopy --model /the/model.gguf")

    def test_arguments_go_through(self):
        self.start("tools/run", "--model", "my model.gguf", "--help")
        self.assertEqual(self.last(), "canopy --model my model.gguf --help")

    def test_the_status_of_the_app_is_that_of_the_script(self):
        self.fake("canopy", folder=os.path.join(self.root, "build", "release", "bin"), body="exit 3\n")
        self.assertEqual(self.start("tools/run").returncode, 3)

    def test_a_second_start_installs_configures_and_builds_nothing(self):
        self.start("tools/run")
        called = [line.split()[0] for line in self.noted()]
        self.assertEqual(called, ["fetch_dependencies", "ninja", "ninja", "canopy"])
        self.assertTrue(self.noted()[1].endswith(" build.ninja"), self.noted())
        self.assertIn(" -n ", self.noted()[2])

    def test_a_stale_build_is_built(self):
        open(os.path.join(self.folder, "stale"), "w", encoding="utf-8").close()
        self.start("tools/run")
        self.assertEqual(sum(line.startswith("ninja") for line in self.noted()), 3)

    def test_a_failed_build_starts_nothing(self):
        self.fake("ninja", body="exit 1\n")
        self.assertEqual(self.start("tools/run").returncode, 1)
        self.assertFalse(any(line.startswith("canopy") for line in self.noted()))

    def test_a_failed_fetch_builds_nothing(self):
        self.fake("fetch_dependencies", folder=os.path.join(self.root, "tools"), body="exit 1\n")
        self.assertEqual(self.start("tools/run").returncode, 1)
        self.assertEqual([line.split()[0] for line in self.noted()], ["fetch_dependencies"])

    def test_a_moved_checkout_is_configured_again(self):
        cache = os.path.join(self.root, "build", "release", "CMakeCache.txt")
        with open(cache, "w", encoding="utf-8") as file:
            file.write("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
        self.start("tools/test")  # the fake cmake builds nothing, and ctest is only noted
        self.assertIn("cmake --preset release", self.noted())

    def test_what_tests_need_is_looked_for_again_where_it_was_missing(self):
        self.start("tools/test")
        self.assertNotIn("cmake --preset release", self.noted())
        with open(os.path.join(self.root, "build", "release", "CMakeCache.txt"), "a", encoding="utf-8") as file:
            file.write("CANOPY_SWIFTSHADER_ICD:FILEPATH=CANOPY_SWIFTSHADER_ICD-NOTFOUND\n")
        self.start("tools/run")
        self.assertNotIn("cmake --preset release", self.noted())
        self.start("tools/test")
        self.assertIn("cmake --preset release", self.noted())

    def fake_nvcc_fetch(self, status=0):
        """tools/fetch_dependencies with a compiler of CUDA kernels in the cache, or without one."""
        body = f'case "$*" in *--print-folder*) echo /the/compiler ;; *cuda-compiler*) exit {status} ;; *) echo /the/model.gguf ;; esac\n'
        self.fake("fetch_dependencies", folder=os.path.join(self.root, "tools"), body=body)

    def test_the_compiler_of_cuda_kernels_is_fetched_where_it_is_asked_for(self):
        self.fake_nvcc_fetch()
        self.assertEqual(self.start("tools/run", CANOPY_FETCH_NVCC="1").returncode, 0)
        self.assertIn("fetch_dependencies --only cuda-compiler", self.noted())
        self.assertIn("cmake --preset release", self.noted())  # the configuration from before had none
        os.remove(self.notes)
        for name in ("CMakeCache.txt", "build.ninja"):
            with open(os.path.join(self.root, "build", "release", name), "w", encoding="utf-8") as file:
                file.write(f"CMAKE_HOME_DIRECTORY:INTERNAL={self.root}\nCANOPY_NVCC:FILEPATH=/the/compiler/bin/nvcc\n")
        self.assertEqual(self.start("tools/run", CANOPY_FETCH_NVCC="1").returncode, 0)
        self.assertNotIn("cmake --preset release", self.noted())

    def test_without_the_compiler_of_cuda_kernels_the_build_goes_on(self):
        self.fake_nvcc_fetch(status=1)
        result = self.start("tools/run", CANOPY_FETCH_NVCC="1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("used through Vulkan", result.stderr)
        self.assertRegex(self.last(), "^canopy ")

    def test_the_compiler_of_cuda_kernels_is_fetched_for_a_driver_without_a_toolkit(self):
        self.fake_nvcc_fetch()
        with open(os.path.join(self.root, "tools", "lib", "setup.sh"), "a", encoding="utf-8") as file:
            file.write(f'has_nvidia_driver() {{ [[ -e "{self.folder}/driver" ]]; }}\n')
        self.fake("nvcc")
        open(os.path.join(self.folder, "driver"), "w", encoding="utf-8").close()
        self.start("tools/run", CANOPY_FETCH_NVCC="")
        self.assertFalse(any("cuda-compiler" in line for line in self.noted()))  # there is one
        os.remove(os.path.join(self.bin, "nvcc"))
        if shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin") is None:
            self.start("tools/run", CANOPY_FETCH_NVCC="")
            self.assertTrue(any("cuda-compiler" in line for line in self.noted()))
        os.remove(self.notes)
        os.remove(os.path.join(self.folder, "driver"))
        self.start("tools/run", CANOPY_FETCH_NVCC="")
        self.assertFalse(any("cuda-compiler" in line for line in self.noted()))

    def test_only_missing_packages_are_installed(self):
        self.install(set(self.packages()) - {"ninja-build", "libglfw3-dev", "xvfb"})
        result = self.start("tools/run")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.noted()[0], "apt-get update -q")
        self.assertRegex(self.noted()[1], r"^apt-get .*install -y -q --no-install-recommends libglfw3-dev ninja-build$")

    def test_the_tests_install_their_own_packages_too(self):
        self.install(set(self.packages()) - {"xvfb"})
        self.start("tools/test")
        self.assertTrue(self.noted()[1].endswith(" xvfb"), self.noted())

    def test_tests_run_without_the_drivers_of_another_debian(self):
        body = 'echo "/the/model.gguf"; [[ ${2-} != test-devices ]]\n'
        self.fake("fetch_dependencies", folder=os.path.join(self.root, "tools"), body=body)
        result = self.start("tools/test")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("fetch_dependencies --only test-devices", self.noted())
        self.assertIn("tests labelled lavapipe26 and isa are disabled", result.stderr)
        self.start("tools/run")
        self.assertEqual(sum("test-devices" in line for line in self.noted()), 1)

    def test_only_the_programs_of_the_tests_are_built(self):
        open(os.path.join(self.folder, "stale"), "w", encoding="utf-8").close()
        self.start("tools/test", "-R", "a_test")
        self.assertTrue([line for line in self.noted() if line.startswith("ninja")][-1].endswith("release bin/a_test bin/cli"))

    def test_only_the_soak_installs_what_fuzzing_needs(self):
        self.start("tools/test", "--all")
        self.assertEqual([line for line in self.noted() if "libclang-rt-dev" in line], [])
        self.start("tools/test", "-L", "soak")
        self.assertEqual(len([line for line in self.noted() if line.endswith("clang libclang-rt-dev")]), 1)

    def test_offline_names_the_missing_packages(self):
        self.install(set(self.packages()) - {"ninja-build"})
        result = self.start("tools/run", CANOPY_OFFLINE="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("missing Debian packages: ninja-build", result.stderr)
        self.assertEqual(self.noted(), [])

    def test_a_failed_installation_stops(self):
        self.install([])
        self.fake("apt-get", body="exit 100\n")
        result = self.start("tools/run")
        self.assertEqual(result.returncode, 1)
        self.assertIn("apt-get update failed", result.stderr)

    def test_slow_tests_are_left_out_unless_asked_for(self):
        self.start("tools/test")
        self.assertRegex(self.last(), r"^ctest .*--output-on-failure .*-LE \^\(slow\|soak\)\$$")
        self.start("tools/test", "--all")
        self.assertTrue(self.last().endswith("--no-tests=error -LE ^soak$"), self.last())
        self.start("tools/test", "-L", "slow")
        self.assertTrue(self.last().endswith(" -L slow -LE ^soak$"), self.last())
        self.start("tools/test", "-L", "soak")
        self.assertTrue(self.last().endswith(" -L soak"), self.last())
        self.start("tools/test", "-L", "gpu")
        self.assertTrue(self.last().endswith("-L gpu -LE ^(slow|soak)$"), self.last())

    def test_cuda_kernels_are_built_where_they_are_wanted(self):
        self.fake("nvcc")
        for command in (("tools/run", "--cuda", "--model", "m"), ("tools/test", "--all"), ("tools/test", "-L", "cuda_host")):
            self.start(*command)
            self.assertIn("cmake --preset release -DCANOPY_CUDA=ON", self.noted(), command)
            os.remove(self.notes)
            for name in ("CMakeCache.txt", "build.ninja"):
                with open(os.path.join(self.root, "build", "release", name), "w", encoding="utf-8") as file:
                    file.write(f"CMAKE_HOME_DIRECTORY:INTERNAL={self.root}\n")
        self.start("tools/run", "--cuda", "--model", "m")
        self.assertEqual(self.last(), "canopy --model m")
        self.start("tools/run")
        self.assertNotIn("-DCANOPY_CUDA=ON", self.noted()[-3])

    def test_cuda_that_is_asked_for_and_cannot_be_had_stops(self):
        self.fake_nvcc_fetch(status=1)
        result = self.start("tools/run", "--cuda", CANOPY_FETCH_NVCC="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--cuda needs NVIDIA's compiler", result.stderr)
        if shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin") is None:
            self.assertIn("forbids fetching", self.start("tools/run", "--cuda").stderr)
            self.assertEqual(self.start("tools/test", "--all").returncode, 0)  # without these tests

    def test_ci_runs_the_same(self):
        self.start(".ci/run")
        self.assertTrue(self.last().endswith("--no-tests=error -LE ^soak$"), self.last())


if __name__ == "__main__":
    unittest.main()
