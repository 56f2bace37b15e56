"""Sets of Debian packages in tools/fetch_dependencies, with a small archive on this machine: what is unpacked, what is
refused, and what happens when the archive has dropped a pinned version."""

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "tools", "fetch_dependencies")
NEEDED = ("/usr/lib/apt/apt-helper", shutil.which("dpkg-deb"), shutil.which("apt-get"))


def system_library(name):
    for folder in ("/usr/lib", "/lib"):
        for path in glob.glob(f"{folder}/*-linux-gnu/{name}") + glob.glob(f"{folder}64/{name}"):
            return os.path.realpath(path)
    raise FileNotFoundError(name)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


@unittest.skipUnless(all(path and os.path.exists(path) for path in NEEDED), "no apt and dpkg")
class FetchPackages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        self.cache = os.path.join(self.folder, "cache")
        self.archive = os.path.join(self.folder, "debian")
        self.architecture = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True,
                                           check=True).stdout.strip()
        loader = "ld-linux-x86-64.so.2" if self.architecture == "amd64" else "ld-linux-*.so.*"
        libraries = {"usr/lib/x-linux-gnu/" + os.path.basename(p): p for p in map(system_library, (loader, "libc.so.6"))}
        self.package("libtoy", "1.0", {**libraries, "usr/lib/x-linux-gnu/deeper/libhidden.so": libraries and __file__},
                     links={"usr/lib/x-linux-gnu/libtoy.so": "libc.so.6", "usr/lib/x-linux-gnu/libaway.so": "/etc/passwd"})
        self.package("toy", "1.0", {"usr/bin/toy": shutil.which("true"), "usr/bin/other": __file__,
                                    "usr/lib/x-linux-gnu/libvulkan_toy.so": system_library("libm.so.6")})
        self.pins = {"toy": {
            "version": "1.0", "folder": "toy-1.0", "architecture": self.architecture, "snapshot": "x", "libc": "2.0",
            "packages": {"stable": {self.path("libtoy", "1.0"): self.hash("libtoy", "1.0"),
                                    self.path("toy", "1.0"): self.hash("toy", "1.0")}},
            "keep": {"stable/lib*/usr/lib/*/*.so*": "lib", "stable/toy/usr/lib/*/libvulkan_toy.so": "lib",
                     "stable/toy/usr/bin/toy": "programs"},
            "programs": ["toy"], "drivers": {"driver": "libvulkan_toy.so"}}}

    def path(self, name, version):
        return f"pool/main/{name}_{version}_all.deb"

    def hash(self, name, version):
        return sha256(os.path.join(self.archive, self.path(name, version)))

    def package(self, name, version, files, links=()):
        tree = os.path.join(self.folder, f"{name}-{version}")
        for inner, source in files.items():
            target = os.path.join(tree, inner)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)
        for inner, target in dict(links).items():
            os.symlink(target, os.path.join(tree, inner))
        os.makedirs(os.path.join(tree, "DEBIAN"))
        with open(os.path.join(tree, "DEBIAN", "control"), "w", encoding="ascii") as control:
            control.write(f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a <a@b>\nDescription: toy\n")
        deb = os.path.join(self.archive, self.path(name, version))
        os.makedirs(os.path.dirname(deb), exist_ok=True)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, deb], capture_output=True, check=True)

    def sign(self, packages):
        """Publishes these (name, version) as the suite's packages, signed with a key of our own; its keyring's path."""
        suite = os.path.join(self.archive, "dists", "stable")
        listing = ""
        for name, version in packages:
            deb = os.path.join(self.archive, self.path(name, version))
            listing += (f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a <a@b>\nDescription: toy\n"
                        f"Filename: {self.path(name, version)}\nSize: {os.path.getsize(deb)}\nSHA256: {sha256(deb)}\n\n")
        inner = f"main/binary-{self.architecture}/Packages"
        os.makedirs(os.path.join(suite, os.path.dirname(inner)))
        with open(os.path.join(suite, inner), "w", encoding="ascii") as file:
            file.write(listing)
        with open(os.path.join(suite, "Release"), "w", encoding="ascii") as file:
            file.write("Origin: Debian\nSuite: stable\nCodename: stable\nDate: Mon, 01 Jan 2024 00:00:00 UTC\n"
                       f"Architectures: {self.architecture}\nComponents: main\n"
                       f"SHA256:\n {hashlib.sha256(listing.encode()).hexdigest()} {len(listing)} {inner}\n")
        home = os.path.join(self.folder, "gpg")
        os.makedirs(home, mode=0o700)
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet"]
        self.addCleanup(subprocess.run, ["gpgconf", "--homedir", home, "--kill", "all"], check=False, capture_output=True)
        subprocess.run([*gpg, "--passphrase", "", "--quick-generate-key", "toy", "ed25519", "sign"], check=True,
                       capture_output=True)
        subprocess.run([*gpg, "--clearsign", "-o", os.path.join(suite, "InRelease"), os.path.join(suite, "Release")],
                       check=True, capture_output=True)
        keyring = os.path.join(self.folder, "keyring.gpg")
        with open(keyring, "wb") as file:
            file.write(subprocess.run([*gpg, "--export"], check=True, capture_output=True).stdout)
        return keyring

    def fetch(self, *arguments, **extra):
        pins = os.path.join(self.folder, "pins.json")
        with open(pins, "w", encoding="utf-8") as file:
            json.dump(self.pins, file)
        env = {**os.environ, "CANOPY_CACHE_DIR": self.cache, "CANOPY_PINS": pins, "CANOPY_OFFLINE": "",
               "CANOPY_DEBIAN_ARCHIVE": f"copy:{self.archive}", **extra}
        return subprocess.run([sys.executable, SCRIPT, *arguments], env=env, capture_output=True, text=True, check=False,
                              timeout=100)

    def unpacked(self):
        return self.fetch("--print-folder", "toy").stdout.strip()

    def test_unpacks_what_is_wanted_and_starts_it_with_its_own_libraries(self):
        self.assertEqual(self.unpacked(), "")
        result = self.fetch()
        self.assertEqual(result.returncode, 0, result.stderr)
        folder = self.unpacked()
        self.assertEqual(sorted(os.listdir(folder)), [".complete", "bin", "driver.json", "lib", "programs", "start"])
        self.assertEqual(os.listdir(os.path.join(folder, "programs")), ["toy"])
        libraries = os.listdir(os.path.join(folder, "lib"))
        self.assertEqual(os.readlink(os.path.join(folder, "lib", "libtoy.so")), "libc.so.6")
        for name in ("libhidden.so", "libaway.so"):
            self.assertNotIn(name, libraries)
        with open(os.path.join(folder, "driver.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["ICD"]["library_path"], "./lib/libvulkan_toy.so")
        for libc in ("2.0", "99.0"):  # the system's libraries first, then those of the packages
            self.pins["toy"]["libc"] = libc
            self.assertEqual(self.fetch().returncode, 0)
            self.assertEqual(subprocess.run([os.path.join(self.unpacked(), "bin", "toy")], check=False).returncode, 0)

    def test_never_downloads_twice_and_works_offline(self):
        self.assertEqual(self.fetch().returncode, 0)
        shutil.rmtree(self.archive)
        self.assertEqual(self.fetch(CANOPY_OFFLINE="1").returncode, 0)
        shutil.rmtree(os.path.join(self.cache, "extracted"))
        self.assertEqual(self.fetch(CANOPY_OFFLINE="1").returncode, 0)
        self.assertNotEqual(self.unpacked(), "")

    def test_another_pin_gets_another_folder(self):
        self.assertEqual(self.fetch().returncode, 0)
        before = self.unpacked()
        self.pins["toy"]["programs"] = []
        self.assertEqual(self.unpacked(), "")
        self.assertEqual(self.fetch().returncode, 0)
        self.assertNotEqual(self.unpacked(), before)
        self.assertTrue(os.path.isdir(before))

    def test_offline_without_the_packages_says_what_to_do(self):
        result = self.fetch(CANOPY_OFFLINE="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("libtoy_1.0_all.deb is not in", result.stderr)
        self.assertIn("CANOPY_OFFLINE forbids the network", result.stderr)

    def test_a_damaged_package_in_the_cache_is_not_used(self):
        os.makedirs(os.path.join(self.cache, "downloads"))
        with open(os.path.join(self.cache, "downloads", "toy_1.0_all.deb"), "wb") as file:
            file.write(b"junk")
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("the cached package", result.stderr)
        self.assertEqual(self.unpacked(), "")

    def test_what_the_system_has_is_not_fetched(self):
        self.pins["toy"]["unless"] = {"python3": 3}
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual(self.unpacked(), "")
        self.pins["toy"]["unless"] = {"python3": 99}
        self.assertEqual(self.fetch().returncode, 0)
        self.assertNotEqual(self.unpacked(), "")

    def test_another_architecture_is_refused(self):
        self.pins["toy"]["architecture"] = "pdp11"
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"packages are for pdp11, this system is {self.architecture}", result.stderr)

    @unittest.skipUnless(shutil.which("cc"), "no compiler")
    def test_a_library_that_is_missing_is_named(self):
        code, absent, driver = (os.path.join(self.folder, name) for name in ("a.c", "libabsent.so", "libvulkan_toy.so"))
        with open(code, "w", encoding="ascii") as file:
            file.write("int toy(void) { return 1; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libabsent.so", "-o", absent, code], check=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", driver, code, absent], cwd=self.folder,
                       check=True)
        self.package("driver", "1.0", {"usr/lib/x-linux-gnu/libvulkan_new.so": driver})
        pin = self.pins["toy"]
        pin["packages"]["stable"][self.path("driver", "1.0")] = self.hash("driver", "1.0")
        pin["keep"]["stable/driver/usr/lib/*/*.so"] = "lib"
        pin["drivers"]["new"] = "libvulkan_new.so"
        os.remove(absent)
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"libvulkan_new.so needs .*libabsent.so, which is in none of its packages")
        self.assertEqual(self.unpacked(), "")

    def test_source_archives_are_unpacked_by_what_is_kept(self):
        inside = os.path.join(self.folder, "toy-2.0")
        for name in ("src/a.c", "src/b.txt", "COPYING"):
            os.makedirs(os.path.dirname(os.path.join(inside, name)), exist_ok=True)
            shutil.copy(__file__, os.path.join(inside, name))
        path = "pool/main/toy_2.0.orig.tar.gz"
        archive = os.path.join(self.archive, path)
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(inside, arcname="toy-2.0")
        self.pins = {"toy": {"version": "x", "folder": "sources", "snapshot": "x", "sources": {
            "small": {"path": path, "sha256": sha256(archive), "keep": ["COPYING", "src/*.c"]}}}}
        self.assertIn("CANOPY_OFFLINE", self.fetch(CANOPY_OFFLINE="1").stderr)
        self.assertEqual(self.fetch().returncode, 0)
        found = [os.path.relpath(os.path.join(at, name), self.unpacked())
                 for at, _, names in os.walk(self.unpacked()) for name in names]
        self.assertEqual(sorted(found), [".complete", "small/COPYING", "small/src/a.c"])
        shutil.rmtree(os.path.join(self.cache, "extracted"))
        os.remove(archive)
        self.assertEqual(self.fetch(CANOPY_OFFLINE="1").returncode, 0)  # from what was downloaded
        self.pins["toy"]["sources"]["small"]["sha256"] = "0" * 64
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("has the wrong SHA-256", result.stderr)

    def gone(self):
        """The suite has version 1.1 now, and 1.0 is no longer there."""
        shutil.copytree(os.path.join(self.folder, "toy-1.0"), os.path.join(self.folder, "toy-1.1"))
        shutil.rmtree(os.path.join(self.folder, "toy-1.1", "DEBIAN"))
        self.package("toy", "1.1", {})
        os.remove(os.path.join(self.archive, self.path("toy", "1.0")))

    @unittest.skipUnless(shutil.which("gpg"), "no gpg")
    def test_a_version_that_has_gone_is_replaced_by_the_signed_current_one(self):
        self.gone()
        keyring = self.sign([("libtoy", "1.0"), ("toy", "1.1")])
        result = self.fetch(CANOPY_DEBIAN_KEYRING=keyring)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("The pinned version of toy cannot be had", result.stderr)
        self.assertIn("toy_1.1_all.deb", result.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.unpacked(), "programs", "toy")))
        renewed = json.loads(self.fetch("--renew", "toy", CANOPY_DEBIAN_KEYRING=keyring).stdout)
        self.assertEqual(renewed["stable"][self.path("toy", "1.1")], self.hash("toy", "1.1"))
        # A package that is not what the signed index says is not taken.
        shutil.rmtree(self.cache)
        with open(os.path.join(self.archive, self.path("toy", "1.1")), "ab") as file:
            file.write(b"more")
        result = self.fetch(CANOPY_DEBIAN_KEYRING=keyring)
        self.assertEqual(result.returncode, 1)
        self.assertIn("toy_1.1_all.deb could not be downloaded", result.stderr)
        self.assertEqual(self.unpacked(), "")

    @unittest.skipUnless(shutil.which("gpg"), "no gpg")
    def test_an_index_with_another_signature_is_not_believed(self):
        self.gone()
        self.sign([("libtoy", "1.0"), ("toy", "1.1")])
        result = self.fetch(CANOPY_DEBIAN_KEYRING="/usr/share/keyrings/debian-archive-keyring.gpg")
        self.assertEqual(result.returncode, 1)
        self.assertIn("The archive's index cannot be read", result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    def test_no_network_says_so(self):
        result = self.fetch(CANOPY_DEBIAN_ARCHIVE="http://127.0.0.1:9/debian")
        self.assertEqual(result.returncode, 1)
        self.assertIn("toy could not be set up: libtoy_1.0_all.deb could not be downloaded", result.stderr)
        self.assertIn("Check the network", result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        self.assertEqual(self.unpacked(), "")


if __name__ == "__main__":
    unittest.main()
