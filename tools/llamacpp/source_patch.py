"""The changes that llama.cpp's source needs here. Neither touches what it computes or how fast.

Vulkan backend: to compile with Vulkan headers older than VK_EXT_layer_settings. The backend describes that extension's
settings to vkCreateInstance even where validation is compiled out and nothing uses them, so the types must exist. Debian
12's headers (1.3.239) predate them. What is cut does nothing in a build without GGML_VULKAN_VALIDATE, so timings and
results are those of the published source.

AMX: GCC 12 takes the operand of _tile_loadconfig as read only in its first bytes and drops the stores to the others, so
that the program dies of a general protection fault. An empty asm that may read the whole operand keeps them.
"""

import dataclasses

VULKAN = "ggml/src/ggml-vulkan/ggml-vulkan.cpp"
AMX = "ggml/src/ggml-cpu/amx/mmq.cpp"


class PatchError(Exception):
    """The source is not the one this patch was written for."""


@dataclasses.dataclass(frozen=True)
class Cut:
    """Everything from `first` to the end of `last`, both whole lines without their indentation."""

    first: str
    last: str
    most_lines: int


@dataclasses.dataclass(frozen=True)
class Swap:
    """Replaces one spelling by another."""

    old: str
    new: str


EDITS = {
    VULKAN: (
        Cut("VkBool32 enable_best_practice = layer_settings;", "vk::LayerSettingsCreateInfoEXT layer_setting_info(settings);",
            12),
        Swap("layers, extensions, &layer_setting_info);", "layers, extensions);"),
    ),
    AMX: (Swap("_tile_loadconfig(&tc);", 'asm volatile("" :: "r"(&tc) : "memory"); _tile_loadconfig(&tc);'),),
}
# Names that must not be left over: they would not compile, and a clear message is better than the compiler's.
GONE = {VULKAN: ("LayerSettingEXT", "LayerSettingsCreateInfoEXT", "LayerSettingTypeEXT", "layer_setting_info"), AMX: ()}


def _cut(file, text, edit):
    lines = text.splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if line.strip() == edit.first]
    ends = [i for i, line in enumerate(lines) if line.strip() == edit.last]
    for what, found in ((edit.first, starts), (edit.last, ends)):
        if len(found) != 1:
            raise PatchError(f"{file} holds the line {what!r} {len(found)} times; exactly once is expected.")
    count = ends[0] - starts[0] + 1
    if not 1 <= count <= edit.most_lines:
        raise PatchError(f"{file}: the block to cut out would be {count} lines long; 1 to {edit.most_lines} are expected.")
    return "".join(lines[: starts[0]] + lines[ends[0] + 1 :])


def _swap(file, text, edit):
    # A second patch of a patched source would find the old spelling in the new one.
    count = text.count(edit.old) - text.count(edit.new) * edit.new.count(edit.old)
    if count != 1:
        raise PatchError(f"{file} holds {edit.old!r} {count} times; exactly once is expected.")
    return text.replace(edit.old, edit.new)


def patched(file, text):
    """The text of `file`, one of EDITS, with its edits; raises PatchError for a source that they were not written for."""
    for edit in EDITS[file]:
        text = _cut(file, text, edit) if isinstance(edit, Cut) else _swap(file, text, edit)
    for name in GONE[file]:
        if name in text:
            raise PatchError(f"{file} still uses {name} after the patch: the source is newer than the patch.")
    return text
