#pragma once
// A client for OpenAI-compatible servers (vLLM, SGLang, llama.cpp's): asks for one reply and times it as it comes.

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/endpoint/endpoint_address.h"

namespace canopy {

struct EndpointMessage {
  std::string role, content;
};

struct EndpointRequest {
  std::string model;  // as the server calls it; empty: the server's only one, which some servers accept
  std::vector<EndpointMessage> messages;
  uint32_t max_tokens = 128;
  float temperature = 0;
  float top_p = 1;
  uint64_t seed = 0;
};

struct EndpointReply {
  std::string text;
  uint32_t tokens = 0;         // as the server counted them; else the pieces that it sent
  bool counted = false;        // by the server
  uint32_t prompt_tokens = 0;  // 0: the server did not tell
  double prefill_ms = 0;       // from the request to the first text
  double decode_ms = 0;        // from the first text to the last
  bool ended = false;          // by itself: "stop"; false: the limit
};

struct EndpointLimits {
  double connect_s = 3;
  double silence_s = 120;  // without a byte: a long prompt is read without one
  double whole_s = 900;    // of one reply
};

/// Nothing but http, no redirect is followed, and headers and bodies are bounded (chat_stream.h). Belongs to one
/// thread.
class EndpointClient {
 public:
  explicit EndpointClient(EndpointAddress address, EndpointLimits limits = {});
  ~EndpointClient();
  EndpointClient(const EndpointClient&) = delete;
  EndpointClient& operator=(const EndpointClient&) = delete;

  const EndpointAddress& address() const { return address_; }

  /// Asks for a reply; `text` is called with each new piece. Throws bad_input for an answer that is none, unavailable
  /// where there is no server, it does not answer in time or refuses, with what it said; cancelled within a moment of
  /// `stop`.
  EndpointReply reply(const EndpointRequest& request, const std::function<void(std::string_view)>& text,
                      const std::stop_token& stop);

 private:
  class Exchange;

  EndpointAddress address_;
  EndpointLimits limits_;
  std::shared_ptr<Exchange> last_;  // its thread may still be connecting after it was cancelled
};

}  // namespace canopy
