"""GGUF files through the gguf package: metadata as Python values, tensors dequantised to float32."""

import os

import gguf
import numpy
import torch

from errors import UserError


class GgufFile:
    """A mapped file. Tensors are read one at a time, so that only what is asked for is dequantised."""

    def __init__(self, path):
        try:
            self.reader = gguf.GGUFReader(path)
        except (OSError, ValueError, IndexError) as error:
            raise UserError(f"{path}: not a GGUF file that can be read ({error}).") from None
        self.path = path
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}

    def get(self, key, default=None):
        """The value under a key as a Python value (numbers, strings, lists of them)."""
        field = self.reader.get_field(key)
        return default if field is None else field.contents()

    def require(self, key):
        value = self.get(key)
        if value is None:
            raise UserError(f"{os.path.basename(self.path)}: the key {key} is missing.")
        return value

    def tensor(self, name, shape=None):
        """float32 [rows, columns] (or [n]); raises UserError where it is missing or has another shape."""
        found = self.tensors.get(name)
        if found is None:
            raise UserError(f"{os.path.basename(self.path)}: the tensor {name} is missing.")
        values = torch.from_numpy(numpy.array(gguf.dequantize(found.data, found.tensor_type), dtype=numpy.float32))
        actual = tuple(int(n) for n in reversed(found.shape))
        if shape is not None and actual != tuple(shape):
            raise UserError(f"{os.path.basename(self.path)}: {name} is {list(actual)}, expected {list(shape)}.")
        return values.reshape(actual)
