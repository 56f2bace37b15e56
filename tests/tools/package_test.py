"""tools/package in a checkout of its own, with fake commands (cmake, ninja, cpack) that note how they are called: versions
by tag and commit, what is asked for, and what is refused. tests/programs/install_test.py has what really is installed."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOTE = '#!/bin/bash\necho "{name} $*" >> "$CANOPY_TEST_NOTES"\n'
# Makes the package of the component that it is called for.
CPACK = """version=$(cat "$CANOPY_TEST_FOLDER/version")
for argument; do case $argument in CPACK_COMPONENTS_ALL=*) component=${argument#*=} ;; esac; done
while [[ $1 != -B ]]; do shift; done
mkdir -p "$2" && head -c "${CANOPY_TEST_BYTES:-100}" /dev/zero >"$2/${component}_$version-1~deb12_amd64.deb"
"""
# Notes the version for cpack, installs a file, and has the real one make an archive that is asked for.
CMAKE = f"""case "$*" in
  "-E tar cf "*) exec '{shutil.which("cmake")}' "$@" ;;
  "--install "*) mkdir -p "$4" && echo "$*" >>"$4/installed" ;;
esac
for argument; do case $argument in -DCANOPY_PACKAGE_VERSION=*) echo "${{argument#*=}}" >"$CANOPY_TEST_FOLDER/version" ;; esac; done
"""


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.root = os.path.join(self.folder, "a tree")
        for name in ("tools", "packaging"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(self.root, name), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(os.path.join(ROOT, "CMakeLists.txt"), self.root)
        with open(os.path.join(self.root, "CMakeLists.txt"), encoding="utf-8") as file:
            self.version = re.search(r"project\(canopy VERSION ([\d.]+)", file.read()).group(1)
        self.notes = os.path.join(self.folder, "notes")
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        self.fake(self.bin, "cmake", CMAKE)
        self.fake(self.bin, "ninja", "")
        self.fake(self.bin, "cpack", CPACK)
        self.fake(self.bin, "apt-get", "exit 1\n")
        listing = 'set -euo pipefail; source tools/lib/setup.sh; echo "${packages_build[@]}" "${packages_package[@]}" "${packages_windows[@]}"'
        packages = subprocess.run(["bash", "-c", listing], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        installed = "".join(f"ii  {name}\\n" for name in packages)
        self.fake(self.bin, "dpkg-query", f"printf '{installed}'\n")
        self.fake(os.path.join(self.root, "tools"), "fetch_dependencies",
                  'case "$*" in *--print-folder*) echo /the/compiler ;; *) echo /the/model.gguf ;; esac\n')
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "all")

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.root, "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments],
                              capture_output=True, text=True, check=True).stdout.strip()

    def fake(self, folder, name, body):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(NOTE.format(name=name) + body)
        os.chmod(path, 0o755)

    def package(self, *arguments, **extra):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CANOPY_")}
        environment.update(PATH=f"{self.bin}:{environment['PATH']}", CANOPY_TEST_NOTES=self.notes,
                           CANOPY_TEST_FOLDER=self.folder, CANOPY_FETCH_NVCC="1", **extra)
        return subprocess.run([os.path.join(self.root, "tools", "package"), *arguments], env=environment,
                              capture_output=True, text=True, check=False, timeout=100)

    def noted(self):
        if not os.path.exists(self.notes):
            return ""
        with open(self.notes, encoding="utf-8") as file:
            return file.read()

    def packages(self):
        folder = os.path.join(self.root, "out", "packages")
        return sorted(os.listdir(folder)) if os.path.exists(folder) else []

    def succeed(self, *arguments, **extra):
        done = self.package(*arguments, **extra)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_a_commit_is_a_version_between_two_tags(self):
        self.succeed("deb")
        commit = self.git("rev-parse", "--short=8", "HEAD")
        version = rf"{re.escape(self.version)}\+git\d{{12}}\.{commit}"
        self.assertEqual(len(self.packages()), 3, self.packages())
        for name, each in zip(self.packages(), ("canopy", "canopy-cuda", "canopy-model-smollm2")):
            self.assertIn(each, [found.split("_")[0] for found in self.packages()])
            self.assertRegex(name, rf"_{version}-1~deb12_amd64\.deb$")
        with open(os.path.join(self.root, "CMakeLists.txt"), "a", encoding="utf-8") as file:
            file.write("# changed\n")
        self.succeed("deb", "--no-cuda", "--no-model")
        self.assertTrue(any(re.search(rf"_{version}\.changed-1", name) for name in self.packages()), self.packages())

    def test_a_tag_is_a_version(self):
        self.git("tag", "v" + self.version)
        self.succeed("deb")
        self.assertIn(f"canopy_{self.version}-1~deb12_amd64.deb", self.packages())
        self.assertIn("-DCANOPY_MODEL_FILE=/the/model.gguf", self.noted())
        self.assertIn("-DCANOPY_CUDA=ON", self.noted())

    def test_a_tag_is_packed_from_a_checkout_of_its_own(self):
        self.git("tag", self.version)
        with open(os.path.join(self.root, "tools", "package"), "a", encoding="utf-8") as file:
            file.write("# later\n")
        self.git("commit", "-q", "-a", "-m", "later")
        self.succeed("deb", self.version, "--no-cuda")
        self.assertEqual(self.packages(), [f"canopy-model-smollm2_{self.version}-1~deb12_amd64.deb",
                                           f"canopy_{self.version}-1~deb12_amd64.deb"])
        self.assertNotIn(f"ninja -C {self.root}/", self.noted())

    def test_what_is_left_out_is_neither_fetched_nor_packed(self):
        self.succeed("deb", "--no-cuda", "--no-model")
        self.assertEqual(len(self.packages()), 1)
        self.assertNotIn("cuda-compiler", self.noted())
        self.assertIn("-DCANOPY_CUDA=OFF", self.noted())
        self.assertRegex(self.noted(), r"-DCANOPY_MODEL_FILE=(\n|$)")

    def test_an_archive_for_windows_is_built_by_its_own_preset(self):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-q", "--amend",
                        "--no-edit"], check=True, env=dict(os.environ, GIT_COMMITTER_DATE="2020-02-03T12:00:00Z"))
        self.git("tag", "v" + self.version)
        self.succeed("windows")
        self.assertEqual(self.packages(), [f"canopy-{self.version}-windows.zip"])
        with zipfile.ZipFile(os.path.join(self.root, "out", "packages", self.packages()[0])) as archive:
            held = {info.filename: info.date_time for info in archive.infolist() if not info.is_dir()}
        self.assertEqual(list(held), [f"canopy-{self.version}/installed"])
        self.assertEqual(held[f"canopy-{self.version}/installed"][:3], (2020, 2, 3), "the time of the commit")
        self.assertIn("fetch_dependencies --only windows-libraries", self.noted())
        self.assertRegex(self.noted(), r"cmake --preset package-windows .*-DCANOPY_MODEL_FILE=/the/model.gguf")
        self.assertRegex(self.noted(), r"ninja -C .*package-windows canopy canopy-cli")
        self.assertNotIn("cuda-compiler", self.noted())
        self.assertNotIn("cpack", self.noted())

    def refused(self, words, *arguments, **extra):
        done = self.package(*arguments, **extra)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(words, done.stderr)

    def test_wrong_arguments_build_nothing(self):
        self.git("tag", "v9.9.9")
        self.refused("unknown option --cuda", "deb", "--cuda")
        self.refused("both deb and tar", "deb", "tar")
        self.refused("one tag at a time", "deb", "v1", "v2")
        self.refused("there is no tag v1.2.3 here; there are: v9.9.9", "deb", "v1.2.3")
        self.refused(f"the tag is v9.9.9, but CMakeLists.txt says version {self.version}", "deb")
        self.assertNotIn("ninja", self.noted())
        self.assertEqual(self.packages(), [])

    def test_a_package_that_has_grown_too_large_is_said(self):
        self.refused("has more than 30 MB", "deb", "--no-cuda", "--no-model", CANOPY_TEST_BYTES="30000001")


if __name__ == "__main__":
    unittest.main()
