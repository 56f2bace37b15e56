#include "engine/session/reply_writer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/compute/kv_slots.h"
#include "engine/speculation/round_record.h"

namespace canopy {
namespace {

/// A device that cannot be measured gets the numbers of a small CPU: what rounds really take corrects them.
DevicePeak peak_of(Device& device) {
  try {
    return device.measure_peak();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unavailable) throw;
    return {.read_gb_s = 10, .fma_gflop_s = 50, .plain_fma_gflop_s = 50};
  }
}

}  // namespace

ModelShape model_shape(const ModelConfig& config) {
  ModelShape shape;
  shape.layers = config.layers;
  shape.hidden = config.hidden;
  shape.query_heads = config.mean_heads();
  shape.kv_heads = config.mean_kv_heads();
  shape.head_dim = config.mean_head_dim();
  shape.ffn = config.mean_ffn();
  shape.vocab = config.vocab;
  shape.moe_layers = config.layers_with_experts();
  shape.experts = config.experts;
  shape.experts_per_row = config.experts_used;
  shape.expert_ffn = config.expert_ffn;
  shape.shared_ffn = config.shared_ffn;
  shape.recurrent_layers = config.recurrent_layers();
  if (config.conv_taps != 0) {  // 4 H^2 weights and taps - 1 rows of H, as of a recurrence of these sizes
    shape.recurrent_keys = std::max(1u, config.hidden / 2);
    shape.recurrent_values = config.hidden;
    shape.recurrent_key_dim = config.conv_taps - 1;
  } else if (shape.recurrent_layers > 0) {
    shape.recurrent_keys = config.delta_net.keys();
    shape.recurrent_values = config.delta_net.values();
    shape.recurrent_key_dim = config.delta_net.key_dim;
  }
  shape.gated = config.has_output_gate ? 1 : 0;
  shape.layers_without_mixer = static_cast<uint32_t>(std::ranges::count(config.has_mixer, false));
  shape.layers_without_ffn = static_cast<uint32_t>(std::ranges::count(config.has_feed_forward, false));
  shape.ungated_ffn = config.has_square_relu ? 1 : 0;
  shape.latent_rank = config.latent.rank;
  shape.latent_query_rank = config.latent.query_rank;
  shape.latent_key_dim = config.latent.key_dim;
  shape.latent_value_dim = config.latent.value_dim;
  return shape;
}

ModelShape model_shape(const Model& model) {
  const ModelConfig& config = model.config();
  ModelShape shape = model_shape(config);
  // Whole tiles of a tiny weight may be many times its elements.
  shape.weight_bytes = std::min<double>(
      kMostElementBytes, static_cast<double>(model.pass_bytes()) / static_cast<double>(model.weight_elements()));
  shape.kv_bytes = mean_element_bytes(kv_shape(config, model.limits(), 0));
  shape.activation_bytes = sizeof(float);
  return shape;
}

std::unique_ptr<SpeculationState> pair_speculation(const Model& target, const FeatureDrafter* drafter,
                                                   const DraftModel* draft_model, CostTable table,
                                                   SpeculationState* measured) {
  PairFacts pair;
  if (drafter != nullptr) pair.block_size = drafter->max_depth() + 1;
  if (draft_model != nullptr) pair.block_size = DraftModel::kDeepest + 1;
  pair.by_token = draft_model != nullptr || (drafter != nullptr && drafter->by_token());
  pair.roofline = [&target, measured] {
    if (measured != nullptr) return measured->roofline();
    const DevicePeak peak = peak_of(target.device());
    return Roofline(model_shape(target), DevicePeaks{peak.product_gflop_s() * 1e9, peak.read_gb_s * 1e9});
  };
  pair.recordings = [&target, drafter, draft_model] {
    return target.recordings() + (drafter != nullptr ? drafter->recordings() : 0) +
           (draft_model != nullptr ? draft_model->recordings() : 0);
  };
  return std::make_unique<SpeculationState>(std::move(pair), std::move(table));
}

const FreeDraft& SequenceDrafts::from_text(uint32_t depths) {
  if (text_ == nullptr || (sources_ & (kFromSuffix | kFromEarlier)) == 0) return nothing_;
  found_.read(*text_);
  return found_.draft(depths);
}

const FreeDraft& SequenceDrafts::recycled(uint32_t root, uint32_t depths) {
  if (recycling_ == nullptr || (sources_ & kFromRecycling) == 0) return nothing_;
  draft_recycled(*recycling_, root, recycling_template(), depths, recycled_);
  return recycled_;
}

const BlockDraft* SequenceDrafts::draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop) {
  if (model_ != nullptr) return drafted_ = model_->draft(*text_, wish, stop);
  std::optional<Draft> draft = sequence_.draft(root, wish, stop);
  if (!draft) return nullptr;
  draft_ = std::move(*draft);
  return drafted_ = &draft_;
}

// The device sorted the first of them; their values stand, since the host may round a softcap another way.
bool SequenceDrafts::more(uint32_t depth, uint32_t, uint32_t count, std::vector<uint32_t>& tokens,
                          std::vector<float>& logits) {
  if (draft_.drafter == nullptr) return false;  // token by token
  const DepthCandidates known = draft_.at(depth);
  const std::vector<float> all = draft_.logits_at(depth);
  const Drafter& drafter = *draft_.drafter;
  std::vector<bool> is_known(drafter.config().transformer.vocab);
  for (const uint32_t token : known.tokens) is_known[token] = true;
  std::vector<uint32_t> others;  // by their places among the drafted tokens, which have the order of the ids
  for (uint32_t place = 0; place < all.size(); ++place) {
    if (!is_known[drafter.token_at(place)]) others.push_back(place);
  }
  const auto end = others.begin() + static_cast<std::ptrdiff_t>(count - known.tokens.size());
  std::partial_sort(others.begin(), end, others.end(),
                    [&](uint32_t a, uint32_t b) { return all[a] != all[b] ? all[a] > all[b] : a < b; });
  tokens.assign(known.tokens.begin(), known.tokens.end());
  logits.assign(known.logits.begin(), known.logits.end());
  const float least = known.logits.back();
  for (auto place = others.begin(); place != end; ++place) {
    tokens.push_back(drafter.token_at(*place));
    logits.push_back(std::min(all[*place], least));
  }
  return true;
}

namespace {

std::vector<std::string> all_stops(const ChatTemplate& chat, const ReplySettings& settings) {
  std::vector<std::string> stops = chat.stop_strings();
  stops.insert(stops.end(), settings.stop_strings.begin(), settings.stop_strings.end());
  return stops;
}

/// 0 of none.
float mean_of(std::span<const uint32_t> counts) {
  if (counts.empty()) return 0;
  const auto sum = static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
  return static_cast<float>(sum / static_cast<double>(counts.size()));
}

}  // namespace

uint32_t prefill_chunk(const Model& model) {
  return std::bit_floor(std::min(model.device().info().prompt_rows, model.limits().max_width));
}

ReplyWriter::ReplyWriter(const Parts& parts, std::span<const uint32_t> prompt, const ReplySettings& settings,
                         const ReplyCallbacks& callbacks)
    : parts_(parts),
      settings_(settings),
      callbacks_(callbacks),
      sampler_(settings.sampling, parts.model.config().vocab),
      adjustments_(settings.sampling, parts.model.config().vocab),
      text_(*parts.text.tokenizer, all_stops(*parts.text.chat, settings), prompt),
      history_(prompt.begin(), prompt.end()) {
  check(prompt);
  begin_with(settings.begun);
  adjustments_.add(history_);
  longest_ = static_cast<uint32_t>(settings.begun.size()) + settings.max_tokens;
  if (!settings.forced.empty()) longest_ = std::min(longest_, static_cast<uint32_t>(settings.forced.size()));
  reply_.prompt_tokens = static_cast<uint32_t>(prompt.size());
}

std::unique_ptr<RoundPlanner> ReplyWriter::make_planner() {
  if (settings_.mode == DecodeMode::ar) return std::make_unique<ArPlanner>();
  drafts_.emplace(*sequence_, history_, recycles() ? parts_.recycling : nullptr,
                  (settings_.sources & kFromEarlier) != 0 ? parts_.earlier : nullptr, parts_.draft_model,
                  settings_.sources);
  if (settings_.mode != DecodeMode::adaptive) {
    if (parts_.state != nullptr) parts_.state->use(parts_.state->policy());  // what was learnt under it stays
    return std::make_unique<FixedPlanner>(settings_.mode, settings_.budget, *drafts_, parts_.state);
  }
  SpeculationState& state = *parts_.state;
  state.use(settings_.policy);
  if (settings_.policy == CostPolicy::paper) {
    return std::make_unique<PaperPlanner>(PaperRuleSettings{}, *drafts_, state);
  }
  return std::make_unique<AdaptivePlanner>(*drafts_, state);
}

Reply ReplyWriter::write() {
  while (run_step()) {
  }
  return take();
}

bool ReplyWriter::step() {
  if (!drafts() || parts_.state == nullptr) return run_step();
  Controller& controller = parts_.state->controller();
  controller.exchange(learns_);
  const bool going = run_step();
  controller.exchange(learns_);
  return going;
}

bool ReplyWriter::run_step() {
  step_start_ = std::chrono::steady_clock::now();
  bool going = false;
  switch (stage_) {
    case Stage::begin:
      begin();
      stage_ = Stage::read;
      going = read();
      break;
    case Stage::read:
      resume();
      going = read();
      break;
    case Stage::write:
      resume();
      going = lacks_text() ? read_again() : round();
      break;
    case Stage::over: return false;
  }
  if (!going) end();
  return going;
}

void ReplyWriter::begin() {
  const Sequence& before = parts_.texts.current();
  const uint32_t length_before = before.length();
  sequence_ = &parts_.texts.begin(history_, asks_drafter(), parts_.owner);
  held_ = parts_.texts.hold();
  if (settings_.prompt_logprobs) sequence_->clear();  // every row is wanted
  goes_on_ = sequence_ == &before && length_before > 0 && committed() == length_before;
  planner_ = make_planner();
  if (asks_draft_model()) held_draft_ = parts_.draft_model->begin(history_, parts_.owner);
  reply_.reused_tokens = committed();
  if (callbacks_.prefill) callbacks_.prefill(reply_.reused_tokens, static_cast<uint32_t>(history_.size()));
}

/// Others may have been written meanwhile.
void ReplyWriter::resume() {
  held_.resume();
  if (held_draft_) held_draft_.resume();
}

void ReplyWriter::end() {
  const std::string rest = text_.finish();
  if (!rest.empty()) report(rest);
  if (settings_.times_plain) reply_.plain = plain_beside();
  reply_.text = text_.text();
  reply_.thought = text_.thought();
  reply_.calls = text_.calls();
  reply_.stop_string = text_.stop_string();
  reply_.context_used = committed();
  held_ = {};
  held_draft_ = {};
  stage_ = Stage::over;
}

void ReplyWriter::check(std::span<const uint32_t> prompt) const {
  const uint32_t context = parts_.model.limits().context;
  if (prompt.empty()) throw bad_input("The prompt is empty; it needs at least one token.");
  if (settings_.prompt_logprobs && !settings_.logprobs)
    throw bad_input("Log probabilities of the prompt were asked for without those of the reply; both belong together.");
  if (settings_.max_tokens == 0 && !settings_.prompt_logprobs)
    throw bad_input("The token limit of a reply is 0; allowed: 1 or more.");
  if (settings_.mode == DecodeMode::adaptive && settings_.policy == CostPolicy::paper &&
      (!asks_drafter() || parts_.texts.drafter()->by_token())) {
    throw bad_input(
        "The paper's rule needs a DFlash drafter, and none is loaded or asked; without one the policy measured is "
        "possible, which guesses by another model and from the text.");
  }
  if (settings_.mode == DecodeMode::adaptive && parts_.state == nullptr) {
    throw bad_input("The mode adaptive needs to know what passes cost on this device; this session was not told.");
  }
  if (settings_.mode == DecodeMode::tree && settings_.budget == 0) {
    throw bad_input("The budget of the draft tree is 0; allowed: 1 or more drafted nodes.");
  }
  if (const size_t all = prompt.size() + settings_.begun.size(); all > context) {
    throw bad_input("The conversation has " + std::to_string(all) + " tokens, but the context holds only " +
                    std::to_string(context) + advice_on_room(context, parts_.model.config().max_context));
  }
  validate_accept_rates(settings_.accept_rates);
  if (!settings_.accept_rates.empty() && !settings_.forced.empty()) {
    throw bad_input("A reply is forced and is to accept by given rates; only one of both decides its tokens.");
  }
  for (const uint32_t id : settings_.forced) require_token(id, "The forced reply");
  for (const uint32_t id : settings_.begun) require_token(id, "The beginning of the reply");
  for (const uint32_t id : prompt) require_token(id, "The prompt");
}

/// Takes the tokens that the reply already has. They are read with the prompt; the text of those behind the last whole
/// character, or that may begin a stop string, is still to come.
void ReplyWriter::begin_with(std::span<const uint32_t> begun) {
  const std::vector<uint32_t>& stops = parts_.text.stop_ids;
  for (const uint32_t id : begun) {
    text_.push(id);
    loops_at(id);  // what ended there goes on now
    if (std::binary_search(stops.begin(), stops.end(), id) || text_.stopped())
      throw bad_input("The reply cannot go on: it ended by itself.");
  }
  history_.insert(history_.end(), begun.begin(), begun.end());
  reply_.ids.assign(begun.begin(), begun.end());
}

void ReplyWriter::require_token(uint32_t id, const char* where) const {
  const uint32_t vocab = parts_.model.config().vocab;
  if (id < vocab) return;
  throw bad_input(std::string(where) + " holds token " + std::to_string(id) + "; allowed: below " +
                  std::to_string(vocab) + ".");
}

bool ReplyWriter::cancelled() {
  reply_.reason = FinishReason::cancelled;
  return false;
}

/// Reads the next tokens of the prompt that are not in the caches, of the model that drafts first: behind the last of
/// the prompt the first token is chosen at once.
bool ReplyWriter::read() {
  if (asks_draft_model() && parts_.draft_model->prompt_left(history_) > 0) {
    const bool read = parts_.draft_model->read_prompt(history_, callbacks_.stop);
    reply_.prefill_ms += milliseconds_since(step_start_);
    return read || cancelled();
  }
  const auto total = static_cast<uint32_t>(history_.size());
  cut_to(sequence_->reusable_length());
  const std::optional<uint32_t> row = read_rows(total, true);
  if (row && callbacks_.prefill) callbacks_.prefill(committed(), total);
  if (row && committed() == total) return first_token(*row);
  reply_.prefill_ms += milliseconds_since(step_start_);
  return row || cancelled();
}

/// Where others took the memory of features, their tokens are read again.
void ReplyWriter::cut_to(uint32_t kept) {
  if (asks_drafter() && kept < committed()) sequence_->truncate(kept);
}

/// Whether others took the memory of some of the text, which is then to be read again: the same bits come of it.
bool ReplyWriter::lacks_text() {
  cut_to(sequence_->feature_length());
  return committed() + 1 < history_.size();
}

bool ReplyWriter::read_again() {
  return read_rows(static_cast<uint32_t>(history_.size()) - 1, false) || cancelled();
}

/// Runs the next of the first `end` tokens behind the committed text and commits them. The last one's row, which has
/// what a token is chosen by where `choose` and it is the last of all. Nothing when cancelled.
std::optional<uint32_t> ReplyWriter::read_rows(uint32_t end, bool choose) {
  if (stopped()) return std::nullopt;
  // Powers of two: every width has kernels of its own, and a device compiles those of a width when it first meets it.
  const uint32_t first = committed();
  const uint32_t count = std::min(prefill_chunk(parts_.model), std::bit_floor(end - first));
  const std::span<const uint32_t> tokens(history_.data() + first, count);
  const bool last = choose && first + count == end;
  head_ = last ? head() : HeadOutput::none;
  ForwardInput input = sequence_->text(tokens, head_);
  choose_by(input);
  input.aux_hidden_states = asks_drafter();
  input.likeliest = last && recycles();
  output_ = parts_.model.forward(input, callbacks_.stop);
  if (!output_.completed()) return std::nullopt;
  if (choose && settings_.prompt_logprobs && callbacks_.prompt_token) tell_prompt(tokens);
  if (!sequence_->append(tokens, output_, callbacks_.stop)) return std::nullopt;
  return count - 1;
}

/// Chooses it by that row of the last pass.
bool ReplyWriter::first_token(uint32_t row) {
  const double before = reply_.prefill_ms;
  if (settings_.max_tokens == 0) {
    reply_.prefill_ms = before + milliseconds_since(step_start_);
    reply_.reason = FinishReason::max_tokens;
    return false;
  }
  const uint32_t first = choose(row);
  weigh(row, first);
  reply_.prefill_ms = before + milliseconds_since(step_start_);
  const auto begun = static_cast<uint32_t>(text_.text().size());
  if (callbacks_.started) callbacks_.started({reply_.reused_tokens, reply_.prefill_ms, first, begun, history_});
  const bool going = !append(first);
  reply_.prefill_ms = before + milliseconds_since(step_start_);
  stage_ = Stage::write;
  if (going && callbacks_.drafting && parts_.state != nullptr) {
    TraceDrafting drafting =
        drafting_before(this->start(), settings_.mode, drafts_ ? &*drafts_ : nullptr, *parts_.state);
    drafting.sources = asked_sources();
    drafting.prompt_read = committed() - reply_.reused_tokens;
    drafting.goes_on = goes_on_;
    callbacks_.drafting(drafting);
  }
  return going;
}

/// Tells the log probabilities of the tokens that stand behind the rows of the last pass, and of the text's first; what
/// is read again, because others took its memory, was told before.
void ReplyWriter::tell_prompt(std::span<const uint32_t> tokens) {
  const uint32_t first = committed(), vocab = parts_.model.config().vocab;
  if (told_prompt_ == 0) {
    callbacks_.prompt_token({{tokens.front(), std::numeric_limits<double>::quiet_NaN()}, {}});
    told_prompt_ = 1;
  }
  const auto known = std::min(static_cast<uint32_t>(tokens.size()), static_cast<uint32_t>(history_.size()) - 1 - first);
  // As many rows as the head is computed for at a time.
  while (told_prompt_ <= first + known) {
    std::vector<uint32_t> rows(std::min(parts_.model.limits().head_rows, first + known + 1 - told_prompt_));
    std::iota(rows.begin(), rows.end(), told_prompt_ - 1 - first);
    const std::vector<float> logits = output_.logits(rows);
    for (size_t i = 0; i < rows.size(); ++i)
      callbacks_.prompt_token(
          logprobs_of(std::span(logits).subspan(i * vocab, vocab), history_[told_prompt_++], *settings_.logprobs));
  }
}

/// Writes the tokens of one round. False when the reply has ended.
bool ReplyWriter::round() {
  if (committed() >= parts_.model.limits().context) {
    reply_.reason = FinishReason::context_full;
    return false;
  }
  if (stopped()) return cancelled();
  const auto start = std::chrono::steady_clock::now();
  RoundRecord record;
  record.round = static_cast<uint32_t>(reply_.rounds.size());
  record.context = committed();
  record.mode = settings_.mode;
  tree_ = planner_->plan(this->start(), record, callbacks_.stop);
  if (tree_ == nullptr) return cancelled();
  record.width = tree_->width();
  {
    const StageTimer timer(record.ms.verify);
    head_ = head();
    ForwardInput input = sequence_->tree(*tree_, head_, settings_.probabilities);
    choose_by(input);
    input.aux_hidden_states = asks_drafter();
    input.likeliest = recycles();
    output_ = parts_.model.forward(input, callbacks_.stop);
    if (!output_.completed()) return cancelled();
    record.device_ms.verify = output_.device_ms();
  }
  const bool ended = accept_path(record);
  recycle();
  commit(record);
  if (tree_->drafted() > 0) describe_nodes(record);
  record.distinct_experts = mean_of(output_.distinct_experts());
  record.ms.other = std::max(0.0, milliseconds_since(start) - record.ms.total());
  if (parts_.state != nullptr && parts_.state->times() != nullptr) {
    take_times(*parts_.state->times(), record.ms.draft > 0 ? drafts_->drafted() : nullptr, record);
  }
  reply_.decode_ms += record.ms.total();
  planner_->observe(record);
  if (callbacks_.round) callbacks_.round(record);
  reply_.rounds.push_back(std::move(record));
  return !ended;
}

/// Remembers what the target found likeliest behind the tokens that it verified, wrong ones too.
void ReplyWriter::recycle() {
  for (size_t i = 0; i < output_.rows_with_likeliest(); ++i) {
    parts_.recycling->learn((*tree_)[static_cast<uint32_t>(i)].token, output_.likeliest(i));
  }
}

/// Those of the settings that there are.
DraftSources ReplyWriter::asked_sources() const {
  const DraftSources free = settings_.sources & kFreeSources;
  if ((settings_.sources & kFromModels) == 0) return free;
  if (parts_.draft_model != nullptr) return free | kFromDraft;
  const FeatureDrafter* const drafter = parts_.texts.drafter();
  return drafter != nullptr ? free | drafter->source() : free;
}

RoundStart ReplyWriter::start() const {
  const ModelLimits& limits = parts_.model.limits();
  RoundStart start;
  start.root = history_.back();
  start.context = committed();
  start.remaining = longest_ - static_cast<uint32_t>(reply_.ids.size());
  start.context_left = limits.context - start.context;
  start.rows = std::min(limits.tree_slots + 1, limits.max_width);
  start.keep_draft = settings_.drafts;
  return start;
}

/// Follows the target's own tokens along the tree. True when one of them ended the reply: it is not followed then, as
/// autoregressive decoding would not have computed its row.
bool ReplyWriter::accept_path(RoundRecord& record) {
  bool ended = false;
  const auto choose_and_accept = [&](uint32_t node) -> WalkedToken {
    const StageTimer timer(record.ms.walk);
    const uint32_t token = choose_at(node);
    weigh(node, token);
    record.emitted.push_back(token);
    ended = append(token);
    return {token, ended};
  };
  canopy::accept(*tree_, choose_and_accept, path_);
  record.accepted = path_.accepted();
  return ended;
}

void ReplyWriter::describe_nodes(RoundRecord& record) const {
  const std::span<const uint32_t> choices = output_.choices();
  record.nodes.resize(tree_->width());
  for (uint32_t i = 0; i < tree_->width(); ++i) {
    record.nodes[i].node = (*tree_)[i];
    record.nodes[i].log_p = output_.log_p(i);
    if (i < choices.size()) record.nodes[i].target_token = choices[i];
  }
  for (uint32_t depth = 0; depth < path_.nodes.size(); ++depth) {
    record.nodes[path_.nodes[depth]].state = NodeState::accepted;
    record.nodes[path_.nodes[depth]].target_token = record.emitted[depth];
  }
  for (RoundNode& node : record.nodes) {
    if (node.state == NodeState::accepted) continue;
    const bool at_frontier = record.nodes[node.node.parent].state == NodeState::accepted;
    node.state = at_frontier ? NodeState::rejected : NodeState::not_reached;
  }
}

HeadOutput ReplyWriter::head() const {
  if (settings_.logprobs) return HeadOutput::logits;
  if (settings_.sampling.is_plain_greedy()) return HeadOutput::argmax;
  const bool fits = adjustments_.all().size() <= parts_.model.limits().max_adjustments();
  return parts_.draws_on_device && fits ? HeadOutput::sampled : HeadOutput::logits;
}

/// Says how tokens are drawn behind history_, where the pass draws them.
void ReplyWriter::choose_by(ForwardInput& input) const {
  if (input.head != HeadOutput::sampled) return;
  const std::span<const TokenAdjustment> adjustments = adjustments_.all();
  input.sampling = {sampling_words(settings_.sampling, settings_.turn, reply_.ids.size()),
                    {adjustments.begin(), adjustments.end()},
                    adjustments_.any()};
}

/// The target's own next token after a row of the last pass, whose text or path is the end of history_.
uint32_t ReplyWriter::choose(uint32_t row) {
  if (!settings_.forced.empty()) return settings_.forced[reply_.ids.size()];
  if (head_ == HeadOutput::argmax) return output_.best(row);
  if (head_ == HeadOutput::sampled) {
    if (const uint32_t token = output_.drawn(row); token != kNoToken) return token;
  }
  // On the host, which also says why no token can be drawn.
  return sampler_.sample(output_.logits(row), history_, settings_.turn, reply_.ids.size());
}

/// The token that is emitted at a node of the tree.
uint32_t ReplyWriter::choose_at(uint32_t node) {
  const uint32_t own = choose(node);
  if (settings_.accept_rates.empty()) return own;
  const double draw = accept_draw(settings_.sampling.seed, settings_.turn, reply_.ids.size());
  return token_by_rates(*tree_, node, own, settings_.accept_rates, draw, parts_.model.config().vocab,
                        parts_.text.stop_ids);
}

/// The log probabilities of a token that is emitted after a row of the last pass, where they are asked for.
void ReplyWriter::weigh(uint32_t row, uint32_t token) {
  if (settings_.logprobs) logprobs_ = logprobs_of(output_.logits(row), token, *settings_.logprobs);
}

namespace {

constexpr size_t kPlainBehind = 3;   // passes behind a reply that say what plain decoding takes
constexpr size_t kMostPrepared = 1;  // more of them, whose recordings were made first

}  // namespace

/// By the plain rounds where there are enough, else by passes behind the reply, unless it was stopped: who stops does
/// not wait.
PlainBeside ReplyWriter::plain_beside() {
  std::vector<double> ms;
  for (const RoundRecord& round : reply_.rounds)
    if (is_plain(round)) ms.push_back(round.ms.total());
  if (ms.size() >= kEnoughPlain) return median_pass(std::move(ms), true);
  const bool whole = reply_.reason != FinishReason::cancelled && reply_.reason != FinishReason::failed;
  const bool compares = drafts() && !reply_.rounds.empty() && settings_.forced.empty();
  if (!whole || !compares || committed() >= parts_.model.limits().context) return {};
  try {
    return plain_behind();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::device_lost) throw;
    return {};  // the reply is written: what it would be compared with is then not known
  }
}

/// Times passes over the last token as plain decoding makes them, from the rows to the token that is drawn. None is
/// committed, so that text and caches stay as they are.
PlainBeside ReplyWriter::plain_behind() {
  DraftTree root;
  root.reset(history_.back());
  std::vector<double> ms;
  for (size_t pass = 0; pass < kPlainBehind + kMostPrepared && ms.size() < kPlainBehind; ++pass) {
    const uint64_t recordings = parts_.model.recordings();
    const auto start = std::chrono::steady_clock::now();
    head_ = head();
    ForwardInput input = sequence_->tree(root, head_);
    choose_by(input);
    output_ = parts_.model.forward(input, callbacks_.stop);
    if (!output_.completed()) return {};
    choose(0);
    if (parts_.model.recordings() == recordings) ms.push_back(milliseconds_since(start));
  }
  return ms.size() < kPlainBehind ? PlainBeside() : median_pass(std::move(ms), false);
}

/// Commits the accepted path. Takes no stop token: text, cache and features must agree afterwards.
void ReplyWriter::commit(RoundRecord& record) {
  const StageTimer timer(record.ms.commit);
  record.device_ms.commit = sequence_->commit(*tree_, path_, output_);
}

/// Adds a token to the reply. True when it ends it.
bool ReplyWriter::append(uint32_t token) {
  reply_.ids.push_back(token);
  history_.push_back(token);
  adjustments_.add(token);
  const std::vector<uint32_t>& stops = parts_.text.stop_ids;
  const bool is_stop = std::binary_search(stops.begin(), stops.end(), token);
  const std::string shown = is_stop ? text_.push_end(token) : text_.push(token);
  const bool stops_here = is_stop || text_.stopped();
  const bool loops = loops_at(token) && !stops_here;
  const bool ended = stops_here || loops || reply_.ids.size() >= longest_;
  if (ended)
    reply_.reason = stops_here ? FinishReason::stop_token : loops ? FinishReason::repeats : FinishReason::max_tokens;
  report(shown, settings_.logprobs ? &logprobs_ : nullptr);
  return ended;
}

/// Whether the reply is to end at this token because it repeats itself.
bool ReplyWriter::loops_at(uint32_t token) {
  if (!settings_.stop_loops) return false;
  const Tokenizer& tokenizer = *parts_.text.tokenizer;
  return loops_.push(token, tokenizer.is_special(token) ? std::string_view() : tokenizer.token_bytes(token));
}

void ReplyWriter::report(std::string_view shown, const TokenLogprobs* logprobs) const {
  if (!callbacks_.token) return;
  // Everything but the root is or will be in the cache.
  const auto used = static_cast<uint32_t>(history_.size()) - 1;
  callbacks_.token({shown, static_cast<uint32_t>(reply_.ids.size()), static_cast<uint32_t>(text_.completed()), used,
                    reply_.tokens_per_second(), static_cast<uint32_t>(text_.text().size()), text_.thought(), logprobs});
}

}  // namespace canopy
