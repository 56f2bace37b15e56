"""The state of a run in one file, which is replaced as a whole."""

import os

import torch

from atomic import replacing
from errors import UserError

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
    except Exception as error:  # torch raises whatever the damage leads to
        raise UserError(f"{path}: not a checkpoint that can be read ({error}).") from None
    if state.get("version") != VERSION:
        raise UserError(f"{path}: version {state.get('version')}, expected {VERSION}.")
    return state


def same_run(before, now):
    """Raises UserError naming the options in which a checkpoint's run differs."""
    different = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    if different:
        listed = ", ".join(f"{key} {before.get(key)!r} instead of {now.get(key)!r}" for key in different)
        raise UserError(f"The checkpoint in --out is of another run: {listed}. Name another folder, or go on with the "
                        "same options.")
