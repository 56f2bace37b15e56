#pragma once
// What a pair of models takes of a device's memory, and whether that fits. Pure arithmetic on bytes: the bar in the top
// row, the table behind it and the choice of a context all come from here.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/client/engine_client.h"

namespace canopy::app {

enum class MemoryPart { target, drafter, cache, tree, other_apps };

enum class MemoryFit {
  fits,
  tight,     // it goes in, and little is left: another program may push it out
  wont_fit,  // the device has less than this
};

/// What a device lets us have now.
struct MemoryRoom {
  uint64_t budget = 0;  // bytes that we may hold, those we hold included
  uint64_t others = 0;  // of it, what other programs hold already
};

struct MemoryRow {
  MemoryPart part;
  uint64_t bytes = 0;
};

struct MemoryTable {
  std::vector<MemoryRow> rows;  // in the order of the bar; parts of no size are left out
  uint64_t budget = 0;
  uint64_t used = 0;  // all rows together
  MemoryFit fit = MemoryFit::fits;
  bool overridden = false;  // its user loads it all the same

  uint64_t bytes_of(MemoryPart part) const;
};

/// Of a loaded pair. override_refusal: a table that will not fit is called overridden, and loading goes on.
MemoryTable memory_table(const MemoryUse& use, bool override_refusal = false);

/// Of the same pair with another context: the cache grows in proportion.
MemoryTable memory_table_at(const MemoryUse& use, uint64_t context, bool override_refusal = false);

/// Of parts known one by one.
MemoryTable memory_table(const std::vector<MemoryRow>& parts, const MemoryRoom& room, bool override_refusal = false);

/// "Fits", "Tight", "Won't fit"
const char* to_string(MemoryFit fit);
/// "Target", "Drafter", "KV cache", ...
const char* to_string(MemoryPart part);

/// "9.8 GiB", "93 MiB"
std::string bytes_text(uint64_t bytes);
/// "9.8 of 24.0 GiB": both in the unit of the second.
std::string bytes_of_text(uint64_t bytes, uint64_t total);

}  // namespace canopy::app
