"""What something was made from, so that it is not mixed with what was made from something else: digests of texts and of
weights, which do not depend on where their files lie, and made_for.json, which states them in a folder."""

import hashlib
import json
import os

import torch

from atomic import write_atomically
from errors import UserError, require
from target_files import read_json

MADE_FOR = "made_for.json"
VALUES_OF_A_TENSOR = 4096

# What to tell the user if two digests differ.
_WORDS = {"text": "--data is another text", "target": "the weights of --target are others",
          "start": "the weights of --start-from are others"}


def text_digest(text):
    """Hexadecimal digest of a dataset.Rows: tokens, which of them are answers, and where its rows are cut."""
    digest = hashlib.sha256()
    for values, kind in ((text.tokens, "<i8"), (text.offsets, "<i8"), (text.answer, "u1")):
        digest.update(values.astype(kind).tobytes())
    return digest.hexdigest()


@torch.no_grad()
def weights_digest(module):
    """Hexadecimal digest of a module's parameters: their names, shapes, and VALUES_OF_A_TENSOR to twice as many values
    of each, evenly spread over it (training changes nearly all values). Values are taken in bf16, so that weights have
    the same digest in whichever precision they were loaded."""
    digest = hashlib.sha256()
    for name, values in module.named_parameters():
        digest.update(f"{name} {list(values.shape)}".encode())
        some = values.flatten()[::max(1, values.numel() // VALUES_OF_A_TENSOR)]
        digest.update(some.to("cpu", torch.bfloat16).contiguous().view(torch.int16).numpy().astype("<i2").tobytes())
    return digest.hexdigest()


def differences(before, now):
    """What differs between two identities, in words: the empty list where nothing does."""
    different = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    return [_WORDS.get(key, f"{key} {before.get(key)!r} instead of {now.get(key)!r}") for key in different]


def claim(folder, identity, what, used):
    """Writes into a folder what its files are made for, or checks that they were made for the same. `used`: whether the
    folder has such files already. Raises UserError where they were made for something else, or where there is no record
    of it."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, MADE_FOR)
    if not os.path.exists(path):
        require(not used, f"{folder}: holds {what}, but no {MADE_FOR} that says what they were made for; name another "
                          "folder.")
        write_atomically(path, (json.dumps(identity, indent=1) + "\n").encode())
        return
    different = differences(read_json(path), identity)
    if different:
        raise UserError(f"{folder}: holds {what} that were made otherwise: {', '.join(different)}. Name another "
                        "folder, or delete it.")
