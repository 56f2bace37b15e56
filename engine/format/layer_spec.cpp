#include "engine/format/layer_spec.h"

#include <string>

#include "engine/base/error.h"

namespace canopy {

void require_supported(std::span<const LayerSpec> layers) {
  for (size_t n = 0; n < layers.size(); ++n) {
    const auto refuse = [n](const char* kind, const char* supported) {
      throw bad_input("Layer " + std::to_string(n) + " of the model is " + kind + ", which cannot be computed; " +
                      supported + " is supported.");
    };
    if (layers[n].mixer != Mixer::attention) refuse("a gated delta net", "attention");
    if (layers[n].feed_forward != FeedForward::swiglu) refuse("a mixture of experts", "a dense feed-forward (SwiGLU)");
  }
}

}  // namespace canopy
