#pragma once
// How much of a device's memory a target and its drafter take, and whether it fits. Pure arithmetic on bytes: the bar
// in the top row, the table behind it and the choice of a context use it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/client/engine_client.h"

namespace canopy::app {

enum class MemoryPart { target, drafter, cache, states, tree, other_apps };

enum class MemoryFit {
  fits,
  tight,     // it fits with little to spare: another program may push it out
  wont_fit,  // the device has less than this
};

/// The device memory that this program may use now.
struct MemoryRoom {
  uint64_t budget = 0;  // bytes that this program may hold, including those it holds
  uint64_t others = 0;  // bytes of the budget that other programs hold
};

struct MemoryRow {
  MemoryPart part;
  uint64_t bytes = 0;
};

struct MemoryTable {
  std::vector<MemoryRow> rows;  // in the order of the bar, without empty parts
  uint64_t budget = 0;
  uint64_t used = 0;  // bytes of all rows together
  MemoryFit fit = MemoryFit::fits;
  bool overridden = false;  // the user chose to load it although it will not fit

  uint64_t bytes_of(MemoryPart part) const;
};

/// The table of a loaded pair of models. With override_refusal, a table that does not fit is marked as overridden, and
/// loading goes on.
MemoryTable memory_table(const MemoryUse& use, bool override_refusal = false);

/// The table of the same pair with another context, in positions: the KV cache grows in proportion.
MemoryTable memory_table_at(const MemoryUse& use, uint64_t context, bool override_refusal = false);

/// The memory of a device after a pair of models that took this was released.
MemoryUse after_release(const MemoryUse& use);

/// The table of the given parts.
MemoryTable memory_table(const std::vector<MemoryRow>& parts, const MemoryRoom& room, bool override_refusal = false);

/// "Fits", "Tight", "Won't fit"
const char* to_string(MemoryFit fit);
/// "Target", "Drafter", "KV cache", ...
const char* to_string(MemoryPart part);

/// "9.8 GiB", "93 MiB"
std::string bytes_text(uint64_t bytes);
/// "9.8 of 24.0 GiB": both in the unit that suits the second.
std::string bytes_of_text(uint64_t bytes, uint64_t total);

}  // namespace canopy::app
