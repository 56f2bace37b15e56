"""The objects of kernels define one thing, their table, and nothing that the linker could choose for others."""

import subprocess
import sys

nm, *objects = sys.argv[1:]
assert objects, "no object was named"
for path in objects:
    listed = subprocess.run([nm, "--defined-only", "--extern-only", path], check=True, capture_output=True, text=True)
    symbols = [line.split() for line in listed.stdout.splitlines()]
    assert symbols, f"{path} defines nothing"
    for *_, kind, name in symbols:
        assert kind not in "WwVvu" and "kernels_" in name, f"{path}: {kind} {name}"
