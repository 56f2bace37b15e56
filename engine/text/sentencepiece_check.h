#pragma once

#include <string_view>

namespace canopy {

/// Throws Error(bad_input) for a SentencePiece model that holds a compiled table of character replacements. The library
/// follows the offsets in such a table without checking them, so a damaged file would end the process. The models of
/// language models (Llama, Mistral, Gemma) have none.
void refuse_compiled_normalizer(std::string_view model);

}  // namespace canopy
