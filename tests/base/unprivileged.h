#pragma once
// Permissions do not bind root, which tests often run as (in containers).

#include <unistd.h>

namespace canopy::test {

/// An ordinary user for as long as it lives, where the test was started by root.
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

  /// False where root may not become another user: then permissions cannot be tested.
  explicit operator bool() const { return !was_root_ || dropped_; }

 private:
  bool was_root_;
  bool dropped_ = false;
};

}  // namespace canopy::test
