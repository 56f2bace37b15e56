// canopy-cli bench: measures how fast a model runs on a device and how fast it loads, also as a share of what the
// device can do.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/bench_modes.h"
#include "app/cli/bench_report.h"
#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/state/number_options.h"
#include "engine/base/error.h"
#include "engine/base/machine.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"
#include "engine/compute/device.h"
#include "engine/format/model_file.h"
#include "engine/model/load_plan.h"
#include "engine/model/model.h"
#include "engine/model/recurrent_memory.h"
#include "engine/model/weights.h"
#include "engine/session/devices.h"
#include "engine/session/measured_report.h"
#include "engine/session/reply_writer.h"

namespace canopy::cli {
namespace {

// Measures the times of a model's passes, by wall clock, so that submission and download count as they do in use.

struct BenchSettings {
  std::vector<uint32_t> widths;
  uint32_t context = 128;  // committed positions before each pass
  uint32_t repeats = 5;
  uint32_t decode_tokens = 32;
  uint32_t prefill_tokens = 256;
  uint32_t prefill_chunk = 128;
};

/// Medians of the measurements. The rate of multiply-adds is measured beside every pass, so that a share compares two
/// measurements under the same load; the peak is the highest rate of all.
struct BenchResult {
  DevicePeak peak;
  double decode_tokens_per_second = 0;
  double prefill_tokens_per_second = 0;
  // By width; shares are in [0, 1].
  std::map<uint32_t, double> pass_ms;
  std::map<uint32_t, double> best_pass_ms;  // the shortest time, where pass_ms is the median
  std::map<uint32_t, double> share_of_fma_peak;
  // Of the multiply-adds of a simple loop, the usual measure of a device's peak.
  std::map<uint32_t, double> share_of_plain_fma;
  // Of matrix cores; empty where products are made without them.
  std::map<uint32_t, double> share_of_matrix_peak;
  // Share of the peak that limits the pass: products, or reading weights.
  std::map<uint32_t, double> share_of_roofline;
  // Of models with experts: how many different ones the rows went through, the mean over layers.
  std::map<uint32_t, double> distinct_experts;
};

/// The step from `width` rows to one more that stands out most.
struct WorstStep {
  uint32_t width = 0;  // 0: too few widths follow each other
  double above = 0;    // how far it is above the mean of the eight steps nearest to it, as a share of the narrower pass
};

/// The middle value; for an even number of values the lower one of the two in the middle. values must not be empty.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Bench {
 public:
  Bench(Model& model, const BenchSettings& settings, const std::function<void(const char*)>& step,
        const std::stop_token& stop)
      : model_(model), settings_(settings), step_(step), stop_(stop) {}

  BenchResult run() {
    measure_peak();
    step_("warming up");
    commit(settings_.context);
    for (const uint32_t width : settings_.widths) pass(width);
    decode_ms();
    step_("measuring passes");
    std::map<uint32_t, std::vector<double>> passes, shares;
    double before = sample_rate();
    for (uint32_t repeat = 0; repeat < settings_.repeats; ++repeat) {
      for (const uint32_t width : settings_.widths) {
        passes[width].push_back(pass(width));
        const double after = sample_rate();
        const double fma_ms = model_.pass_flops(width, width, settings_.context + 1) / ((before + after) / 2 * 1e6);
        shares[width].push_back(fma_ms / passes[width].back());
        before = after;
      }
    }
    for (const auto& [width, times] : passes) {
      result_.pass_ms[width] = median(times);
      result_.best_pass_ms[width] = *std::ranges::min_element(times);
    }
    for (const auto& [width, values] : shares) result_.share_of_fma_peak[width] = median(values);
    measure_decode();
    measure_prefill();
    measure_peak();
    rate();
    return result_;
  }

 private:
  uint32_t token(uint32_t position) const { return (position * 7919 + 13) % model_.config().vocab; }

  /// Runs f, which runs a pass, and returns its milliseconds. Throws cancelled if the pass was not completed.
  template <class F>
  double time(F&& f) {
    const auto start = std::chrono::steady_clock::now();
    const ForwardOutput output = f();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (!output.completed()) throw cancelled("The measurement was cancelled.");
    return ms;
  }

  void measure_peak() {
    step_("measuring the device's peak");
    result_.peak.raise_to(model_.device().measure_peak());
  }

  double sample_rate() {
    const double rate = model_.device().sample_fma_rate();
    result_.peak.raise_to({.fma_gflop_s = rate});
    return rate;
  }

  /// Commits positions 0 ... count - 1, in chunks. Returns milliseconds.
  double commit(uint32_t count) {
    double total = 0;
    states_ = StateLine(model_.states());
    for (uint32_t first = 0; first < count;) {
      const uint32_t end = std::min(count, first + settings_.prefill_chunk);
      RowBatch batch;
      for (; first < end; ++first) batch.add_text(token(first), first);
      ForwardInput input{batch};
      if (end == count) input = {batch, HeadOutput::argmax, {batch.width() - 1}};
      input.states = states_.next();
      total += time([&] { return model_.forward(input, stop_); });
      states_.take(batch.width());
    }
    return total;
  }

  /// One verification pass over a binary tree of this many rows, with the target's choice at each. Returns
  /// milliseconds.
  double pass(uint32_t width) {
    RowBatch batch;
    for (uint32_t i = 0; i < width; ++i) {
      const int32_t parent = i == 0 ? -1 : static_cast<int32_t>((i - 1) / 2);
      batch.add_node(token(i), model_.limits().context + i, settings_.context, parent);
    }
    std::vector<uint32_t> rows(width);
    std::iota(rows.begin(), rows.end(), 0u);
    ForwardInput input{batch, HeadOutput::argmax, rows};
    states_.pretend(settings_.context);
    input.states = states_.here();
    return time([&] {
      ForwardOutput output = model_.forward(input, stop_);
      count_experts(output);
      return output;
    });
  }

  void count_experts(const ForwardOutput& output) {
    const std::span<const uint32_t> experts = output.distinct_experts();
    if (experts.empty()) return;
    const double sum = std::accumulate(experts.begin(), experts.end(), 0.0);
    result_.distinct_experts[output.width()] = sum / static_cast<double>(experts.size());
  }

  /// The median time of a decoded token, in milliseconds.
  double decode_ms() {
    std::vector<double> times;
    uint32_t next = token(settings_.context);
    for (uint32_t i = 0; i < settings_.decode_tokens; ++i) {
      RowBatch batch;
      batch.add_text(next, settings_.context + i);
      ForwardInput input{batch, HeadOutput::argmax, {0}};
      states_.pretend(settings_.context + i);
      input.states = states_.next();
      times.push_back(time([&] {
        ForwardOutput output = model_.forward(input, stop_);
        if (output.completed()) next = std::min(output.choices()[0], model_.config().vocab - 1);
        return output;
      }));
      states_.take(1);
    }
    return median(times);
  }

  void measure_decode() {
    step_("measuring decoding");
    result_.decode_tokens_per_second = 1000.0 / decode_ms();
  }

  void measure_prefill() {
    step_("measuring prefill");
    commit(settings_.prefill_tokens);  // compiles the widths it needs, so that they are not timed
    std::vector<double> times;
    for (uint32_t i = 0; i < std::min(settings_.repeats, 3u); ++i) times.push_back(commit(settings_.prefill_tokens));
    result_.prefill_tokens_per_second = 1000.0 * settings_.prefill_tokens / median(times);
  }

  void rate() {
    const ModelLimits& limits = model_.limits();
    const double cached = static_cast<double>(model_.memory().cache) / limits.slots() * settings_.context;
    for (const auto& [width, ms] : result_.pass_ms) {
      const double flops = model_.pass_flops(width, width, settings_.context + 1);
      const double product_ms = flops / (result_.peak.product_gflop_s() * 1e6);
      const auto experts = result_.distinct_experts.find(width);
      const double weights = experts == result_.distinct_experts.end() ? static_cast<double>(model_.pass_bytes())
                                                                       : model_.pass_bytes(experts->second);
      const double read_ms = (weights + cached) / (result_.peak.read_gb_s * 1e6);
      result_.share_of_plain_fma[width] =
          result_.share_of_fma_peak[width] * result_.peak.fma_gflop_s / result_.peak.plain_fma_gflop_s;
      if (result_.peak.matrix_gflop_s > 0) result_.share_of_matrix_peak[width] = product_ms / ms;
      result_.share_of_roofline[width] = std::max(product_ms, read_ms) / ms;
    }
  }

  Model& model_;
  StateLine states_{model_.states()};  // of recurrent layers, of the text that passes stand behind
  const BenchSettings& settings_;
  const std::function<void(const char*)>& step_;
  std::stop_token stop_;
  BenchResult result_;
};

/// Every width from 1 to 18, then fewer, up to 128.
std::vector<uint32_t> standard_widths() {
  std::vector<uint32_t> widths(18);
  std::iota(widths.begin(), widths.end(), 1u);
  widths.insert(widths.end(), {20, 24, 28, 32, 40, 48, 64, 96, 128});
  return widths;
}

/// How much longer a pass takes than the next narrower one, beyond what its further rows or the further experts that
/// they go through explain: 0.1 is a tenth longer. By width, without the narrowest.
std::map<uint32_t, double> steps_of(const BenchResult& result) {
  std::map<uint32_t, double> steps;
  for (auto wider = result.best_pass_ms.begin(); wider != result.best_pass_ms.end(); ++wider) {
    if (wider == result.best_pass_ms.begin()) continue;
    const auto narrower = std::prev(wider);
    double explained = static_cast<double>(wider->first) / narrower->first;
    const auto more = result.distinct_experts.find(wider->first), fewer = result.distinct_experts.find(narrower->first);
    if (more != result.distinct_experts.end() && fewer != result.distinct_experts.end()) {
      explained = std::max(explained, more->second / fewer->second);
    }
    steps[wider->first] = wider->second / narrower->second / explained - 1;
  }
  return steps;
}

/// By best times, over widths that follow each other.
WorstStep worst_step(const BenchResult& result) {
  constexpr size_t neighbours = 8;
  struct Step {
    uint32_t width;
    double ms, narrower_ms;
  };
  std::vector<Step> steps;
  for (const auto& [width, ms] : result.best_pass_ms) {
    const auto wider = result.best_pass_ms.find(width + 1);
    if (wider != result.best_pass_ms.end()) steps.push_back({width, wider->second - ms, ms});
  }
  WorstStep worst;
  for (const Step& step : steps) {
    std::vector<Step> others = steps;
    const auto distance = [&](const Step& other) { return std::abs(int64_t{other.width} - int64_t{step.width}); };
    std::erase_if(others, [&](const Step& other) { return other.width == step.width; });
    if (others.size() < neighbours) return {};
    std::ranges::stable_sort(others, {}, distance);
    others.resize(neighbours);
    double sum = 0;
    for (const Step& other : others) sum += other.ms;
    const double above = (step.ms - sum / neighbours) / step.narrower_ms;
    if (worst.width == 0 || above > worst.above) worst = {step.width, above};
  }
  return worst;
}

/// Measures; `step` hears what is under way. Throws cancelled when stop is requested.
BenchResult run_bench(Model& model, const BenchSettings& settings, const std::function<void(const char*)>& step,
                      const std::stop_token& stop) {
  return Bench(model, settings, step, stop).run();
}

// Measures loading a model's weights, and what the disk, the memory and the device reach by themselves.

struct LoadBenchSettings {
  QuantizeOnLoad quantize = QuantizeOnLoad::none;  // not automatic
  uint32_t repeats = 3;                            // at least 1
};

/// The best of the repeats, which take all stages in turn: other programs can only make them slower. Seconds for the
/// weights of this model; nothing where a stage cannot be measured here.
struct LoadBench {
  uint64_t file_bytes = 0;          // of the matrices, in the file
  uint64_t device_bytes = 0;        // of the weights, on the device
  std::optional<double> disk;       // reading the file from the disk; none where the system keeps it in memory
  double cached = 0;                // reading it from the system's memory, by all cores
  double copy = 0;                  // memcpy of as many bytes, by all cores
  std::optional<double> upload;     // copies of the device's bytes; none where the device does not tell
  std::optional<double> repack;     // into the device's layout, from and to the host's memory; none where types change
  std::optional<double> load_cold;  // the load, from the disk
  double load_warm = 0;             // the load, with the file in memory

  /// What no load can undercut: the slowest of reading, memcpy and upload.
  double cold_bound() const;
  double warm_bound() const;
};

namespace fs = std::filesystem;

constexpr uint64_t kPiece = 2ull << 20;

/// Has the system drop a file from its memory. False where most of it stays, or the system has no call for it.
bool drop(const fs::path& path) {
#ifdef _WIN32
  (void)path;
  return false;
#else
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  ::fsync(descriptor);  // pages that are not on the disk yet stay
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
  const MappedFile file = MappedFile::open(path);
  std::vector<unsigned char> pages(file.bytes().size() / static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + 1);
  if (::mincore(const_cast<std::byte*>(file.bytes().data()), file.bytes().size(), pages.data()) != 0) return false;
  const auto stay = std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  return static_cast<size_t>(stay) * 20 < pages.size();
#endif
}

/// Reads all of a file, by as many threads as keep a disk busy.
void read_all(const fs::path& path) {
  const uint64_t bytes = fs::file_size(path), pieces = (bytes + kPiece - 1) / kPiece;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw bad_input("The file " + shown(path) + " cannot be opened.");
  std::atomic<uint64_t> next{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(8u, std::thread::hardware_concurrency()); ++i) {
      threads.emplace_back([&] {
        std::vector<char> buffer(kPiece);
        for (uint64_t piece = next++; piece < pieces; piece = next++) {
          if (::pread(descriptor, buffer.data(), kPiece, static_cast<off_t>(piece * kPiece)) <= 0) return;
        }
      });
    }
  }
  ::close(descriptor);
}

/// Copies so many bytes between two blocks of memory, again and again.
void copy_bytes(uint64_t bytes, std::span<const std::byte> from, std::span<std::byte> to) {
  for (uint64_t done = 0; done < bytes; done += from.size()) {
    const uint64_t count = std::min<uint64_t>(bytes - done, from.size());
    parallel_for(count, kPiece,
                 [&](uint64_t begin, uint64_t end) { std::memcpy(&to[begin], &from[begin], end - begin); });
  }
}

class LoadBencher {
 public:
  LoadBencher(const ModelFile& file, Device& device, const LoadBenchSettings& settings,
              const std::function<void(const char*)>& step, const std::stop_token& stop)
      : file_(file),
        device_(device),
        settings_(settings),
        step_(step),
        stop_(stop),
        files_(file.files()),
        plan_(plan_weights(file, device, settings.quantize)),
        block_(uint64_t{64} << 20, std::byte{1}),
        other_(block_.size(), std::byte{2}) {
    for (const fs::path& path : files_) all_bytes_ += fs::file_size(path);
  }

  LoadBench run() {
    result_.file_bytes = plan_.file_bytes;
    result_.device_bytes = plan_.device_bytes;
    require_memory(device_, plan_.device_bytes, "Loading the weights");
    load();  // once for what happens once
    std::vector<double> disk, cached, copy, upload, repacked, cold, warm;
    for (uint32_t i = 0; i < settings_.repeats; ++i) {
      if (dropped()) disk.push_back(read_seconds());
      if (dropped()) cold.push_back(load());
      read_seconds();
      cached.push_back(read_seconds());
      copy.push_back(timed("copying memory", [&] { copy_bytes(plan_.file_bytes, block_, other_); }));
      step_("copying to the device");
      const double rate = device_.measure_upload();
      if (rate > 0) upload.push_back(static_cast<double>(plan_.device_bytes) / rate * 1e-9);
      if (stays_as_stored()) repacked.push_back(repack_seconds());
      warm.push_back(load());
    }
    const auto best = [](const std::vector<double>& values) {
      return values.empty() ? std::optional<double>() : *std::ranges::min_element(values);
    };
    result_.disk = best(disk);
    result_.cached = best(cached).value_or(0);
    result_.copy = best(copy).value_or(0);
    result_.upload = best(upload);
    result_.repack = best(repacked);
    result_.load_cold = best(cold);
    result_.load_warm = best(warm).value_or(0);
    return result_;
  }

 private:
  template <class F>
  double timed(const char* what, F&& work) {
    if (stop_.stop_requested()) throw cancelled("The measurement was cancelled.");
    step_(what);
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // The system keeps what a process has mapped, also of the pages that two tensors share.
  void unmap_tensors() const {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (const TensorView& tensor : file_.tensors()) {
      const auto begin = reinterpret_cast<uintptr_t>(tensor.bytes.data()) / page * page;
      const auto end =
          (reinterpret_cast<uintptr_t>(tensor.bytes.data()) + tensor.bytes.size() + page - 1) / page * page;
      MappedFile::forget({reinterpret_cast<const std::byte*>(begin), end - begin});
    }
  }

  bool dropped() const {
    unmap_tensors();
    bool all = true;
    for (const fs::path& path : files_) all = drop(path) && all;
    return all;
  }

  /// For the bytes of the matrices, as if the rest of the files were not read.
  double read_seconds() {
    const double seconds = timed("reading the file", [&] {
      for (const fs::path& path : files_) read_all(path);
    });
    return seconds * static_cast<double>(plan_.file_bytes) / static_cast<double>(all_bytes_);
  }

  double load() {
    Weights weights;
    LoadCallbacks callbacks;
    callbacks.stop = stop_;
    const double seconds = timed("loading", [&] {
      weights = load_weights(file_, plan_, device_, callbacks);
      device_.finish();
    });
    return seconds;
  }

  bool stays_as_stored() const {
    return std::ranges::all_of(in_load_order(plan_), [](const MatrixPlan* matrix) {
      return std::ranges::none_of(matrix->parts,
                                  [&](const TensorView* part) { return part->packed || matrix->converts(*part); });
    });
  }

  static constexpr uint64_t kMostPacked = 256ull << 20;  // bytes at a time

  double repack_seconds() {
    packed_.resize(kMostPacked / sizeof(uint32_t));
    const std::vector<Backend> backends = all_backends();
    const Backend& backend = *std::ranges::find(backends, device_.info().backend, &Backend::name);
    return timed("repacking", [&] {
      for (const MatrixPlan* matrix : in_load_order(plan_)) {
        std::vector<WeightPart> parts = matrix->device_parts();
        for (size_t i = 0; i < parts.size(); ++i) parts[i].data = matrix->parts[i]->bytes;
        backend.pack(parts, matrix->layout, packed_);
        for (const TensorView* part : matrix->parts) MappedFile::forget(part->bytes);
      }
    });
  }

  const ModelFile& file_;
  Device& device_;
  const LoadBenchSettings& settings_;
  const std::function<void(const char*)>& step_;
  const std::stop_token stop_;
  const std::vector<fs::path> files_;
  const WeightPlan plan_;
  std::vector<std::byte> block_, other_;
  std::vector<uint32_t> packed_;
  uint64_t all_bytes_ = 0;
  LoadBench result_;
};

double LoadBench::cold_bound() const {
  return std::max(disk.value_or(0), warm_bound());
}

double LoadBench::warm_bound() const {
  return std::max({cached, copy, upload.value_or(0)});
}

/// `step` hears what is under way. Throws what load_weights() throws, out_of_memory where the weights do not fit, and
/// cancelled when stop is requested.
LoadBench bench_load(const ModelFile& file, Device& device, const LoadBenchSettings& settings,
                     const std::function<void(const char*)>& step, const std::stop_token& stop) {
  return LoadBencher(file, device, settings, step, stop).run();
}

// The part of `canopy-cli bench` that measures loading: --load.

using nlohmann::ordered_json;

ordered_json seconds_of(const std::optional<double>& seconds) {
  return seconds ? ordered_json(*seconds) : ordered_json(nullptr);
}

ordered_json to_json(const LoadBench& result, const DeviceInfo& device, const std::string& model) {
  ordered_json json = {{"device", device.name},
                       {"driver", device.driver},
                       {"backend", device.backend},
                       {"model", model},
                       {"file_bytes", result.file_bytes},
                       {"device_bytes", result.device_bytes},
                       {"seconds",
                        {{"disk", seconds_of(result.disk)},
                         {"cached_file", result.cached},
                         {"copy", result.copy},
                         {"upload", seconds_of(result.upload)},
                         {"repack", seconds_of(result.repack)},
                         {"load_cold", seconds_of(result.load_cold)},
                         {"load_warm", result.load_warm}}}};
  const auto shares = [](const std::optional<double>& load, double bound, double repack) -> ordered_json {
    if (!load) return nullptr;
    return {{"of_reading_and_copying", bound / *load}, {"of_slowest_stage", std::max(bound, repack) / *load}};
  };
  json["share_cold"] = shares(result.load_cold, result.cold_bound(), result.repack.value_or(0));
  json["share_warm"] = shares(result.load_warm, result.warm_bound(), result.repack.value_or(0));
  return json;
}

void print_stage(const char* name, const std::optional<double>& seconds, uint64_t bytes) {
  char line[128];
  if (seconds) {
    std::snprintf(line, sizeof line, "%-34s %9.3f s %8.2f GB/s\n", name, *seconds,
                  static_cast<double>(bytes) / *seconds * 1e-9);
  } else {
    std::snprintf(line, sizeof line, "%-34s %11s\n", name, "not known");
  }
  std::cout << line;
}

void print(const LoadBench& result, const DeviceInfo& device, const std::string& model) {
  std::cout << "model    " << model << "\n"
            << "device   " << device.name << " (" << device.driver << ")\n"
            << "weights  " << fixed(static_cast<double>(result.file_bytes) * 1e-6, 1) << " MB in the file, "
            << fixed(static_cast<double>(result.device_bytes) * 1e-6, 1) << " MB on the device\n\n";
  print_stage("reading from the disk", result.disk, result.file_bytes);
  print_stage("reading the file in memory", result.cached, result.file_bytes);
  print_stage("copying memory", result.copy, result.file_bytes);
  print_stage("copying to the device", result.upload, result.device_bytes);
  print_stage("repacking", result.repack, result.file_bytes);
  print_stage("load from the disk", result.load_cold, result.file_bytes);
  print_stage("load of the file in memory", result.load_warm, result.file_bytes);
  const double repack = result.repack.value_or(0);
  const auto share = [](double bound, double load) { return fixed(100 * bound / load, 0) + "%"; };
  std::cout << "\nA load cannot be faster than its slowest stage. Of that stage's rate, and of the slowest without\n"
               "repacking, which more cores would speed up, it reaches ";
  if (result.load_cold) {
    std::cout << share(std::max(result.cold_bound(), repack), *result.load_cold) << " and "
              << share(result.cold_bound(), *result.load_cold) << " from the disk, ";
  }
  std::cout << share(std::max(result.warm_bound(), repack), result.load_warm) << " and "
            << share(result.warm_bound(), result.load_warm) << " with the file in memory.\n";
}

/// Returns the exit code. `json`: a file, "-" for standard output, empty for none. Throws UsageError for a choice that
/// is made only while loading for use, --quantize auto.
int run_load_bench(const ModelChoice& model, uint32_t repeats, const std::string& json) {
  LoadBenchSettings settings;
  settings.repeats = repeats;
  settings.quantize = quantize_on_load_from(model.quantize).value_or(QuantizeOnLoad::none);
  if (settings.quantize == QuantizeOnLoad::automatic) {
    throw UsageError("--load measures one way to load; --quantize may be none, q8_0 or q4_k here.");
  }
  catch_interrupts();
  const std::filesystem::path path = model_path(model);
  const std::unique_ptr<Device> device = open_device(model.device, model.settings);
  const ModelFile file = ModelFile::open(path);
  const std::string name = shown(path.filename().empty() ? path.parent_path().filename() : path.filename());
  const LoadBench result = bench_load(
      file, *device, settings, [](const char* what) { note(what); }, interruption());
  if (!json.empty()) write_report(json, json_text(to_json(result, device->info(), name)));
  if (json != "-") print(result, device->info(), name);
  return 0;
}

// canopy-cli bench: measures how fast a model runs on a device, also as a share of what the device can do.

struct BenchOptions {
  ModelChoice model;
  BenchSettings settings;
  ModesOptions modes;
  bool load = false;
};

ordered_json by_width(const std::map<uint32_t, double>& values) {
  ordered_json object = ordered_json::object();
  for (const auto& [width, value] : values) object[std::to_string(width)] = value;
  return object;
}

ordered_json to_json(const BenchResult& result, const Engine& model, double emulated) {
  const DeviceInfo& device = model.model->device().info();
  ordered_json json = {{"device", device.name},
                       {"driver", device.driver},
                       {"backend", device.backend},
                       {"kernels", kernel_family_of(device.kernels)},
                       {"model", model.file_name},
                       {"peak",
                        {{"read_gb_s", result.peak.read_gb_s},
                         {"fma_gflop_s", result.peak.fma_gflop_s},
                         {"plain_fma_gflop_s", result.peak.plain_fma_gflop_s},
                         {"matrix_gflop_s", result.peak.matrix_gflop_s}}},
                       {"decode_tokens_per_second", result.decode_tokens_per_second},
                       {"prefill_tokens_per_second", result.prefill_tokens_per_second},
                       {"pass_ms", by_width(result.pass_ms)},
                       {"best_pass_ms", by_width(result.best_pass_ms)},
                       {"share_of_fma_peak", by_width(result.share_of_fma_peak)},
                       {"share_of_plain_fma", by_width(result.share_of_plain_fma)},
                       {"share_of_matrix_peak", by_width(result.share_of_matrix_peak)},
                       {"share_of_roofline", by_width(result.share_of_roofline)}};
  if (emulated > 0) json["emulated_memory"] = emulation_json(emulated, json["kernels"], {});
  const WorstStep worst = worst_step(result);
  if (worst.width > 0) json["worst_step"] = {{"width", worst.width}, {"above_neighbours", worst.above}};
  if (result.distinct_experts.empty()) return json;
  json["distinct_experts"] = by_width(result.distinct_experts);
  json["steps"] = by_width(steps_of(result));
  return json;
}

/// Time by the experts that the rows of a pass go through, which decide how many bytes it reads.
void print_experts(const BenchResult& result) {
  if (result.distinct_experts.empty()) return;
  std::cout << "\nexperts that the rows go through, the mean over layers; step: how much longer than the pass before "
               "beyond what\nfurther rows or experts explain, by the best times:\n"
               "width  experts  ms/expert     step\n";
  const std::map<uint32_t, double> steps = steps_of(result);
  double largest = 0;
  for (const auto& [width, experts] : result.distinct_experts) {
    const auto step = steps.find(width);
    char line[128];
    const std::string beyond = step == steps.end() ? "-" : fixed(100 * step->second, 1) + "%";
    std::snprintf(line, sizeof line, "%5u %8.2f %10.3f %8s\n", width, experts, result.best_pass_ms.at(width) / experts,
                  beyond.c_str());
    std::cout << line;
    if (step != steps.end()) largest = std::max(largest, step->second);
  }
  std::cout << "largest step: " << fixed(100 * largest, 1) << "%\n";
}

std::string percent(const std::map<uint32_t, double>& shares, uint32_t width) {
  return fixed(100 * shares.at(width), 1) + "%";
}

TextTable passes_of(const BenchResult& result) {
  TextTable table{{"width", "ms", "ms/row", "best", "of FMA peak", "of plain loop", "of roofline"}, {}};
  const bool has_cores = !result.share_of_matrix_peak.empty();
  if (has_cores) table.columns.push_back("of matrix peak");
  for (const auto& [width, ms] : result.pass_ms) {
    table.rows.push_back({std::to_string(width), fixed(ms, 2), fixed(ms / width, 2),
                          fixed(result.best_pass_ms.at(width), 2), percent(result.share_of_fma_peak, width),
                          percent(result.share_of_plain_fma, width), percent(result.share_of_roofline, width)});
    if (has_cores) table.rows.back().push_back(percent(result.share_of_matrix_peak, width));
  }
  return table;
}

std::string matrix_peak(const DevicePeak& peak) {
  return peak.matrix_gflop_s > 0 ? ", " + fixed(peak.matrix_gflop_s, 1) + " of matrix cores" : "";
}

void print_table(const BenchResult& result, const BenchSettings& settings, const Engine& model) {
  const DeviceInfo& device = model.model->device().info();
  std::cout << "model    " << model.file_name << "\n"
            << "device   " << device.name << " (" << device.driver << "), kernels " << kernel_family_of(device.kernels)
            << (device.rounds_to_8_bits ? " (8-bit activations)" : "") << "\n"
            << "peak     " << fixed(result.peak.read_gb_s, 1) << " GB/s read, " << fixed(result.peak.fma_gflop_s, 1)
            << " GFLOP/s multiply-add (" << fixed(result.peak.plain_fma_gflop_s, 1) << " in a plain loop)"
            << matrix_peak(result.peak) << ", measured in this run\n"
            << "decode   " << fixed(result.decode_tokens_per_second, 1) << " tok/s\n"
            << "prefill  " << fixed(result.prefill_tokens_per_second, 1) << " tok/s (" << settings.prefill_tokens
            << " tokens)\n\n"
            << "passes after " << settings.context << " positions, every row's argmax taken:\n"
            << as_text(passes_of(result));
  const WorstStep worst = worst_step(result);
  if (worst.width > 0) {
    std::cout << "worst step: from " << worst.width << " rows to " << worst.width + 1 << ", "
              << fixed(100 * worst.above, 1) << "% of the pass of " << worst.width
              << " above the mean of the eight steps nearest to it, by the best times\n";
  }
  print_experts(result);
}

void fit_to_model(BenchSettings& settings, const Engine& model) {
  const ModelLimits& limits = model.model->limits();
  const uint32_t longest = std::max({settings.prefill_tokens, settings.context + settings.decode_tokens,
                                     settings.context + 16});  // a binary tree of 128 rows has depth 8
  if (longest > limits.context) {
    throw bad_input("The measurement needs a context of " + std::to_string(longest) + " positions; the model has " +
                    std::to_string(limits.context) + ". Choose a smaller --at, --decode-tokens or --prefill-tokens.");
  }
  for (const uint32_t width : settings.widths) {
    if (width == 0 || width > limits.max_width) {
      throw bad_input("A pass of width " + std::to_string(width) + " was asked for; allowed: 1 to " +
                      std::to_string(limits.max_width) + ".");
    }
  }
  settings.prefill_chunk = prefill_chunk(*model.model);
}

int run(BenchOptions& options) {
  catch_interrupts();
  options.model.self_test = false;
  const OpenedModel opened = open_model(options.model);
  if (options.settings.widths.empty()) options.settings.widths = standard_widths();
  fit_to_model(options.settings, *opened.model);
  const auto step = [](const char* what) { note(what); };
  const double emulated = options.model.settings.memory_gb_s;
  const BenchResult result = run_bench(*opened.model->model, options.settings, step, interruption());
  if (!options.modes.json.empty()) {
    write_report(options.modes.json, json_text(to_json(result, *opened.model, emulated)));
  }
  if (options.modes.json != "-") print_table(result, options.settings, *opened.model);
  if (emulated > 0) note(emulation_words(emulated, "", {}));
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench", "Measure decoding, prefill and passes against the device's own peak");
  const auto options = std::make_shared<BenchOptions>();
  BenchSettings& settings = options->settings;
  add_model_options(*command, options->model);
  command->add_option("--widths", settings.widths, "Widths of passes, e.g. 1,2,4,8 (default: 1 to 128)")
      ->delimiter(',')
      ->transform(app::numbers(1u, 4096u));
  command->add_option("--at", settings.context, "Positions before each pass")
      ->transform(app::counts())
      ->capture_default_str();
  CLI::Option* repeats = command
                             ->add_option("--repeats", settings.repeats,
                                          "Measurements of each width; their median counts. With --modes: of each "
                                          "prompt and mode (default: 3)")
                             ->transform(app::numbers(1, 1000))
                             ->capture_default_str();
  command->add_option("--decode-tokens", settings.decode_tokens, "Tokens decoded")
      ->transform(app::counts())
      ->capture_default_str();
  command->add_option("--prefill-tokens", settings.prefill_tokens, "Tokens of the prompt")
      ->transform(app::counts())
      ->capture_default_str();
  command->add_option("--json", options->modes.json, "Print one JSON object, or write it to a file")
      ->expected(0, 1)
      ->default_str("-");
  command->add_flag("--load", options->load,
                    "Measure instead how fast the weights are loaded, beside what disk, memory and device reach by "
                    "themselves");
  command
      ->add_option("--emulate-memory", options->model.settings.memory_gb_s,
                   "Emulate memory that brings each thread of the processor so many GB/s, to see where guesses pay: no "
                   "speed is then this machine's own (default: its own memory)")
      ->transform(app::numbers(0.1, 1000.0));
  add_modes_options(*command, options->modes);
  command->callback([&action, options, command, repeats] {
    if (repeats->count() > 0) options->modes.repeats = options->settings.repeats;
    const bool modes = asks_for_modes(*command, options->modes);
    if (modes && options->load) throw UsageError("--load measures something else than --modes and --forced; name one.");
    if (options->load && options->model.settings.memory_gb_s > 0)
      throw UsageError("--emulate-memory slows passes, not loading: leave --load away.");
    action = [options, modes] {
      check_bench_targets(options->model, options->modes);
      if (options->load) {
        return run_load_bench(options->model, std::min(options->settings.repeats, 100u), options->modes.json);
      }
      return modes ? run_modes(options->model, options->modes) : run(*options);
    };
  });
}

}  // namespace canopy::cli
