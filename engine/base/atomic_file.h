#pragma once
// Writing of files. An ordinary one is written atomically: after a crash, a full disk or a kill, either the old or the
// new contents are there, never a part. Anything else that a path names, a device, a pipe or an open descriptor, is
// written into and stays what it is.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace canopy {

/// What opening a named pipe does that nobody reads from yet.
enum class PipeWithoutReader {
  wait,    // as a shell does
  refuse,  // for the window, which would stand still
};

/// Writes `content` to a new file beside `path`, flushes it to the disk and renames it over `path` (over what symbolic
/// links lead to, which need not be there). Throws bad_input, naming the path and the reason, and leaves the old file
/// untouched and no temporary file behind.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           PipeWithoutReader pipes = PipeWithoutReader::wait);

/// Takes the next bytes of a file.
using PutBytes = std::function<void(std::span<const std::byte> bytes)>;

/// The same for a file that is too large to be held in memory: `write` gives it part by part. What `write` throws
/// leaves the old file untouched as well.
void stream_file_atomically(const std::filesystem::path& path, const std::function<void(const PutBytes& put)>& write,
                            PipeWithoutReader pipes = PipeWithoutReader::wait);

/// The path of a file that belongs to `file` and lies beside it, as its journal: its name and `ending`; where that is
/// longer than a name may be, a hash of its name and `ending`.
std::filesystem::path file_beside(const std::filesystem::path& file, std::string_view ending);

/// Whether `path` names something that is written into instead of being replaced: a device, a pipe, a socket, a folder,
/// or an open descriptor such as /dev/stdout, also behind links. False where there is nothing yet.
bool is_written_into(const std::filesystem::path& path);

/// A path and the words for it: "the trace", "--csv".
struct NamedFile {
  std::string name;
  std::filesystem::path path;
};

/// Throws bad_input where an output is the same ordinary file as one of the inputs, or as another output, under
/// whatever names. Empty paths and "-" name no file.
void require_other_files(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs = {});

/// What the user can do about a file that cannot be written for this reason (an errno value): a sentence with a space
/// before it, or empty.
std::string_view write_advice(int error);

}  // namespace canopy
