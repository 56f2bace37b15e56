"""No tracked text file may name a folder of the machine it was written on."""

import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Home folders, root's folder, and work folders at the top of a file system. Written so as not to match itself.
FOLDERS = "|".join(["ho" + "me/[a-z]", "Us" + "ers/[A-Za-z]", "ro" + "ot/", "wo" + "rk/[a-z.]"])
MACHINE_PATH = re.compile(rf"(?<![\w./}}])/(?:{FOLDERS})")


def findings(root):
    names = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        path = os.path.join(root, name)
        if not os.path.isfile(path):
            continue  # deleted in the working tree
        with open(path, "rb") as file:
            data = file.read()
        if b"\0" in data[:8192]:
            continue  # binary
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if MACHINE_PATH.search(line):
                yield f"{name}:{number}: {line.strip()[:120]}"


class MachinePaths(unittest.TestCase):
    def setUp(self):
        if subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True, check=False).returncode != 0:
            self.skipTest("not a git checkout")

    def test_the_repository_names_none(self):
        self.assertEqual(list(findings(ROOT)), [])

    def test_a_planted_one_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "note.md"), "w", encoding="utf-8") as file:
                file.write("fine: build/release/bin\nbad: /ho" + "me/someone/models\n")
            subprocess.run(["git", "-C", folder, "init", "-q"], check=True)
            subprocess.run(["git", "-C", folder, "add", "note.md"], check=True)
            self.assertEqual(len(list(findings(folder))), 1)


if __name__ == "__main__":
    unittest.main()
