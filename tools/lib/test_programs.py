#!/usr/bin/env python3
"""Prints the programs that a selection of tests starts, as ninja calls them: test_programs.py BUILD [ctest's options].

A test says what it starts in its command and its variables, by paths in the build folder. One that names the folder
itself may start anything: `all`, to which the named ones that are kept out of `all` are added.
"""

import json
import re
import subprocess
import sys
from pathlib import Path


def selected(build, options):
    """The names of the tests that ctest would run."""
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *options], capture_output=True, text=True,
                             check=True).stdout
    return {test["name"] for test in json.loads(listing)["tests"]}


def lines_of(build):
    """(test, text of its command or properties) of all tests. ctest itself tells nothing of programs not built yet."""
    for file in Path(build).rglob("CTestTestfile.cmake"):
        for line in file.read_text(encoding="utf-8").splitlines():
            match = re.match(r"(?:add_test|set_tests_properties)\(\[=*\[(.+?)\]=*\] (.*)", line)
            if match:
                yield match.groups()


def main():
    build, *options = sys.argv[1:]
    tests = selected(build, options)
    path = re.compile(re.escape(build) + r"(?![\w.-])/?([\w./-]*)")
    made = re.compile(r"(bin|fake_cuda)/[^/]+|lib/canopy/canopy_kernels\.fatbin")
    programs = set()
    for name, text in lines_of(build):
        if name in tests:
            text = re.sub(r"_BACKTRACE_TRIPLES.*|WORKING_DIRECTORY \"[^\"]*\"", "", text)
            programs.update(part or "all" for part in path.findall(text) if not part or made.fullmatch(part))
    print("\n".join(sorted(programs)))


if __name__ == "__main__":
    main()
