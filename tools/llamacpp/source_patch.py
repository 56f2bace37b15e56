"""The one change llama.cpp's Vulkan backend needs to compile with Vulkan headers older than VK_EXT_layer_settings.

The backend describes that extension's settings to vkCreateInstance even where validation is compiled out and nothing uses
them, so the types must exist. Debian 12's headers (1.3.239) predate them. What is cut does nothing in a build without
GGML_VULKAN_VALIDATE, so timings and results are those of the published source.
"""

import dataclasses

FILE = "ggml/src/ggml-vulkan/ggml-vulkan.cpp"


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


EDITS = (
    Cut("VkBool32 enable_best_practice = layer_settings;", "vk::LayerSettingsCreateInfoEXT layer_setting_info(settings);", 12),
    Swap("layers, extensions, &layer_setting_info);", "layers, extensions);"),
)
# Names that must not be left over: they would not compile, and a clear message is better than the compiler's.
GONE = ("LayerSettingEXT", "LayerSettingsCreateInfoEXT", "LayerSettingTypeEXT", "layer_setting_info")


def _cut(text, edit):
    lines = text.splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if line.strip() == edit.first]
    ends = [i for i, line in enumerate(lines) if line.strip() == edit.last]
    for what, found in ((edit.first, starts), (edit.last, ends)):
        if len(found) != 1:
            raise PatchError(f"{FILE} holds the line {what!r} {len(found)} times; exactly once is expected.")
    count = ends[0] - starts[0] + 1
    if not 1 <= count <= edit.most_lines:
        raise PatchError(f"{FILE}: the block to cut out would be {count} lines long; 1 to {edit.most_lines} are expected.")
    return "".join(lines[: starts[0]] + lines[ends[0] + 1 :])


def _swap(text, edit):
    count = text.count(edit.old)
    if count != 1:
        raise PatchError(f"{FILE} holds {edit.old!r} {count} times; exactly once is expected.")
    return text.replace(edit.old, edit.new)


def patched(text):
    """The text of FILE without its use of VK_EXT_layer_settings' types; raises PatchError for any other source."""
    for edit in EDITS:
        text = _cut(text, edit) if isinstance(edit, Cut) else _swap(text, edit)
    for name in GONE:
        if name in text:
            raise PatchError(f"{FILE} still uses {name} after the patch: the source is newer than the patch.")
    return text
