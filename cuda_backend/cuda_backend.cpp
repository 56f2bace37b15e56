// CUDA as one of the backends: what its devices are, before one is opened.

#include "cuda_backend/cuda_device.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "cuda_backend/device_facts_json.h"
#include "cuda_backend/weight_tiles.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/parallel.h"

namespace canopy {
namespace {

FoundDevice found(const cuda::DeviceFacts& facts) {
  const std::string capability = cuda::capability_words(facts.capability);
  FoundDevice device;
  device.backend = "cuda";
  device.ordinal = static_cast<uint32_t>(facts.ordinal);
  device.name = facts.name;
  device.type = cuda::device_type(facts);
  device.driver = facts.driver;
  device.about = facts.driver + ", compute capability " + capability + ", " + byte_figures(facts.memory_bytes);
  device.gpu = facts.uuid;
  device.usable = facts.usable();
  device.reason = facts.reason;
  device.uuid = cuda::device_identity(facts);
  device.memory_bytes = facts.memory_bytes;
  device.words = facts.driver.substr(0, facts.driver.find(" (")) + ", compute capability " + capability;
  device.details = facts.driver + "\nCompute capability " + capability;
  device.facts = cuda::to_json(facts);
  return device;
}

FoundDevices find(const cuda::FoundDriver& driver, const cuda::EmbeddedKernels& kernels) {
  FoundDevices all;
  all.lacking = "NVIDIA GPUs with CUDA";
  if (!driver.api) {
    if (driver.present) all.problem = driver.reason;
    return all;
  }
  try {
    for (const cuda::DeviceFacts& facts : cuda::list_devices(*driver.api, kernels)) all.devices.push_back(found(facts));
  } catch (const Error& e) {
    all.problem = e.what();
  }
  return all;
}

std::unique_ptr<Device> open(const cuda::FoundDriver& driver, const cuda::EmbeddedKernels& embedded, uint32_t ordinal,
                             const std::string& kernels) {
  if (!driver.api) throw Error(ErrorKind::unavailable, driver.reason);
  std::unique_ptr<Device> device =
      open_cuda_device({*driver.api, cuda::list_devices(*driver.api, embedded).at(ordinal), embedded.fatbins});
  if (kernels == "matrix") {
    while (device->fall_back()) {
    }
  }
  return device;
}

void pack(std::span<const WeightPart> parts, WeightLayout layout, std::span<uint32_t> scratch) {
  const cuda::TileLayout tiles = cuda::tile_layout(parts, layout);
  const uint64_t bytes = tiles.group_bytes(), most = scratch.size_bytes() / bytes;
  const std::span<std::byte> packed = std::as_writable_bytes(scratch);
  for (uint64_t first = 0; first < tiles.groups(); first += most) {
    parallel_for(std::min<uint64_t>(most, tiles.groups() - first), 1, [&](uint64_t begin, uint64_t end) {
      std::vector<std::byte> bands;
      for (uint64_t i = begin; i < end; ++i) {
        cuda::fill_group(parts, layout, tiles, static_cast<uint32_t>(first + i), packed.subspan(i * bytes, bytes),
                         bands);
      }
    });
  }
}

}  // namespace

Backend cuda_backend(std::function<cuda::FoundDriver()> driver, const cuda::EmbeddedKernels& kernels) {
  return {"cuda",
          "CUDA",
          {"matrix"},
          [driver, &kernels] { return find(driver(), kernels); },
          [driver, &kernels](uint32_t ordinal, const DeviceSettings& settings) {
            return open(driver(), kernels, ordinal, settings.kernels);
          },
          pack};
}

}  // namespace canopy
