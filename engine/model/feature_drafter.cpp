#include "engine/model/feature_drafter.h"

#include <algorithm>
#include <bit>
#include <string>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/model/model.h"

namespace canopy {

DraftState::DraftState(FeatureDrafter& drafter, const std::vector<uint32_t>* text, const PageTable* target_pages)
    : DraftState(drafter, PageTable(drafter.pages_), text, target_pages) {}

DraftState::DraftState(FeatureDrafter& drafter, const PageTable& table, const std::vector<uint32_t>* text,
                       const PageTable* target_pages)
    : drafter_(drafter), text_(text), target_pages_(target_pages), table_(table), number_(++drafter.states_) {}

DraftState::~DraftState() {
  release_store();
}

uint32_t DraftState::store_row(uint32_t i) const {
  return (first_row_ + i) % FeatureDrafter::most_waiting();
}

void DraftState::hold_store() {
  if (store_ != kNone) return;
  store_ = drafter_.acquire_store();
  if (parked_.empty()) return;
  first_row_ = 0;
  drafter_.device_.finish();  // a copy that was started may write features
  drafter_.device_.write(*drafter_.stores_[store_], 0, as_bytes_of(parked_));
  parked_.clear();
}

void DraftState::release_store() {
  if (store_ != kNone) drafter_.release_store(std::exchange(store_, kNone));
  first_row_ = 0;
}

void DraftState::park() {
  if (store_ == kNone) return;
  const size_t width = drafter_.feature_width_;
  parked_.resize(waiting_ * width);
  for (uint32_t i = 0; i < waiting_; ++i) {
    const std::span<float> row = std::span(parked_).subspan(i * width, width);
    drafter_.device_.read(*drafter_.stores_[store_], store_row(i) * width * sizeof(float), std::as_writable_bytes(row));
  }
  release_store();
}

void DraftState::end_injection(uint32_t count) {
  injected_ += count;
  waiting_ -= count;
  read_ -= std::min(read_, count);
  first_row_ = store_row(count);
  next_ = kNone;
  if (waiting_ == 0) release_store();
}

void DraftState::skip_to(uint32_t position) {
  if (known() >= position) return;
  release_store();
  parked_.clear();
  waiting_ = read_ = 0;
  injected_ = position;
}

bool DraftState::goes_on_with(uint32_t token) const {
  return next_ == kNone || next_ == token;
}

void DraftState::truncate(uint32_t positions) {
  const uint32_t before = known();
  injected_ = std::min(injected_, positions);
  waiting_ = std::min(waiting_, positions - injected_);
  read_ = std::min(read_, waiting_);
  table_.cut(injected_);
  if (waiting_ > 0) {
    if (!parked_.empty()) parked_.resize(size_t{waiting_} * drafter_.feature_width_);
    return;
  }
  release_store();
  parked_.clear();
  if (injected_ == 0) next_ = kNone;
  if (drafter_.by_token() && drafter_.reads_all_features() && injected_ > 0 && known() < before && text_ != nullptr &&
      positions < text_->size()) {
    next_ = (*text_)[positions];
  }
}

void DraftState::pretend(uint32_t injected, uint32_t waiting) {
  const uint32_t context = drafter_.context();
  if (waiting > FeatureDrafter::most_waiting() || uint64_t{injected} + waiting > context) {
    throw bad_input(std::to_string(injected) + " injected and " + std::to_string(waiting) +
                    " waiting features were pretended; allowed: at most " +
                    std::to_string(FeatureDrafter::most_waiting()) + " waiting, in all " + std::to_string(context) +
                    ".");
  }
  if (drafter_.cache_) table_.reserve(0, injected);
  parked_.clear();
  next_ = kNone;
  waiting > 0 ? hold_store() : release_store();
  first_row_ = 0;
  injected_ = injected;
  waiting_ = waiting;
  read_ = 0;
}

std::unique_ptr<DraftState> DraftState::fork(const std::vector<uint32_t>* text, const PageTable* target_pages) const {
  auto copy = std::unique_ptr<DraftState>(new DraftState(drafter_, table_, text, target_pages));
  if (store_ != kNone) {
    copy->hold_store();
    std::vector<float> features(size_t{FeatureDrafter::most_waiting()} * drafter_.feature_width_);
    Device& device = drafter_.device_;
    device.read(*drafter_.stores_[store_], 0, std::as_writable_bytes(std::span(features)));
    device.finish();  // a copy that was started may write features
    device.write(*drafter_.stores_[copy->store_], 0, as_bytes_of(features));
    copy->first_row_ = first_row_;
  }
  copy->parked_ = parked_;
  copy->next_ = next_;
  copy->injected_ = injected_;
  copy->waiting_ = waiting_;
  copy->read_ = read_;
  return copy;
}

FeatureDrafter::FeatureDrafter(Model& target, const ModelLimits& limits, uint32_t feature_width)
    : device_(target.device()),
      target_(target),
      limits_(limits),
      feature_width_(feature_width),
      pages_(limits_.pages()) {}

FeatureDrafter::~FeatureDrafter() = default;

uint32_t FeatureDrafter::context() const {
  return target_.limits().context;
}

void FeatureDrafter::allocate(const ModelConfig& layers, uint64_t weight_bytes, uint64_t further,
                              ReclaimableMemory* memory) {
  const MemoryPlan plan = plan_memory(layers, limits_, weight_bytes, device_);
  const uint64_t moves = uint64_t{most_waiting()} * 2 * sizeof(uint32_t);
  device_bytes_ = plan.weights + plan.cache + plan.working + store_bytes() + moves + further;
  ReclaimableMemory nothing_replaced;
  ReclaimableMemory& reclaimable = memory != nullptr ? *memory : nothing_replaced;
  if (const uint64_t available = reclaimable.available(device_); device_bytes_ > available) {
    throw out_of_memory("The drafter needs " + byte_figures(device_bytes_, available) + " on the device, but only " +
                        byte_figures(available, device_bytes_) +
                        " are available beside the model. Choose a shorter context, or go on "
                        "without a drafter.");
  }
  reclaimable.make_room(device_, device_bytes_);
  stores_.push_back(device_.allocate(store_bytes(), "features"));
  taken_.push_back(false);
  buffers_ = allocate_pass_buffers(device_, layers, limits_);
  if (layers.has_own_kv(0)) {
    cache_ = std::make_unique<KvCaches>(device_, layers, limits_, "drafter K/V");
    mover_ = std::make_unique<KvMover>(device_, *buffers_.moves, *cache_);
  }
  feature_moves_ = device_.allocate_exchanged(moves, HostUse::writes, "feature moves");
}

uint32_t FeatureDrafter::acquire_store() {
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  const auto store = static_cast<uint32_t>(free - taken_.begin());
  if (free == taken_.end()) {
    require_memory(device_, store_bytes(), "What waits of another text for its drafter");
    stores_.push_back(device_.allocate(store_bytes(), "features"));
    taken_.push_back(false);
  }
  taken_[store] = true;
  return store;
}

bool FeatureDrafter::append_features(DraftState& text, std::span<const uint32_t> rows, const std::stop_token& stop) {
  while (!rows.empty()) {
    if (text.waiting_ == most_waiting() && !inject(text, stop)) return false;
    const auto count = std::min<size_t>(rows.size(), most_waiting() - text.waiting_);
    if (!copy_features(text, rows.first(count), stop)) return false;
    rows = rows.subspan(count);
  }
  return true;
}

void FeatureDrafter::append_features_soon(DraftState& text, std::span<const uint32_t> rows) {
  if (rows.size() > most_waiting() - text.waiting_) inject(text, {});
  device_.start(prepare_copies(text, rows));
  text.waiting_ += static_cast<uint32_t>(rows.size());
}

bool FeatureDrafter::copy_features(DraftState& text, std::span<const uint32_t> rows, const std::stop_token& stop) {
  if (!device_.run(prepare_copies(text, rows), stop)) return false;
  text.waiting_ += static_cast<uint32_t>(rows.size());
  return true;
}

Commands& FeatureDrafter::prepare_copies(DraftState& text, std::span<const uint32_t> rows) {
  const auto count = static_cast<uint32_t>(rows.size());
  if (text.known() + count > context()) {
    throw bad_input("Features of position " + std::to_string(text.known() + count - 1) +
                    " were kept; the context has " + std::to_string(context()) + " positions.");
  }
  text.hold_store();
  text.next_ = DraftState::kNone;  // the token that came, as the text has it now
  // Copies of all lengths share a few recordings: the last row is copied again.
  const uint32_t padded = std::bit_ceil(count);
  feature_rows_.clear();
  for (uint32_t i = 0; i < padded; ++i) {
    const uint32_t row = std::min(i, count - 1);
    feature_rows_.insert(feature_rows_.end(), {rows[row], text.store_row(text.waiting_ + row)});
  }
  device_.finish();  // a copy that was started reads the moves before these
  device_.write(*feature_moves_, 0, as_bytes_of(feature_rows_));
  return copy_commands(text.store_, padded);
}

Commands& FeatureDrafter::copy_commands(uint32_t store, uint32_t count) {
  if (Commands* known = copies_.find({store, count})) return *known;
  Recorder record;
  record(CopyRowsArgs{.count = count,
                      .cols = feature_width_,
                      .in = target_.aux_hidden_states(),
                      .moves = feature_moves_.get(),
                      .out = stores_[store].get()});
  return copies_.keep({store, count}, device_.compile(record.finish()));
}

bool FeatureDrafter::settle(DraftState& text) {
  if (!inject(text)) return false;
  text.park();
  return true;
}

void FeatureDrafter::reserve(DraftState& text, uint32_t first) {
  if (!cache_) return;
  const std::vector<KvMove> moves = text.table_.reserve(first, text.known());
  try {
    mover_->move(moves);
  } catch (...) {
    text.truncate(first / kPagePositions * kPagePositions);  // the page that was to be copied holds nothing
    throw;
  }
}

}  // namespace canopy
