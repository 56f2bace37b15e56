#!/usr/bin/env python3
"""Compiles one compute shader, in all its variants, into a C++ source that embeds the SPIR-V.

The comments at the top of the shader (before the first line that is neither a comment nor #version or #extension) may say:

    // variants: q8_0 WEIGHT=3; q4_1 WEIGHT=4      one module each, <shader>_q8_0 with -DWEIGHT=3 and so on;
                                                   "-" is a variant without a suffix. Several such lines multiply.
    // without: f32_i8 f16_i8                      variants among these products that there are not
    // inexact: REASON                             the module need not pass check_spirv.py
    // needs: cooperative_matrix                   variants may use cooperative matrices (VK_KHR_cooperative_matrix); those
                                                   that do are marked in the table and load only on devices that have them

Every module is validated for Vulkan 1.3. Errors name the shader, the variant and the line, and end the build.
"""

import argparse
import itertools
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import check_spirv
import shared_memory

TARGET = "vulkan1.3"
COOPERATIVE_MATRIX = "cooperative_matrix"  # what `needs:` may say


class ShaderError(Exception):
    """What is wrong with a shader."""


@dataclass
class Variant:
    name: str
    defines: list


def directives(source):
    """(key, text) of the `// key: text` lines in the comment at the top."""
    found = []
    for line in source.splitlines():
        line = line.strip()
        if line and not re.match(r"//|#\s*(version|extension)\b", line):
            break
        match = re.fullmatch(r"//\s*(variants|without|inexact|needs):\s*(.*)", line)
        if match:
            found.append(match.groups())
    return found


def parse_variants(text):
    variants = []
    for part in filter(None, (p.strip() for p in text.split(";"))):
        name, *defines = part.split()
        bad = [d for d in defines if not re.fullmatch(r"[A-Za-z_]\w*(=[-\w.]+)?", d)]
        if not re.fullmatch(r"-|[A-Za-z0-9_]+", name) or bad:
            raise ShaderError(f'the variant "{part}" is not of the form NAME MACRO=VALUE …')
        variants.append(Variant("" if name == "-" else name, defines))
    if not variants:
        raise ShaderError("a `variants:` line names none")
    return variants


def variants_of(stem, source):
    """All Variants of a shader with their full names: the product of its `variants:` lines, less those of `without:`."""
    axes = [parse_variants(text) for key, text in directives(source) if key == "variants"]
    result = []
    for choice in itertools.product(*axes):
        name = "_".join([stem] + [v.name for v in choice if v.name])
        result.append(Variant(name, [d for v in choice for d in v.defines]))
    names = [v.name for v in result]
    without = {f"{stem}_{name}" for key, text in directives(source) if key == "without" for name in text.split()}
    if without - set(names):
        raise ShaderError(f"`without:` names {min(without - set(names))}, which is no variant")
    for name in names:
        if names.count(name) > 1:
            raise ShaderError(f'there are two variants called "{name}"')
    return [v for v in result if v.name not in without]


def marked_modules(source, modules):
    """[(name, words, whether it uses cooperative matrices)] of [(name, words)]; what the shader says it needs must be true."""
    needs = {text for key, text in directives(source) if key == "needs"}
    unknown = needs - {COOPERATIVE_MATRIX}
    if unknown:
        raise ShaderError(f"`needs: {', '.join(sorted(unknown))}` is unknown; it may say {COOPERATIVE_MATRIX}")
    marked = [(name, words, check_spirv.has_capability(words, check_spirv.COOPERATIVE_MATRIX)) for name, words in modules]
    users = [name for name, _, uses in marked if uses]
    if users and not needs:
        raise ShaderError(f"{users[0]} uses cooperative matrices, so it must say `// needs: {COOPERATIVE_MATRIX}` at its top")
    if needs and not users:
        raise ShaderError(f"it says `needs: {COOPERATIVE_MATRIX}`, but none of its variants uses them")
    return marked


def run(command, what):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ShaderError(f"{what}:\n{done.stdout}{done.stderr}".rstrip())


class Compiler:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.inputs = set()

    def glslang(self, variant, debug, what):
        module, depfile = self.folder / "module.spv", self.folder / "module.d"
        command = [self.options.glslang, "-V", "--target-env", TARGET, "--quiet", debug, "--depfile", str(depfile)]
        command += [f"-I{folder}" for folder in self.options.include]
        command += [f"-D{define}" for define in variant.defines]
        run(command + ["-o", str(module), str(self.options.source)], what)
        # "output: input input …"; a blank inside a path is written "\ ".
        inputs = depfile.read_text().split(":", 1)[1]
        self.inputs.update(re.sub(r"\\ ", " ", p) for p in re.findall(r"(?:\\ |\S)+", inputs))
        return check_spirv.words_of(module.read_bytes())

    def compile(self, variant, exact):
        """The words of one variant."""
        name = f"{self.options.source} (variant {variant.name})"
        words = shared_memory.order_by_barriers(self.glslang(variant, "-g0", f"{name} does not compile"))
        if exact:
            words = check_spirv.decorate_fma(words)
            if check_spirv.check(words):
                self.report_inexact(variant, name)
        module = self.folder / "checked.spv"
        module.write_bytes(check_spirv.bytes_of(words))
        # std430 in uniform buffers is a feature that every Vulkan 1.2 device has.
        run([self.options.spirv_val, "--target-env", TARGET, "--uniform-buffer-standard-layout", str(module)],
            f"{name} is not valid SPIR-V")
        return words

    def report_inexact(self, variant, name):
        # Compiled once more, only to get source lines for the message.
        words = check_spirv.decorate_fma(self.glslang(variant, "-g", f"{name} does not compile"))
        problems = "\n".join(f"  {problem}" for problem in check_spirv.check(words))
        raise ShaderError(f"{name} is not exact (or say `// inexact: REASON` at its top):\n{problems}")


# An array of millions of numbers takes a compiler as long as the shaders took theirs.
INCLUDED = """__asm__(
    CANOPY_READ_ONLY_DATA
    ".balign 4\\n"
    ".globl canopy_{symbol}\\n"
    "canopy_{symbol}:\\n"
    ".incbin \\"{path}\\"\\n"
    CANOPY_AFTER_DATA);
extern "C" const uint32_t canopy_{symbol}[{size}];"""


def cpp_source(symbol, modules, file=None):
    """The source that embeds [(name, words, whether it uses cooperative matrices)]: from `file`, their words one after the
    other, or for compilers without .incbin as numbers."""
    words = [word for _, module, _ in modules for word in module]
    lines = ['// Generated by tools/compile_shader.py.', '#include "engine/vulkan/kernel.h"', '']
    if file is not None:
        path = str(file).replace("\\", "\\\\\\\\").replace('"', '\\\\\\"')
        lines.insert(1, '#include "engine/base/embedded_file.h"')
        lines += [INCLUDED.format(symbol=symbol, path=path, size=len(words)), '']
    else:
        lines.append(f"static constexpr uint32_t canopy_{symbol}[] = {{")
        for at in range(0, len(words), 10):
            lines.append("    " + " ".join(f"0x{w:08x}," for w in words[at:at + 10]))
        lines += ["};", ""]
    lines += ['namespace canopy::vk::embedded {', 'namespace {', '', f"constexpr ShaderCode modules_{symbol}[] = {{"]
    at = 0
    for name, module, uses_matrix in modules:
        lines.append(f'    {{"{name}", {{canopy_{symbol} + {at}, {len(module)}}}, {str(uses_matrix).lower()}}},')
        at += len(module)
    lines += ["};", "", "}  // namespace", "", f"extern const std::span<const ShaderCode> {symbol};",
              f"constinit const std::span<const ShaderCode> {symbol}{{modules_{symbol}}};", "",
              "}  // namespace canopy::vk::embedded", ""]
    return "\n".join(lines)


def escaped(path):
    return str(path).replace(" ", "\\ ")


def main():
    parser = argparse.ArgumentParser(description="Compile a compute shader into a C++ source.")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--include", type=Path, action="append", default=[])
    parser.add_argument("--symbol", required=True, help="name of the span in the generated source")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--depfile", type=Path, required=True)
    parser.add_argument("--glslang", default="glslangValidator")
    parser.add_argument("--spirv-val", default="spirv-val")
    parser.add_argument("--as-array", action="store_true", help="for compilers without .incbin")
    options = parser.parse_args()
    try:
        source = options.source.read_text(encoding="utf-8")
        exact = not any(key == "inexact" for key, _ in directives(source))
        with tempfile.TemporaryDirectory() as folder:
            compiler = Compiler(options, Path(folder))
            modules = [(v.name, compiler.compile(v, exact)) for v in variants_of(options.source.stem, source)]
        marked = marked_modules(source, modules)
    except (ShaderError, check_spirv.Malformed, OSError) as error:
        print(f"{options.source}: {error}", file=sys.stderr)
        return 1
    file = None if options.as_array else options.output.with_suffix(".spv").resolve()
    if file is not None:
        file.write_bytes(b"".join(check_spirv.bytes_of(words) for _, words, _ in marked))
    options.output.write_text(cpp_source(options.symbol, marked, file), encoding="utf-8")
    inputs = " ".join(escaped(Path(p).resolve()) for p in sorted(compiler.inputs))
    options.depfile.write_text(f"{escaped(options.output)}: {inputs}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
