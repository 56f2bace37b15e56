#pragma once
// Atomic writing of a file: after a crash, a full disk or a kill, either the old or the new contents are there, never a
// part.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace canopy {

/// Writes `content` to a new file beside `path`, flushes it to the disk and renames it over `path` (over its target
/// when `path` is a symbolic link). Throws bad_input, naming the path and the reason, and leaves the old file untouched
/// and no temporary file behind.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Takes the next bytes of a file.
using PutBytes = std::function<void(std::span<const std::byte> bytes)>;

/// The same for a file that is too large to be held in memory: `write` gives it part by part. What `write` throws
/// leaves the old file untouched as well.
void stream_file_atomically(const std::filesystem::path& path, const std::function<void(const PutBytes& put)>& write);

}  // namespace canopy
