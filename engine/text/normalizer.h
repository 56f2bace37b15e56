#pragma once

#include <string>
#include <string_view>

namespace canopy {

/// The text in Unicode normal form C. The text must be valid UTF-8. Runs of more than 256 combining marks, which no
/// language writes, are normalised in parts: sorting them takes quadratic time. Throws Error when memory runs out.
std::string normalize_nfc(std::string_view text);

}  // namespace canopy
