#include "app/cli/bench_load.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/parallel.h"
#include "engine/devices/devices.h"
#include "engine/model/memory_plan.h"
#include "engine/model/weights.h"

namespace canopy::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPiece = 2ull << 20;

/// Has the system drop a file from its memory. False where most of it stays.
bool drop(const fs::path& path) {
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

}  // namespace

double LoadBench::cold_bound() const {
  return std::max(disk.value_or(0), warm_bound());
}

double LoadBench::warm_bound() const {
  return std::max({cached, copy, upload.value_or(0)});
}

LoadBench bench_load(const ModelFile& file, Device& device, const LoadBenchSettings& settings,
                     const std::function<void(const char*)>& step, const std::stop_token& stop) {
  return LoadBencher(file, device, settings, step, stop).run();
}

}  // namespace canopy::cli
