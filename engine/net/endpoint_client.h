#pragma once
// A client for OpenAI-compatible servers (vLLM, SGLang, llama.cpp's): their address, one request, and the reply as it
// comes, in server-sent events with one JSON object each, timed.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

/// The address of an OpenAI-compatible server.
struct EndpointAddress {
  std::string host;  // "127.0.0.1", "::1", "gpu-box.local"
  uint16_t port = 80;
  std::string path;  // "/v1"; without a slash at its end

  std::string shown() const;  // "127.0.0.1:8000", for users and files
};

/// Reads "http://host:8000/v1". "http://" and the path, "/v1", may be left out. Throws bad_input for https and for what
/// is no address.
EndpointAddress parse_endpoint(std::string_view url);

/// Limits of what a server may send.
inline constexpr size_t kMostReplyBytes = size_t{8} << 20;  // of all events together
inline constexpr size_t kMostEventBytes = size_t{1} << 20;

/// The reply as it comes, in server-sent events with one JSON object each. Takes its bytes in any pieces.
class ChatStream {
 public:
  /// New text of the reply, whole characters; may be empty. Throws bad_input for bytes that are no such events, and
  /// beyond the limits.
  std::string push(std::string_view bytes);

  const std::string& text() const { return text_; }
  /// Events that brought text, of the reply or of what the model thought before it.
  uint32_t pieces() const { return pieces_; }
  /// Tokens of the reply as the server counted them, and of the prompt; nothing where it did not tell.
  std::optional<uint32_t> tokens() const { return tokens_; }
  std::optional<uint32_t> prompt_tokens() const { return prompt_tokens_; }
  /// Why the server ended the reply: "stop", "length"; empty before that.
  const std::string& finish_reason() const { return finish_reason_; }
  /// Whether the server said that no more comes.
  bool done() const { return done_; }

 private:
  void take_line(std::string_view line, std::string& added);
  void take_event(std::string_view data, std::string& added);

  size_t bytes_ = 0;
  std::string line_;  // that is not whole yet
  std::string text_;
  uint32_t pieces_ = 0;
  std::optional<uint32_t> tokens_, prompt_tokens_;
  std::string finish_reason_;
  bool done_ = false;
};

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

/// Asks for one reply and times it as it comes. Nothing but http, no redirect is followed, and headers and bodies are
/// bounded. Belongs to one thread.
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
