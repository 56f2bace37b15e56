#!/usr/bin/env python3
"""Cut the head that predicts further tokens out of tiny-qwen3_5-mtp-f16.gguf, as published files of heads are: metadata,
embedding, last norm, output and the head's block alone. Writes mtp-tiny-qwen3_5-f16.gguf beside it.

    python3 tests/golden/make_mtp_sibling.py
"""
import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parent
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TYPES = {0: 4, 1: 2}  # F32 and F16: bytes of an element
ALIGNMENT = 32


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def skip(self, kind):
        if kind == 8:
            self.text()
        elif kind == 9:
            element, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip(element)
        else:
            self.at += SIZES[kind]


def main():
    data = (FOLDER / "tiny-qwen3_5-mtp-f16.gguf").read_bytes()
    reader = Reader(data)
    assert reader.number("I") == 0x46554747
    version, tensors, entries = reader.number("I"), reader.number("Q"), reader.number("Q")
    begin, block = reader.at, None
    for _ in range(entries):
        key, kind = reader.text(), reader.number("I")
        if key == "qwen35.block_count":
            block = struct.unpack_from("<I", data, reader.at)[0] - 1
        reader.skip(kind)
    metadata = data[begin:reader.at]
    kept = []
    for _ in range(tensors):
        name, rank = reader.text(), reader.number("I")
        shape = [reader.number("Q") for _ in range(rank)]
        kind, offset = reader.number("I"), reader.number("Q")
        if name.startswith(f"blk.{block}.") or not name.startswith("blk."):
            kept.append((name, shape, kind, offset))
    start = (reader.at + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    header, body = b"", b""
    for name, shape, kind, offset in kept:
        size = TYPES[kind]
        for dimension in shape:
            size *= dimension
        body += b"\0" * (-len(body) % ALIGNMENT)
        header += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(shape))
        header += struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, len(body))
        body += data[start + offset:start + offset + size]
    out = struct.pack("<IIQQ", 0x46554747, version, len(kept), entries) + metadata + header
    out += b"\0" * (-len(out) % ALIGNMENT) + body
    (FOLDER / "mtp-tiny-qwen3_5-f16.gguf").write_bytes(out)


if __name__ == "__main__":
    main()
