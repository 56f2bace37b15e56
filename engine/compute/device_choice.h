#pragma once
// Choosing one device of those that a machine has, whatever backend they are of. Pure functions.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace canopy {

struct ListedDevice {
  uint32_t number = 0;   // as users name it
  std::string backend;   // Backend::name
  uint32_t ordinal = 0;  // of the backend's own devices
  std::string name;
  std::string type;   // "discrete", "integrated", "virtual", "cpu", "software" or "other"
  std::string about;  // driver and versions, for messages
  std::string gpu;    // gpu_of() its uuid; empty where it is not known
  bool usable = false;
  std::string reason;  // why not, as a sentence

  /// "cuda:0": selects it.
  std::string id() const { return backend + ":" + std::to_string(ordinal); }
};

/// Position of the device that `selector` names: a number of the list, an id ("cuda:0"), a backend ("cuda"), a type or
/// a part of a name ("4090"), ignoring case. Empty: the best one, i.e. discrete before integrated before virtual before
/// cpu before software; of these, one of the backend that is later in `backends` (the names of all there are), then the
/// lowest number. A word that fits several devices takes the best of those that can be used. Throws unavailable,
/// listing what exists, if nothing fits or what fits cannot be used.
size_t choose_device(std::span<const ListedDevice> devices, std::string_view selector,
                     std::span<const std::string> backends);

/// Whether a selector names one of the backends, or a device by its id.
bool names_backend(std::string_view selector, std::span<const std::string> backends);

/// The id of a GPU in another backend; empty where there is none.
std::string other_backend_of(std::span<const ListedDevice> devices, const ListedDevice& device);

/// "0: NAME (discrete, ABOUT) [vulkan:0]\n1: … — not usable: REASON"
std::string describe_devices(std::span<const ListedDevice> devices);

}  // namespace canopy
