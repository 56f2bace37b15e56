#include "engine/format/named_tokens.h"

#include <algorithm>
#include <unordered_map>

namespace canopy {
namespace {

enum class Role { ends, file_ends, control, sentence_end, harmony };

constexpr int32_t control_type = 3;

// The special characters are U+FF5C and U+2581, as DeepSeek spells them.
const std::unordered_map<std::string_view, Role>& roles() {
  static const std::unordered_map<std::string_view, Role> table = [] {
    std::unordered_map<std::string_view, Role> made;
    const auto put = [&](Role role, std::initializer_list<std::string_view> spellings) {
      for (const std::string_view spelling : spellings) made.emplace(spelling, role);
    };
    put(Role::ends, {"<|im_end|>", "<|endoftext|>",    "<|end_of_text|>", "<|eot_id|>",
                     "<|eom_id|>", "<|end|>",          "<|return|>",      "<|call|>",
                     "<|calls|>",  "<|flush|>",        "<end_of_turn>",   "<end_of_utterance>",
                     "<turn|>",    "<|tool_response>", "<eos>",           "[EOS]",
                     "<EOT>",      "_<EOT>",           "[EOT]",           "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
                     "[e~["});
    // A model that fills in the middle goes on to another file, or to nothing.
    put(Role::file_ends, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>",
                          "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>"});
    put(Role::control, {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>",    "<\uFF5Cfim\u2581begin\uFF5C>",
                        "<PRE>",          "\u2581<PRE>",  "<|code_prefix|>", "<|prefix|>",
                        "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",    "<\uFF5Cfim\u2581hole\uFF5C>",
                        "<SUF>",          "\u2581<SUF>",  "<|code_suffix|>", "<|suffix|>",
                        "<|fim_middle|>", "<fim-middle>", "<fim_middle>",    "<\uFF5Cfim\u2581end\uFF5C>",
                        "<MID>",          "\u2581<MID>",  "<|code_middle|>", "<|middle|>"});
    put(Role::sentence_end, {"</s>"});
    put(Role::harmony, {"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"});
    return made;
  }();
  return table;
}

}  // namespace

NamedTokens named_tokens(std::span<const std::string_view> tokens, std::span<const int32_t> types) {
  NamedTokens named;
  std::vector<uint32_t> sentence_ends, harmony;
  bool has_return = false, has_call = false, has_flush = false, has_tool_response = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto found = roles().find(tokens[i]);
    if (found == roles().end()) continue;
    const auto id = static_cast<uint32_t>(i);
    switch (found->second) {
      case Role::file_ends: named.file_ends.push_back(id); [[fallthrough]];
      case Role::ends: named.ends.push_back(id); break;
      case Role::control: named.controls.push_back(id); break;
      // The end of a text where the file says so; a tag of HTML in Gemma's vocabularies.
      case Role::sentence_end:
        if (i < types.size() && types[i] == control_type) sentence_ends.push_back(id);
        break;
      case Role::harmony: harmony.push_back(id); break;
    }
    has_return |= tokens[i] == "<|return|>";
    has_call |= tokens[i] == "<|call|>" || tokens[i] == "<|calls|>";
    has_flush |= tokens[i] == "<|flush|>";
    has_tool_response |= tokens[i] == "<|tool_response>";
  }
  named.controls.insert(named.controls.end(), named.ends.begin(), named.ends.end());
  if (has_call && (has_return || has_flush)) {
    named.controls.insert(named.controls.end(), harmony.begin(), harmony.end());
    std::erase_if(named.ends, [&](uint32_t id) {
      if (tokens[id] != "<|end|>") return false;
      named.message_ends.push_back(id);
      return true;
    });
  }
  // With "<|tool_response>" it is Gemma's again, whatever its type.
  if (!has_tool_response) named.ends.insert(named.ends.end(), sentence_ends.begin(), sentence_ends.end());
  std::ranges::sort(named.ends);
  std::ranges::sort(named.controls);
  return named;
}

}  // namespace canopy
