#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace canopy
