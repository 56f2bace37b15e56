"""Writes files so that they are either complete or not there."""

import contextlib
import os


def write_atomically(path, data):
    """Writes the bytes to a file beside `path`, flushes it and renames it to `path`."""
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path):
    """A binary file to write; it replaces `path` when the block ends without an error."""
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise
