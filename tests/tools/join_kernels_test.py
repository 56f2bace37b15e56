"""tools/join_kernels.py: one file of several fat binaries, and the source that says what it holds."""

import hashlib
import os
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "tools", "join_kernels.py")


def fatbin(payload):
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(payload)) + payload


class JoinKernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def join(self, files):
        paths = []
        for number, data in enumerate(files):
            paths.append(self.path(f"{number}.fatbin"))
            with open(paths[-1], "wb") as file:
                file.write(data)
        command = [sys.executable, "-B", SCRIPT, "--output", self.path("all.fatbin"), "--source", self.path("all.cpp"),
                   "--least-driver", "13000", "--architectures", "90", "75", "--fatbins", *paths]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_the_files_follow_each_other(self):
        files = [fatbin(b"first kernels..."), fatbin(b"second..")]
        self.assertEqual(self.join(files).returncode, 0)
        self.assertEqual(self.read("all.fatbin"), b"".join(files))
        source = self.read("all.cpp").decode()
        sha256 = hashlib.sha256(b"".join(files)).hexdigest()
        self.assertIn(f'built{{56, "{sha256}", 13000, {{75, 90}}}};', source)
        self.assertNotIn(self.folder, source)

    def test_nothing_is_written_where_nothing_changed(self):
        files = [fatbin(b"kernels.")]
        self.join(files)
        before = [os.stat(self.path(name)).st_mtime_ns for name in ("all.fatbin", "all.cpp")]
        self.join(files)
        self.assertEqual(before, [os.stat(self.path(name)).st_mtime_ns for name in ("all.fatbin", "all.cpp")])

    def test_what_is_no_fat_binary_is_refused(self):
        whole = fatbin(b"kernels.")
        for wrong in (b"", whole[:15], whole[:-8], whole + b"more....", b"x" + whole[1:], fatbin(b"odd")):
            result = self.join([whole, wrong])
            self.assertEqual(result.returncode, 1, wrong)
            self.assertIn("1.fatbin", result.stderr)
            self.assertFalse(os.path.exists(self.path("all.fatbin")))


if __name__ == "__main__":
    unittest.main()
