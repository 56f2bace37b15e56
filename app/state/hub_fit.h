#pragma once
// What a model that is not fetched yet would take of a device's memory and how fast it would be there, by arithmetic
// alone: nothing is asked of the device, which the engine may be using.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/model_config.h"
#include "engine/hub/pairs.h"
#include "engine/whatif/device_profile.h"

namespace canopy::app {

/// Where a fetched model would run, as far as the window knows.
struct HubHere {
  std::string device;      // its name
  uint64_t available = 0;  // bytes that a model may take there; 0: not known
  bool processor = false;  // or a device computed by it
};

struct HubWeight {
  uint64_t needed = 0;           // bytes of the device's memory; 0: it cannot be told
  double tokens_per_second = 0;  // of plain decoding, predicted; 0: nothing is known of the model or of the device
};

/// The memory is that of the plan of a load with kRoomyContext positions, the speed that of a pass of one row behind
/// 512 positions. label: the quantization, as HubVariant has it. Speeds are predicted for shapes that have a name.
HubWeight weigh(const ModelConfig& config, uint64_t weight_bytes, std::string_view label, const HubHere& here);

/// The profile of a device by the name that drivers give it; null where there is none for exactly that one.
const predict::DeviceProfile* profile_here(std::string_view device);

/// A known pair with what both take on a device.
struct PairOffer {
  KnownPair pair;
  std::string target;        // that is fetched for it, as HubName::text(); empty: not known where it is
  std::string quantization;  // of the target that is weighed; empty: the shape of the target has no name
  HubWeight weight;          // of the target, with the bytes of the drafter's file where they are known
};

/// Of GGUF files the widest of Q8_0, Q6_K and Q4_K_M that fits, else Q4_K_M; a folder as it is published, in BF16; a
/// file whose bytes are known as it is.
PairOffer weigh_pair(const KnownPair& pair, const HubHere& here);

/// The pair that suits a device best: the largest that fits and can be fetched; of equals one that was tried. On the
/// processor, which has to read all of a model for a pass, at most a quarter of the memory. Null where there is none.
const PairOffer* suiting_pair(const std::vector<PairOffer>& pairs, const HubHere& here);

/// "takes about 6.1 of 24.0 GiB: fits", "takes about 6.1 GiB of memory"; empty where nothing is known.
std::string memory_words(const HubWeight& weight, const HubHere& here);
/// "predicted 95 tok/s here, without guesses"; empty where nothing is predicted.
std::string speed_words(const HubWeight& weight);

}  // namespace canopy::app
