#pragma once
// How much address space this program may take, for messages.

#include <string>

namespace canopy {

/// " This program may have 629.1 MB of address space (ulimit -v) and has taken 540.2 MB."; empty where it is not
/// limited.
std::string address_space_words();

}  // namespace canopy
