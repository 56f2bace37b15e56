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
#include <utility>
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

struct StreamLimits {
  size_t reply_bytes = kMostReplyBytes;
  size_t event_bytes = kMostEventBytes;
};

/// The reply as it comes, in server-sent events with one JSON object each. Takes its bytes in any pieces.
class ChatStream {
 public:
  /// Called with the events that a Canopy sends beside those of the interface: "canopy.round".
  using Named = std::function<void(std::string_view name, std::string_view data)>;
  explicit ChatStream(Named named = {}, StreamLimits limits = {}) : named_(std::move(named)), limits_(limits) {}

  /// New text of the reply, whole characters; may be empty. Throws bad_input for bytes that are no such events, and
  /// beyond the limits.
  std::string push(std::string_view bytes);

  const std::string& text() const { return text_; }
  /// What the model thought before it, where the server tells it apart.
  const std::string& thinking() const { return thinking_; }
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

  Named named_;
  StreamLimits limits_;
  size_t bytes_ = 0;
  std::string line_;   // that is not whole yet
  std::string event_;  // the name of the event under way
  std::string text_, thinking_;
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
  std::string more;  // further fields, as a JSON object; empty: none
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
  double whole_s = 900;    // of one reply; 0: no limit
};

struct EndpointAnswer {
  int status = 0;
  std::string body;  // whole; of a stream only where the status is another than 200, and then its beginning
};

/// What a body that refuses a request says: the message of its error object, else its beginning; safe to show.
std::string said_in(std::string_view body);

/// Asks for one reply and times it as it comes. Nothing but http, no redirect is followed, and headers and bodies are
/// bounded. Belongs to one thread.
class EndpointClient {
 public:
  /// key: sent with each request; empty: none. Throws bad_input for one that no header may hold.
  explicit EndpointClient(EndpointAddress address, EndpointLimits limits = {}, std::string key = {});
  ~EndpointClient();
  EndpointClient(const EndpointClient&) = delete;
  EndpointClient& operator=(const EndpointClient&) = delete;

  const EndpointAddress& address() const { return address_; }

  /// Asks for a reply; `text` is called with each new piece. Throws bad_input for an answer that is none, unavailable
  /// where there is no server, it does not answer in time or refuses, with what it said; cancelled within a moment of
  /// `stop`. named, stream_limits: see ChatStream.
  EndpointReply reply(const EndpointRequest& request, const std::function<void(std::string_view)>& text,
                      const std::stop_token& stop, ChatStream::Named named = {}, StreamLimits stream_limits = {});

  /// Reads what is at `path`, "/models", below the address. Throws bad_input for a body of more bytes, unavailable
  /// where there is no server or it does not answer in time, and cancelled; any status is an answer.
  EndpointAnswer get(const std::string& path, size_t most_bytes, const std::stop_token& stop);
  /// Posts JSON to `path` and gives the bytes of the answer to `take`, as they come. Throws the same, and what `take`
  /// throws.
  EndpointAnswer post(const std::string& path, std::string json, const std::function<void(std::string_view)>& take,
                      const std::stop_token& stop);

 private:
  class Exchange;

  EndpointAddress address_;
  EndpointLimits limits_;
  std::string key_;
  std::shared_ptr<Exchange> last_;  // its thread may still be connecting after it was cancelled
};

}  // namespace canopy
