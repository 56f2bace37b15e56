#include "engine/vulkan/product_tuner.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/vulkan/recorder.h"
#include "engine/vulkan/upload.h"

namespace canopy::vk {
namespace {

// A counter that goes backwards wraps around, so the time between is enormous.
bool makes_sense(const TimedRun& run) {
  return std::isfinite(run.device_us) && run.device_us > 0 && run.device_us <= 1.1 * run.host_us + 100;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

struct Candidate {
  bool runs = false;
  std::vector<double> us;
};

// Rules out those that are far behind the best.
void drop_hopeless(std::vector<Candidate>& all, double hopeless) {
  double best = std::numeric_limits<double>::max();
  for (const Candidate& one : all) {
    if (!one.us.empty()) best = std::min(best, median_of(one.us));
  }
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].us.size() >= 2 && median_of(all[i].us) > hopeless * best) all[i].runs = false;
  }
}

// One run of each, from the first on or from the last. False when the time is over or the clock tells nothing.
bool run_round(VariantTimer& timer, std::vector<Candidate>& all, bool backwards, VariantChoice& choice) {
  for (size_t at = 0; at < all.size(); ++at) {
    const size_t i = backwards ? all.size() - 1 - at : at;
    if (!all[i].runs) continue;
    if (timer.over()) return false;
    const TimedRun run = timer.run(i);
    if (!makes_sense(run)) {
      choice.problem = "its clock says " + std::to_string(run.device_us) +
                       " microseconds for a run that the host saw end after " + std::to_string(run.host_us);
      return false;
    }
    all[i].us.push_back(run.device_us);
  }
  return true;
}

}  // namespace

VariantChoice choose_variant(VariantTimer& timer, size_t count, const VariantPlan& plan) {
  VariantChoice choice;
  choice.typical_us.assign(count, 0);
  std::vector<Candidate> all(count);
  for (size_t i = 0; i < count && !timer.over(); ++i) all[i].runs = timer.prepare(i);
  if (!all[0].runs) return choice;
  const bool prepared = !timer.over();
  int rounds = 0;
  while (rounds < plan.rounds && run_round(timer, all, rounds % 2 == 1, choice)) {
    ++rounds;
    drop_hopeless(all, plan.hopeless);
  }
  if (!choice.problem.empty()) return choice;
  choice.complete = prepared && rounds == plan.rounds;
  // A single run says too little; where the first has no more, it stays.
  for (size_t i = 0; i < count; ++i) choice.typical_us[i] = median_of(all[i].us);
  if (all[0].us.size() < 2) return choice;
  double best = plan.clearly * choice.typical_us[0];
  for (size_t i = 1; i < count; ++i) {
    if (!all[i].runs || all[i].us.size() < 2 || choice.typical_us[i] > best) continue;
    best = choice.typical_us[i];
    choice.chosen = i;
  }
  return choice;
}

namespace {

using nlohmann::json;

constexpr const char* kChoicesFormat = "canopy-variants";
constexpr uint32_t kChoicesVersion = 1;
constexpr uintmax_t kMostChoicesBytes = 4 << 20;
constexpr size_t kMostNumbers = 16;

json entry_of(const VariantKey& key, const VariantNumbers& numbers) {
  json entry = {to_string(key.family), to_string(key.op), to_string(key.type), key.rows, key.cols, key.width, numbers};
  if (key.op == ProductOp::experts) entry.insert(entry.end(), {key.experts, key.used});
  return entry;
}

uint32_t number_of(const json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX) {
    throw bad_input("it has " + value.dump() + " where a whole number is expected");
  }
  return value.get<uint32_t>();
}

template <class Named>
Named named(const json& value, std::initializer_list<Named> all) {
  for (const Named one : all) {
    if (value == to_string(one)) return one;
  }
  throw bad_input("it has the unknown word " + value.dump());
}

WeightType type_named(const json& value) {
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    if (value == to_string(static_cast<WeightType>(i))) return static_cast<WeightType>(i);
  }
  throw bad_input("it has the unknown type " + value.dump());
}

std::pair<VariantKey, VariantNumbers> choice_of(const json& entry) {
  const bool of_experts = entry.is_array() && entry.size() == 9;
  if (!entry.is_array() || (entry.size() != 7 && !of_experts) || !entry[6].is_array() ||
      entry[6].size() > kMostNumbers) {
    throw bad_input("it has an entry of another form");
  }
  VariantKey key;
  key.family = named(entry[0], {KernelFamily::fma, KernelFamily::matrix, KernelFamily::matrix_i8});
  key.op = of_experts ? named(entry[1], {ProductOp::experts})
                      : named(entry[1], {ProductOp::linear, ProductOp::add, ProductOp::swiglu});
  key.type = type_named(entry[2]);
  key.rows = number_of(entry[3]);
  key.cols = number_of(entry[4]);
  key.width = number_of(entry[5]);
  if (of_experts) key.experts = number_of(entry[7]), key.used = number_of(entry[8]);
  VariantNumbers numbers;
  for (const json& number : entry[6]) numbers.push_back(number_of(number));
  return {key, numbers};
}

std::string text_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) throw bad_input("it is no readable file");
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > kMostChoicesBytes) {
    throw bad_input("it has more than " + std::to_string(kMostChoicesBytes) + " bytes");
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text(bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!stream) throw bad_input("it cannot be read");
  return text;
}

}  // namespace

const char* to_string(ProductOp op) {
  switch (op) {
    case ProductOp::linear: return "linear";
    case ProductOp::add: return "add";
    case ProductOp::swiglu: return "swiglu";
    case ProductOp::experts: return "experts";
  }
  return "unknown";
}

std::string describe(const VariantKey& key) {
  const std::string of_all =
      key.experts > 0 ? " " + std::to_string(key.used) + " of " + std::to_string(key.experts) : "";
  return std::string(to_string(key.op)) + " " + to_string(key.type) + of_all + " " + std::to_string(key.rows) + "x" +
         std::to_string(key.cols) + " x" + std::to_string(key.width);
}

VariantChoices::VariantChoices(std::filesystem::path file, std::string identity)
    : file_(std::move(file)), identity_(std::move(identity)) {
  std::error_code error;
  if (file_.empty() || std::filesystem::status(file_, error).type() == std::filesystem::file_type::not_found) return;
  try {
    load();
  } catch (const std::exception& e) {
    choices_.clear();
    log_info("The chosen kernels in \"" + printable(file_.string()) + "\" are not used: " + e.what() + ".");
  }
}

void VariantChoices::load() {
  const json file = parse_json(text_of(file_), "the file", DuplicateKeys::refuse);
  const JsonFields fields(file, "the file");
  if (fields.text("format") != kChoicesFormat) throw bad_input("it holds no choice of kernels");
  if (const uint32_t version = fields.u32("version"); version != kChoicesVersion) {
    throw bad_input("its format is version " + std::to_string(version) + ", this program reads version " +
                    std::to_string(kChoicesVersion));
  }
  if (fields.text("identity") != identity_) {
    throw bad_input("it was made for another device, driver or version of the kernels");
  }
  const json& list = fields.list("choices");
  if (fields.text("hash") != damage_hash_text(list.dump()))
    throw bad_input("its content is damaged (the hash differs)");
  for (const json& entry : list) choices_.insert(choice_of(entry));
}

const VariantNumbers* VariantChoices::find(const VariantKey& key) const {
  const auto found = choices_.find(key);
  return found == choices_.end() ? nullptr : &found->second;
}

void VariantChoices::set(const VariantKey& key, VariantNumbers numbers) {
  choices_[key] = std::move(numbers);
  changed_ = true;
}

std::string VariantChoices::save() {
  if (!changed_ || file_.empty()) return {};
  changed_ = false;
  json list = json::array();
  for (const auto& [key, numbers] : choices_) list.push_back(entry_of(key, numbers));
  const json file = {{"format", kChoicesFormat},
                     {"version", kChoicesVersion},
                     {"identity", identity_},
                     {"hash", damage_hash_text(list.dump())},
                     {"choices", list}};
  try {
    if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path());
    write_file_atomically(file_, file.dump());
  } catch (const std::exception& e) {
    return std::string("The chosen kernels were not saved: ") + e.what();
  }
  return {};
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpSeconds = 0.03;  // clocks of a GPU that has waited for its compiler rise again
constexpr double kMostFlops = 4e10;      // of one run: wide products wait for arithmetic, not for memory
constexpr uint32_t kMostRuns = 64;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Twice the last caches there are; a processor's weights stay where they are.
uint64_t default_cold_bytes(DeviceType type) {
  switch (type) {
    case DeviceType::cpu: return 0;
    case DeviceType::discrete: return 256ull << 20;
    default: return 64ull << 20;
  }
}

uint64_t device_bytes(const VulkanWeight& weight) {
  uint64_t bytes = 0;
  for (const WeightShard& shard : weight.shards) bytes += shard.layout.unit_bytes + shard.layout.scale_bytes;
  return bytes;
}

// Copies of a weight, in as few blocks of memory as weights themselves.
std::vector<std::unique_ptr<VulkanWeight>> copies_of(DeviceState& state, const VulkanWeight& weight, uint32_t count) {
  if (count == 0) return {};
  Context& context = *state.context;
  std::vector<uint64_t> sizes;
  for (uint32_t i = 0; i < count; ++i) {
    for (const WeightShard& shard : weight.shards) {
      sizes.push_back(shard.units.bytes());
      if (shard.scales) sizes.push_back(shard.scales.bytes());
    }
  }
  BufferArena arena(context, std::move(sizes));
  CommandList list(context, {"copying a weight", 0});
  const auto copy = [&](const Buffer& from) {
    Buffer to = arena.create(from.bytes(), "copy of a weight");
    list.copy(from, 0, to, 0, from.bytes());
    return to;
  };
  std::vector<std::unique_ptr<VulkanWeight>> copies;
  for (uint32_t i = 0; i < count; ++i) {
    copies.push_back(std::make_unique<VulkanWeight>(weight.type(), weight.rows(), weight.cols()));
    for (const WeightShard& from : weight.shards) {
      WeightShard& to = copies.back()->shards.emplace_back();
      to.layout = from.layout;
      to.units = copy(from.units);
      if (from.scales) to.scales = copy(from.scales);
    }
  }
  context.run(list);
  return copies;
}

// Values of both signs, none of which is special.
std::vector<float> arbitrary_values(uint64_t count) {
  std::vector<float> values(count);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
  }
  return values;
}

// Different experts for each row, any of which is as likely as the others. Rows of a tree are alike, so that grouping
// them saves a little more than is measured here.
std::vector<uint32_t> arbitrary_experts(const VariantKey& key, uint32_t seed) {
  std::vector<uint32_t> order(key.experts), chosen;
  std::iota(order.begin(), order.end(), 0);
  uint32_t state = seed;
  for (uint32_t w = 0; w < key.width; ++w) {
    for (uint32_t i = 0; i < key.used; ++i) {
      state = state * 1664525u + 1013904223u;
      std::swap(order[i], order[i + (state >> 8) % (key.experts - i)]);
    }
    chosen.insert(chosen.end(), order.begin(), order.begin() + key.used);
  }
  return chosen;
}

// What a product is computed with while it is timed, beside its weight.
class Operands {
 public:
  /// choices: how many different ones of experts there are, where products are with experts.
  Operands(Device& device, const VariantKey& key, uint32_t choices) : device_(device), key_(key) {
    in_ = device.allocate_activations(key.width, key.cols, "tuning input");
    device.write_activations(*in_, key.width, arbitrary_values(uint64_t{key.width} * key.cols));
    if (key.op == ProductOp::experts) {
      make_choices(choices);
      return;
    }
    if (key.op != ProductOp::swiglu) out_ = device.allocate(uint64_t{key.width} * key.rows * 4, "tuning output");
    if (key.op == ProductOp::linear) return;
    const uint32_t cols = key.op == ProductOp::add ? key.rows : key.rows / 2;
    activations_ = device.allocate_activations(key.width, cols, "tuning output");
    if (key.op == ProductOp::swiglu) return;
    norm_ = device.allocate(uint64_t{key.rows} * 4, "tuning norm");
    device.write(*norm_, 0, as_bytes_of(arbitrary_values(key.rows)));
  }

  /// run: of those that are timed together.
  Op op_on(const canopy::Weight& weight, size_t run) const {
    constexpr float eps = 1e-5f;
    switch (key_.op) {
      case ProductOp::experts:
        return ExpertSwigluArgs{key_.width, {key_.experts, key_.used},           &weight,           in_.get(),
                                eps,        chosen_[run % chosen_.size()].get(), activations_.get()};
      case ProductOp::linear: return LinearArgs{key_.width, &weight, in_.get(), eps, out_.get(), key_.rows, 0};
      case ProductOp::add: {
        LinearAddArgs args{key_.width, &weight, in_.get(), out_.get(), {norm_.get()}, activations_.get()};
        return args;
      }
      case ProductOp::swiglu: break;
    }
    return LinearSwigluArgs{key_.width, &weight, in_.get(), eps, activations_.get()};
  }

  // The residual stream, which products add to.
  void clear() {
    if (key_.op != ProductOp::add) return;
    device_.write(*out_, 0, std::vector<std::byte>(uint64_t{key_.width} * key_.rows * 4));
  }

  std::vector<float> results() const {
    if (key_.op == ProductOp::swiglu) return device_.read_activations(*activations_, key_.width);
    if (key_.op == ProductOp::experts) return device_.read_activations(*activations_, key_.width * key_.used);
    std::vector<float> values(uint64_t{key_.width} * key_.rows);
    device_.read(*out_, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  void make_choices(uint32_t count) {
    activations_ = device_.allocate_activations(key_.width * key_.used, key_.rows / 2, "tuning output");
    for (uint32_t i = 0; i < count; ++i) {
      const std::vector<uint32_t> experts = arbitrary_experts(key_, i + 1);
      chosen_.push_back(device_.allocate(experts.size() * 4, "tuning experts"));
      device_.write(*chosen_.back(), 0, as_bytes_of(experts));
    }
  }

  Device& device_;
  VariantKey key_;
  std::unique_ptr<Activations> in_, activations_;
  std::unique_ptr<canopy::Buffer> out_, norm_;
  std::vector<std::unique_ptr<canopy::Buffer>> chosen_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct TimedProduct {
  const VariantKey& key;
  const VulkanWeight& weight;
  // Products that are timed together: on as many copies of the weight, itself included, or with as many choices of
  // experts.
  uint32_t runs;
  std::span<const VariantCandidate> candidates;
};

// Runs candidates: one product after the other, each on its own copy of the weight.
class ProductTimer : public VariantTimer {
 public:
  ProductTimer(Device& device, DeviceState& state, const TimedProduct& product, const ProductTuner::Force& force,
               const std::stop_token& stop, double budget_s)
      : state_(state),
        key_(product.key),
        candidates_(product.candidates),
        force_(force),
        stop_(stop),
        budget_s_(budget_s),
        operands_(device, product.key, product.runs),
        commands_(product.candidates.size()) {
    if (key_.op == ProductOp::experts) {
      weights_.assign(product.runs, &product.weight);
      return;
    }
    copies_ = copies_of(state, product.weight, product.runs - 1);
    weights_.push_back(&product.weight);
    for (const auto& copy : copies_) weights_.push_back(copy.get());
  }

  bool prepare(size_t variant) override {
    try {
      record(variant);
      operands_.clear();
      submit_all(variant);
    } catch (const Error& e) {
      force_(std::nullopt);
      if (e.kind() == ErrorKind::device_lost) throw;
      log_info(name_of(variant) + " cannot be used: " + e.what());
      return false;
    }
    const std::vector<float> results = operands_.results();
    if (expected_.empty()) expected_ = results;
    if (same_bits(results, expected_)) return true;
    log_warning(name_of(variant) + " computes other bits than the first kernel for it, and is not used.");
    return false;
  }

  TimedRun run(size_t variant) override {
    if (!warm_) {
      while (seconds_since(start_) < budget_s_ && warm_s_ < kWarmUpSeconds)
        warm_s_ += submit_all(variant).host_us * 1e-6;
      warm_ = true;
    }
    return submit_all(variant);
  }

  bool over() override { return seconds_since(start_) > budget_s_ || stop_.stop_requested(); }

 private:
  std::string name_of(size_t variant) const {
    return "The kernel for " + describe(key_) + " with " + candidates_[variant].text;
  }

  void record(size_t variant) {
    force_(variant);
    VulkanRecorder recorder(state_);
    for (size_t run = 0; run < weights_.size(); ++run) recorder.record(operands_.op_on(*weights_[run], run));
    commands_[variant] = recorder.finish();
    force_(std::nullopt);
  }

  TimedRun submit_all(size_t variant) {
    Context& context = *state_.context;
    const auto start = Clock::now();
    for (CommandList& list : commands_[variant]->lists) context.submit(list);
    context.wait_idle();
    TimedRun run{.device_us = 0, .host_us = seconds_since(start) * 1e6};
    for (const CommandList& list : commands_[variant]->lists) {
      const std::vector<Timestamp> stamps = list.timestamps();
      if (!stamps.empty()) run.device_us += stamps.back().microseconds;
    }
    return run;
  }

  DeviceState& state_;
  const VariantKey key_;
  std::span<const VariantCandidate> candidates_;
  const ProductTuner::Force& force_;
  const std::stop_token stop_;
  const double budget_s_;
  const Clock::time_point start_ = Clock::now();
  Operands operands_;
  std::vector<std::unique_ptr<VulkanWeight>> copies_;
  std::vector<const VulkanWeight*> weights_;               // of each run
  std::vector<std::unique_ptr<VulkanCommands>> commands_;  // of each candidate
  std::vector<float> expected_;
  bool warm_ = false;
  double warm_s_ = 0;
};

}  // namespace

uint32_t tuned_width(KernelFamily family, uint32_t width) {
  const uint32_t power = std::bit_ceil(width);
  switch (family) {
    case KernelFamily::fma: return std::min(power, 4 * kMostFmaColumns);
    case KernelFamily::matrix:
    case KernelFamily::matrix_i8: return width == 1 ? 1 : std::clamp(power, 16u, 2 * kMostMatrixColumns);
  }
  return power;
}

ProductTuner::ProductTuner(Device& device, DeviceState& state, const TuningOptions& options,
                           std::filesystem::path choices, std::string identity)
    : device_(device),
      state_(state),
      choices_(std::move(choices), std::move(identity)),
      cold_bytes_(options.cold_bytes.value_or(default_cold_bytes(state.context->report().type))),
      most_candidates_(options.most_candidates),
      budget_s_(options.budget_s),
      seconds_left_(options.budget_s) {
  if (state.context->limits().timestamp_valid_bits == 0) give_up("the device has no clock");
}

size_t ProductTuner::choose(const VariantKey& key, const VulkanWeight& weight,
                            std::span<const VariantCandidate> candidates, const Force& force) {
  candidates = candidates.first(std::min(candidates.size(), most_candidates_));
  size_t chosen = 0;
  const VariantNumbers* known = choices_.find(key);
  const auto numbered = [&](const VariantCandidate& candidate) { return candidate.numbers == *known; };
  const auto found = known == nullptr ? candidates.end() : std::ranges::find_if(candidates, numbered);
  if (found != candidates.end()) {
    chosen = static_cast<size_t>(found - candidates.begin());
  } else if (candidates.size() > 1 && usable_ && seconds_left_ > 0 && !stop_.stop_requested()) {
    const auto start = Clock::now();
    chosen = measure(key, weight, candidates, force);
    seconds_left_ -= seconds_since(start);
    spent_s_ += seconds_since(start);
  }
  describe_choice(key, candidates[chosen]);
  return chosen;
}

size_t ProductTuner::measure(const VariantKey& key, const VulkanWeight& weight,
                             std::span<const VariantCandidate> candidates, const Force& force) {
  try {
    const TimedProduct product{key, weight, runs_for(key, weight), candidates};
    ProductTimer timer(device_, state_, product, force, stop_, seconds_left_);
    const VariantChoice choice = choose_variant(timer, candidates.size());
    if (!choice.problem.empty()) give_up(choice.problem);
    if (choice.complete) choices_.set(key, candidates[choice.chosen].numbers);
    ++measured_;
    if (choice.chosen != 0) ++other_;
    return choice.chosen;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::device_lost) {
      // Not again, or a device that a candidate hangs would never start.
      choices_.set(key, candidates[0].numbers);
      choices_.save();
    }
    if (e.kind() != ErrorKind::out_of_memory) throw;
    log_info("There is no memory left to time kernels for " + describe(key) + ": " + e.what());
    return 0;
  }
}

uint32_t ProductTuner::runs_for(const VariantKey& key, const VulkanWeight& weight) const {
  double share = 1, rows = key.width;  // of the weight that a run reads, and rows of the pass for each of its own
  if (key.op == ProductOp::experts) {
    share = ExpertCounts{key.experts, key.used}.touched(key.width) / key.experts;
    rows *= static_cast<double>(key.used) / key.experts;
  }
  const auto bytes = std::max<uint64_t>(1, static_cast<uint64_t>(share * static_cast<double>(device_bytes(weight))));
  const double flops = 2.0 * weight.rows() * weight.cols() * rows;
  const uint64_t wanted = (cold_bytes_ + bytes - 1) / bytes;
  const uint64_t room =
      key.op == ProductOp::experts ? kMostRuns : state_.context->memory_info().available() / 2 / bytes;
  const auto affordable = static_cast<uint64_t>(kMostFlops / flops);
  return static_cast<uint32_t>(std::clamp<uint64_t>(std::min({wanted, room, affordable}), 1, kMostRuns));
}

// "...; add Q4_K 4096x12288 x16 (16 columns, 8 subgroups, ...)": what is measured on the device is measured of that
// variant.
void ProductTuner::describe_choice(const VariantKey& key, const VariantCandidate& chosen) {
  const std::string product = "; " + describe(key) + " (";
  std::string& kernels = state_.info.kernels;
  const size_t at = kernels.find(product);
  if (at == std::string::npos) {
    kernels += product + chosen.text + ")";
    return;
  }
  const size_t begin = at + product.size(), end = kernels.find(')', begin);
  kernels.replace(begin, end - begin, chosen.text);
}

void ProductTuner::give_up(const std::string& why) {
  usable_ = false;
  log_info("Kernels are not chosen by timing, but by a rule: " + why + ".");
}

void ProductTuner::report() {
  const std::string problem = choices_.save();
  if (!problem.empty()) log_warning(problem);
  if (measured_ == 0) return;
  log_info("Timed kernels for " + std::to_string(measured_) + (measured_ == 1 ? " shape" : " shapes") +
           " of products in " + duration_figures(spent_s_) + "; " + std::to_string(other_) +
           " take another than by the rule." +
           (seconds_left_ > 0 ? "" : " The time for it is over; the others are timed when a model is loaded again."));
  measured_ = other_ = 0;
  spent_s_ = 0;
}

}  // namespace canopy::vk
