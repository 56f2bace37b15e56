#include "app/models/memory_table.h"

#include <cstdio>

namespace canopy::app {
namespace {

constexpr double kTightShare = 0.9;  // of the budget; beyond it drivers begin to swap memory out
constexpr double kMiB = 1024.0 * 1024.0, kGiB = 1024.0 * kMiB;

uint64_t capped_sum(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

/// Counts memory that is neither ours nor available as held by other programs.
MemoryRoom room_of(const MemoryUse& use) {
  const uint64_t ours = capped_sum(use.total(), use.available);
  return {use.budget, use.budget > ours ? use.budget - ours : 0};
}

std::vector<MemoryRow> parts_of(const MemoryUse& use, uint64_t cache) {
  // Working memory depends on the rows of a pass, so it is shown together with the tree.
  const uint64_t tree = capped_sum(use.tree, capped_sum(use.working, use.reserve));
  return {{MemoryPart::target, use.weights},
          {MemoryPart::drafter, use.drafter},
          {MemoryPart::cache, cache},
          {MemoryPart::states, use.states},
          {MemoryPart::tree, tree}};
}

}  // namespace

uint64_t MemoryTable::bytes_of(MemoryPart part) const {
  for (const MemoryRow& row : rows)
    if (row.part == part) return row.bytes;
  return 0;
}

MemoryTable memory_table(const std::vector<MemoryRow>& parts, const MemoryRoom& room, bool override_refusal) {
  MemoryTable table;
  table.budget = room.budget;
  auto add = [&](MemoryPart part, uint64_t bytes) {
    if (bytes == 0) return;
    table.rows.push_back({part, bytes});
    table.used = capped_sum(table.used, bytes);
  };
  for (const MemoryRow& row : parts) add(row.part, row.bytes);
  add(MemoryPart::other_apps, room.others);
  if (table.used > table.budget)
    table.fit = MemoryFit::wont_fit;
  else if (static_cast<double>(table.used) > kTightShare * static_cast<double>(table.budget))
    table.fit = MemoryFit::tight;
  table.overridden = override_refusal && table.fit == MemoryFit::wont_fit;
  return table;
}

MemoryTable memory_table(const MemoryUse& use, bool override_refusal) {
  return memory_table(parts_of(use, use.cache), room_of(use), override_refusal);
}

MemoryTable memory_table_at(const MemoryUse& use, uint64_t context, bool override_refusal) {
  const double share = use.context == 0 ? 1 : static_cast<double>(context) / static_cast<double>(use.context);
  const auto cache = static_cast<uint64_t>(static_cast<double>(use.cache) * share);
  return memory_table(parts_of(use, cache), room_of(use), override_refusal);
}

MemoryUse after_release(const MemoryUse& use) {
  MemoryUse left;
  left.budget = use.budget;
  left.available = capped_sum(use.available, use.total());
  return left;
}

const char* to_string(MemoryFit fit) {
  switch (fit) {
    case MemoryFit::fits: return "Fits";
    case MemoryFit::tight: return "Tight";
    case MemoryFit::wont_fit: return "Won't fit";
  }
  return "";
}

const char* to_string(MemoryPart part) {
  switch (part) {
    case MemoryPart::target: return "Target";
    case MemoryPart::drafter: return "Drafter";
    case MemoryPart::cache: return "KV cache";
    case MemoryPart::states: return "States of recurrent layers";
    case MemoryPart::tree: return "Tree and working memory";
    case MemoryPart::other_apps: return "Other apps";
  }
  return "";
}

std::string bytes_text(uint64_t bytes) {
  char text[32];
  const double value = static_cast<double>(bytes);
  if (value >= kGiB)
    std::snprintf(text, sizeof text, "%.1f GiB", value / kGiB);
  else
    std::snprintf(text, sizeof text, "%.0f MiB", value / kMiB);
  return text;
}

std::string bytes_of_text(uint64_t bytes, uint64_t total) {
  char text[64];
  const double value = static_cast<double>(bytes), all = static_cast<double>(total);
  if (all >= kGiB)
    std::snprintf(text, sizeof text, "%.1f of %.1f GiB", value / kGiB, all / kGiB);
  else
    std::snprintf(text, sizeof text, "%.0f of %.0f MiB", value / kMiB, all / kMiB);
  return text;
}

}  // namespace canopy::app
