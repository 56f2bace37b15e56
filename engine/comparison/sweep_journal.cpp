#include "engine/comparison/sweep_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/comparison/sweep_file.h"
#include "engine/comparison/sweep_prompts.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string json_line(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

[[noreturn]] void fail_journal(const fs::path& path, const std::string& why) {
  throw bad_input("The journal " + shown(path) + " cannot be written: " + why + ".");
}

[[noreturn]] void fail_journal(const fs::path& path, int error) {
  throw bad_input("The journal " + shown(path) + " cannot be written: " + std::generic_category().message(error) + "." +
                  std::string(write_advice(error)));
}

/// Throws where another program writes this journal now.
void require_unused(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  const bool unused = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  ::close(descriptor);
  if (!unused) fail_journal(path, "another program writes it");
}

}  // namespace

fs::path journal_path(const fs::path& file) {
  return file_beside(file, ".journal");
}

std::optional<Sweep> unfinished_sweep(const fs::path& file) {
  std::error_code ignored;
  const fs::path journal = journal_path(file);
  // One that was cut off within its first line has no run.
  if (fs::exists(journal, ignored) && fs::file_size(journal, ignored) > 0) {
    const std::string text = read_small_file(journal, kMostSweepBytes);
    if (text.find('\n') != std::string::npos) return with_context(shown(journal), [&] { return parse_sweep(text); });
  }
  if (!fs::exists(file, ignored)) return std::nullopt;
  Sweep sweep = read_sweep(file);
  if (sweep.complete()) return std::nullopt;
  return sweep;
}

SweepJournal::SweepJournal(const fs::path& file, const Sweep& sweep, const std::vector<MeasuredPrompt>& prompts)
    : file_(file), path_(journal_path(file)) {
  require_unused(path_);
  if (!prompts.empty()) keep_prompts(file_, prompts);
  // What an earlier journal has of these runs is replaced in one step, so that a crash here loses none of them.
  std::string text = json_line(sweep_header(sweep));
  for (const MeasuredRun& run : sweep.runs) text += json_line(to_json(run));
  write_file_atomically(path_, text);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) fail_journal(path_, errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(descriptor_);
  descriptor_ = -1;
  fail_journal(path_, "another program writes it");
}

SweepJournal::~SweepJournal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SweepJournal::add(const MeasuredRun& run) {
  append(json_line(to_json(run)));
}

void SweepJournal::append(const std::string& line) {
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_journal(path_, errno);
    written += static_cast<size_t>(count);
  }
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL) fail_journal(path_, errno);
}

void SweepJournal::finish(const Sweep& sweep) {
  write_file_atomically(file_, sweep_text(sweep));
  std::error_code ignored;
  fs::remove(path_, ignored);
  if (sweep.complete()) fs::remove(prompts_path(file_), ignored);
}

}  // namespace canopy
