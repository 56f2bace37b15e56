"""The state of a run in one file, which is replaced as a whole."""

import os

import torch

from atomic import replacing
from errors import UserError
from identity import differences

NAME = "checkpoint.pt"
VERSION = 1


def save(folder, state):
    with replacing(os.path.join(folder, NAME)) as file:
        torch.save({"version": VERSION, **state}, file)


def load(folder, device="cpu"):
    """The state, or None where there is none yet. Raises UserError where it cannot be read."""
    path = os.path.join(folder, NAME)
    if not os.path.exists(path):
        return None
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch raises many kinds of exceptions for damaged files
        raise UserError(f"{path}: not a checkpoint that can be read ({error}).") from None
    if state.get("version") != VERSION:
        raise UserError(f"{path}: version {state.get('version')}, expected {VERSION}.")
    return state


def same_run(folder, before, now):
    """Raises UserError naming the options in which the checkpoint's run differs."""
    different = differences(before, now)
    if different:
        raise UserError(f"--out {folder}: its checkpoint is of another run: {', '.join(different)}. Go on with the "
                        "same options and text, or name another --out; --start-from begins it with this run's drafter.")
