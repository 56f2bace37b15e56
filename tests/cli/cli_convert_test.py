"""canopy-cli convert: drafters become GGUF files and replace no other file; the shipped one has its card's hash."""

import hashlib
import os
import re
import tempfile
import unittest

from cli import GOLDEN, ROOT, run

DRAFTER = os.path.join(GOLDEN, "tiny-qwen3-dflash-b8")
TARGET = os.path.join(GOLDEN, "tiny-qwen3-f16.gguf")


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Convert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(folder.name, "drafter.gguf")

    def convert(self, *arguments, drafter=DRAFTER):
        return run("convert", drafter, self.out, *arguments)

    def refused(self, words, *arguments, **options):
        result = self.convert(*arguments, **options)
        self.assertEqual(result.returncode, 1)
        self.assertIn(words, result.stderr)
        self.assertEqual(result.stdout, "")

    def test_writes_a_drafter_that_can_be_converted_again(self):
        result = self.convert("--target", TARGET, "--license", "mit", "--source", "a test", "--name", "N")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^Wrote .*drafter\.gguf: [\d.]+ kB, 2 layers, block of 8\.\n$")
        self.assertEqual(result.stderr, "")
        self.assertEqual(os.listdir(self.folder), ["drafter.gguf"])
        first = read(self.out)
        source = os.path.join(self.folder, "first.gguf")
        os.rename(self.out, source)
        again = self.convert(drafter=source)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(read(self.out), first, "Q8_0 stays as it is, and so do tokenizer, licence and origin")

    def test_types(self):
        sizes = {}
        for kind in ("q8_0", "f16", "bf16"):
            self.assertEqual(self.convert("--type", kind, "--overwrite").returncode, 0)
            sizes[kind] = os.path.getsize(self.out)
        self.assertLess(sizes["q8_0"], sizes["f16"])
        self.assertEqual(sizes["bf16"], sizes["f16"])
        self.assertEqual(self.convert("--type", "q4_k").returncode, 2)

    def test_names_the_tokens_to_draft(self):
        ids = os.path.join(self.folder, "ids.json")

        def write(text):
            with open(ids, "w", encoding="utf-8") as file:
                file.write(text)

        write("[0, 7, 900]")
        result = self.convert("--draft-tokens", ids)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("block of 8, 3 tokens drafted.", result.stdout)
        source = os.path.join(self.folder, "first.gguf")
        os.rename(self.out, source)
        again = self.convert(drafter=source)
        self.assertIn("3 tokens drafted", again.stdout, "they stay with the file")
        for text, words in (("[7, 0]", "stands for token 0, the one before it for 7"), ("[0, 1010]", "0 to 1009 is allowed"),
                            ("[]", "A list of token ids is expected"), ("[0, -1]", "ids.json"), ("{", "ids.json")):
            write(text)
            self.refused(words, "--draft-tokens", ids, "--overwrite")

    def test_does_not_overwrite_unless_asked(self):
        with open(self.out, "w", encoding="utf-8") as file:
            file.write("mine")
        self.refused("exists already; --overwrite replaces it.")
        self.assertEqual(read(self.out), b"mine")
        self.assertEqual(self.convert("--overwrite").returncode, 0)
        self.assertEqual(read(self.out)[:4], b"GGUF")

    def test_a_link_that_leads_nowhere_is_a_file_too(self):
        os.symlink(os.path.join(self.folder, "elsewhere"), self.out)
        self.refused("exists already")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "elsewhere")))

    def test_refuses_what_is_no_drafter_and_a_wrong_target(self):
        self.refused("not a drafter", drafter=TARGET)
        self.refused("does not fit the model", "--target", os.path.join(GOLDEN, "tiny-llama3"))
        self.refused("its tokenizer cannot be copied", "--target", os.path.join(GOLDEN, "tiny-qwen3"))
        self.refused("does not exist", "--target", os.path.join(self.folder, "none.gguf"))
        self.assertFalse(os.path.exists(self.out))

    def test_a_folder_that_cannot_be_written_to(self):
        self.out = os.path.join(self.folder, "none", "drafter.gguf")
        self.refused("cannot be saved")


class ShippedDrafter(unittest.TestCase):
    def test_has_the_hash_of_its_card(self):
        asset = os.path.join(ROOT, "assets", "smollm2-135m-dflash")
        card = read(asset + ".md").decode()
        self.assertEqual(re.findall(r"SHA-256 \| `([0-9a-f]{64})`", card), [hashlib.sha256(read(asset + ".gguf")).hexdigest()])


if __name__ == "__main__":
    unittest.main()
