#include "engine/model/candidate_selector.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/format/dequantize.h"
#include "engine/format/tensor.h"

namespace canopy {

CandidateSelector::Codebook::Codebook(const DrafterFile& file, const char* name, uint64_t rows, uint64_t cols)
    : type(TensorType::f32) {
  const TensorView& tensor = file.require(name, rows, cols);
  file.check_unchanged();
  type = tensor.type;
  std::vector<std::byte> scratch;
  const std::span<const std::byte> all = rows_of(tensor, 0, rows, scratch);
  bytes.assign(all.begin(), all.end());
  row_bytes = bytes.size() / rows;
}

void CandidateSelector::Codebook::row(uint32_t row, std::span<float> values) const {
  dequantize(type, std::span(bytes).subspan(row * row_bytes, row_bytes), values);
}

uint64_t CandidateSelector::device_bytes(const DrafterConfig& config) {
  return uint64_t{config.depths()} * config.selector.rank * sizeof(float);
}

CandidateSelector::CandidateSelector(const DrafterFile& file, const MatrixPlan& hidden, Device& device,
                                     TensorLoader& tensors)
    : device_(device),
      rank_(file.config().selector.rank),
      depths_(file.config().depths()),
      predecessor_(file, "selector_predecessor", file.config().vocab, rank_),
      successor_(file, "selector_successor", file.config().vocab, rank_),
      hidden_(tensors.matrix(hidden)),
      projected_(device.allocate_exchanged(device_bytes(file.config()), HostUse::reads, "rows of the selector")),
      block_(size_t{depths_} * rank_) {}

void CandidateSelector::record_block(Recorder& record, const Activations& hidden, float norm_eps) {
  record(LinearArgs{.width = depths_,
                    .weight = hidden_.get(),
                    .in = &hidden,
                    .norm_eps = norm_eps,
                    .out = projected_.get(),
                    .stride = rank_});
}

void CandidateSelector::read_block() {
  device_.read(*projected_, 0, std::as_writable_bytes(std::span(block_)));
}

PlaceLists CandidateSelector::lists(std::span<const BlockPlace> places, const BlockDraft& block) const {
  PlaceLists result;
  std::vector<float> before(rank_), next(rank_), scores(block.candidates);
  std::vector<uint32_t> order(block.candidates);
  for (const BlockPlace& place : places) {
    const DepthCandidates known = block.list(place.slot);
    const std::span<const float> state = std::span(block_).subspan(size_t{place.slot} * rank_, rank_);
    predecessor_.row(place.before, before);
    for (uint32_t r = 0; r < rank_; ++r) before[r] *= state[r];
    for (uint32_t j = 0; j < block.candidates; ++j) {
      successor_.row(known.tokens[j], next);
      double sum = known.logits[j];
      for (uint32_t r = 0; r < rank_; ++r) sum += double{before[r]} * next[r];
      scores[j] = static_cast<float>(sum);
    }
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
      if (std::isnan(scores[a]) != std::isnan(scores[b])) return std::isnan(scores[b]);
      return scores[a] != scores[b] && !std::isnan(scores[a]) ? scores[a] > scores[b]
                                                              : known.tokens[a] < known.tokens[b];
    });
    double sum = 0;
    for (const uint32_t j : order) {
      result.tokens.push_back(known.tokens[j]);
      result.logits.push_back(scores[j]);
      sum += std::exp(double{scores[j]} - scores[order[0]]);
    }
    result.log_sum_exp.push_back(static_cast<float>(scores[order[0]] + std::log(sum)));
  }
  return result;
}

}  // namespace canopy
