#pragma once
// Whether this device keeps the numeric contract (docs/architecture.md) with the model that was just loaded: compilers
// have been seen to round one shader differently at different widths, and only the user's own device can tell.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "engine/model/model.h"

namespace canopy {

struct SelfTestReport {
  bool ran = false;  // not where the context or a pass is too small for it
  bool passed = false;
  bool draws_alike = true;  // tokens that the device draws are those of the host
  std::string sentence;     // for the user: what was compared, or what differed first
  std::string fallback;     // for the user: why slower kernels are used than the device's first; empty: they are not
  double ms = 0;
};

struct SelfTestCallbacks {
  std::function<void(uint32_t done, uint32_t total)> progress;  // passes
  std::stop_token stop;                                         // looked at between the parts of a pass
};

/// Computes rows alone, in wider passes and as nodes of draft trees, and compares logits and K/V bit by bit: among the
/// widths are those of the device's widest tile, of one row more, and of several tiles. Takes a few dozen rows' time,
/// and up to some hundred rows' where that is about a second by what its passes take; overwrites the start of the K/V
/// cache, so it belongs before the first prompt. A device that draws tokens (DeviceInfo::draws_tokens) draws some,
/// which are compared with those of the host; where they differ the rest may have passed all the same. Throws cancelled
/// when stop is requested.
SelfTestReport run_self_test(Model& model, const SelfTestCallbacks& callbacks = {});

/// The same; where it fails, or a kernel cannot be made (unavailable), the device falls back to its next kernels
/// (Device::fall_back) as long as there are some, and is tested with them. With none left, the last report is returned
/// or what was thrown is thrown.
SelfTestReport self_test_or_fall_back(Model& model, const SelfTestCallbacks& callbacks = {});

}  // namespace canopy
