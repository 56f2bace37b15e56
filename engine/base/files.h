#pragma once
// Writing of files so that a crash leaves the old or the new contents, and the folders where Canopy keeps its own.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace canopy {

// Writing of files. An ordinary one is written atomically: after a crash, a full disk or a kill, either the old or the
// new contents are there, never a part. Anything else that a path names, a device, a pipe or an open descriptor, is
// written into and stays what it is.

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

/// A file that is open. descriptor: -1 where there is none.
struct NewFile {
  std::filesystem::path path;
  int descriptor = -1;
};

/// An empty file that only this user may read, under a name in `folder` that nobody else can have put something at:
/// `stem`, a number and `ending`.
NewFile make_private_file(const std::filesystem::path& folder, std::string_view stem, std::string_view ending);

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

// Where Canopy keeps its files, by the XDG base directory specification; on Windows, where its variables are not set,
// in cache, config and data below %LOCALAPPDATA%\canopy. Each function creates its folder (readable by the user alone)
// when it is not there, and throws bad_input naming folder and reason when it cannot.

/// Folder of files that can be made again: pipeline caches, calibrations, downloads. $CANOPY_CACHE_DIR unchanged, or
/// $XDG_CACHE_HOME/canopy, or ~/.cache/canopy.
std::filesystem::path cache_dir();

/// Settings: $XDG_CONFIG_HOME/canopy or ~/.config/canopy.
std::filesystem::path config_dir();

/// Conversations and traces: $XDG_DATA_HOME/canopy or ~/.local/share/canopy.
std::filesystem::path data_dir();

/// A file or folder that comes with the program: beside it as it was built (../assets) or installed (../share/canopy),
/// or, where it was compiled, in ../lib/canopy of both. Nothing when it is in none of these places.
std::optional<std::filesystem::path> find_asset(std::string_view name);

}  // namespace canopy
