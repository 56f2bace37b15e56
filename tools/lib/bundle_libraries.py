#!/usr/bin/env python3
"""Copy the shared libraries that the programs of an installed folder need into it, for the portable archive.

  bundle_libraries.py PREFIX     PREFIX/bin/* -> PREFIX/lib/canopy, licences to PREFIX/share/doc/canopy/libraries

What a system has anyway stays out: its C and C++ libraries, of which a driver wants the newest, and what drivers for
Vulkan load themselves (X11, zlib, ...), which must be the system's for the same reason.
"""

import os
import re
import shutil
import subprocess
import sys

OF_THE_SYSTEM = re.compile(
    r"^(ld-linux[-\w]*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|mvec|stdc\+\+|gcc_s|X\w*|X11-xcb|xcb|xcb-\w+|bsd|md|z|"
    r"zstd|expat|ffi|drm|elf|wayland-\w+|vulkan))\.so[.\d]*$")


class BundleError(Exception):
    """The message is for the user."""


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BundleError(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def libraries_of(program):
    """{soname: path} of all shared libraries that a program loads, those of libraries included, and are to come along."""
    found = {}
    for line in output("ldd", program).splitlines():
        words = line.split()
        name = os.path.basename(words[0])
        if OF_THE_SYSTEM.match(name):
            continue
        if "not found" in line or len(words) < 3:
            raise BundleError(f"{program} needs a library that is missing: {line.strip()}")
        found[name] = words[2]
    return found


def copyright_of(path):
    """The Debian package of a library, and its file of copyrights."""
    for candidate in (path, os.path.realpath(path), path.removeprefix("/usr"), "/usr" + path):
        done = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            package = done.stdout.split(":")[0]
            return package, os.path.join("/usr/share/doc", package, "copyright")
    raise BundleError(f"{path} belongs to no Debian package, so that its licence is not known")


def bundle(prefix):
    """Returns the names of the libraries."""
    libraries = {}
    programs = os.path.join(prefix, "bin")
    for name in sorted(os.listdir(programs)):
        libraries.update(libraries_of(os.path.join(programs, name)))
    to, licences = os.path.join(prefix, "lib", "canopy"), os.path.join(prefix, "share", "doc", "canopy", "libraries")
    os.makedirs(to, exist_ok=True)
    os.makedirs(licences, exist_ok=True)
    for name, path in sorted(libraries.items()):
        copied = os.path.join(to, name)
        package, text = copyright_of(path)
        shutil.copyfile(os.path.realpath(path), copied)
        os.chmod(copied, 0o644)
        shutil.copyfile(text, os.path.join(licences, package))
    return sorted(libraries)


def main():
    if len(sys.argv) != 2 or not os.path.isdir(os.path.join(sys.argv[1], "bin")):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        names = bundle(sys.argv[1])
    except (BundleError, OSError) as error:
        print(f"bundle_libraries: {error}", file=sys.stderr)
        return 1
    print(f"{len(names)} libraries: {' '.join(names)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
