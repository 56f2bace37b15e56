"""tools/cuda_kernels: what it reads of machine code, and what it complains about. Needs no compiler and no GPU."""

import importlib.machinery
import importlib.util
import os
import struct
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load():
    loader = importlib.machinery.SourceFileLoader("cuda_kernels", os.path.join(ROOT, "tools/cuda_kernels"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cuda_kernels", loader))
    loader.exec_module(module)
    return module


tool = load()
NOP, HMMA, LOCAL_LOAD, COPY = 0x918, 0x23C, 0x983, 0xFAE


def instruction(opcode):
    return struct.pack("<QQ", opcode, 0)


def branch(instructions, architecture):
    """To so many instructions from behind it."""
    words = instructions * 4
    low = 0
    if architecture >= 90:
        words, low = words >> 8, words & 0xFF
    words &= (1 << 48) - 1
    return struct.pack("<QQ", 0x947 | low << 16 | (words & 0x3FFFFFFF) << 34, words >> 30)


def cubin(kernels):
    """An ELF file of kernels: name -> (registers, bytes of stack, code)."""
    names = list(kernels)
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    symbols, info = bytes(24), b""
    for i, name in enumerate(names):
        symbols += struct.pack("<I20x", strings.index(name.encode()))
        registers, stack, _ = kernels[name]
        info += struct.pack("<BBHII", 4, 0x2F, 8, i + 1, registers) + struct.pack("<BBHII", 4, 0x11, 8, i + 1, stack)
    sections = [("", b""), (".strtab", strings), (".symtab", symbols), (".nv.info", info)]
    sections += [(".text." + name, kernels[name][2]) for name in names]
    titles = b"".join(name.encode() + b"\0" for name, _ in sections + [(".shstrtab", b"")])
    sections.append((".shstrtab", titles))
    body, headers = b"", b""
    for name, data in sections:
        headers += struct.pack("<IIQQQQIIQQ", titles.index(name.encode() + b"\0"), 1, 0, 0, 64 + len(body), len(data),
                               0, 0, 1, 0)
        body += data
    start = b"\x7fELF\x02" + bytes(35) + struct.pack("<Q", 64 + len(body)) + bytes(10)
    return start + struct.pack("<HHH", 64, len(sections), len(sections) - 1) + body + headers


class CudaKernelsTest(unittest.TestCase):
    def read(self, architecture, *code, registers=40, stack=0, name="product_q4_k_8"):
        elf = cubin({name: (registers, stack, b"".join(code))})
        return tool.kernels_of(elf, architecture)[name]

    def test_registers_stack_and_instructions_are_read(self):
        kernel = self.read(80, *map(instruction, (NOP, HMMA, HMMA, COPY, LOCAL_LOAD)), registers=77, stack=24)
        self.assertEqual((kernel.registers, kernel.stack, kernel.hmma, kernel.local, kernel.copies,
                          kernel.instructions), (77, 24, 2, 1, 1, 5))

    def test_loops_are_found_on_all_architectures(self):
        for architecture in (75, 80, 90, 120):
            with self.subTest(architecture):
                code = [instruction(NOP)] * 300 + [instruction(HMMA), instruction(LOCAL_LOAD)] + [instruction(NOP)] * 100
                kernel = self.read(architecture, *code, branch(-103, architecture), branch(2, architecture))
                self.assertEqual(kernel.loops, [(103, 1, 1)])

    def test_instructions_for_a_weight_leave_the_tensor_cores_out(self):
        # 32 lanes for 16 x 16 weights.
        code = [instruction(HMMA)] + [instruction(NOP)] * 38
        self.assertEqual(tool.weight_instructions("product_q4_k_8", self.read(90, *code, branch(-40, 90))), 39 * 32 / 256)

    def test_kernels_of_the_sources_are_known(self):
        kernels = tool.expanded_macros()
        for name in ("product_q4_k_8", "product_q5_k_q6_k_64", "attention_few_f16", "attention_many_q8_0"):
            self.assertTrue(kernels[name], name)
        for name in ("argmax", "embed_mxfp4", "kv_scatter"):
            self.assertFalse(kernels[name], name)

    def complaints(self, **changes):
        code = [HMMA, COPY] + [NOP] * 20
        good = {name: self.read(80, *map(instruction, code), name=name) for name in tool.expanded_macros()}
        self.assertEqual(tool.complaints_about({80: good}), [])
        return tool.complaints_about({80: {**good, **changes}})

    def test_what_kernels_may_not_take_is_named(self):
        body = [instruction(HMMA), instruction(COPY)] + [instruction(NOP)] * 20
        for words, kernel in (("129 registers", self.read(80, *body, registers=129)),
                              ("local memory", self.read(80, *body, instruction(LOCAL_LOAD))),
                              ("8 bytes of stack", self.read(80, *body, stack=8)),
                              ("tensor cores", self.read(80, *body[1:])),
                              ("copies nothing", self.read(80, body[0], *body[2:]))):
            with self.subTest(words):
                (line,) = self.complaints(product_q4_k_8=kernel)
                self.assertIn(words, line)
                self.assertIn("product_q4_k_8 for sm_80", line)


if __name__ == "__main__":
    unittest.main()
