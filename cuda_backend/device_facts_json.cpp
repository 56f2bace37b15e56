#include "cuda_backend/device_facts_json.h"

namespace canopy::cuda {

nlohmann::ordered_json to_json(const DeviceFacts& facts) {
  return {{"name", facts.name},
          {"type", device_type(facts)},
          {"vendor", "NVIDIA"},
          {"driver", facts.driver},
          {"compute_capability", capability_words(facts.capability)},
          {"pci_address", facts.pci_address},
          {"memory_bytes", facts.memory_bytes},
          {"usable", facts.usable()},
          {"reason", facts.reason},
          {"multiprocessors", facts.multiprocessors},
          {"l2_bytes", facts.l2_bytes},
          {"max_shared_bytes", facts.shared_bytes}};
}

}  // namespace canopy::cuda
