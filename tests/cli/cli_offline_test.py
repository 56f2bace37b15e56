"""canopy-cli on a machine without a Vulkan driver: help, errors, inspect."""

import json
import os
import tempfile
import unittest

from cli import GOLDEN, run

MODEL = os.path.join(GOLDEN, "tiny-qwen3-f16.gguf")
FOLDER = os.path.join(GOLDEN, "tiny-qwen3")


class Help(unittest.TestCase):
    def test_help_and_version_need_no_driver(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        for command in ("devices", "inspect", "generate", "bench"):
            self.assertIn(command, result.stdout)
            of_command = run(command, "--help")
            self.assertEqual(of_command.returncode, 0, of_command.stderr)
            self.assertIn("--json", of_command.stdout)
            if command in ("generate", "bench"):
                self.assertRegex(of_command.stdout, r"--kernels [\s\S]*matrix_i8[\s\S]*8 bits")
                self.assertRegex(of_command.stdout, r"--quantize [\s\S]*none[\s\S]*q8_0[\s\S]*q4_k[\s\S]*auto")
        self.assertNotIn("logits", result.stdout)  # for tools/bench_llamacpp, not for users
        version = run("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"^canopy-cli \d+\.\d+\.\d+\n$")


class Errors(unittest.TestCase):
    def refused(self, code, words, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(words, result.stderr)
        return result.stderr

    def test_wrong_usage_is_code_2(self):
        self.refused(2, "exactly one of", "generate")
        self.refused(2, "exactly one of", "generate", "--prompt", "a", "--chat", "-")
        self.refused(2, "--json", "generate", "--chat", "-", "--json")
        self.refused(2, "--raw", "generate", "--chat", "-", "--raw")
        self.refused(2, "--max-tokens", "generate", "--prompt", "a", "--max-tokens", "0")
        self.refused(2, "--kv", "generate", "--prompt", "a", "--kv", "q2")
        self.refused(2, "--quantize", "generate", "--prompt", "a", "--quantize", "q2_k")
        self.refused(2, "--kernels", "generate", "--prompt", "a", "--kernels", "fma")
        self.refused(2, "--temperature", "generate", "--prompt", "a", "--temperature", "warm")
        self.refused(2, "", "frobnicate")

    def test_what_fails_is_one_line_and_code_1(self):
        for words, arguments in (
            ("Vulkan driver", ("devices",)),
            ("Vulkan driver", ("generate", "--prompt", "a", "--model", MODEL)),
            ("Vulkan driver", ("bench", "--model", MODEL)),
            ("/no/such/model.gguf", ("generate", "--prompt", "a", "--model", "/no/such/model.gguf")),
            ("/no/such/prompt.txt", ("generate", "--prompt-file", "/no/such/prompt.txt", "--model", MODEL)),
            ("temperature", ("generate", "--prompt", "a", "--temperature", "-1", "--model", MODEL)),
            ("/no/such/model.gguf", ("inspect", "/no/such/model.gguf")),
        ):
            with self.subTest(arguments):
                message = self.refused(1, words, *arguments)
                self.assertEqual(message.count("\n"), 1, message)
                self.assertTrue(message.startswith("canopy-cli: "), message)

    def test_a_conversation_that_is_none_is_refused(self):
        for content in ("[]", "{", '[{"role": "user"}]', '"text"'):
            with self.subTest(content), tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(content)
                file.flush()
                self.refused(1, file.name, "generate", "--chat", file.name, "--model", MODEL)


class Inspect(unittest.TestCase):
    def test_files_and_folders_as_json(self):
        for path in (MODEL, FOLDER):
            with self.subTest(path):
                result = run("inspect", path, "--json")
                self.assertEqual(result.returncode, 0, result.stderr)
                description = json.loads(result.stdout)
                self.assertEqual(description["config"]["architecture"], "qwen3")
                self.assertGreater(len(description["tensors"]), 80)

    def test_text_names_the_tensors(self):
        result = run("inspect", MODEL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("blk.7.ffn_down", result.stdout)


if __name__ == "__main__":
    unittest.main()
