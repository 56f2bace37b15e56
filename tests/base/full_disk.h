#pragma once
// Simulates a full disk for this process.

#include <sys/resource.h>

#include <csignal>

namespace canopy::test {

/// While it exists, no file can grow: writes fail as on a full disk, with the reason "File too large".
class FullDisk {
 public:
  FullDisk() {
    ::getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit none = {0, limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &limit_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit limit_ = {};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

}  // namespace canopy::test
