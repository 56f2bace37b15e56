#pragma once

#include "engine/text/chat_template.h"

namespace canopy {

/// <|im_start|>role ... <|im_end|>, as most models whose vocabulary has these tokens were trained.
std::unique_ptr<ChatTemplate> make_chatml();
bool has_chatml_tokens(const Tokenizer& tokenizer);

/// For models that were never taught turns: a transcript to be continued.
std::unique_ptr<ChatTemplate> make_plain_transcript();

}  // namespace canopy
