#include <stdexcept>

#include "peer_context.h"
#include "probe.h"

namespace canopy::peer {

void run_widen(const std::string& source, const std::string& target) {
  start_llama();
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = LLAMA_FTYPE_ALL_F32;
  params.allow_requantize = true;  // whatever the type: converting to F32 loses nothing
  if (llama_model_quantize(source.c_str(), target.c_str(), &params) != 0) {
    throw std::runtime_error("llama.cpp could not write " + source + " as F32 to " + target + ".");
  }
}

}  // namespace canopy::peer
