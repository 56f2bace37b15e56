#include "engine/model/recurrent_memory.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "engine/base/numbers.h"

namespace canopy {

StateRef::StateRef(StatePool& pool, uint32_t place) : pool_(&pool), place_(place) {
  pool_->add_user(place_);
}

StateRef::StateRef(const StateRef& other) : pool_(other.pool_), place_(other.place_) {
  if (pool_ != nullptr) pool_->add_user(place_);
}

StateRef::StateRef(StateRef&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), place_(other.place_) {}

StateRef& StateRef::operator=(StateRef other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(place_, other.place_);
  return *this;
}

StateRef::~StateRef() {
  if (pool_ != nullptr) pool_->remove_user(place_);
}

StateRef StatePool::take() {
  for (uint32_t place = kEmpty + 1; place < places(); ++place) {
    if (users_[place] == 0) return StateRef(*this, place);
  }
  return {};
}

void StatePool::add_user(uint32_t place) {
  if (place != kEmpty && users_[place]++ == 0) ++taken_;
}

void StatePool::remove_user(uint32_t place) {
  if (place != kEmpty && --users_[place] == 0) --taken_;
}

StateHistory::StateHistory(StatePool& pool) : pool_(&pool), current_{pool.empty(), 0} {}

StateUse StateHistory::begin(bool keeps) {
  behind_ = {};
  const uint32_t to = keeps ? place_behind() : StateUse::kNowhere;
  return {current_.state.place(), current_.position, to};
}

uint32_t StateHistory::place_behind() {
  if (!behind_) behind_ = pool_->take();
  while (!behind_) {
    if (!pool_->reclaim() && !give_up()) {
      throw out_of_memory("The text needs a place for the state of the model's recurrent layers; all " +
                          std::to_string(pool_->places()) + " that there are hold those of texts.");
    }
    behind_ = pool_->take();
  }
  return behind_.place();
}

void StateHistory::end(uint32_t tokens) {
  const uint32_t before = std::exchange(current_.position, current_.position + tokens);
  current_.state = std::exchange(behind_, {});
  if (before / kStep != current_.position / kStep) keep();
}

void StateHistory::keep() {
  if (current_.position > 0) add(current_);
}

void StateHistory::add(Kept kept) {
  const auto at = std::ranges::lower_bound(earlier_, kept.position, {}, &Kept::position);
  if (at != earlier_.end() && at->position == kept.position) return;
  earlier_.insert(at, std::move(kept));
  // Half of the places at most: other texts have some too.
  const size_t most = std::max<size_t>(1, pool_->places() / 2);
  while (earlier_.size() > most) give_up();
}

bool StateHistory::give_up() {
  if (earlier_.empty()) return false;
  // The one whose loss makes the way from the state before it to the one behind it shortest. Ties: the first.
  size_t cheapest = 0;
  uint32_t shortest = UINT32_MAX;
  for (size_t i = 0; i < earlier_.size(); ++i) {
    const uint32_t before = i == 0 ? 0 : earlier_[i - 1].position;
    const uint32_t behind = i + 1 < earlier_.size() ? earlier_[i + 1].position : current_.position;
    if (behind - before >= shortest) continue;
    shortest = behind - before;
    cheapest = i;
  }
  earlier_.erase(earlier_.begin() + static_cast<std::ptrdiff_t>(cheapest));
  return true;
}

uint32_t StateHistory::nearest(uint32_t length) const {
  if (current_.position <= length) return current_.position;
  const auto behind = std::ranges::upper_bound(earlier_, length, {}, &Kept::position);
  return behind == earlier_.begin() ? 0 : std::prev(behind)->position;
}

uint32_t StateHistory::cut(uint32_t length) {
  if (length >= current_.position) return current_.position;
  behind_ = {};
  while (!earlier_.empty() && earlier_.back().position > length) earlier_.pop_back();
  current_ = earlier_.empty() ? Kept{pool_->empty(), 0} : earlier_.back();
  return current_.position;
}

void StateHistory::pretend(uint32_t length) {
  cut(0);
  current_.position = length;
}

void StateHistory::adopt(const StateHistory& beginning) {
  for (const Kept& kept : beginning.earlier_) {
    if (kept.position < current_.position) add(kept);
  }
  if (beginning.position() > 0 && beginning.position() < current_.position) add(beginning.current_);
}

namespace {

constexpr uint32_t kNone = DeltaStep::kNone;

[[noreturn]] void refuse(size_t row, const std::string& what) {
  throw bad_input("Row " + std::to_string(row) + " of a pass over recurrent layers " + what + ".");
}

/// The slot of the position before a row's own; kNoSlot at position 0.
uint32_t slot_before(const RowBatch& batch, const Row& row) {
  if (row.ancestor_count >= 2) return batch.ancestors[row.first_ancestor + row.ancestor_count - 2];
  return row.position == 0 ? kNoSlot : batch.slot_of(row.position - 1);
}

/// Goes through the rows depth first.
class Walk {
 public:
  Walk(std::span<const uint32_t> parents, const StateUse& use) : parents_(parents), use_(use) {
    const size_t count = parents.size();
    children_.resize(count);
    sizes_.assign(count, 1);
    step_of_.assign(count, kNone);
    for (size_t i = count; i-- > 0;) {
      if (parents[i] != kNone) sizes_[parents[i]] += sizes_[i];
    }
    for (uint32_t i = 0; i < count; ++i) (parents[i] == kNone ? roots_ : children_[parents[i]]).push_back(i);
    for (std::vector<uint32_t>& rows : children_) by_size(rows);
  }

  std::vector<DeltaStep> steps() {
    for (const uint32_t root : roots_) visit(root);
    return std::move(steps_);
  }

 private:
  /// A row whose children are still to come, by its place among them, and the spare state that its own waits in.
  struct Open {
    uint32_t row = 0;
    size_t next = 0;
    uint32_t spare = kNone;
  };

  void by_size(std::vector<uint32_t>& rows) const {
    std::ranges::stable_sort(rows, {}, [this](uint32_t row) { return sizes_[row]; });
  }

  void visit(uint32_t root) {
    std::vector<Open> open;
    enter(root, use_.from, open);
    while (!open.empty()) {
      Open& top = open.back();
      if (top.next == children_[top.row].size()) {
        open.pop_back();
        continue;
      }
      const bool first = top.next == 0;
      const uint32_t child = children_[top.row][top.next++];
      const uint32_t spare = top.spare;
      if (top.next == children_[top.row].size() && spare != kNone) --spares_;  // nobody takes it after this child
      enter(child, first ? kNone : DeltaStep::kSpare | spare, open);
    }
  }

  void enter(uint32_t row, uint32_t from, std::vector<Open>& open) {
    DeltaStep step{row, parents_[row] == kNone ? kNone : step_of_[parents_[row]], from, kNone};
    Open entered{row, 0, kNone};
    if (children_[row].size() > 1) {  // the first child comes next, the others later
      entered.spare = spares_++;
      step.to = DeltaStep::kSpare | entered.spare;
    }
    step_of_[row] = static_cast<uint32_t>(steps_.size());
    steps_.push_back(step);
    open.push_back(entered);
  }

  std::span<const uint32_t> parents_;
  const StateUse& use_;
  std::vector<uint32_t> roots_;
  std::vector<std::vector<uint32_t>> children_;  // by row
  std::vector<uint32_t> sizes_;                  // rows below and with a row
  std::vector<uint32_t> step_of_;                // by row
  std::vector<DeltaStep> steps_;
  uint32_t spares_ = 0;  // states that wait
};

/// The steps of a line of rows behind `use.from`, the state after the last going to `use.to`.
std::vector<DeltaStep> delta_line(std::span<const uint32_t> rows, const StateUse& use) {
  std::vector<DeltaStep> steps;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    steps.push_back({rows[i], i == 0 ? kNone : i - 1, i == 0 ? use.from : kNone, kNone});
  }
  if (!steps.empty()) steps.back().to = use.to;
  return steps;
}

DeltaShape delta_shape(const ModelConfig& config) {
  const DeltaNetConfig& net = config.delta_net;
  return {net.key_heads, net.value_heads, net.key_dim, net.value_dim, net.taps, net.tiled, !net.scans};
}

/// Elements that a recurrent layer has of each row, and of each state that is kept.
struct RecurrentSizes {
  uint32_t row = 0;      // what its products give
  uint32_t results = 0;  // what its last product reads
  uint64_t state = 0, tail = 0;

  explicit RecurrentSizes(const ModelConfig& config) {
    const DeltaShape shape = delta_shape(config);
    const bool convolves = config.conv_taps != 0;
    row = convolves ? 3 * config.hidden : shape.row_elements();
    results = convolves ? config.hidden : shape.values();
    state = convolves ? 0 : shape.state_elements();
    tail = convolves ? uint64_t{config.conv_taps - 1} * config.hidden : shape.tail_elements();
  }
};

}  // namespace

std::vector<uint32_t> parents_of(const RowBatch& batch, uint32_t position) {
  std::unordered_map<uint32_t, uint32_t> row_of_slot;
  for (uint32_t i = 0; i < batch.width(); ++i) {
    if (!row_of_slot.emplace(batch.rows[i].slot, i).second) refuse(i, "has the slot of another row");
  }
  std::vector<uint32_t> parents;
  for (uint32_t i = 0; i < batch.width(); ++i) {
    const Row& row = batch.rows[i];
    const auto found = row.position <= position ? row_of_slot.end() : row_of_slot.find(slot_before(batch, row));
    const bool follows = found != row_of_slot.end() && batch.rows[found->second].position + 1 == row.position;
    if (follows && found->second > i) refuse(i, "comes before the row that it follows");
    if (!follows && row.position != position) {
      refuse(i, "is at position " + std::to_string(row.position) +
                    "; allowed: behind another row of the pass, or at position " + std::to_string(position) +
                    ", behind the text that there is a state of");
    }
    parents.push_back(follows ? found->second : kNone);
  }
  return parents;
}

std::vector<DeltaStep> delta_walk(const RowBatch& batch, const StateUse& use) {
  const std::vector<uint32_t> parents = parents_of(batch, use.position);
  if (use.to == StateUse::kNowhere) return Walk(parents, use).steps();
  for (uint32_t i = 0; i < parents.size(); ++i) {
    if (parents[i] != (i == 0 ? kNone : i - 1))
      refuse(i, "does not follow the one before, and the state is to be kept");
  }
  std::vector<uint32_t> rows(parents.size());
  std::iota(rows.begin(), rows.end(), 0u);
  return delta_line(rows, use);
}

uint32_t most_spare_states(uint32_t width) {
  return std::max(1u, static_cast<uint32_t>(std::bit_width(width)));
}

uint64_t kept_state_bytes(const ModelConfig& config, const ModelLimits& limits) {
  if (limits.states == 0) return 0;
  const RecurrentSizes sizes(config);
  const uint64_t state = word_bytes(sizes.state + sizes.tail);
  return checked_mul(checked_mul(state, uint64_t{config.recurrent_layers()}, "size of the states"),
                     uint64_t{limits.states}, "size of the states");
}

uint64_t recurrent_working_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device) {
  if (limits.states == 0) return 0;
  const RecurrentSizes sizes(config);
  const uint64_t rows = limits.rows();
  // The inputs of all layers, and of delta nets those that are prepared, gates and results; states put aside; the list
  // of steps.
  const uint64_t of_net = config.conv_taps != 0 ? 0 : sizes.row + 2 * uint64_t{sizes.results};
  const uint64_t of_row = uint64_t{config.recurrent_layers()} * sizes.row + of_net;
  const uint64_t words =
      checked_mul(rows, of_row, "size of recurrent inputs") + most_spare_states(limits.rows()) * sizes.state;
  return word_bytes(words) + device.activation_bytes(limits.rows(), sizes.results) +
         RecurrentMemory::kMaxRows * sizeof(DeltaStep);
}

RecurrentMemory::RecurrentMemory(Device& device, const ModelConfig& config, const ModelLimits& limits)
    : device_(device),
      shape_(delta_shape(config)),
      conv_taps_(config.conv_taps),
      rows_(limits.rows()),
      index_(config.layers, UINT32_MAX) {
  const RecurrentSizes sizes(config);
  row_elements_ = sizes.row;
  state_elements_ = sizes.state;
  tail_elements_ = sizes.tail;
  const auto floats = [&](uint64_t count, const char* name) { return device_.allocate(word_bytes(count), name); };
  const uint64_t rows = rows_, states = limits.states;
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (!config.is_recurrent(n)) continue;
    index_[n] = static_cast<uint32_t>(layers_.size());
    layers_.push_back({floats(rows * sizes.row, "recurrent inputs"),
                       sizes.state == 0 ? nullptr : floats(states * sizes.state, "recurrent states"),
                       floats(states * sizes.tail, "inputs before them")});
  }
  results_ = device_.allocate_activations(rows_, sizes.results, "results of recurrences");
  steps_ = device_.allocate_exchanged(kMaxRows * sizeof(DeltaStep), HostUse::writes, "steps to apply");
  if (conv_taps_ != 0) return;
  prepared_ = floats(rows * shape_.row_elements(), "prepared recurrent inputs");
  spare_ = floats(most_spare_states(rows_) * shape_.state_elements(), "states put aside");
  gate_ = floats(rows * shape_.values(), "recurrent gates");
  read_ = floats(rows * shape_.values(), "what states were read for");
}

Commands& RecurrentMemory::commands_for(const Weights& weights, uint32_t steps) {
  std::unique_ptr<Commands>& commands = commands_.at(static_cast<size_t>(std::countr_zero(steps)));
  if (commands) return *commands;
  Recorder record;
  for (uint32_t n = 0; n < index_.size(); ++n) {
    if (index_[n] != UINT32_MAX) record_recurrence(record, *this, weights.layers[n], n, steps, *steps_, false);
  }
  commands = device_.compile(record.finish());
  return *commands;
}

void RecurrentMemory::apply(const Weights& weights, std::span<const uint32_t> rows, const StateUse& use) {
  if (rows.empty() || rows.size() > kMaxRows) {
    throw bad_input(std::to_string(rows.size()) + " rows were to be applied to the states; allowed: 1 to " +
                    std::to_string(kMaxRows) + ".");
  }
  std::vector<DeltaStep> steps = delta_line(rows, use);
  steps.resize(std::bit_ceil(steps.size()));
  Commands& commands = commands_for(weights, static_cast<uint32_t>(steps.size()));
  device_.finish();  // commands that were started may read the list
  device_.write(*steps_, 0, as_bytes_of(steps));
  device_.run(commands);
}

std::vector<float> RecurrentMemory::read_state(uint32_t layer, uint32_t place) const {
  const RecurrentLayer& kept = this->layer(layer);
  std::vector<float> values(state_elements_ + tail_elements_);
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(values));
  const uint64_t state = word_bytes(state_elements_), tail = word_bytes(tail_elements_);
  std::vector<BufferRead> reads = {{kept.tails.get(), place * tail, bytes.last(tail)}};
  if (kept.states) reads.push_back({kept.states.get(), place * state, bytes.first(state)});
  device_.read_all(reads);
  return values;
}

void record_recurrence(Recorder& record, const RecurrentMemory& memory, const LayerWeights& weights, uint32_t layer,
                       uint32_t width, const Buffer& steps, bool reads) {
  const RecurrentLayer& kept = memory.layer(layer);
  if (memory.conv_taps() != 0) {
    record(ShortConvArgs{.width = width,
                         .rows = memory.rows(),
                         .cols = memory.results().cols(),
                         .taps = memory.conv_taps(),
                         .in = kept.inputs.get(),
                         .steps = &steps,
                         .kernel = weights.taps.get(),
                         .tails = kept.tails.get(),
                         .out = reads ? &memory.results() : nullptr});
    return;
  }
  record(DeltaInputsArgs{.width = width,
                         .rows = memory.rows(),
                         .in = kept.inputs.get(),
                         .steps = &steps,
                         .shape = memory.shape(),
                         .taps = weights.taps.get(),
                         .bias = weights.decay_bias.get(),
                         .rate = weights.decay_rate.get(),
                         .tails = kept.tails.get(),
                         .out = &memory.prepared(),
                         .conv_bias = weights.conv_bias.get()});
  record(DeltaNetArgs{.width = width,
                      .rows = memory.rows(),
                      .in = &memory.prepared(),
                      .steps = &steps,
                      .shape = memory.shape(),
                      .states = kept.states.get(),
                      .spare = &memory.spare(),
                      .out = reads ? &memory.read() : nullptr,
                      .skip = weights.skip.get()});
}

}  // namespace canopy
