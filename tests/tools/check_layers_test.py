"""tools/check_layers.py: all includes of engine/ and app/ go to lower layers, and one that does not is found."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "check_layers.py")

BASE = "canopy_library(base SOURCES error.cpp)\n"
STATE = "# What is shown.\ncanopy_app_library(app_state DEPENDS base)\n"
LOOK = "canopy_app_library(app_look DRAWN\n  DEPENDS base\n  LINK somebody_elses)\n"
SHELL = "canopy_app_library(app_shell DRAWN DEPENDS app_state app_look)\n"
FILES = {
    "engine/base/CMakeLists.txt": BASE,
    "engine/base/error.h": "#pragma once\n",
    "app/CMakeLists.txt": "add_executable(canopy main.cpp)\ntarget_link_libraries(canopy PRIVATE canopy_app_shell)\n",
    "app/main.cpp": '#include "app/shell/shell.h"\n#include "engine/base/error.h"\n',
    "app/state/CMakeLists.txt": STATE,
    "app/state/view.h": '#include "engine/base/error.h"\n',
    "app/look/CMakeLists.txt": LOOK,
    "app/look/theme.h": "#include <string>\n",
    "app/shell/CMakeLists.txt": SHELL,
    "app/shell/shell.h": '#include "app/look/theme.h"\n#include "app/state/view.h"\n#include "engine/base/error.h"\n',
}


class CheckLayers(unittest.TestCase):
    def check(self, changes):
        """Exit status and output for the small tree above with some of its files replaced."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**FILES, **changes}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return self.run_tool(root)

    @staticmethod
    def run_tool(*arguments):
        done = subprocess.run([sys.executable, "-B", TOOL, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_every_include_of_the_repository_runs_down(self):
        self.assertEqual(self.run_tool(), (0, ""))

    def test_what_is_linked_may_be_included_and_what_that_links_too(self):
        self.assertEqual(self.check({}), (0, ""))

    def test_an_include_that_runs_up_is_found(self):
        status, output = self.check({"app/state/view.h": '\n#include "app/shell/shell.h"\n'})
        self.assertEqual(status, 1)
        self.assertEqual(output, 'app/state/view.h:2: includes "app/shell/shell.h", but app/state/CMakeLists.txt links '
                                 "nothing of app/shell\n")

    def test_an_include_that_runs_sideways_is_found(self):
        status, output = self.check({"app/look/theme.h": '#include "app/state/view.h"\n'})
        self.assertEqual((status, output.count("\n")), (1, 1))
        self.assertIn("app/look/theme.h:1", output)

    def test_the_engine_may_not_include_the_window(self):
        status, output = self.check({"engine/base/error.h": '#include "app/state/view.h"\n'})
        self.assertEqual(status, 1)
        self.assertIn("engine/base/error.h:1", output)

    def test_a_circle_in_what_folders_link_is_found(self):
        status, output = self.check({"app/state/CMakeLists.txt": "canopy_app_library(app_state DEPENDS app_shell)\n"})
        self.assertEqual(status, 1)
        self.assertIn("app/state/CMakeLists.txt: links folders in a circle", output)


if __name__ == "__main__":
    unittest.main()
