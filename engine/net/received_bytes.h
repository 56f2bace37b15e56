#pragma once
// How many bytes a TCP socket has received so far.

#include <cstdint>
#include <optional>

namespace canopy {

/// Bytes that a TCP socket has received so far; nothing where the system does not tell.
std::optional<uint64_t> received_bytes(int socket);

}  // namespace canopy
