#include "engine/whatif/recorded_reply.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace canopy {
namespace {

constexpr uint32_t usual_block = 16;     // rows of a drafter's pass, where rounds do not say
constexpr uint32_t usual_rows = 129;     // of the widest pass; likewise
constexpr uint32_t usual_waiting = 128;  // features that can wait
constexpr uint32_t any_vocabulary = 1u << 20;

bool ends_by_itself(const TraceReply& reply) {
  if (!reply.end) return false;
  const FinishReason reason = reply.end->reason;
  return reason == FinishReason::stop_token || reason == FinishReason::max_tokens || reason == FinishReason::repeats;
}

/// Whether there is a draft behind each root from which two tokens or more could follow.
bool covers_all_roots(const TraceReader& trace, size_t index, const RecordedReply& reply) {
  for (size_t root = 0; root + 1 < reply.text.size(); ++root) {
    if (reply.start(root).depths() > 0 && !trace.has_draft(index, reply.committed(root))) return false;
  }
  return true;
}

RecordedReply recorded_reply(const std::shared_ptr<const TraceReader>& trace, size_t index) {
  const TraceReply& recorded = trace->replies()[index];
  RecordedReply reply;
  reply.index = index;
  reply.mode = recorded.begin.mode;
  reply.policy = cost_policy_of(recorded.begin.policy).value_or(CostPolicy::measured);
  reply.budget = recorded.begin.budget;
  reply.context = trace->header().context;
  reply.rounds = recorded.rounds;
  reply.round = [trace, first = recorded.first_round](size_t round) { return trace->round(first + round); };
  reply.draft = [trace, index](uint32_t committed) { return trace->draft(index, committed); };
  reply.prompt = recorded.begin.prompt;
  if (!recorded.prefill || !recorded.prefill->first_token) return reply;
  reply.text.push_back(*recorded.prefill->first_token);
  for (size_t round = 0; round < reply.rounds; ++round) {
    const RoundRecord record = reply.round(round);
    reply.text.insert(reply.text.end(), record.emitted.begin(), record.emitted.end());
  }
  reply.ended = ends_by_itself(recorded);
  reply.knows_drafting = recorded.drafting.has_value();
  if (recorded.drafting) reply.drafting = *recorded.drafting;
  if (!reply.knows_drafting) guess_drafting(reply, recorded.begin.prompt_tokens);
  reply.dense = covers_all_roots(*trace, index, reply);
  return reply;
}

}  // namespace

RoundStart RecordedReply::start(size_t index) const {
  RoundStart start;
  start.root = text[index];
  start.context = committed(index);
  const auto left = static_cast<uint32_t>(text.size() - 1 - index);  // no reply has fewer than it wrote
  start.remaining = std::max(left, drafting.remaining - std::min(drafting.remaining, static_cast<uint32_t>(index)));
  start.context_left = context > start.context ? context - start.context : std::max(left, UINT32_MAX / 2);
  start.rows = std::max(1u, drafting.rows);
  return start;
}

std::vector<RecordedReply> recorded_replies(const std::shared_ptr<const TraceReader>& trace) {
  std::vector<RecordedReply> replies;
  for (size_t index = 0; index < trace->replies().size(); ++index) {
    RecordedReply reply = recorded_reply(trace, index);
    if (reply.text.size() > 1) replies.push_back(std::move(reply));
  }
  return replies;
}

void guess_drafting(RecordedReply& reply, uint32_t prompt_tokens) {
  TraceDrafting& drafting = reply.drafting;
  drafting.block = usual_block;
  drafting.drafted_tokens = any_vocabulary;
  drafting.rows = usual_rows;
  drafting.most_waiting = usual_waiting;
  drafting.committed = prompt_tokens;
  drafting.backlog = prompt_tokens == 0 ? 0 : (prompt_tokens - 1) % usual_waiting + 1;
  drafting.remaining = static_cast<uint32_t>(reply.text.size()) - 1;
  drafting.policy = to_string(reply.policy);
  if (reply.rounds == 0) return;
  const RoundRecord first = reply.round(0);
  const WidthLimits& limits = first.choice.limits;
  drafting.committed = first.context;
  if (limits.depth != WidthLimits::none && limits.depth >= 1) drafting.block = limits.depth + 1;
  if (limits.rows != WidthLimits::none && limits.rows >= 1) drafting.rows = limits.rows;
  for (size_t round = 0; round < reply.rounds; ++round) {
    const RoundRecord record = reply.round(round);
    for (const RoundNode& row : record.nodes) {
      drafting.sources |= row.node.sources;
      const bool is_drafted = (row.node.sources & kFromSteps) != 0 && row.node.depth > 1;
      if (is_drafted && record.nodes[row.node.parent].node.rank > 0) drafting.beams = kMostBeams;
    }
  }
  if (limits.tokens_left != WidthLimits::none) drafting.remaining = std::max(drafting.remaining, limits.tokens_left);
}

namespace {

/// In the place of a candidate of that rank that is not known: a token of no probability.
void add_improbable(size_t rank, BlockDraft& block) {
  block.tokens.push_back(UINT32_MAX - static_cast<uint32_t>(block.candidates - rank));
  block.logits.push_back(-1e9f * static_cast<float>(1 + rank));
}

/// Whether two nodes of one depth and rank have other tokens: what was drafted depends on the path to it.
bool depends_on_paths(const RoundRecord& record) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> tokens;  // by depth and rank
  for (const RoundNode& row : record.nodes) {
    const TreeNode& node = row.node;
    if (tokens.try_emplace({node.depth, node.rank}, node.token).first->second != node.token) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const KeptDraft> draft_of_tree(const RoundRecord& record) {
  std::vector<MoreCandidates> lists;  // by depth or, of a draft made token by token, by the nodes with children
  std::vector<uint32_t> parents;      // of these lists: the nodes
  std::vector<size_t> place(record.nodes.size(), SIZE_MAX);  // of the list behind a node
  bool by_token = false;
  size_t longest = 0;
  for (const RoundNode& row : record.nodes) by_token = by_token || (row.node.sources & kFromSteps) != 0;
  by_token = by_token || depends_on_paths(record);
  for (const RoundNode& row : record.nodes) {
    const TreeNode& node = row.node;
    if (node.depth == 0) continue;
    if ((node.sources & kFreeSources) != 0) return nullptr;  // it has no rank among the drafter's candidates
    size_t list = node.depth - 1;
    if (by_token) {
      if (place[node.parent] == SIZE_MAX) {
        place[node.parent] = parents.size();
        parents.push_back(node.parent);
      }
      list = place[node.parent];
    }
    if (lists.size() <= list) lists.resize(list + 1);
    MoreCandidates& here = lists[list];
    if (node.rank < here.tokens.size()) continue;
    // Ranks below are there already, in a best-first tree and in a chain.
    if (node.rank != here.tokens.size()) return nullptr;
    auto logit = static_cast<float>(std::clamp(node.log_q, -1e6, 0.0));
    // Two that round to the same float keep their order.
    if (!here.logits.empty() && logit >= here.logits.back()) logit = std::nextafter(here.logits.back(), -INFINITY);
    here.tokens.push_back(node.token);
    here.logits.push_back(logit);
    longest = std::max(longest, here.tokens.size());
  }
  if (lists.empty()) return nullptr;
  auto draft = std::make_shared<KeptDraft>();
  BlockDraft& block = draft->block;
  block.candidates = static_cast<uint32_t>(longest) + 1;
  block.log_sum_exp.assign(lists.size(), 0);
  for (const MoreCandidates& here : lists) {
    block.tokens.insert(block.tokens.end(), here.tokens.begin(), here.tokens.end());
    block.logits.insert(block.logits.end(), here.logits.begin(), here.logits.end());
    for (size_t rank = here.tokens.size(); rank < block.candidates; ++rank) add_improbable(rank, block);
  }
  for (const uint32_t parent : parents) {
    const TreeNode& node = record.nodes[parent].node;
    block.behind.push_back(parent == 0 ? BlockDraft::none
                                       : static_cast<uint32_t>(place[node.parent]) * block.candidates + node.rank);
    block.depths = std::max(block.depths, node.depth + 1);
  }
  if (!by_token) block.depths = static_cast<uint32_t>(lists.size());
  return draft;
}

namespace {

/// The lists of a draft behind paths that have fewer than `depths` tokens.
void cut_paths(const BlockDraft& whole, uint32_t depths, BlockDraft& cut) {
  const std::vector<uint32_t> lengths = path_lengths(whole.behind, whole.candidates);
  cut = BlockDraft();
  cut.depths = depths;
  cut.candidates = whole.candidates;
  std::vector<uint32_t> place(whole.lists());
  for (uint32_t i = 0; i < whole.lists(); ++i) {
    if (lengths[i] >= depths) continue;
    place[i] = cut.lists();
    const uint32_t parent = whole.behind[i] / whole.candidates, rank = whole.behind[i] % whole.candidates;
    cut.behind.push_back(i == 0 ? BlockDraft::none : place[parent] * whole.candidates + rank);
    const DepthCandidates list = whole.list(i);
    cut.tokens.insert(cut.tokens.end(), list.tokens.begin(), list.tokens.end());
    cut.logits.insert(cut.logits.end(), list.logits.begin(), list.logits.end());
    cut.log_sum_exp.push_back(whole.log_sum_exp[i]);
  }
}

/// As Drafter::append_features(): what does not fit any more is preceded by an injection.
uint32_t waiting_after_prompt(uint32_t waiting, uint32_t read, uint32_t most) {
  const uint32_t room = most - std::min(waiting, most);
  return read <= room ? waiting + read : (read - room - 1) % most + 1;
}

}  // namespace

RecordedDrafts::RecordedDrafts(const RecordedReply& reply, uint32_t depth, std::optional<uint32_t> left,
                               uint32_t deepest)
    : reply_(reply),
      depth_(depth),
      deepest_(deepest),
      whole_text_(reply.prompt),
      most_waiting_(std::max(1u, reply.drafting.most_waiting)),
      waiting_(left && reply.drafting.goes_on && (reply.drafting.sources & kFromDraft) == 0
                   ? waiting_after_prompt(*left, reply.drafting.prompt_read, most_waiting_)
                   : reply.drafting.backlog),
      committed_(reply.drafting.committed),
      by_token_((reply.drafting.sources & kFromSteps) != 0) {
  whole_text_.insert(whole_text_.end(), reply.text.begin(), reply.text.end());
}

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

DraftSources RecordedDrafts::drafted_by() const {
  for (const DraftSources source : {kFromDraft, kFromMtp, kFromEagle, kFromAssistant}) {
    if ((reply_.drafting.sources & source) != 0) return source;
  }
  return kFromDflash;
}

const FreeDraft& RecordedDrafts::from_text(uint32_t depths) {
  if ((reply_.drafting.sources & kFromSuffix) == 0) return nothing_;
  const size_t known = reply_.prompt.size() + (committed_ - reply_.drafting.committed) + 1;  // the root included
  found_.read(std::span(whole_text_).first(std::min(known, whole_text_.size())));
  return found_.draft(std::min(depths, deepest_));
}

const BlockDraft* RecordedDrafts::draft(uint32_t, const DraftWish& wish, const std::stop_token& stop) {
  if (stop.stop_requested()) return nullptr;
  current_ = instead_ != nullptr ? instead_ : reply_.draft(committed_);
  if (current_ == nullptr) return nullptr;
  const BlockDraft& whole = current_->block;
  if (by_token_ || whole.in_one_pass) {
    cut_.candidates = whole.candidates;
    const auto draft_again = by_token_ ? draft_beams : draft_paths;
    if (!draft_again(*this, 0, wish, tree_, cut_, stop)) return nullptr;
    return drafted_ = &cut_;
  }
  // What a tree tells of lists behind paths went as deep as that.
  shallow_ = whole.depths < wish.depths && instead_ == nullptr && !whole.is_by_token();
  if (whole.depths <= wish.depths) return drafted_ = &whole;
  if (whole.is_by_token()) {
    cut_paths(whole, wish.depths, cut_);
    return drafted_ = &cut_;
  }
  cut_.behind.clear();
  cut_.in_one_pass = false;
  const size_t count = size_t{wish.depths} * whole.candidates;
  cut_.depths = wish.depths;
  cut_.candidates = whole.candidates;
  cut_.tokens.assign(whole.tokens.begin(), whole.tokens.begin() + static_cast<std::ptrdiff_t>(count));
  cut_.logits.assign(whole.logits.begin(), whole.logits.begin() + static_cast<std::ptrdiff_t>(count));
  cut_.log_sum_exp.assign(whole.log_sum_exp.begin(), whole.log_sum_exp.begin() + wish.depths);
  return drafted_ = &cut_;
}

/// The recorded lists of these nodes. Recordings from before there were several paths have those of one alone.
bool RecordedDrafts::run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) {
  const BlockDraft& whole = current_->block;
  if (first == 0) lists_.clear();
  for (uint32_t node = first; node < tree.width(); ++node) {
    uint32_t list = node == 0 ? 0 : lists_[tree[node].parent];
    if (node > 0 && list != BlockDraft::none) {
      const uint32_t next = list + 1 < whole.lists() && tree[node].rank == 0 ? list + 1 : BlockDraft::none;
      list = whole.is_by_token() ? whole.list_behind(list, tree[node].token) : next;
    }
    lists_.push_back(list);
    if (list == BlockDraft::none) {
      shallow_ = shallow_ || instead_ == nullptr;
      for (uint32_t rank = 0; rank < draft.candidates; ++rank) add_improbable(rank, draft);
      draft.log_sum_exp.push_back(0);
      continue;
    }
    const DepthCandidates known = whole.list(list);
    draft.tokens.insert(draft.tokens.end(), known.tokens.begin(), known.tokens.end());
    draft.logits.insert(draft.logits.end(), known.logits.begin(), known.logits.end());
    draft.log_sum_exp.push_back(whole.log_sum_exp[list]);
  }
  return !stop.stop_requested();
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
  drafted_ = nullptr;
  shallow_ = starved_ = false;
}

/// As Drafter::append_features_soon(): what does not fit beside what waits is preceded by an injection.
void RecordedDrafts::commit(uint32_t tokens, bool drafted) {
  if ((reply_.drafting.sources & kFromDraft) != 0 && reply_.drafting.beams > 1) {
    if (drafted) {
      if (drafted_ == nullptr) tree_.reset(0);
      draft_root_ = committed_ - reply_.drafting.committed;
      since_draft_ = 0;
    }
    since_draft_ += tokens;
    waiting_ = draft_root_ ? since_draft_ - run_since_draft() : waiting_ + tokens;
    return;
  }
  if (drafted) waiting_ = 0;
  if (tokens > most_waiting_ - std::min(waiting_, most_waiting_)) waiting_ = 0;
  waiting_ += tokens;
}

/// How many of the tokens behind the last draft's root, but for the last of them, it has run.
uint32_t RecordedDrafts::run_since_draft() const {
  uint32_t node = 0, count = 0;
  while (count + 1 < since_draft_ && *draft_root_ + 1 + count < reply_.text.size()) {
    node = tree_.child(node, reply_.text[*draft_root_ + 1 + count]);
    if (node == TreeNode::none) break;
    ++count;
  }
  return count;
}

}  // namespace canopy
