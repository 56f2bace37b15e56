"""canopy-cli on machines that lack something: each message says what to do, and everything that is possible works."""

import os
import resource
import signal
import subprocess
import tempfile
import unittest

from cli import CLI, GOLDEN, environment, run

ICD = os.environ.get("CANOPY_TEST_ICD", "")
MODEL = os.path.join(GOLDEN, "tiny-qwen3")
GENERATE = ("generate", "--model", MODEL, "--raw", "--prompt", "import", "--context", "64", "--max-tokens", "2")


class NoDriver(unittest.TestCase):
    def refused(self, icd, *arguments):
        result = run(*arguments, icd=icd)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertTrue(result.stderr.startswith("canopy-cli: "), result.stderr)
        self.assertIn("nstall", result.stderr, "the message says what to do")
        return result.stderr

    def test_no_driver_at_all(self):
        self.assertIn("No Vulkan driver was found. Install the driver of your graphics card",
                      self.refused("/nonexistent", *GENERATE, "--device", "vulkan"))
        listed = run("devices", icd="/nonexistent")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("No Vulkan driver was found. Install the driver of your graphics card", listed.stdout)
        self.assertIn("Used unless --device says otherwise: 0 (cpu:0)", listed.stdout)

    def test_the_processor_answers_without_a_driver(self):
        result = run(*GENERATE, icd="/nonexistent")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotEqual(result.stdout, "")

    def test_a_driver_whose_file_is_damaged_or_whose_library_is_none(self):
        manifest = '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}'
        with tempfile.TemporaryDirectory() as folder:
            icd = os.path.join(folder, "icd.json")
            for content in ("", "{", "[]", manifest % "/nonexistent.so", manifest % icd, manifest % "libc.so.6"):
                with open(icd, "w", encoding="utf-8") as file:
                    file.write(content)
                with self.subTest(content):
                    self.refused(icd, *GENERATE, "--device", "vulkan")


@unittest.skipUnless(os.path.exists(ICD), "lavapipe is not installed")
class OnDevice(unittest.TestCase):
    def start(self, **options):
        """Runs generate with a changed environment, or with changes to the process before it starts."""
        variables = dict(environment(ICD), **options.pop("variables", {}))
        return subprocess.run([CLI, *GENERATE, "--device", "software"], env=variables, capture_output=True, text=True, check=False,
                              timeout=300, restore_signals=False, **options)  # SIGXFSZ stays ignored, as Python has it

    def generate(self, **options):
        """The same; returns stderr."""
        return self.written(self.start(**options))

    def written(self, result):
        """stderr of a run that must have written its reply."""
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotEqual(result.stdout, "", "the reply is there all the same")
        return result.stderr

    def test_a_type_of_device_that_is_not_there(self):
        result = run(*GENERATE, "--device", "discrete", icd=ICD)
        self.assertEqual(result.returncode, 1)
        self.assertIn('There is no device of type "discrete".', result.stderr)
        self.assertIn("Choose one of these", result.stderr)
        self.assertIn("llvmpipe", result.stderr)

    def test_a_cache_folder_that_cannot_be_made_is_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            with open(path, "w", encoding="utf-8"):
                pass
            for cache in (path, os.path.join(path, "below"), "/proc/none"):
                with self.subTest(cache):
                    errors = self.generate(variables={"CANOPY_CACHE_DIR": cache})
                    self.assertIn("warning: ", errors)
                    self.assertIn("Set the environment variable CANOPY_CACHE_DIR to a folder that you may write to.",
                                  errors)

    def test_a_cache_that_cannot_be_written_is_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.start(variables={"CANOPY_CACHE_DIR": folder},
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
            if result.returncode == -signal.SIGBUS:
                self.skipTest("the driver keeps device memory in a file (Mesa 25), which the limit stops as well")
            errors = self.written(result)
            self.assertIn("The pipeline cache was not saved", errors)
            self.assertIn("choose another folder", errors)
            left = [name for _, _, names in os.walk(folder) for name in names]
            self.assertEqual(left, [], "nothing half written is left behind")

    def test_a_full_disk_is_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            mounted = 'mount -t tmpfs -o size=4k,nr_inodes=1 tmpfs "$0" && exec "$@"'
            command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounted, folder]
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
                self.skipTest("no file system may be mounted here")
            result = subprocess.run([*command, CLI, *GENERATE, "--device", "software"], capture_output=True, text=True, check=False, timeout=300,
                                    env=dict(environment(ICD), CANOPY_CACHE_DIR=folder))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("No space left on device", result.stderr)
            self.assertIn("Make room on the disk", result.stderr)

    def test_damaged_caches_are_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            variables = {"CANOPY_CACHE_DIR": folder}
            self.generate(variables=variables)
            files = [os.path.join(below, name) for below, _, names in os.walk(folder) for name in names]
            self.assertNotEqual(files, [])
            for path in files:
                with open(path, "r+b") as file:
                    file.truncate(50)
            self.generate(variables=variables)
            self.assertTrue(all(os.path.getsize(path) > 50 for path in files))


if __name__ == "__main__":
    unittest.main()
