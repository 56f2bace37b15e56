#!/usr/bin/env python3
"""Checks that a SPIR-V module of the exact path leaves a compiler no choice in its float arithmetic.

Specialisations of one shader (one column, four columns) must round alike, bit for bit. So every float add, subtract,
multiply, divide and Fma must carry the decoration NoContraction (GLSL: `precise`), and nothing may be used whose order of
operations is the driver's own: dot products, matrix products, subgroup sums and products, float atomics, and the
built-in functions that hide multiplies and adds. A product of cooperative matrices is allowed: its order is the hardware's,
and the same for every column; that is what the self-test at start-up checks on the user's device.

Where workgroups count in a buffer which of them is the last (shaders/product_tile.glsl), the barriers on both sides of the count
must order buffers too: GLSL's barrier() orders shared memory only, and memoryBarrierBuffer() beside it only what the
invocation itself did.

    check_spirv.py MODULE.spv [...]        prints what is wrong and exits 1, or exits 0
"""

import argparse
import itertools
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

MAGIC = 0x07230203
OP_CAPABILITY, OP_EXT_INST_IMPORT, OP_EXT_INST, OP_STRING, OP_LINE, OP_NO_LINE = 17, 11, 12, 7, 8, 317
OP_DECORATE, OP_TYPE_FLOAT, OP_TYPE_VECTOR, OP_FUNCTION = 71, 22, 23, 54
OP_TYPE_POINTER, OP_CONSTANT, OP_VARIABLE, OP_ACCESS_CHAIN, OP_CONTROL_BARRIER = 32, 43, 59, 65, 224
OP_ATOMICS = range(229, 243)  # those that read and write
BUFFER_CLASSES = (2, 12)      # Uniform, StorageBuffer
ACQUIRE_RELEASE, UNIFORM_MEMORY = 0x8, 0x40
NO_CONTRACTION = 42
FMA = 50
COOPERATIVE_MATRIX = 6022  # a capability

# Results that must be decorated. (OpFNegate rounds nothing.)
DECORATED = {
    129: "OpFAdd", 131: "OpFSub", 133: "OpFMul", 136: "OpFDiv", 140: "OpFRem", 141: "OpFMod",
    142: "OpVectorTimesScalar", 143: "OpMatrixTimesScalar", 147: "OpOuterProduct",
}
# The order of their operations depends on the driver. Float minimum and maximum are the same in any order and stay allowed.
FORBIDDEN = {
    144: "OpVectorTimesMatrix", 145: "OpMatrixTimesVector", 146: "OpMatrixTimesMatrix", 148: "OpDot",
    265: "OpGroupFAdd", 350: "OpGroupNonUniformFAdd", 352: "OpGroupNonUniformFMul",
    5001: "OpGroupFAddNonUniformAMD", 6402: "OpGroupFMulKHR",
    5614: "OpAtomicFMinEXT", 5615: "OpAtomicFMaxEXT", 6035: "OpAtomicFAddEXT",
}
# Functions of GLSL.std.450 that hide multiplies and adds.
FORBIDDEN_FUNCTIONS = {
    33: "Determinant", 34: "MatrixInverse", 46: "FMix", 49: "SmoothStep", 66: "Length", 67: "Distance", 68: "Cross",
    69: "Normalize", 70: "FaceForward", 71: "Reflect", 72: "Refract",
}


class Malformed(Exception):
    """Not a SPIR-V module."""


class Instruction(NamedTuple):
    opcode: int
    operands: list  # the words after the first
    line: str       # "file:line" of the source, or ""


@dataclass
class Problem:
    instruction: str
    result: int
    why: str
    line: str

    def __str__(self):
        where = f" at {self.line}" if self.line else ""
        return f"{self.instruction} with result %{self.result}{where}: {self.why}"


def words_of(data):
    """The words of a module's bytes, of either byte order."""
    if len(data) < 20 or len(data) % 4 != 0:
        raise Malformed(f"{len(data)} bytes are not a SPIR-V module")
    for order in "<>":
        words = struct.unpack(f"{order}{len(data) // 4}I", data)
        if words[0] == MAGIC:
            return list(words)
    raise Malformed("it does not start with the SPIR-V magic number")


def bytes_of(words):
    return struct.pack(f"<{len(words)}I", *words)


def string_of(words):
    return bytes_of(words).split(b"\0", 1)[0].decode("utf-8", "replace")


def each_instruction(words):
    """Every Instruction in order, with the source line where the module carries it."""
    strings, line, at = {}, "", 5
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > len(words):
            raise Malformed(f"the instruction at word {at} is cut short")
        operands = words[at + 1:at + length]
        if opcode == OP_STRING:
            strings[operands[0]] = string_of(operands[1:])
        elif opcode == OP_LINE:
            line = f"{strings.get(operands[0], '?')}:{operands[1]}"
        elif opcode in (OP_NO_LINE, OP_FUNCTION):
            line = ""
        yield Instruction(opcode, operands, line)
        at += length


def instructions(words):
    return list(each_instruction(words))


def has_capability(words, capability):
    # They stand before everything else.
    capabilities = itertools.takewhile(lambda i: i.opcode == OP_CAPABILITY, each_instruction(words))
    return any(i.operands[0] == capability for i in capabilities)


def glsl_imports(module):
    return {i.operands[0] for i in module
            if i.opcode == OP_EXT_INST_IMPORT and string_of(i.operands[1:]) == "GLSL.std.450"}


def decorated_ids(module):
    return {i.operands[0] for i in module
            if i.opcode == OP_DECORATE and i.operands[1] == NO_CONTRACTION}


def unordered_counts(module):
    """Problems: atomics on buffers next to a control barrier that does not order buffers."""
    classes, pointers, constants = {}, {}, {}  # of pointer types; of pointers; values
    problems, before, waiting = [], 0, []      # before: semantics of the last barrier; waiting: atomics since then

    def require(semantics, atomic, side):
        if semantics & ACQUIRE_RELEASE == 0 or semantics & UNIFORM_MEMORY == 0:
            problems.append(Problem("an atomic on a buffer", atomic.operands[1],
                                    f"the control barrier {side} it does not order buffers; use controlBarrier() with "
                                    "gl_StorageSemanticsBuffer", atomic.line))

    for i in module:
        if i.opcode == OP_TYPE_POINTER:
            classes[i.operands[0]] = i.operands[1]
        elif i.opcode == OP_CONSTANT:
            constants[i.operands[1]] = i.operands[2]
        elif i.opcode in (OP_VARIABLE, OP_ACCESS_CHAIN):
            pointers[i.operands[1]] = classes.get(i.operands[0])
        elif i.opcode == OP_CONTROL_BARRIER:
            semantics = constants.get(i.operands[2], 0)
            for atomic in waiting:
                require(semantics, atomic, "behind")
            before, waiting = semantics, []
        elif i.opcode in OP_ATOMICS and pointers.get(i.operands[2]) in BUFFER_CLASSES:
            require(before, i, "before")
            waiting.append(i)
    for atomic in waiting:
        require(0, atomic, "behind")
    return problems


def check(words):
    """Returns the Problems of a module, in order."""
    module = instructions(words)
    exact, imports = decorated_ids(module), glsl_imports(module)
    undecorated = "it lacks the decoration NoContraction; make what it computes `precise`"
    problems = []
    for i in module:
        if i.opcode in FORBIDDEN:
            # An atomic or a subgroup operation also has a result.
            problems.append(Problem(FORBIDDEN[i.opcode], i.operands[1],
                                    "its order of operations is up to the driver; write it out", i.line))
        elif i.opcode in DECORATED and i.operands[1] not in exact:
            problems.append(Problem(DECORATED[i.opcode], i.operands[1], undecorated, i.line))
        elif i.opcode == OP_EXT_INST and i.operands[2] in imports:
            if i.operands[3] in FORBIDDEN_FUNCTIONS:
                problems.append(Problem(FORBIDDEN_FUNCTIONS[i.operands[3]], i.operands[1],
                                        "it hides multiplies and adds; write them out", i.line))
            elif i.operands[3] == FMA and i.operands[1] not in exact:
                problems.append(Problem("Fma", i.operands[1], undecorated, i.line))
    return problems + unordered_counts(module)


def decorate_fma(words):
    """The module with NoContraction on every Fma. glslang decorates only operators, whatever is `precise`. Without the
    decoration, a driver that splits Fma into a multiply and an add might rearrange these."""
    module = instructions(words)
    imports, exact = glsl_imports(module), decorated_ids(module)
    missing = [i.operands[1] for i in module
               if i.opcode == OP_EXT_INST and i.operands[2] in imports and i.operands[3] == FMA
               and i.operands[1] not in exact]
    if not missing:
        return words
    # Annotations end where the first type is declared.
    at = 5
    while at < len(words) and not 19 <= words[at] & 0xFFFF <= 39:
        at += words[at] >> 16
    added = [word for result in missing for word in ((3 << 16) | OP_DECORATE, result, NO_CONTRACTION)]
    return words[:at] + added + words[at:]


def main():
    parser = argparse.ArgumentParser(description="Check that SPIR-V modules leave no choice in float arithmetic.")
    parser.add_argument("modules", nargs="+", type=Path)
    failed = False
    for path in parser.parse_args().modules:
        try:
            problems = check(words_of(path.read_bytes()))
        except (Malformed, OSError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            failed = True
            continue
        for problem in problems:
            print(f"{path}: {problem}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
