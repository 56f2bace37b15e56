#pragma once
// What both programs set up before anything else: signals, the standard descriptors, and standard output whose loss is
// an error.

#include <ostream>
#include <streambuf>

namespace canopy::app {

/// Ignores SIGXFSZ, so that a file beyond the limit of sizes is an error with a message. Descriptors 0 to 2 that are
/// closed become ones that can neither be read nor written as they should: otherwise the next file that is opened would
/// take their number, and get what is meant for standard output.
void prepare_process();

/// While it lives, std::cout writes to descriptor 1, and throws an Error where that fails: a full disk, a closed
/// descriptor. std::cerr no longer flushes std::cout, as messages may come from other threads and from destructors.
class StandardOutput : std::streambuf {
 public:
  StandardOutput();
  ~StandardOutput() override;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  /// Writes what is held back. Throws where that is not possible.
  void finish();

  /// Whether something was lost because its reader had enough, as `head` has: nothing that needs a message.
  bool reader_is_gone() const;

 protected:
  int_type overflow(int_type letter) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  void flush_buffer();

  char buffer_[1 << 14];
  bool is_terminal_;  // every line is written at once
  int lost_ = 0;      // errno of the write that failed; nothing is written any more
  std::streambuf* before_;
  std::ostream* tied_before_;
};

}  // namespace canopy::app
