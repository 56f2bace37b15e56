"""canopy-cli of the cross build for Windows, under Wine, beside the one of this system's build.

CANOPY_CLI and CANOPY_WINDOWS_CLI name them, CANOPY_RUN_WINDOWS what starts a program of Windows.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

CLI = os.environ["CANOPY_CLI"]
WINDOWS = [os.environ["CANOPY_RUN_WINDOWS"], os.environ["CANOPY_WINDOWS_CLI"]]
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
MODEL = os.path.join(GOLDEN, "tiny-qwen3-f16.gguf")
DRAFTER = os.path.join(GOLDEN, "tiny-qwen3-dflash-b8-f16.gguf")
PROMPT = "def read(self, size=-1):\n    "


class Windows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_one(self, command, *arguments, code=0):
        environment = dict(os.environ, CANOPY_CACHE_DIR=self.path("cache"))
        done = subprocess.run([*command, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def both(self, *arguments):
        return [json.loads(self.run_one(command, *arguments).stdout) for command in ([CLI], WINDOWS)]

    def test_writes_the_same_tokens(self):
        for options in ((), ("--temperature", "0.8", "--seed", "7")):
            for files in (("-m", MODEL, "--drafter", DRAFTER), ("-m", MODEL, "--mode", "ar"),
                          ("-m", os.path.join(GOLDEN, "tiny-qwen3"))):
                with self.subTest(options=options, files=files):
                    here, there = self.both("generate", *files, "--device", "cpu", "--raw", "-p", PROMPT, "-n", "40",
                                            "--json", *options)
                    self.assertGreater(len(here["output_ids"]), 20)
                    self.assertEqual(here["output_ids"], there["output_ids"])
                    self.assertEqual(here["text"], there["text"])

    def test_names_of_any_script(self):
        folder = self.path("Modelle für 日本")
        os.mkdir(folder)
        model, trace = os.path.join(folder, "Größe.gguf"), os.path.join(folder, "запись.canopytrace")
        shutil.copy(MODEL, model)
        self.run_one(WINDOWS, "generate", "-m", model, "--device", "cpu", "--raw", "-p", "größer als", "-n", "8",
                     "--trace", trace)
        shown = self.run_one([CLI], "trace", "show", trace).stdout.decode()
        self.assertIn("Größe.gguf", shown)
        self.assertEqual(self.run_one(WINDOWS, "trace", "show", trace).stdout.decode(), shown)
        here, there = self.both("generate", "-m", model, "--device", "cpu", "--raw", "-p", "größer als 日本", "-n", "4",
                                "--json")
        self.assertEqual(here["prompt_ids"], there["prompt_ids"])

    def test_errors_name_the_file(self):
        self.assertIn(b"nowhere.gguf", self.run_one(WINDOWS, "generate", "-m", self.path("nowhere.gguf"), "-p", "x",
                                                    code=1).stderr)
        with open(MODEL, "rb") as file:
            whole = file.read()
        with open(self.path("cut.gguf"), "wb") as file:
            file.write(whole[:len(whole) // 2])
        self.assertIn(b"cut.gguf", self.run_one(WINDOWS, "generate", "-m", self.path("cut.gguf"), "-p", "x",
                                                code=1).stderr)

    def test_serves(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = dict(os.environ, CANOPY_CACHE_DIR=self.path("cache"))
        server = subprocess.Popen([*WINDOWS, "serve", "-m", MODEL, "--device", "cpu", "--port", str(port)],
                                  env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        address = f"http://127.0.0.1:{port}"
        end = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(address + "/health", timeout=10) as answer:
                    if answer.status == 200:
                        break
            except OSError:
                self.assertIsNone(server.poll(), "the server has ended")
                self.assertLess(time.monotonic(), end, "the server did not come up")
                time.sleep(0.1)
        ask = urllib.request.Request(address + "/v1/completions", method="POST",
                                     headers={"Content-Type": "application/json"},
                                     data=json.dumps({"prompt": PROMPT, "max_tokens": 16, "temperature": 0}).encode())
        with urllib.request.urlopen(ask, timeout=60) as answer:
            served = json.load(answer)["choices"][0]["text"]
        (here,) = [json.loads(self.run_one([CLI], "generate", "-m", MODEL, "--device", "cpu", "--raw", "-p", PROMPT,
                                           "-n", "16", "--json").stdout)]
        self.assertEqual(served, here["text"])


if __name__ == "__main__":
    unittest.main()
