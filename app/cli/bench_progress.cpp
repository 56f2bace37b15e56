#include "app/cli/bench_progress.h"

#include <unistd.h>

#include "engine/base/figures.h"

namespace canopy::cli {

void BenchProgress::show(uint64_t done, uint64_t total) {
  constexpr std::chrono::seconds first_note(2), between_notes(15);
  const Clock::time_point now = Clock::now();
  if (!started_) {
    started_ = true;
    start_ = now;
    noted_ = now + first_note - between_notes;
  }
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left =
      done > 0 ? seconds * static_cast<double>(total - done) / static_cast<double>(done) : -1;  // negative: not known
  line_.show({what_, done, total, false, left});
  if (::isatty(STDERR_FILENO) == 1 || now - noted_ < between_notes) return;
  noted_ = now;
  note(what_ + ": " + progress_figures(done, total, false, left));
}

}  // namespace canopy::cli
