#include "engine/whatif/recorded_drafts.h"

#include <algorithm>
#include <utility>

namespace canopy {

namespace {

/// As Drafter::append_features(): what does not fit any more is preceded by an injection.
uint32_t waiting_after_prompt(uint32_t waiting, uint32_t read, uint32_t most) {
  const uint32_t room = most - std::min(waiting, most);
  return read <= room ? waiting + read : (read - room - 1) % most + 1;
}

}  // namespace

RecordedDrafts::RecordedDrafts(const RecordedReply& reply, uint32_t depth, std::optional<uint32_t> left)
    : reply_(reply),
      depth_(depth),
      most_waiting_(std::max(1u, reply.drafting.most_waiting)),
      waiting_(left && reply.drafting.goes_on ? waiting_after_prompt(*left, reply.drafting.prompt_read, most_waiting_)
                                              : reply.drafting.backlog),
      committed_(reply.drafting.committed) {}

uint32_t RecordedDrafts::drafted_tokens() const {
  if (instead_ != nullptr) return instead_->block.candidates;
  uint32_t tokens = std::max(1u, reply_.drafting.drafted_tokens);
  if (current_ == nullptr) return tokens;
  tokens = std::max(tokens, current_->block.candidates);
  for (const MoreCandidates& each : current_->more) {
    tokens = std::max(tokens, static_cast<uint32_t>(each.tokens.size()));
  }
  return tokens;
}

const BlockDraft* RecordedDrafts::draft(uint32_t, uint32_t depths, const std::stop_token& stop) {
  if (stop.stop_requested()) return nullptr;
  current_ = instead_ != nullptr ? instead_ : reply_.draft(committed_);
  missing_ = current_ == nullptr;
  if (missing_) return nullptr;
  drafted_ = true;
  const BlockDraft& whole = current_->block;
  shallow_ = whole.depths < depths && instead_ == nullptr;
  if (whole.depths <= depths) return &whole;
  const size_t count = size_t{depths} * whole.candidates;
  cut_.depths = depths;
  cut_.candidates = whole.candidates;
  cut_.tokens.assign(whole.tokens.begin(), whole.tokens.begin() + static_cast<std::ptrdiff_t>(count));
  cut_.logits.assign(whole.logits.begin(), whole.logits.begin() + static_cast<std::ptrdiff_t>(count));
  cut_.log_sum_exp.assign(whole.log_sum_exp.begin(), whole.log_sum_exp.begin() + depths);
  return &cut_;
}

bool RecordedDrafts::more(uint32_t depth, uint32_t known, uint32_t, std::vector<uint32_t>& tokens,
                          std::vector<float>& logits) {
  const MoreCandidates* const more = current_->more_at(depth);
  if (more == nullptr || more->tokens.size() <= known) {
    starved_ = true;
    return false;
  }
  tokens = more->tokens;
  logits = more->logits;
  return true;
}

void RecordedDrafts::move_to(uint32_t committed, std::shared_ptr<const KeptDraft> instead) {
  committed_ = committed;
  instead_ = std::move(instead);
  drafted_ = missing_ = shallow_ = starved_ = false;
}

/// As Drafter::append_features_soon(): what does not fit beside what waits is preceded by an injection.
void RecordedDrafts::commit(uint32_t tokens, bool drafted) {
  if (drafted) waiting_ = 0;
  if (tokens > most_waiting_ - std::min(waiting_, most_waiting_)) waiting_ = 0;
  waiting_ += tokens;
}

}  // namespace canopy
