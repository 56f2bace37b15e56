#!/usr/bin/env python3
"""Says what the machine code of the CUDA kernels takes and uses, for each architecture; no GPU and no toolkit is needed.

    cuda_code.py                          a line for each kernel of build/release/lib/canopy/canopy_kernels.fatbin, or of another such
                                          file (--fatbin): registers by architecture, the most bytes of a thread's stack,
                                          tensor-core instructions
    cuda_code.py --beside MODEL DEVICE    for each op of MODEL's passes on DEVICE (canopy-cli predict): kernel, registers,
                                          shared memory and predicted time of the CUDA and of the Vulkan backend
    cuda_code.py --write-table            writes engine/whatif/cuda_code.cpp, which `canopy-cli predict` goes by

The file is a row of fat binaries (tools/join_kernels.py), each with machine code as ELF, compressed with zstd. Attributes
of kernels and the opcodes below are those of NVIDIA's instruction sets since compute capability 7.5, where instructions
have 16 bytes and the opcode is in the lowest 12 bits.
"""

import argparse
import collections
import ctypes
import json
import os
import re
import struct
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
TABLE = os.path.join(ROOT, "engine/whatif/cuda_code.cpp")

FATBIN_MAGIC = 0xBA55ED50
MACHINE_CODE = 2
ZSTD, LZ4 = 0x8000, 0x2000  # flags of an entry

REGISTERS, STACK_BYTES = 0x2F, 0x12  # attributes in .nv.info
INSTRUCTION_BYTES = 16
WARPGROUP_PRODUCT = 0xDF0      # HGMMA
WARPGROUP_ORDER = 0x9C5        # WARPGROUP
WARPGROUP_WAITS = 1 << 47      # of its first word: DEPBAR, which waits for products
TENSOR = {0x23C, 0x237, WARPGROUP_PRODUCT}  # HMMA, IMMA
ASYNC_COPY = {0xFAE, 0xDAE}    # LDGSTS, with an address in a vector or a uniform register
LOCAL = {0x983, 0x387}         # LDL, STL: a thread's stack
BRANCH = 0x947                 # BRA
UNIFORM_BRANCHES = 90          # from this architecture on, the lowest bits of a branch's way are elsewhere
LANES_APART = 1 << 27          # of a branch's second word: it is taken where lanes are apart
ROUND_A_CALL = 8 * INSTRUCTION_BYTES  # such a branch that goes no further is taken where they are together
LOOPS_OF_TABLE = (89, 90)      # the architectures whose main loops the table has: of little shared memory, and of much


class CodeError(Exception):
    """What is wrong with a file."""


class CannotRead(Exception):
    """What this machine lacks to read a file."""


# What the code of a kernel is for one architecture. `local_in_loops`: instructions that touch the stack in a loop that has
# tensor-core instructions in it. `loops`: those loops, the shortest first, but for those that are around several others.
Kernel = collections.namedtuple(
    "Kernel", "registers stack_bytes shared_bytes code_bytes tensor async_copies local local_in_loops loops "
    "warpgroup_products warpgroup_waits", defaults=(0, 0))
Loop = collections.namedtuple("Loop", "instructions tensor")


def decompressed(data, flags, size):
    if flags & LZ4:
        raise CannotRead("the kernels are compressed with LZ4, as nvcc before 12.8 does it")
    if not flags & ZSTD:
        return data
    try:
        zstd = ctypes.CDLL("libzstd.so.1")
    except OSError:
        raise CannotRead("there is no libzstd.so.1 here") from None
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(size)
    if zstd.ZSTD_decompress(out, size, data, len(data)) != size:
        raise CodeError("an entry cannot be decompressed")
    return out.raw


def machine_codes(data):
    """(architecture, ELF) of each entry with machine code: 89 is compute capability 8.9."""
    at = 0
    while at < len(data):
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != FATBIN_MAGIC or at + header + size > len(data):
            raise CodeError(f"there is no fat binary at byte {at}")
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, entry_header, entry_bytes, compressed = struct.unpack_from("<HHIQI", data, entry)
            architecture, = struct.unpack_from("<I", data, entry + 28)
            flags, _, full_bytes = struct.unpack_from("<QQQ", data, entry + 40)
            if kind == MACHINE_CODE:
                first = entry + entry_header
                stored = data[first:first + (compressed or entry_bytes)]
                yield architecture, decompressed(stored, flags, full_bytes)
            entry += entry_header + entry_bytes
        at = end


class Elf:
    """The sections of an ELF file by name, and the names of its symbols."""

    def __init__(self, data):
        if data[:4] != b"\x7fELF":
            raise CodeError("machine code is no ELF file")
        first, = struct.unpack_from("<Q", data, 0x28)
        count, names = struct.unpack_from("<HH", data, 0x3C)
        self.data = data
        self.headers = [struct.unpack_from("<IIQQQQIIQQ", data, first + 64 * i) for i in range(count)]
        self.sections = {self._text(names, header[0]): header for header in self.headers}

    def _text(self, section, offset):
        first = self.headers[section][4] + offset
        return self.data[first:self.data.index(b"\0", first)].decode()

    def contents(self, name):
        header = self.sections.get(name)
        return self.data[header[4]:header[4] + header[5]] if header else b""

    def size(self, name):
        header = self.sections.get(name)
        return header[5] if header else 0

    def symbols(self):
        table = self.sections[".symtab"]
        return [self._text(table[6], struct.unpack_from("<I", self.data, table[4] + 24 * i)[0])
                for i in range(table[5] // 24)]


def attributes(elf):
    """{kernel: {attribute: value}} of those that are a symbol and a number."""
    info, symbols, found, at = elf.contents(".nv.info"), elf.symbols(), {}, 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form != 4:  # the value is in `size` itself
            continue
        if size == 8:
            symbol, value = struct.unpack_from("<II", info, at)
            found.setdefault(symbols[symbol], {})[attribute] = value
        at += size
    return found


def opcodes(code):
    return [struct.unpack_from("<Q", code, at)[0] & 0xFFF for at in range(0, len(code), INSTRUCTION_BYTES)]


def loops(code, architecture):
    """(first, last) instruction of each loop: from where a branch goes back to, to the branch. Branches of the last part
    are none, where lanes are brought together that a branch found apart: they go back to behind that one."""
    found, apart = [], len(code)
    for at in range(0, len(code), INSTRUCTION_BYTES):
        low, high = struct.unpack_from("<QQ", code, at)
        if low & 0xFFF != BRANCH:
            continue
        way = low >> 34 | (high & 0x3FFFF) << 30
        way -= (way >> 47) << 48  # it has a sign
        if architecture >= UNIFORM_BRANCHES:
            way = way * 256 + (low >> 16 & 0xFF)
        target = at + INSTRUCTION_BYTES + 4 * way
        if not 0 <= target < len(code) or target % INSTRUCTION_BYTES:
            raise CodeError(f"the branch at byte {at} of {len(code)} goes to {target}")
        if target < at:
            found.append((target // INSTRUCTION_BYTES, at // INSTRUCTION_BYTES))
        elif high & LANES_APART and target - at > ROUND_A_CALL:
            apart = min(apart, target)
    apart //= INSTRUCTION_BYTES
    return [(first, last) for first, last in found if first > apart or last < apart]


def local_in_tensor_loops(code, architecture):
    codes, found = opcodes(code), set()
    for first, last in loops(code, architecture):
        body = range(first, last + 1)
        if any(codes[i] in TENSOR for i in body):
            found.update(i for i in body if codes[i] in LOCAL)
    return len(found)


def tensor_loops(code, architecture):
    codes = opcodes(code)
    found = {(first, last) for first, last in loops(code, architecture)
             if any(codes[i] in TENSOR for i in range(first, last + 1))}
    innermost = []
    for first, last in found:
        if len({inner for inner, end in found if first < inner and end <= last}) <= 1:
            innermost.append(Loop(last + 1 - first, sum(codes[i] in TENSOR for i in range(first, last + 1))))
    return sorted(innermost)


def warpgroup_waits(code):
    words = (struct.unpack_from("<Q", code, at)[0] for at in range(0, len(code), INSTRUCTION_BYTES))
    return sum(word & 0xFFF == WARPGROUP_ORDER and word & WARPGROUP_WAITS != 0 for word in words)


def kernels_of(elf, architecture):
    found, known = {}, attributes(elf)
    for section in elf.sections:
        if not section.startswith(".text."):
            continue
        name, code = section[len(".text."):], elf.contents(section)
        codes = collections.Counter(opcodes(code))
        of_kernel = known.get(name, {})
        if REGISTERS not in of_kernel:
            raise CodeError(f"the registers of {name} are not told")
        found[name] = Kernel(
            of_kernel[REGISTERS], of_kernel.get(STACK_BYTES, 0), elf.size(".nv.shared." + name), len(code),
            sum(codes[c] for c in TENSOR), sum(codes[c] for c in ASYNC_COPY), sum(codes[c] for c in LOCAL),
            local_in_tensor_loops(code, architecture), tensor_loops(code, architecture), codes[WARPGROUP_PRODUCT],
            warpgroup_waits(code))
    return found


def read_kernels(path):
    """{kernel: {architecture: Kernel}} of the one file."""
    with open(path, "rb") as file:
        data = file.read()
    found = {}
    for architecture, code in machine_codes(data):
        for name, kernel in kernels_of(Elf(code), architecture).items():
            found.setdefault(name, {})[architecture] = kernel
    return found


# ---- the table -------------------------------------------------------------------------------------------------------


def weight_instructions(name, kernel):
    """Instructions x lanes of a product's main loop for each weight, those of tensor cores left out: with all rows of the
    pass that a block has at most. A tensor-core instruction has 16 x 16 weights of a warp and 8 rows of the pass, one for
    a warpgroup all of them."""
    if not name.startswith("product_") or not kernel.loops:
        return 0
    columns = int(re.search(r"_(8|16|32|64)(_6|_384|_warpgroups_\d+)?$", name)[1])
    if columns == 8:
        most = max(kernel.loops, key=lambda loop: (loop.tensor, loop.instructions))
        instructions, tensor = most.instructions - most.tensor, most.tensor
    else:
        # A step is one loop, or four times an inner one and what the outer one has around it.
        inner, tensor = kernel.loops[0]
        outer = next((loop.instructions for loop in kernel.loops[1:] if loop.tensor == tensor), inner)
        instructions = inner - tensor + (outer - inner) / 4
    products = 1 if "_warpgroups" in name else columns / 8
    return instructions * 32 / (tensor / products * 256)


def table_of(kernels):
    """The text of engine/whatif/cuda_code.cpp."""
    architectures = sorted(next(iter(kernels.values())))
    rows = []
    for name, each in sorted(kernels.items()):
        registers = ", ".join(str(each[architecture].registers) for architecture in architectures)
        loops = ", ".join(f"{weight_instructions(name, each[architecture]):.2g}" for architecture in LOOPS_OF_TABLE)
        rows.append(f'    {{"{name}", {{{registers}}}, {{{loops}}}}},')
    return f"""// Generated by tools/cuda_code.py --write-table from the machine code that nvcc makes of the kernels.
#include "engine/whatif/cuda_code.h"

#include <algorithm>
#include <iterator>

#include "cuda_backend/kernels/params.h"

namespace canopy::predict {{
namespace {{

constexpr int kCapabilities[] = {{{", ".join(map(str, architectures))}}};

struct KernelCode {{
  std::string_view name;
  uint8_t registers[std::size(kCapabilities)];
  double of_weight[2];  // with little shared memory, and with much
}};
// clang-format off
constexpr KernelCode kTable[] = {{
{chr(10).join(rows)}
}};
// clang-format on

}}  // namespace

CudaCode cuda_code(std::string_view kernel, int capability) {{
  const auto found = std::ranges::find(kTable, kernel, &KernelCode::name);
  if (found == std::end(kTable)) return {{}};
  // The code of the last architecture that the GPU can run.
  const auto above = std::ranges::upper_bound(kCapabilities, capability);
  const auto at = above == std::begin(kCapabilities) ? 0 : above - std::begin(kCapabilities) - 1;
  return {{found->registers[at], found->of_weight[cuda::is_roomy(kCapabilities[at])]}};
}}

}}  // namespace canopy::predict
"""


def registers_of_table():
    """{kernel: {architecture: registers}} of engine/whatif/cuda_code.cpp."""
    with open(TABLE, encoding="utf-8") as file:
        text = file.read()
    architectures = [int(number) for number in re.search(r"kCapabilities\[\] = {(.*)}", text).group(1).split(",")]
    return {name: dict(zip(architectures, map(int, numbers.split(","))))
            for name, numbers in re.findall(r'{"(\w+)", {([\d, ]+)}', text)}


# ---- printing --------------------------------------------------------------------------------------------------------


def list_kernels(kernels):
    for name, each in sorted(kernels.items()):
        registers = " ".join(f"{architecture}:{kernel.registers:3}" for architecture, kernel in sorted(each.items()))
        of_any = list(each.values())
        print(f"{name:24} registers {registers}, stack {max(k.stack_bytes for k in of_any):3}, "
              f"tensor {max(k.tensor for k in of_any):2}, in their loops from the stack "
              f"{max(k.local_in_loops for k in of_any)}")


def print_table(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        cells = [cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def predicted(cli, model, device, kernels, width, context):
    command = [cli, "predict", "--model", model, "--device", device, "--kernels", kernels, "--widths", str(width),
               "--context", str(context), "--json", "--ops"]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(made)["devices"][0]["passes"][0]["ops"]


def list_beside(cli, model, device, widths, context):
    """Ops of passes with both backends' kernels: those that are alike stand in one line, in the order of the pass."""
    print(f"{model} on {device} at context {context}: predicted. Registers: CUDA, machine code for that GPU; Vulkan, "
          "of products what RADV makes of the shaders.")

    def of(op):
        shared = op["shared_bytes"]
        return [f"{op['registers']:.0f}", f"{shared / 1024:.1f}" if shared else "-", f"{op['us']:.1f}"]

    for width in widths:
        cuda = predicted(cli, model, device, "cuda", width, context)
        vulkan = predicted(cli, model, device, "matrix", width, context)
        rows = []
        for mine, other in zip(cuda, vulkan, strict=True):
            if mine["shapes"] != other["shapes"]:
                raise SystemExit(f"{mine['op']} of {mine['shapes']} is {other['shapes']} with Vulkan's kernels")
            rows.append([mine["op"], mine["shapes"], mine["kernel"], *of(mine), *of(other), str(mine["times"])])
        print(f"\nA pass of {width}")
        print_table(["op", "shapes", "CUDA kernel", "registers", "shared, KiB", "one, µs", "Vulkan: registers",
                     "shared, KiB", "one, µs", "times"], rows)


def main():
    def numbers(text):
        return [int(each) for each in text.split(",")]

    built = os.path.join(ROOT, "build", "release")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fatbin", default=os.path.join(built, "lib", "canopy", "canopy_kernels.fatbin"))
    parser.add_argument("--write-table", action="store_true")
    parser.add_argument("--beside", nargs=2, metavar=("MODEL", "DEVICE"))
    parser.add_argument("--widths", type=numbers, default=[1, 8, 32, 64], help="of --beside's passes")
    parser.add_argument("--context", type=int, default=4096, help="positions before --beside's passes")
    parser.add_argument("--cli", default=os.path.join(built, "bin", "canopy-cli"))
    options = parser.parse_args()
    if options.beside:
        list_beside(options.cli, *options.beside, options.widths, options.context)
        return
    try:
        kernels = read_kernels(options.fatbin)
    except (OSError, CodeError, CannotRead) as error:
        sys.exit(f"cuda_code.py: {error}")
    if options.write_table:
        with open(TABLE, "w", encoding="utf-8") as file:
            file.write(table_of(kernels))
    else:
        list_kernels(kernels)


if __name__ == "__main__":
    main()
