#include "engine/model/beam_head.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/model/forward_io.h"
#include "engine/model/model.h"

namespace canopy {

BeamHead::BeamHead(Model& target, const ModelConfig& config, const ModelLimits& limits, uint32_t feature_width)
    : FeatureDrafter(target, limits, feature_width), config_(config), listed_(std::min(kListed, config_.vocab)) {}

BeamHead::~BeamHead() = default;

std::optional<Draft> BeamHead::draft(DraftState& text, uint32_t root, const DraftWish& wish,
                                     const std::stop_token& stop) {
  if (wish.depths == 0 || wish.depths > kDeepest) {
    throw bad_input("A draft of " + std::to_string(wish.depths) + " tokens was asked for; allowed: 1 to " +
                    std::to_string(kDeepest) + ".");
  }
  if (const uint32_t vocab = target_.config().vocab; root >= vocab) {
    throw bad_input("A draft behind token " + std::to_string(root) + " was asked for; allowed: below " +
                    std::to_string(vocab) + ".");
  }
  if (text.known() == 0 || !has_last_state(text)) {
    throw bad_input("A draft behind " + std::to_string(text.known()) +
                    " tokens was asked for; the state of the last of them is not kept.");
  }
  if (stop.stop_requested()) return std::nullopt;  // a short pass is not asked in between
  text_ = &text;
  last_position_ = text.known() - 1;
  device_ms_ = 0;
  Draft draft;
  draft.candidates = listed_;
  DraftWish possible = wish;
  possible.costs = wish.costs.first(std::min<size_t>(wish.costs.size(), kMostBeams));
  if (!draft_beams(*this, root, possible, tree_, draft, stop)) return std::nullopt;
  draft.device_ms = device_ms_;
  return draft;
}

AddMatrix BeamHead::counting(uint64_t& file_bytes, uint64_t& device_bytes) const {
  return [this, &file_bytes, &device_bytes](std::string name, std::vector<const TensorView*> parts, WeightLayout layout,
                                            std::vector<uint32_t> rows) {
    MatrixPlan matrix = plan_matrix(std::move(name), std::move(parts), layout, std::move(rows));
    file_bytes = checked_add(file_bytes, matrix.file_bytes(), "size of the head's weights");
    device_bytes = checked_add(device_bytes, device_.weight_bytes(matrix.device_parts(), matrix.layout),
                               "size of the head's weights");
    return matrix;
  };
}

BeamHead::ListLayout BeamHead::list_layout(uint32_t width) const {
  const uint64_t each = uint64_t{width} * sizeof(uint32_t);
  Packing results;
  ListLayout layout;
  layout.tokens = results.add(each * listed_);
  layout.logits = results.add(each * listed_);
  layout.log_sum_exp = results.add(each);
  layout.bytes = results.end();
  return layout;
}

uint64_t BeamHead::node_bytes(uint32_t width, uint32_t state_width) const {
  return list_layout(width).bytes + uint64_t{kMostNodes} * state_width * sizeof(float);
}

void BeamHead::allocate_nodes(uint32_t width, uint32_t state_width) {
  lists_ = list_layout(width);
  state_width_ = state_width;
  const uint64_t each = uint64_t{width} * sizeof(uint32_t);
  results_ = device_.allocate_exchanged(lists_.bytes, HostUse::reads, "head results");
  tokens_ = device_.part(*results_, lists_.tokens, each * listed_, "drafted tokens");
  logits_ = device_.part(*results_, lists_.logits, each * listed_, "drafted logits");
  log_sum_exp_ = device_.part(*results_, lists_.log_sum_exp, each, "drafted sums");
  states_of_nodes_ = device_.allocate(uint64_t{kMostNodes} * state_width * sizeof(float), "states of drafted nodes");
}

void BeamHead::record_lists(Recorder& record, uint32_t width, uint32_t vocab) {
  record(TopKArgs{.width = width,
                  .logits = buffers_.logits.get(),
                  .vocab = vocab,
                  .k = listed_,
                  .ids = tokens_.get(),
                  .values = logits_.get(),
                  .log_sum_exp = log_sum_exp_.get()});
}

void BeamHead::read_lists(uint32_t count, BlockDraft& draft) {
  download_.resize(lists_.bytes);
  device_.read(*results_, 0, download_);
  const uint32_t vocab = target_.config().vocab;
  auto ids = array_at<uint32_t>(download_, lists_.tokens, size_t{count} * listed_);
  for (uint32_t& id : ids) id = id < config_.vocab ? token_at(id) : vocab;
  const auto values = array_at<float>(download_, lists_.logits, size_t{count} * listed_);
  for (uint32_t i = 0; i < count; ++i) {
    const size_t first = size_t{i} * listed_;
    add_list(std::span(ids).subspan(first, listed_), std::span(values).subspan(first, listed_),
             element_at<float>(download_, lists_.log_sum_exp, i), vocab, draft);
  }
}

std::vector<float> BeamHead::hidden_states() const {
  std::vector<float> states(size_t{drafted().width()} * state_width_);
  device_.read(*states_of_nodes_, 0, std::as_writable_bytes(std::span(states)));
  return states;
}

}  // namespace canopy
