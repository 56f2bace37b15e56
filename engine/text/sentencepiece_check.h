#pragma once

#include <string_view>

namespace canopy {

/// Checks the compiled tables of replacements in a SentencePiece model (compiled_normalizer.h), which the library
/// follows without looking, so that a damaged file would end the process. Throws Error(bad_input) where one is damaged.
void check_compiled_normalizers(std::string_view model);

}  // namespace canopy
