"""`cmake --install` into a folder of its own, and the programs that lie there: they start, find what comes with them
beside themselves, wherever the folder is moved to, and name no folder of the machine that they were built on."""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CANOPY_BUILD", "")
MODEL = os.path.join(ROOT, "tests", "golden", "tiny-qwen3")
ICONS = os.path.join(ROOT, "packaging", "icons")
TIMEOUT_S = 120


def run(*command, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, **options)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="install-", dir=BUILD)
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        installed = os.path.join(cls.folder, "first")
        done = run("cmake", "--install", BUILD, "--prefix", installed, "--component", "canopy")
        assert done.returncode == 0, done.stdout + done.stderr
        cls.prefix = os.path.join(cls.folder, "moved to another place")
        os.rename(installed, cls.prefix)
        cls.home = os.path.join(cls.folder, "home")
        os.mkdir(cls.home)

    def path(self, *names):
        return os.path.join(self.prefix, *names)

    def start(self, program, *arguments, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": self.home, "LC_ALL": "C.UTF-8", "VK_DRIVER_FILES": "/nonexistent",
                       "VK_ICD_FILENAMES": "/nonexistent", **variables}
        return run(self.path("bin", program), *arguments, env=environment, cwd=self.home)

    def succeed(self, *command, **variables):
        done = self.start(*command, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_programs_start(self):
        for program in ("canopy", "canopy-cli"):
            self.assertRegex(self.succeed(program, "--version"), rf"^{program} \d+\.\d+\.\d+\n$")

    def test_a_model_answers(self):
        text = self.succeed("canopy-cli", "generate", "--model", MODEL, "--device", "cpu", "--raw", "--prompt", "def",
                            "--max-tokens", "3", "--context", "64", "--no-self-test", "--json")
        self.assertRegex(text, r'"output_ids": ?\[')

    def test_what_comes_with_it_is_found_beside_the_program(self):
        self.assertIn("SmolLM2", self.succeed("canopy-cli", "get", "--pairs"))
        shown = self.succeed("canopy", "--replay", self.path("share", "canopy", "demos", "records.canopytrace"), "--dump-json")
        self.assertIn('"trace": "records.canopytrace"', shown)

    def test_without_a_model_it_says_what_to_install(self):
        done = self.start("canopy-cli", "generate", "--prompt", "Hi", CANOPY_CACHE_DIR=os.path.join(self.home, "cache"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("canopy-model-smollm2", done.stderr)

    def test_the_default_model_is_found_where_its_package_puts_it(self):
        models = self.path("share", "canopy", "models")
        os.mkdir(models)
        self.addCleanup(shutil.rmtree, models)
        installed = os.path.join(models, "SmolLM2-135M-Instruct.Q4_1.gguf")
        shutil.copyfile(os.path.join(ROOT, "tests", "golden", "tiny-qwen3-f16.gguf"), installed)
        text = self.succeed("canopy-cli", "generate", "--device", "cpu", "--raw", "--prompt", "def", "--max-tokens", "3",
                            "--context", "64", "--no-self-test", "--json")
        self.assertRegex(text, r'"output_ids": ?\[')

    def test_the_components_hold_what_they_are_for(self):
        other = os.path.join(self.folder, "model")
        done = run("cmake", "--install", BUILD, "--prefix", other, "--component", "canopy-model-smollm2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(os.path.join(other, "share", "canopy", "smollm2-135m-dflash.gguf")))
        self.assertFalse(os.path.exists(os.path.join(other, "bin")))
        self.assertEqual([name for _, _, names in os.walk(self.prefix) for name in names if name.endswith(".gguf")], [])
        self.assertFalse(os.path.exists(self.path("lib", "canopy", "canopy_kernels.fatbin")), "that is canopy-cuda's")

    def test_nothing_names_the_machine_it_was_built_on(self):
        if not os.path.exists(os.path.join(BUILD, "CMakeCache.txt")):
            self.skipTest("no build folder")
        with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
            if re.search(r"(?m)^(CMAKE_BUILD_TYPE:\w+=(?!Release)|CANOPY_SANITIZE:\w+=.)", file.read()):
                self.skipTest("debugging information names files")
        for below, _, names in os.walk(self.prefix):
            for name in names:
                with open(os.path.join(below, name), "rb") as file:
                    data = file.read()
                for folder in {ROOT, os.path.realpath(ROOT), BUILD, os.path.expanduser("~") + "/.cache"}:
                    self.assertNotIn(folder.encode() + b"/", data, os.path.join(below, name))

    def test_manuals_and_completions_are_the_programs_own(self):
        for program in ("canopy", "canopy-cli"):
            with open(self.path("share", "man", "man1", program + ".1"), encoding="utf-8") as file:
                self.assertEqual(file.read(), self.succeed(program, "--man"))
            with open(self.path("share", "bash-completion", "completions", program), encoding="utf-8") as file:
                self.assertEqual(file.read(), self.succeed(program, "--completions", "bash"))
            with open(self.path("share", "fish", "vendor_completions.d", program + ".fish"), encoding="utf-8") as file:
                self.assertEqual(file.read(), self.succeed(program, "--completions", "fish"))
            zsh = [os.path.join(below, name) for below, _, names in os.walk(self.path("share", "zsh")) for name in names
                   if name == "_" + program]
            self.assertEqual(len(zsh), 1)

    def desktop_entry(self):
        entry = {}
        with open(self.path("share", "applications", "canopy.desktop"), encoding="utf-8") as file:
            for line in file.read().splitlines():
                if "=" in line:
                    key, value = line.split("=", 1)
                    entry[key] = value
        return entry

    def test_desktops_find_the_program_and_the_files_that_it_opens(self):
        entry = self.desktop_entry()
        self.assertEqual(entry["Exec"].split()[0], "canopy")
        self.assertTrue(os.path.exists(self.path("bin", "canopy")))
        mime = ElementTree.parse(self.path("share", "mime", "packages", "canopy.xml"))
        space = "{http://www.freedesktop.org/standards/shared-mime-info}"
        types = {each.get("type"): each.find(space + "glob").get("pattern") for each in mime.iter(space + "mime-type")}
        self.assertEqual(types, {"application/x-gguf": "*.gguf", "application/x-canopytrace": "*.canopytrace"})
        self.assertEqual(sorted(filter(None, entry["MimeType"].split(";"))), sorted(types))
        metainfo = ElementTree.parse(self.path("share", "metainfo", "canopy.metainfo.xml"))
        self.assertEqual(metainfo.find("launchable").text, "canopy.desktop")
        self.assertEqual({each.text for each in metainfo.iter("mediatype")}, set(types))
        self.assertRegex(metainfo.find("releases/release").get("date"), r"^\d{4}-\d\d-\d\d$")

    def test_the_magic_of_files_is_that_of_real_ones(self):
        mime = ElementTree.parse(self.path("share", "mime", "packages", "canopy.xml"))
        space = "{http://www.freedesktop.org/standards/shared-mime-info}"
        magic = {each.get("type"): each.find(f"{space}magic/{space}match").get("value") for each in mime.iter(space + "mime-type")}
        for kind, name in (("application/x-gguf", "tests/golden/tiny-qwen3-f16.gguf"),
                           ("application/x-canopytrace", "assets/demos/records.canopytrace")):
            with open(os.path.join(ROOT, name), "rb") as file:
                self.assertEqual(file.read(len(magic[kind])), magic[kind].encode())

    @unittest.skipUnless(shutil.which("appstreamcli"), "appstreamcli is not installed")
    def test_software_centres_take_the_description(self):
        done = run("appstreamcli", "validate", "--no-net", "--no-color", self.path("share", "metainfo", "canopy.metainfo.xml"))
        # Without an address of the project there is no reverse domain to name it by.
        problems = [line for line in done.stdout.splitlines() if re.match(r"[EW]: ", line) and "cid-desktopapp-is-not-rdns" not in line]
        self.assertEqual(problems, [], done.stdout)

    @unittest.skipUnless(shutil.which("desktop-file-validate"), "desktop-file-utils is not installed")
    def test_the_desktop_entry_is_valid(self):
        done = run("desktop-file-validate", self.path("share", "applications", "canopy.desktop"))
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_there_is_an_icon_of_each_size(self):
        name = self.desktop_entry()["Icon"]
        hicolor = self.path("share", "icons", "hicolor")
        self.assertTrue(os.path.exists(os.path.join(hicolor, "scalable", "apps", name + ".svg")))
        sizes = sorted(int(each.split("x")[0]) for each in os.listdir(hicolor) if each != "scalable")
        self.assertEqual(sizes, [16, 22, 24, 32, 48, 64, 128, 256, 512])
        for size in sizes:
            with open(os.path.join(hicolor, f"{size}x{size}", "apps", name + ".png"), "rb") as file:
                self.assertEqual(struct.unpack(">II", file.read(24)[16:]), (size, size))

    def test_the_icons_are_what_the_tool_draws(self):
        drawn = os.path.join(self.folder, "icons")
        program = [sys.executable, "-B", "-c",
                   "import runpy, sys; t = runpy.run_path(sys.argv[1]); t['main'].__globals__['SIZES'] = (16, 48); "
                   "sys.argv = sys.argv[1:]; sys.exit(t['main']())", os.path.join(ROOT, "tools", "make_icons"), drawn]
        done = run(*program)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("canopy.svg", "canopy.ico", "canopy-16.png", "canopy-48.png"):
            with open(os.path.join(drawn, name), "rb") as mine, open(os.path.join(ICONS, name), "rb") as kept:
                self.assertEqual(mine.read(), kept.read(), name)


if __name__ == "__main__":
    unittest.main()
