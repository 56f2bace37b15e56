#pragma once
// Runs a test as an ordinary user, since permissions do not bind root, as which tests often run in containers.

#include <unistd.h>

namespace canopy::test {

/// While it exists, a process started by root acts as an ordinary user.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_) dropped_ = ::seteuid(65534) == 0;  // nobody
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  ~Unprivileged() {
    if (dropped_) (void)!::seteuid(0);
  }

  /// False if root cannot become another user: then permissions cannot be tested.
  explicit operator bool() const { return !was_root_ || dropped_; }

 private:
  bool was_root_;
  bool dropped_ = false;
};

}  // namespace canopy::test
