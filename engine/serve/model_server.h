#pragma once
// A loaded model as a server that OpenAI's clients speak to: who may ask, what there is, and one handler for chats and
// completions.

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/net/http_server.h"
#include "engine/serve/api_request.h"
#include "engine/session/engine.h"

namespace canopy {

inline constexpr uint16_t kServePort = 8737;
inline constexpr size_t kShortestKey = 8;

struct ServeOptions {
  HttpServer::Address address{"127.0.0.1", kServePort};
  HttpLimits limits;
  std::string key;                   // that clients must name; empty: none, only for a loopback address
  std::vector<std::string> hosts;    // names in Host headers beside those of this machine's loopback
  std::vector<std::string> origins;  // "https://chat.example": pages that may ask
  uint32_t most_waiting = 64;        // replies
  std::string model;                 // its name for clients; empty: that of its file
  ApiLimits api;
};

/// Throws bad_input for options that would let in who must not: an address that is no loopback without a key, a key
/// that is short or has signs that no header may hold, an origin that is none.
void validate(const ServeOptions& options);

/// Whether both are the same, in a time that depends on the length of `given` alone.
bool same_key(std::string_view key, std::string_view given);

/// The name of a model for clients, of the name of its file: without ".gguf".
std::string served_name(std::string_view file_name);

class ModelServer {
 public:
  /// Listens at once; replies are written by run(). `engine` must outlive this. Throws the errors of validate() and of
  /// HttpServer.
  ModelServer(const Engine& engine, ServeOptions options);
  ~ModelServer();

  /// "http://127.0.0.1:8737/v1"
  std::string url() const;
  const std::string& model() const;

  /// Writes replies on this thread, to which `engine` belongs, until `stop`; all connections end then. Throws
  /// device_lost.
  void run(const std::stop_token& stop);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace canopy
