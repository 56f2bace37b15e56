#include "engine/session/engine_client.h"

namespace canopy {

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop_token: return "stop token";
    case FinishReason::max_tokens: return "token limit";
    case FinishReason::context_full: return "context full";
    case FinishReason::cancelled: return "cancelled";
    case FinishReason::failed: return "failed";
  }
  return "?";
}

}  // namespace canopy
