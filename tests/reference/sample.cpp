// out[first_row + w] = RowSampler::draw of row w, with the path to the row counted as text; the sampler of the host is
// the definition. logits[w, token] = the adjusted logit, for the tokens of the table and of the path.

#include <algorithm>
#include <vector>

#include "engine/compute/sampling.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

/// Counts a token of the path.
void add(std::vector<TokenAdjustment>& table, uint32_t token) {
  const auto entry = std::ranges::find(table, token, &TokenAdjustment::token);
  if (entry != table.end()) {
    ++entry->count;
  } else {
    table.push_back({token, 1, 0});
  }
}

}  // namespace

template <>
void compute(const SampleArgs& args) {
  const auto logits = elements<float>(args.logits, uint64_t{args.width} * args.vocab, "sample: logits");
  const uint64_t end = uint64_t{args.first_row} + args.width;
  SamplingWords words = elements<SamplingWords>(args.settings, 1, "sample: settings")[0];
  const auto rows = elements<SampledRow>(args.rows, end, "sample: rows");
  const auto out = elements<uint32_t>(args.out, end, "sample: out");
  require(args.random == (words.inverse_temperature != 0), "sample: the settings and `random` contradict each other.");
  require(args.filtered == (words.top_k != 0 || words.top_p != 0), "sample: the settings and `filtered` contradict.");
  std::vector<TokenAdjustment> table;
  if (args.adjustments != nullptr) {
    require(words.adjustments <= args.most_adjustments, "sample: more adjustments count than there are.");
    const auto all = elements<TokenAdjustment>(args.adjustments, args.most_adjustments, "sample: adjustments");
    table.assign(all.begin(), all.begin() + words.adjustments);
  }

  RowSampler sampler;
  const uint32_t first_position = words.position;
  for (uint32_t w = 0; w < args.width; ++w) {
    if (rows[args.first_row + w].token == kNoToken) {
      out[args.first_row + w] = kNoToken;
      continue;
    }
    std::vector<TokenAdjustment> adjustments = table;
    words.position = first_position;
    for (uint32_t row = args.first_row + w; rows[row].parent != kNoToken; row = rows[row].parent) {
      require(rows[row].parent < row, "sample: a parent stands behind its row.");
      ++words.position;
      if (args.adjustments != nullptr) add(adjustments, rows[row].token);
    }
    const auto row = logits.subspan(size_t{w} * args.vocab, args.vocab);
    out[args.first_row + w] = sampler.draw(row, words, adjustments);
    for (const TokenAdjustment& entry : adjustments) row[entry.token] = sampler.adjusted()[entry.token];
  }
}

}  // namespace canopy::reference
