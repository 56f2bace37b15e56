#!/usr/bin/env python3
"""Holds every shader of the engine to the exact path, and tools/check_spirv.py to finding what is missing from one.

That each variant of each shader passes, the build sees to (tools/compile_shader.py). Here some variants of each are
compiled again; their decorations are taken away (all at once through the assembler, and one by one in the words), and the
checker must name what lost its own.
"""

import argparse
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_spirv  # noqa: E402
import compile_shader  # noqa: E402

OPTIONS = None


def spread(items, count):
    """At most `count` of the items, from the first to the last."""
    steps = min(count, len(items)) - 1
    return [items[round(i * (len(items) - 1) / max(steps, 1))] for i in range(steps + 1)]


def modules():
    """Yields (name, words) of some variants of each shader that does not call itself inexact."""
    for source in sorted((ROOT / "shaders").glob("*.comp")):
        text = source.read_text(encoding="utf-8")
        if any(key == "inexact" for key, _ in compile_shader.directives(text)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            options = argparse.Namespace(source=source, include=[ROOT / "shaders"], glslang=OPTIONS.glslang,
                                         spirv_val=OPTIONS.spirv_val)
            compiler = compile_shader.Compiler(options, Path(folder))
            for variant in spread(list(compile_shader.variants_of(source.stem, text)), OPTIONS.variants):
                yield variant.name, compiler.compile(variant, True)  # raises if it is not exact


def arithmetic(words):
    """Results that must carry NoContraction."""
    module = check_spirv.instructions(words)
    imports = check_spirv.glsl_imports(module)
    return {i.operands[1] for i in module
            if i.opcode in check_spirv.DECORATED
            or (i.opcode == check_spirv.OP_EXT_INST and i.operands[2] in imports and i.operands[3] == check_spirv.FMA)}


def without_decoration(words, result):
    kept, at = list(words[:5]), 5
    while at < len(words):
        instruction = words[at:at + (words[at] >> 16)]
        if instruction[0] & 0xFFFF != check_spirv.OP_DECORATE or instruction[1:] != [result, check_spirv.NO_CONTRACTION]:
            kept += instruction
        at += len(instruction)
    return kept


def reassembled_without_decorations(words):
    data = b"".join(w.to_bytes(4, "little") for w in words)
    text = subprocess.run([OPTIONS.spirv_dis, "--raw-id", "-"], input=data, capture_output=True, check=True).stdout
    lines = [line for line in text.decode().splitlines() if not line.rstrip().endswith(" NoContraction")]
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "module.spv"
        subprocess.run([OPTIONS.spirv_as, "--target-env", "vulkan1.3", "--preserve-numeric-ids", "-o", str(module), "-"],
                       input="\n".join(lines).encode(), check=True)
        return check_spirv.words_of(module.read_bytes())


class ExactShaders(unittest.TestCase):
    def test_every_missing_decoration_is_found(self):
        count = 0
        for name, words in modules():
            with self.subTest(name):
                count += 1
                results = arithmetic(words)
                self.assertEqual(check_spirv.check(words), [])
                stripped = check_spirv.check(reassembled_without_decorations(words))
                self.assertEqual({p.result for p in stripped}, results)
                for result in sorted(results)[:OPTIONS.mutants]:
                    problems = check_spirv.check(without_decoration(words, result))
                    self.assertEqual([p.result for p in problems], [result])
        self.assertGreater(count, 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--spirv-as", default="spirv-as")
    parser.add_argument("--spirv-dis", default="spirv-dis")
    parser.add_argument("--glslang", default="glslangValidator")
    parser.add_argument("--spirv-val", default="spirv-val")
    parser.add_argument("--variants", type=int, default=5, help="variants of each shader")
    parser.add_argument("--mutants", type=int, default=8, help="decorations taken away one by one, per module")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)
