#pragma once
// How a model is served: at which address, to whom, as what, and how much at once.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/net/http_server.h"
#include "engine/serve/api_request.h"
#include "engine/serve/scheduler.h"
#include "engine/session/engine_client.h"

namespace canopy {

inline constexpr size_t kShortestKey = 8;
inline constexpr size_t kMostKeys = 1000;

/// A key that clients may name. Those with different ones share nothing.
struct ServeKey {
  std::string key;
  std::string name;  // for people: "editor"; empty: "key 1", by its place
};

struct ServeOptions {
  HttpServer::Address address{"127.0.0.1", kServePort};
  HttpLimits limits;
  std::vector<ServeKey> keys;        // of which clients must name one; empty: none, only for a loopback address
  std::vector<std::string> hosts;    // names in Host headers beside those of this machine's loopback
  std::vector<std::string> origins;  // "https://chat.example": pages that may ask
  SchedulerLimits scheduling;
  std::string model;  // its name for clients; empty: that of its file
  ApiLimits api;
};

/// Throws bad_input for options that would let in who must not: an address that is no loopback without a key, a key
/// that is short, there twice or has signs that no header may hold, a host or an origin that is none.
void validate(const ServeOptions& options);

/// Whether both are the same, in a time that depends on the length of `given` alone.
bool same_key(std::string_view key, std::string_view given);

/// The keys of a text, one a line: "KEY", or "NAME KEY" with a name that may have blanks. Empty lines and those that
/// begin with # are none.
std::vector<ServeKey> parse_keys(std::string_view text);

/// The name of a model for clients, of the name of its file: without ".gguf".
std::string served_name(std::string_view file_name);

}  // namespace canopy
