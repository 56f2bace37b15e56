"""Runs canopy-cli for the tests beside this file."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.environ.get("CANOPY_GOLDEN_DIR") or os.path.join(ROOT, "tests", "golden")
CLI = os.environ.get("CANOPY_CLI", "canopy-cli")
NO_DRIVER = "/nonexistent"


def environment(icd):
    return dict(os.environ, VK_ICD_FILENAMES=icd, VK_DRIVER_FILES=icd)


def run(*arguments, icd=NO_DRIVER, timeout=300, **options):
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)  # else generate would wait for a prompt there
    return subprocess.run([CLI, *arguments], env=environment(icd), capture_output=True, text=True, check=False,
                          timeout=timeout, **options)
