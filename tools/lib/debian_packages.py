"""A dependency that is made of Debian packages: its files in one folder, which any Debian 12 or later can use.

The pin in dependencies.json:
  folder     its folder's name, to which a hash of the pin is added
  packages   {SUITE: {PATH IN THE ARCHIVE: SHA-256}}
  keep       {"SUITE/PACKAGE/PATH PATTERN": FOLDER}: what is unpacked, and where
  libc       the version of the libc among them
  programs   programs in programs/, each of which gets a command of that name in bin/
  drivers    {NAME: LIBRARY}: Vulkan drivers, each of which gets a NAME.json for VK_DRIVER_FILES

`start PROGRAM …` starts a program with these libraries, and with their libc where it is newer than the system's.
"""

import hashlib
import json
import os
import subprocess
import tempfile

import debian_archive
from debian_archive import ArchiveError

START = """#!/bin/sh
# start PROGRAM ARGUMENTS...: runs a program with the libraries beside this file. Where the system's libc is as new as
# theirs (@LIBC@), the system's libraries come first; otherwise the program runs with that libc, for which the
# program need not be built anew.
case $0 in */*) own=${0%/*}/lib ;; *) own=lib ;; esac
system=/usr/lib/$(uname -m)-linux-gnu
libc=$(getconf GNU_LIBC_VERSION)
if [ "$(printf '%s\\n' "glibc @LIBC@" "$libc" | sort -V | tail -n 1)" = "$libc" ]; then
  LD_LIBRARY_PATH=$system:$own${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$@"
fi
exec "$own"/ld-linux-*.so.* --library-path "$own:$system${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"
"""
PROGRAM = """#!/bin/sh
exec "${0%/*}/../start" "${0%/*}/../programs/@NAME@" "$@"
"""


def identity(pin):
    """A hash of all that decides what the unpacked folder holds."""
    facts = {key: pin.get(key) for key in ("packages", "keep", "libc", "programs", "drivers")}
    return hashlib.sha256((json.dumps(facts, sort_keys=True) + START + PROGRAM).encode()).hexdigest()


def folder_name(pin):
    return f"{pin['folder']}-{identity(pin)[:8]}"


def renewed(pin):
    """The pin's packages as the archive has them now, for dependencies.json."""
    with tempfile.TemporaryDirectory() as folder:
        index = debian_archive.Index(list(pin["packages"]), folder)
        return {suite: dict(index.current(debian_archive.package_name(path), suite) for path in packages)
                for suite, packages in pin["packages"].items()}


def provide(pin, downloads, lists, cache):
    """Downloads what is not in `downloads`. Returns [(file, "SUITE/PACKAGE")]. `lists` is an empty folder for the archive's
    index, which is read only where a pinned version has gone."""
    if not os.path.exists(debian_archive.APT_HELPER):
        raise ArchiveError("it consists of Debian packages, and this system has no apt.")
    if debian_archive.architecture() != pin["architecture"]:
        raise ArchiveError(f"its packages are for {pin['architecture']}, this system is {debian_archive.architecture()}.")
    files, index = [], None
    for suite, packages in pin["packages"].items():
        for path, sha256 in packages.items():
            name = debian_archive.package_name(path)
            file, reason = _download(path, sha256, pin["snapshot"], downloads, cache)
            if reason:
                try:
                    index = index or debian_archive.Index(list(pin["packages"]), lists)
                    path, sha256 = index.current(name, suite)
                except ArchiveError as error:
                    raise ArchiveError(f"{os.path.basename(path)} could not be downloaded: {reason}. {error}") from None
                cache.say(f"The pinned version of {name} cannot be had ({reason}). Taking {suite}'s current one instead, "
                          f"{os.path.basename(path)}, which Debian's signature vouches for.")
                file, reason = _download(path, sha256, pin["snapshot"], downloads, cache)
            if reason:
                raise ArchiveError(f"{os.path.basename(path)} could not be downloaded: {reason}.")
            files.append((file, f"{suite}/{name}"))
    return files


def _download(path, sha256, snapshot, downloads, cache):
    """(file, "") or ("", why it cannot be had)."""
    file = os.path.join(downloads, os.path.basename(path))
    if os.path.exists(file):
        cache.check(file, sha256, "the cached package")
        return file, ""
    if cache.offline:
        raise ArchiveError(f"{os.path.basename(file)} is not in {downloads} and CANOPY_OFFLINE forbids the network. "
                           f"Run this once with a network, or put the file there (SHA-256 {sha256}).")
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=downloads) as folder:
        part = os.path.join(folder, os.path.basename(file))
        cache.say(f"Fetching {os.path.basename(file)}")
        reason = debian_archive.download(path, sha256, snapshot, part)
        if reason:
            return "", reason
        cache.check(part, sha256, "the download")
        os.replace(part, file)
    return file, ""


def unpack(pin, files, folder):
    """Unpacks packages into `folder`, with the commands and driver files that the pin names; checks that all of it loads."""
    for file, label in files:
        debian_archive.unpack(file, label, pin["keep"], folder)
    start = os.path.join(folder, "start")
    _write(start, START.replace("@LIBC@", pin["libc"]), 0o755)
    for name in pin.get("programs", ()):
        _write(os.path.join(folder, "bin", name), PROGRAM.replace("@NAME@", name), 0o755)
        _check_libraries(folder, os.path.join("programs", name))
    for name, library in pin.get("drivers", {}).items():
        _check_libraries(folder, os.path.join("lib", library))
        icd = {"file_format_version": "1.0.1", "ICD": {"library_path": f"./lib/{library}", "api_version": "1.4.0"}}
        _write(os.path.join(folder, f"{name}.json"), json.dumps(icd, indent=2) + "\n", 0o644)


def _check_libraries(folder, file):
    """A package that is newer than its pin may need libraries that are not there: better said here than by a test."""
    path = os.path.join(folder, file)
    if not os.path.exists(path):
        raise ArchiveError(f"the packages hold no {os.path.basename(file)}.")
    loader = next((os.path.join(folder, "lib", name) for name in os.listdir(os.path.join(folder, "lib"))
                   if name.startswith("ld-linux-")), None)
    if loader is None:
        raise ArchiveError("the packages hold no dynamic loader.")
    done = subprocess.run([loader, "--library-path", os.path.join(folder, "lib"), path], capture_output=True,
                          text=True, check=False, env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"})
    missing = [line.split()[0] for line in done.stdout.splitlines() if "not found" in line]
    if done.returncode != 0 or missing:
        raise ArchiveError(f"{os.path.basename(file)} needs {', '.join(missing) or done.stderr.strip()}, which is in none "
                           "of its packages. tools/dependencies.json must name the package that has it.")


def _write(path, text, mode):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, mode)
