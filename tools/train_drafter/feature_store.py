"""Features of the target on disk, by text: what its taps gave at every position of a row, and its likeliest tokens in
front of every token of an answer. synthesize and train add to it, and any later training finds a row again, whichever
other rows it comes with."""

import fcntl
import hashlib
import os

import numpy
import torch

from errors import require
from identity import claim, weights_digest

INDEX = "index.bin"
ENTRY = numpy.dtype([("key", "V32"), ("start", "<i8"), ("count", "<i8")])


def row_key(tokens, answer):
    """32 bytes that stand for a row, or the beginning of one that is used: what comes behind changes no feature."""
    digest = hashlib.sha256(numpy.ascontiguousarray(tokens, "<i8").tobytes())
    digest.update(numpy.ascontiguousarray(answer, "u1").tobytes())
    return digest.digest()


class FeatureStore:
    """A folder with bf16 features [tokens, width], the `top` likeliest tokens at each position with their log
    probabilities among each other (none if top is 0), and an index of rows. 2 * width + 6 * top bytes for each token.
    Only one process may use it at a time."""

    def __init__(self, folder, target, taps, top):
        """Raises UserError where the folder was made for another target, other taps or another top, or is in use."""
        self.folder, self.taps, self.top = folder, tuple(taps), top
        self.width = len(self.taps) * target.config.sizes.hidden
        claim(folder, {"target": weights_digest(target), "taps": list(taps), "teacher_top": top}, "features",
              used=os.path.exists(os.path.join(folder, INDEX)))
        self.lock = open(os.path.join(folder, "lock"), "a")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.lock.close()
            require(False, f"{folder}: another synthesize or train writes its features there; wait for it, or name "
                           "another folder.")
        self.files, self.rows, self.tokens = {}, {}, 0
        self.open_files()

    def close(self):
        for file in self.files.values():
            file.close()
        self.lock.close()

    def parts(self):
        """(name, type, columns) of the files with one record a token"""
        yield "features.bin", numpy.int16, self.width
        if self.top:
            yield "teacher_tokens.bin", numpy.int32, self.top
            yield "teacher_log_probs.bin", numpy.float16, self.top

    def open_files(self):
        """Opens them to append. What an interrupted process left half written is cut off."""
        for name in (INDEX, *(name for name, _, _ in self.parts())):
            self.files[name] = open(os.path.join(self.folder, name), "ab")
        written = min(os.path.getsize(self.path(name)) // (numpy.dtype(kind).itemsize * columns)
                      for name, kind, columns in self.parts())
        whole = os.path.getsize(self.path(INDEX)) // ENTRY.itemsize
        entries = numpy.fromfile(self.path(INDEX), ENTRY, whole)
        while whole and entries["start"][whole - 1] + entries["count"][whole - 1] > written:
            whole -= 1
        for entry in entries[:whole]:
            self.rows[bytes(entry["key"])] = (int(entry["start"]), int(entry["count"]))
            self.tokens = max(self.tokens, int(entry["start"] + entry["count"]))
        os.truncate(self.path(INDEX), whole * ENTRY.itemsize)
        for name, kind, columns in self.parts():
            os.truncate(self.path(name), self.tokens * numpy.dtype(kind).itemsize * columns)

    def path(self, name):
        return os.path.join(self.folder, name)

    def __contains__(self, key):
        return key in self.rows

    def append(self, key, features, teacher=None):
        """features [count, width]; teacher: (tokens [count, top], log probabilities [count, top]), or None where the
        store has no teacher."""
        if key in self.rows:
            return
        values = [features.to("cpu", torch.bfloat16).contiguous().view(torch.int16).numpy()]
        if self.top:
            values += [teacher[0].cpu().numpy(), teacher[1].float().cpu().numpy()]
        for (name, kind, columns), rows in zip(self.parts(), values, strict=True):
            require(rows.shape == (len(features), columns), f"{name}: {list(rows.shape)} values for one row.")
            self.write(name, numpy.ascontiguousarray(rows, kind))
        # Last: a row counts once all of it is there.
        self.write(INDEX, numpy.array([(key, self.tokens, len(features))], ENTRY))
        self.rows[key] = (self.tokens, len(features))
        self.tokens += len(features)

    def write(self, name, values):
        self.files[name].write(values.tobytes())
        self.files[name].flush()

    def features(self, key):
        """bf16 [count, width]"""
        (features, *_) = self.parts()
        return self.read(features, key).view(torch.bfloat16)

    def teacher(self, key):
        """(tokens int32 [count, top], log probabilities f16 [count, top])"""
        (_, tokens, log_probs) = self.parts()
        return self.read(tokens, key), self.read(log_probs, key)

    def read(self, part, key):
        """[count, columns] of one row; a store may be larger than what a process may map."""
        name, kind, columns = part
        start, count = self.rows[key]
        place = start * columns * numpy.dtype(kind).itemsize
        values = numpy.fromfile(self.path(name), kind, count * columns, offset=place)
        return torch.from_numpy(values.reshape(count, columns))
