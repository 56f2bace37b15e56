#pragma once
// The head of an HTTP request, read strictly: what two readers could take differently is refused, as request smuggling
// lives on that.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace canopy {

inline constexpr size_t kMostHeadBytes = size_t{32} << 10;
inline constexpr size_t kMostHeaders = 100;

/// A request that is answered with this status and closes its connection.
struct HttpFault : std::runtime_error {
  HttpFault(int status, const std::string& sentence) : std::runtime_error(sentence), status(status) {}
  int status;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/v1/models", as it was sent, without the query
  std::string query;   // without its question mark
  bool is_1_1 = true;  // else HTTP/1.0, which knows no chunks
  bool keeps_alive = true;
  uint64_t content_length = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in small letters
  std::string body;
  std::string local_address;   // that the connection came in on: "127.0.0.1", "::1"
  std::string remote_address;  // that it came from

  /// The header of that name, which is in small letters; null where there is none. The first of several.
  const std::string* header(std::string_view name) const;
};

/// Reads a head: from the request line to the empty line, which is its end. Throws HttpFault: 400 for what is none, for
/// a Host or a Content-Length that is missing, there twice or no number, 431 for too many headers, 501 for a body in
/// chunks, and 505 for another version than 1.0 and 1.1.
HttpRequest parse_http_head(std::string_view head);

/// "Not Found".
std::string_view http_reason(int status);

/// The host of a Host header without its port and brackets, in small letters; empty for what is none.
std::string host_of(std::string_view header);

/// Whether a host is this machine by its own interface: localhost, 127.0.0.0/8, ::1.
bool is_loopback_host(std::string_view host);

}  // namespace canopy
