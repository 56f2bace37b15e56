#!/usr/bin/env python3
"""Says what the machine code of the CUDA kernels takes and uses, for each architecture; no GPU and no toolkit is needed.

    cuda_code.py [FILE]     a line for each kernel of build/release/canopy_kernels.fatbin, or of another such file:
                            registers by architecture, the most bytes of a thread's stack, tensor-core instructions

The file is a row of fat binaries (tools/join_kernels.py), each with machine code as ELF, compressed with zstd. Attributes
of kernels and the opcodes below are those of NVIDIA's instruction sets since compute capability 7.5, where instructions
have 16 bytes and the opcode is in the lowest 12 bits.
"""

import argparse
import collections
import ctypes
import os
import struct
import sys

FATBIN_MAGIC = 0xBA55ED50
MACHINE_CODE = 2
ZSTD, LZ4 = 0x8000, 0x2000  # flags of an entry

REGISTERS, STACK_BYTES = 0x2F, 0x12  # attributes in .nv.info
INSTRUCTION_BYTES = 16
TENSOR = {0x23C, 0x237}        # HMMA, IMMA
ASYNC_COPY = {0xFAE, 0xDAE}    # LDGSTS, with an address in a vector or a uniform register
LOCAL = {0x983, 0x387}         # LDL, STL: a thread's stack
BRANCH = 0x947                 # BRA
UNIFORM_BRANCHES = 90          # from this architecture on, the lowest bits of a branch's way are elsewhere


class CodeError(Exception):
    """What is wrong with a file."""


class CannotRead(Exception):
    """What this machine lacks to read a file."""


# What the code of a kernel is for one architecture. `local_in_loops`: instructions that touch the stack in a loop that has
# tensor-core instructions in it.
Kernel = collections.namedtuple(
    "Kernel", "registers stack_bytes shared_bytes code_bytes tensor async_copies local local_in_loops")


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
    """(first, last) instruction of each loop: from where a branch goes back to, to the branch."""
    found = []
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
    return found


def local_in_tensor_loops(code, architecture):
    codes, found = opcodes(code), set()
    for first, last in loops(code, architecture):
        body = range(first, last + 1)
        if any(codes[i] in TENSOR for i in body):
            found.update(i for i in body if codes[i] in LOCAL)
    return len(found)


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
            local_in_tensor_loops(code, architecture))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    built = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "release", "canopy_kernels.fatbin")
    parser.add_argument("file", nargs="?", default=built)
    try:
        kernels = read_kernels(parser.parse_args().file)
    except (OSError, CodeError, CannotRead) as error:
        sys.exit(f"cuda_code.py: {error}")
    for name, each in sorted(kernels.items()):
        registers = " ".join(f"{architecture}:{kernel.registers:3}" for architecture, kernel in sorted(each.items()))
        of_any = list(each.values())
        print(f"{name:24} registers {registers}, stack {max(k.stack_bytes for k in of_any):3}, "
              f"tensor {max(k.tensor for k in of_any):2}, in their loops from the stack "
              f"{max(k.local_in_loops for k in of_any)}")


if __name__ == "__main__":
    main()
