"""tools/test_clients in a copy of the tree, with a client of its own from a local folder: what is fetched, what is skipped, what fails."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = """import openai, os, sys
print("client", openai.ANSWER, os.environ["CANOPY_CLI"], [name for name in ("OPENAI_API_KEY", "http_proxy") if name in os.environ])
sys.exit(0 if openai.ANSWER == 7 else 1)
"""


class TestClients(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.links = os.path.join(folder.name, "canopy"), os.path.join(folder.name, "links")
        self.clients = os.path.join(self.root, "tests", "clients")
        os.makedirs(self.clients)
        os.makedirs(self.links)
        os.makedirs(os.path.join(self.root, "tools"))
        shutil.copytree(os.path.join(ROOT, "tools", "lib"), os.path.join(self.root, "tools", "lib"))
        shutil.copy(os.path.join(ROOT, "tools", "test_clients"), os.path.join(self.root, "tools"))
        self.environment = dict(os.environ, CANOPY_CACHE_DIR=os.path.join(folder.name, "cache"), CANOPY_CLI=sys.executable, PIP_NO_INDEX="1",
                                PIP_FIND_LINKS=self.links, OPENAI_API_KEY="theirs", http_proxy="http://127.0.0.1:1")
        self.environment.pop("CANOPY_OFFLINE", None)
        with open(os.path.join(self.clients, "openai_test.py"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        self.pin(self.wheel(7))

    def wheel(self, answer):
        """Writes the client's wheel and returns its SHA-256."""
        path = os.path.join(self.links, "openai-1.0-py3-none-any.whl")
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("openai.py", f"ANSWER = {answer}\n")
            wheel.writestr("openai-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: openai\nVersion: 1.0\n")
            wheel.writestr("openai-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr("openai-1.0.dist-info/RECORD", "openai.py,,\nopenai-1.0.dist-info/METADATA,,\n"
                           "openai-1.0.dist-info/WHEEL,,\nopenai-1.0.dist-info/RECORD,,\n")
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def pin(self, digest):
        with open(os.path.join(self.clients, "openai.txt"), "w", encoding="utf-8") as file:
            file.write(f"# Made for a test.\nopenai==1.0 \\\n    --hash=sha256:{digest}\n")

    def run_tool(self, *arguments, **variables):
        return subprocess.run([sys.executable, os.path.join(self.root, "tools", "test_clients"), *arguments], capture_output=True, text=True,
                              check=False, timeout=100, env={**self.environment, **variables}, stdin=subprocess.DEVNULL)

    def test_a_client_is_fetched_once_and_tried(self):
        first = self.run_tool("openai")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("openai 1.0\n", first.stdout)
        self.assertIn(f"client 7 {sys.executable} []\n", first.stdout)
        self.assertIn("Fetching the packages of openai", first.stderr)
        again = self.run_tool("openai", CANOPY_OFFLINE="1")
        self.assertEqual((again.returncode, again.stdout, again.stderr), (0, first.stdout, ""))

    def test_what_cannot_be_fetched_is_skipped_by_name(self):
        for variables in ({"CANOPY_OFFLINE": "1"}, {"PIP_FIND_LINKS": self.root}):
            result = self.run_tool("openai", **variables)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"^SKIPPED openai: .+\.\n$")

    def test_another_package_than_the_pinned_one_fails(self):
        self.wheel(8)
        result = self.run_tool("openai")
        self.assertEqual(result.returncode, 1)
        self.assertIn("another one than tests/clients/openai.txt pins", result.stderr)
        self.assertEqual(os.listdir(os.path.join(self.environment["CANOPY_CACHE_DIR"], "clients")), [".openai.lock"])

    def test_a_test_that_fails(self):
        self.pin(self.wheel(8))
        result = self.run_tool("openai")
        self.assertEqual(result.returncode, 1)
        self.assertIn("Failed: openai\n", result.stdout)

    def test_wrong_arguments(self):
        result = self.run_tool("curl")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no client 'curl'; there are openai, anthropic, litellm, llm, lm_eval", result.stderr)
        result = self.run_tool("openai", "--program", os.path.join(self.root, "nothing"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("is not there", result.stderr)


if __name__ == "__main__":
    unittest.main()
