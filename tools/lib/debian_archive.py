"""Files of Debian packages for the cache, without root: pinned packages, downloaded by apt and unpacked in part.

A pin names each package by its path in the archive and its SHA-256. The archive keeps a path only as long as some suite has
that version; what is gone is taken from snapshot.debian.org, and where that cannot be reached the suite's current version
is, by the index that Debian signs.
"""

import os
import re
import subprocess
import tarfile
from pathlib import PurePosixPath
from urllib.parse import unquote

APT_HELPER = "/usr/lib/apt/apt-helper"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ARCHIVE = "http://deb.debian.org/debian"
SNAPSHOT = "http://snapshot.debian.org/archive/debian"


class ArchiveError(Exception):
    """A package cannot be had; the text is a sentence."""


def _run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except OSError as error:
        raise ArchiveError(f"{command[0]} cannot be started ({error.strerror}): it comes with Debian and Ubuntu.") from None
    return done


def architecture():
    return _run(["dpkg", "--print-architecture"]).stdout.strip()


def archives():
    """Where Debian's packages may be had, best first: the mirror that apt is configured for, then the archive itself."""
    own = os.environ.get("CANOPY_DEBIAN_ARCHIVE")
    if own:
        return [own.rstrip("/")]
    lines = _run(["apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN) $(COMPONENT)", "Created-By: Packages"]).stdout
    sites = [line.split()[0].rstrip("/") for line in lines.splitlines() if line.endswith(" Debian main")]
    return list(dict.fromkeys([*[site for site in sites if site.endswith("/debian")][:1], ARCHIVE]))


def _tail(done):
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("E:")]
    return "; ".join(line[2:].strip().rstrip(".") for line in lines) or f"it ended with status {done.returncode}"


def _fetch(url, target, sha256):
    """Downloads one file with apt's own transport; "" on success, else what apt says."""
    done = _run([APT_HELPER, "-o", "Acquire::Retries=1", "download-file", url, target, f"SHA256:{sha256}"])
    return "" if done.returncode == 0 and os.path.exists(target) else _tail(done)


def download(path, sha256, snapshot, target):
    """Downloads the pinned package; "" on success, else why it cannot be had."""
    bases = archives()
    if "CANOPY_DEBIAN_ARCHIVE" not in os.environ:
        bases.append(f"{SNAPSHOT}/{snapshot}")
    reasons = []
    for base in bases:
        reason = _fetch(f"{base}/{path}", target, sha256)
        if not reason:
            return ""
        reasons.append(reason)
    return "; ".join(reasons)


class Index:
    """The signed lists of some suites, in a folder of our own: apt's configuration of the system stays as it is."""

    def __init__(self, suites, folder):
        self._folder = folder
        for sub in ("state/lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(folder, sub))
        open(os.path.join(folder, "state", "status"), "w", encoding="ascii").close()
        keyring = os.environ.get("CANOPY_DEBIAN_KEYRING", KEYRING)
        with open(os.path.join(folder, "sources.list"), "w", encoding="ascii") as file:
            file.writelines(f"deb [signed-by={keyring}] {archives()[0]} {suite} main\n" for suite in suites)
        done = self._apt("update", "-q", "-o", "APT::Update::Error-Mode=any")
        if done.returncode != 0:
            raise ArchiveError(f"The archive's index cannot be read either: {_tail(done)}. Check the network.")

    def _apt(self, *arguments):
        options = {"Dir::State": os.path.join(self._folder, "state"),
                   "Dir::State::status": os.path.join(self._folder, "state", "status"),
                   "Dir::Cache": os.path.join(self._folder, "cache"),
                   "Dir::Etc::SourceList": os.path.join(self._folder, "sources.list"), "Dir::Etc::SourceParts": "-",
                   "Acquire::Languages": "none", "Acquire::Retries": "1"}
        flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return _run(["apt-get", *flags, *arguments])

    def current(self, name, suite):
        """(path, SHA-256) of a package as the suite has it now."""
        done = self._apt("download", "--print-uris", "-q", f"{name}/{suite}")
        for line in done.stdout.splitlines():
            match = re.match(r"'[^']*/(pool/[^']+)' \S+ \d+ SHA256:([0-9a-f]{64})$", line)
            if match:
                return unquote(match[1]), match[2]
        raise ArchiveError(f"{suite} has no package {name} now: {_tail(done)}.")


def package_name(path):
    return os.path.basename(path).split("_")[0]


def unpack(deb, label, keep, folder):
    """Unpacks the files of a package that `keep` names, {"LABEL/PATTERN": "FOLDER"}, into FOLDERs below `folder`, flat.
    LABEL/PATH of a file must match part by part. Of links, those to a name beside them are kept."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as stream:
        with tarfile.open(fileobj=stream.stdout, mode="r|") as tar:
            for member in tar:
                name = PurePosixPath(label) / PurePosixPath(member.name)
                into = next((to for pattern, to in keep.items()
                             if len(PurePosixPath(pattern).parts) == len(name.parts) and name.match(pattern)), None)
                if into is not None:
                    _place(tar, member, os.path.join(folder, into, name.name))
        stream.stdout.read()
    if stream.returncode != 0:
        raise ArchiveError(f"{deb} cannot be unpacked: dpkg-deb ended with status {stream.returncode}.")


def _place(tar, member, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if member.issym() and "/" not in member.linkname:
        os.symlink(member.linkname, path)
    elif member.isfile():
        with tar.extractfile(member) as source, open(path, "wb") as sink:
            while block := source.read(1 << 20):
                sink.write(block)
        os.chmod(path, 0o755 if member.mode & 0o111 else 0o644)
