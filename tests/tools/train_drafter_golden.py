"""Helpers for the tests of tools/train_drafter. Importing it makes the tool's modules importable, and ends the program
with 77 where one of its packages is not installed."""

import importlib.util
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.environ.get("CANOPY_GOLDEN_DIR", os.path.join(ROOT, "tests", "golden"))
PACKAGES = ("torch", "numpy", "safetensors", "tokenizers", "jinja2", "gguf")

for package in PACKAGES:
    if importlib.util.find_spec(package) is None:
        print(f"skipped: the Python package {package} is not installed")
        sys.exit(77)

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools", "train_drafter"))

import torch

torch.set_num_threads(1)


def golden(*names):
    """The path of a file of tests/golden."""
    return os.path.join(GOLDEN, *names)


def read(name):
    """The contents of a JSON file of tests/golden."""
    with open(golden(name), encoding="utf-8") as file:
        return json.load(file)
