"""llama.cpp from its pinned source archive: unpacked, patched and built once, and kept in the cache.

  <cache>/llamacpp/<id>/source            the archive's llama.cpp with source_patch applied
  <cache>/llamacpp/<id>/<name>/build      the libraries of one build: "vulkan", "native", ...
  <cache>/llamacpp/<id>/<name>/probe      our own measuring program, built against them (tools/llamacpp/CMakeLists.txt)

The id names archive, patch and options, so that a changed recipe is never mixed with an older build.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile

import source_patch
from dependency_cache import Cache, FetchError, say

NAME = "llama-cpp-python"
INNER = os.path.join("vendor", "llama.cpp")
LIBRARIES = ("llama", "ggml", "ggml-base", "ggml-cpu")
OPTIONS = {  # of every build
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "ON",
    "LLAMA_BUILD_COMMON": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_TOOLS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_SERVER": "OFF",
    "LLAMA_BUILD_APP": "OFF",
}
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"  # wins over -march=native, wherever on the line it stands
PARTIAL = ".partial-"
HERE = os.path.dirname(os.path.abspath(__file__))


class BuildError(Exception):
    """A message for the user; what the failing command printed is in the named log."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One way to build llama.cpp."""

    name: str
    about: str  # for the report
    options: dict  # beside OPTIONS
    libraries: tuple = LIBRARIES


# GGML_NATIVE: all instructions of this machine, as in a build by its user.
VULKAN = Recipe("vulkan", "Vulkan and CPU, all instructions of this machine", {"GGML_VULKAN": "ON", "GGML_NATIVE": "ON"},
                LIBRARIES + ("ggml-vulkan",))
NATIVE = Recipe("native", "all instructions of this machine", {"GGML_NATIVE": "ON"})
WITHOUT_AMX = Recipe("no-amx", "all instructions of this machine but AMX",
                     {"GGML_NATIVE": "ON", "CMAKE_C_FLAGS": NO_AMX, "CMAKE_CXX_FLAGS": NO_AMX})
AVX2 = Recipe("avx2", "AVX2, FMA, F16C and BMI2", {"GGML_NATIVE": "OFF"})
RECIPES = (VULKAN, NATIVE, WITHOUT_AMX, AVX2)


def cpu_recipes(flags):
    """The builds to compare a processor with these flags (of /proc/cpuinfo) with. Which one is the fastest depends on the
    model: AMX loses at one row, and not all types of weights have kernels for AVX-512."""
    recipes = [NATIVE]
    if "amx_int8" in flags:
        recipes.append(WITHOUT_AMX)
    if "avx512f" in flags:
        recipes.append(AVX2)
    return recipes


@dataclasses.dataclass(frozen=True)
class Peer:
    """A finished build of llama.cpp."""

    version: str  # of the archive
    recipe: Recipe
    probe: str  # path of the measuring program
    without: list  # shader extensions that this machine's glslc does not know; GPUs with them would be faster


def recipe_id(pin):
    recipes = [[recipe.name, recipe.options, recipe.libraries] for recipe in RECIPES]
    recipe = json.dumps([pin["sha256"], repr(source_patch.EDITS), OPTIONS, recipes], sort_keys=True)
    return f"{pin['version']}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"


def provide(pin, offline, recipe=VULKAN):
    """Builds what is missing; with everything there it costs one call of ninja. Raises FetchError or BuildError."""
    cache = Cache(offline=offline)
    cache.provide(NAME, pin)
    folder = os.path.join(cache.root, "llamacpp", recipe_id(pin))
    with _locked(folder):
        source, target = os.path.join(folder, "source"), os.path.join(folder, recipe.name)
        _prepare_source(os.path.join(cache.root, "extracted", pin["folder"], INNER), source)
        os.makedirs(target, exist_ok=True)
        _build_libraries(recipe, source, target)
        _build_probe(source, target)
    return Peer(pin["version"], recipe, os.path.join(target, "probe", "llamacpp_probe"), _missing_extensions(target))


@contextlib.contextmanager
def _locked(folder):
    try:
        os.makedirs(folder, exist_ok=True)
        lock = open(os.path.join(folder, ".lock"), "w", encoding="ascii")
    except OSError as error:
        raise FetchError(f"the cache folder {folder} cannot be written ({error.strerror}); set CANOPY_CACHE_DIR.") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for entry in os.listdir(folder):
            if entry.startswith(PARTIAL):  # left by a run that was killed
                shutil.rmtree(os.path.join(folder, entry), ignore_errors=True)
        yield


def _prepare_source(published, target):
    """A patched copy; it appears under its name only when it is whole."""
    if os.path.isdir(target):
        return
    with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=os.path.dirname(target)) as folder:
        copy = os.path.join(folder, "source")
        shutil.copytree(published, copy)
        for name in source_patch.EDITS:
            _patch(copy, name)
        os.rename(copy, target)


def _patch(folder, name):
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            text = source_patch.patched(name, file.read())
    except (OSError, source_patch.PatchError) as error:
        raise BuildError(f"llama.cpp's source cannot be patched: {error} tools/llamacpp/source_patch.py must be adapted "
                         "to the pinned archive.") from None
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _build_libraries(recipe, source, folder):
    """Leaves a marker: asked again, ninja would compile every shader anew (its generator is always out of date)."""
    marker = os.path.join(folder, "build", ".complete")
    if os.path.exists(marker):
        return
    build = os.path.join(folder, "build")
    say(f"Building llama.cpp: {recipe.about} (once; {'10' if recipe is VULKAN else '5'} minutes or so on two cores)")
    options = [f"-D{name}={value}" for name, value in {**OPTIONS, **recipe.options}.items()]
    log = os.path.join(folder, "build.log")
    _logged(log, ["cmake", "-G", "Ninja", "-S", source, "-B", build, *options])
    _logged(log, ["ninja", "-C", build, "-j", str(os.cpu_count() or 1), *recipe.libraries], append=True)
    with open(marker, "w", encoding="ascii"):
        pass


def _missing_extensions(folder):
    with open(os.path.join(folder, "build.log"), encoding="utf-8", errors="replace") as file:
        return re.findall(r"^-- (GL_\w+) not supported by glslc$", file.read(), re.MULTILINE)


def _forget_other_sources(build):
    """The cache is shared by checkouts; CMake refuses a build folder that another one configured."""
    try:
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
            if f"CMAKE_HOME_DIRECTORY:INTERNAL={HERE}\n" in file.readlines():
                return
    except OSError:
        return
    shutil.rmtree(build)


def _build_probe(source, folder):
    build = os.path.join(folder, "probe")
    log = os.path.join(folder, "probe.log")
    _forget_other_sources(build)
    _logged(log, ["cmake", "-G", "Ninja", "-S", HERE, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
                  f"-DLLAMACPP_SOURCE={source}", f"-DLLAMACPP_BUILD={os.path.join(folder, 'build')}"])
    _logged(log, ["ninja", "-C", build], append=True)


def _logged(log, command, append=False):
    with open(log, "a" if append else "w", encoding="utf-8") as file:
        result = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    if result.returncode != 0:
        with open(log, encoding="utf-8", errors="replace") as file:
            tail = "".join(file.readlines()[-20:])
        raise BuildError(f"{command[0]} ended with status {result.returncode}; the end of {log}:\n{tail}")
