"""The programs as processes on a machine with no display and no Vulkan driver (gui.md, criterion 1).

CANOPY_PROGRAMS names them, with colons between.
"""

import os
import re
import subprocess
import tempfile
import unittest

PROGRAMS = os.environ.get("CANOPY_PROGRAMS", "canopy:canopy-cli").split(":")
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XDG_SESSION_TYPE")
DRIVERS = ("VK_ICD_FILENAMES", "VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES")


def run_bare(program, *arguments, home, **more):
    """With neither display nor driver, and a home folder that nothing may be written to."""
    environment = {k: v for k, v in os.environ.items() if k not in DISPLAYS and not k.startswith("XDG_")}
    environment.update({name: "/nonexistent" for name in DRIVERS}, HOME=home, **more)
    return subprocess.run([program, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=120)


class Start(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def each(self, *arguments, **more):
        for program in PROGRAMS:
            with self.subTest(program=os.path.basename(program), arguments=arguments):
                result = run_bare(program, *arguments, home=self.home, **more)
                self.assertEqual(result.returncode, 0, result.stderr)
                yield os.path.basename(program), result
                self.assertEqual(os.listdir(self.home), [], "saying how it is used leaves nothing behind")

    def test_help_needs_neither_display_nor_driver(self):
        for name, result in self.each("--help"):
            self.assertEqual(result.stderr, "")
            self.assertRegex(result.stdout, rf"(?m)^.*{name} \[OPTIONS\]")
            self.assertIn("--version", result.stdout)

    def test_version_needs_neither_display_nor_driver(self):
        for name, result in self.each("--version"):
            self.assertEqual(result.stderr, "")
            self.assertRegex(result.stdout, rf"^{re.escape(name)} \d+\.\d+\.\d+\n$")

    def test_no_vulkan_library_is_loaded_for_them(self):
        # What the dynamic linker opens, it tells on standard error.
        for _, result in self.each("--help", LD_DEBUG="files"):
            self.assertIn("libc.so", result.stderr)
            self.assertNotIn("libvulkan", result.stderr)


if __name__ == "__main__":
    unittest.main()
