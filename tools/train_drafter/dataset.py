"""Rows of tokens with a mask of those that the target answered, in .npz files: tokens [T], offsets int64 [rows + 1],
assistant = packbits of the mask [T], and vocab where this tool wrote it."""

import dataclasses
import hashlib

import numpy

from atomic import replacing
from errors import UserError, require


@dataclasses.dataclass
class Rows:
    tokens: numpy.ndarray  # int64 [T]
    answer: numpy.ndarray  # bool [T]
    offsets: numpy.ndarray  # int64 [rows + 1]
    vocab: int | None = None

    def __len__(self):
        return len(self.offsets) - 1

    def row(self, index):
        """(tokens, answer mask) of one row"""
        span = slice(self.offsets[index], self.offsets[index + 1])
        return self.tokens[span], self.answer[span]

    def length(self, index):
        return int(self.offsets[index + 1] - self.offsets[index])

    def prompt_key(self, index):
        """A digest of the tokens before the first answer: equal prompts have equal keys."""
        tokens, answer = self.row(index)
        first = int(answer.argmax()) if answer.any() else len(tokens)
        return hashlib.sha256(tokens[:first].astype("<i8").tobytes()).digest()


def from_rows(rows, vocab):
    """Rows of (tokens, answer mask) pairs."""
    offsets = numpy.cumsum([0, *(len(tokens) for tokens, _ in rows)], dtype=numpy.int64)
    if not rows:
        return Rows(numpy.zeros(0, numpy.int64), numpy.zeros(0, bool), offsets, vocab)
    return Rows(numpy.concatenate([numpy.asarray(tokens, numpy.int64) for tokens, _ in rows]),
                numpy.concatenate([numpy.asarray(answer, bool) for _, answer in rows]), offsets, vocab)


def save(path, text):
    """Writes the file; if that fails, no incomplete file is left."""
    kind = numpy.uint16 if text.vocab and text.vocab <= 65536 else numpy.uint32
    with replacing(path) as file:
        numpy.savez_compressed(file, tokens=text.tokens.astype(kind), offsets=text.offsets,
                               assistant=numpy.packbits(text.answer), vocab=numpy.int64(text.vocab or 0))


def load(path):
    """Raises UserError where the file is no such text."""
    try:
        with open(path, "rb") as opened:
            file = numpy.load(opened)
            require(isinstance(file, numpy.lib.npyio.NpzFile),
                    f"{path}: holds a single array; an .npz file is expected.")
            tokens, offsets = file["tokens"].astype(numpy.int64), file["offsets"].astype(numpy.int64)
            packed = file["assistant"]
            answer = numpy.unpackbits(packed, count=len(tokens)).astype(bool)
            vocab = int(file["vocab"]) if "vocab" in file else 0
    except UserError:
        raise
    except Exception as error:  # numpy, zipfile and zlib raise many kinds of exceptions for damaged files
        raise UserError(f"{path}: not a text that synthesize wrote ({str(error) or type(error).__name__}).") from None
    require(tokens.ndim == 1 and (tokens >= 0).all() and len(packed) == -(-len(tokens) // 8),
            f"{path}: its tokens are no list of ids with a bit for each.")
    require(offsets.ndim == 1 and len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(tokens)
            and (numpy.diff(offsets) >= 0).all(),
            f"{path}: its offsets do not cut {len(tokens)} tokens into rows.")
    return Rows(tokens, answer, offsets, vocab or None)


def merged(texts, vocab, excluded=frozenset()):
    """The rows of several files: of rows with equal prompts only the first, and none whose prompt is excluded."""
    rows, seen = [], set(excluded)
    for text in texts:
        require(text.vocab in (None, vocab),
                f"A text was written with a vocabulary of {text.vocab}, the target's is {vocab}.")
        require(not len(text.tokens) or text.tokens.max() < vocab,
                f"A text holds the token {text.tokens.max() if len(text.tokens) else 0}; the vocabulary has {vocab}.")
        for index in range(len(text)):
            key = text.prompt_key(index)
            if key not in seen:
                seen.add(key)
                rows.append(text.row(index))
    return from_rows(rows, vocab)


def split(text, share):
    """(training rows, held-out rows) as indices. Chosen by a digest of the prompt and not at random, so that a held-out
    row stays held out when more rows are synthesized later."""
    held = [int.from_bytes(text.prompt_key(i)[:4], "big") < share * 2**32 for i in range(len(text))]
    return [i for i, out in enumerate(held) if not out], [i for i, out in enumerate(held) if out]
