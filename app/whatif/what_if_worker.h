#pragma once
// Answers questions about other devices on a thread of its own, the newest first: a long recording may take seconds.

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "app/whatif/what_if_answer.h"

namespace canopy::app {

class WhatIfWorker {
 public:
  explicit WhatIfWorker(WhatIfMaker maker);
  /// Stops at the next round of the re-run.
  ~WhatIfWorker();
  WhatIfWorker(const WhatIfWorker&) = delete;
  WhatIfWorker& operator=(const WhatIfWorker&) = delete;

  /// `wake` is called on the worker's thread when take() has something. Call before ask().
  void set_wake(std::function<void()> wake);

  /// Returns at once. A question that is being answered is given up.
  void ask(WhatIfQuestion question);
  /// What is known by now of the last question, each state once.
  std::optional<WhatIfAnswer> take();

 private:
  struct Shared;
  static void work(Shared& shared, const std::stop_token& stop);

  std::shared_ptr<Shared> shared_;
  std::jthread thread_;
};

}  // namespace canopy::app
