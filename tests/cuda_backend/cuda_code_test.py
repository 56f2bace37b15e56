"""The gate on the machine code of the CUDA kernels: what a GPU would show as lost speed, read from the file that nvcc made.

    cuda_code_test.py FATBIN ARCHITECTURE [...]     the compute capabilities that the build is for

The exit status is 77 where this machine lacks what the file is read with.
"""

import os
import re
import struct
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))

import cuda_code  # noqa: E402

ARCHITECTURES = []
# More would halve the warps of a multiprocessor; it has two blocks of six warps with up to 168, three of one warpgroup,
# or one of 384 rows.
MOST_REGISTERS = 128
MOST_REGISTERS_OF = {"_64_6": 168, "_64_warpgroups_192": 168, "_384": 192}
# Bytes of the stack of kernels without tensor-core instructions: a unit of a weight, whose parts are taken by number.
STACK_OF_ROWS = {"embed_": 16}
ASYNC_COPIES_FROM = 80
# Where tensor cores add in f32 at half their rate, so that sums of 32 columns of quantized weights are halves.
SLOWLY_ADDING = (86, 89, 120)
# The one whose tensor cores multiply for warpgroups; those with room for blocks of 384 rows.
WARPGROUPS = 90
ROOMY = (80, 90, 100)
# What the table of predictions may be off by: another compiler of the same kernels.
TABLE_SLACK = 16
SKIPPED = 77


def without_code(name, architecture):
    """Products that are there and do nothing: of warpgroups where there are none, of so many rows at a time that there is no
    shared memory for them, or that eight warps have too few registers for sums as halves."""
    if "_warpgroups_" in name:
        return architecture != WARPGROUPS
    if name.endswith("_384"):
        return architecture not in ROOMY
    if architecture in SLOWLY_ADDING:
        return re.fullmatch(r"product_(?!f32|f16|bf16)\w+_64", name) is not None
    return architecture < ASYNC_COPIES_FROM and re.fullmatch(r"product_(f32_32|\w+_64(_6)?)", name) is not None


class CudaCode(unittest.TestCase):
    kernels = {}

    def each(self, pattern):
        found = [(name, architecture, kernel) for name, all_of_it in sorted(self.kernels.items())
                 if re.match(pattern, name) for architecture, kernel in sorted(all_of_it.items())]
        self.assertTrue(found, pattern)
        return found

    def test_every_kernel_is_there_for_every_architecture(self):
        self.assertGreater(len(self.kernels), 100)
        for name, all_of_it in self.kernels.items():
            self.assertEqual(sorted(all_of_it), ARCHITECTURES, name)

    def test_registers_leave_room_for_warps(self):
        for name, architecture, kernel in self.each(""):
            self.assertGreater(kernel.registers, 0, (name, architecture))
            most = next((most for end, most in MOST_REGISTERS_OF.items() if name.endswith(end)), MOST_REGISTERS)
            self.assertLessEqual(kernel.registers, most, (name, architecture))

    def test_products_are_computed_by_tensor_cores(self):
        for name, architecture, kernel in self.each("(product|experts)_"):
            with self.subTest(kernel=name, architecture=architecture):
                if without_code(name, architecture):
                    self.assertLess(kernel.code_bytes, 1024)
                else:
                    self.assertGreaterEqual(kernel.tensor, 8)

    def test_warpgroups_multiply_beside_the_program(self):
        # Two sets of registers in turn: an instruction waits for the group before the last, and at the end for all.
        # Where the compiler cannot prove that they are apart, it waits after each.
        for name, architecture, kernel in self.each(r"product_\w+_warpgroups_"):
            if architecture == WARPGROUPS:
                groups = kernel.warpgroup_products / (2 if name.endswith("_256") else 3)
                self.assertEqual(groups % 4, 0, name)
                types = 2 if re.match(r"product_q\d_k_q\d_k_", name) else 1
                self.assertEqual(kernel.warpgroup_waits, groups + types, name)

    def test_weights_come_into_shared_memory_beside_the_work(self):
        for name, architecture, kernel in self.each("(product|experts)_"):
            with self.subTest(kernel=name, architecture=architecture):
                if architecture >= ASYNC_COPIES_FROM and not without_code(name, architecture):
                    self.assertGreater(kernel.async_copies, 0)
                else:
                    self.assertEqual(kernel.async_copies, 0)

    def test_attention_is_computed_by_tensor_cores_without_a_stack(self):
        for name, architecture, kernel in self.each("attention_"):
            with self.subTest(kernel=name, architecture=architecture):
                self.assertGreaterEqual(kernel.tensor, 8)
                self.assertEqual((kernel.stack_bytes, kernel.local), (0, 0))
                if name.endswith("_f16") and architecture >= ASYNC_COPIES_FROM:
                    self.assertGreater(kernel.async_copies, 0)

    def test_predictions_go_by_this_code(self):
        table = cuda_code.registers_of_table()
        self.assertEqual(set(table), set(self.kernels))
        for name, architecture, kernel in self.each(""):
            self.assertLessEqual(abs(table[name][architecture] - kernel.registers), TABLE_SLACK,
                                 (name, architecture, "tools/cuda_code.py --write-table"))

    def test_products_have_few_loops(self):
        # One, or a second around it; of two types for each. More are branches that are none of the work.
        for name, architecture, kernel in self.each("(product|experts)_"):
            if architecture in cuda_code.LOOPS_OF_TABLE:
                two_types = re.match(r"product_q\d_k_q\d_k_", name) is not None
                self.assertLessEqual(len(kernel.loops), 4 if two_types else 2, (name, architecture))

    def test_nothing_is_spilled_where_time_is_spent(self):
        spilling = {f"{name} {architecture}" for name, architecture, kernel in self.each("") if kernel.local_in_loops > 0}
        self.assertEqual(spilling, set())

    def test_other_kernels_need_no_stack(self):
        for name, architecture, kernel in self.each("(?!product_)"):
            if kernel.tensor == 0:
                allowed = max((most for start, most in STACK_OF_ROWS.items() if name.startswith(start)), default=0)
                self.assertLessEqual(kernel.stack_bytes, allowed, (name, architecture))


class Reading(unittest.TestCase):
    """That the tool finds what the gate is there for, in code made up of single instructions."""

    @staticmethod
    def code(*instructions):
        return b"".join(struct.pack("<QQ", low, 0) for low in instructions)

    @staticmethod
    def branch(instructions, architecture):
        """Over so many instructions, from the one behind it on."""
        way = instructions * 4
        if architecture >= 90:
            low, way = (way & 0xFF) << 16, way >> 8
        else:
            low = 0
        way &= (1 << 48) - 1
        return struct.pack("<QQ", 0x7947 | low | (way << 34 & (1 << 64) - 1), way >> 30)

    def test_branches_back_are_loops(self):
        for architecture in (75, 89, 90, 120):
            code = self.code(0x723C, 0x7983, 0x7387) + self.branch(-3, architecture) + self.code(0x7983)
            self.assertEqual(cuda_code.loops(code, architecture), [(1, 3)])
            self.assertEqual(cuda_code.local_in_tensor_loops(code, architecture), 0)
            code = self.code(0x723C, 0x7983, 0x7387) + self.branch(-4, architecture) + self.code(0x7983)
            self.assertEqual(cuda_code.local_in_tensor_loops(code, architecture), 2)
            forward = self.branch(1, architecture) + self.code(0x723C, 0x7983)
            self.assertEqual(cuda_code.loops(forward, architecture), [])

    def test_loops_around_several_others_are_no_main_loops(self):
        for architecture in (75, 120):
            inner = self.code(0x723C, 0x7918) + self.branch(-3, architecture)
            outer = self.code(0x7918) + inner + inner + self.branch(-8, architecture)
            self.assertEqual(cuda_code.tensor_loops(outer, architecture), [(3, 1), (3, 1)])
            self.assertEqual(cuda_code.tensor_loops(self.code(0x7918) + inner + self.branch(-5, architecture),
                                                    architecture), [(3, 1), (5, 1)])

    def test_instructions_for_a_weight_leave_the_tensor_cores_out(self):
        # 32 lanes for 16 x 16 weights.
        code = self.code(0x723C, *[0x7918] * 38) + self.branch(-40, 90)
        kernel = cuda_code.Kernel(*[0] * 8, cuda_code.tensor_loops(code, 90))
        self.assertEqual(cuda_code.weight_instructions("product_q4_k_8", kernel), 39 * 32 / 256)
        self.assertEqual(cuda_code.weight_instructions("argmax", kernel), 0)

    def test_branches_out_of_the_code_are_refused(self):
        for architecture in (75, 120):
            with self.assertRaises(cuda_code.CodeError):
                cuda_code.loops(self.code(0) + self.branch(-3, architecture), architecture)
            with self.assertRaises(cuda_code.CodeError):
                cuda_code.loops(self.branch(300, architecture), architecture)

    def test_other_files_are_refused(self):
        with self.assertRaises(cuda_code.CodeError):
            list(cuda_code.machine_codes(bytes(64)))
        with self.assertRaises(cuda_code.CodeError):
            cuda_code.Elf(bytes(64))


if __name__ == "__main__":
    ARCHITECTURES = sorted(int(a) for a in sys.argv[2:])
    try:
        CudaCode.kernels = cuda_code.read_kernels(sys.argv[1])
    except cuda_code.CannotRead as error:
        print(error, file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
