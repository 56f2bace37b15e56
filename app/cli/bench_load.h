#pragma once
// Measures loading a model's weights, and what the disk, the memory and the device reach by themselves.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>

#include "engine/compute/device.h"
#include "engine/format/model_file.h"

namespace canopy::cli {

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

/// `step` hears what is under way. Throws what load_weights() throws, out_of_memory where the weights do not fit, and
/// cancelled when stop is requested.
LoadBench bench_load(const ModelFile& file, Device& device, const LoadBenchSettings& settings,
                     const std::function<void(const char*)>& step, const std::stop_token& stop);

}  // namespace canopy::cli
