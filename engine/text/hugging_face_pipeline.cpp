#include "engine/text/hugging_face_pipeline.h"

#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/text/byte_token.h"

namespace canopy {
namespace {

using Json = nlohmann::json;
using Stages = std::vector<PreTokenizer::Stage>;
using Steps = std::vector<TextNormalizer::Step>;

// The "type" of a part of the file.
std::string type_of(const Json& part) {
  return part.at("type").get<std::string>();
}

// The parts of a Sequence, or the one part itself.
std::vector<Json> parts_of(const Json& part, const char* list) {
  if (part.is_null()) return {};
  if (type_of(part) != "Sequence") return {part};
  std::vector<Json> parts;
  for (const Json& inner : part.at(list)) {
    for (Json& flat : parts_of(inner, list)) parts.push_back(std::move(flat));
  }
  return parts;
}

TextNormalizer::Step read_replace(const Json& part) {
  const Json& pattern = part.at("pattern");
  auto to = part.at("content").get<std::string>();
  if (pattern.contains("Regex")) {
    return TextNormalizer::ReplaceMatches{Regex(pattern.at("Regex").get<std::string>()), std::move(to)};
  }
  return TextNormalizer::Replace{pattern.at("String").get<std::string>(), std::move(to)};
}

Steps read_normalizer(const Json& root) {
  Steps steps;
  for (const Json& part : parts_of(root.value("normalizer", Json()), "normalizers")) {
    const std::string type = type_of(part);
    if (type == "NFC") {
      steps.push_back(TextNormalizer::Unicode{UnicodeForm::nfc});
    } else if (type == "NFD") {
      steps.push_back(TextNormalizer::Unicode{UnicodeForm::nfd});
    } else if (type == "NFKC") {
      steps.push_back(TextNormalizer::Unicode{UnicodeForm::nfkc});
    } else if (type == "NFKD") {
      steps.push_back(TextNormalizer::Unicode{UnicodeForm::nfkd});
    } else if (type == "Prepend") {
      steps.push_back(TextNormalizer::Prepend{.text = part.at("prepend").get<std::string>()});
    } else if (type == "Replace") {
      steps.push_back(read_replace(part));
    } else {
      refuse_tokenizer_part("normalizer", type, "NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence, or none");
    }
  }
  return steps;
}

// A literal as a regular expression. \Q...\E ends at the first \E, so each is written apart.
std::string quoted(const std::string& literal) {
  std::string out = "\\Q";
  size_t from = 0;
  for (size_t at = literal.find("\\E"); at != std::string::npos; at = literal.find("\\E", from)) {
    out += literal.substr(from, at - from) + "\\E\\\\E\\Q";
    from = at + 2;
  }
  return out + literal.substr(from) + "\\E";
}

PreTokenizer::Behavior read_behavior(const std::string& name) {
  using enum PreTokenizer::Behavior;
  if (name == "Isolated") return isolated;
  if (name == "Removed") return removed;
  if (name == "MergedWithPrevious") return with_previous;
  if (name == "MergedWithNext") return with_next;
  if (name == "Contiguous") return contiguous;
  refuse_tokenizer_part("Split behavior", name, "Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous");
}

PreTokenizer::Stage read_split(const Json& part) {
  const Json& pattern = part.at("pattern");
  std::string expression = pattern.contains("Regex") ? pattern.at("Regex").get<std::string>()
                                                     : quoted(pattern.at("String").get<std::string>());
  return {Regex(std::move(expression)), read_behavior(part.at("behavior").get<std::string>()),
          part.value("invert", false)};
}

PreTokenizer::Stage read_punctuation(const Json& part) {
  return {Regex(R"([\p{P}$+<=>^`|~])"), read_behavior(part.value("behavior", std::string("Isolated")))};
}

// Metaspace writes spaces as marks, puts one in front, and may cut in front of each.
void read_metaspace(const Json& part, HuggingFacePipeline& pipeline, Steps& steps, Stages& stages) {
  const auto mark = part.at("replacement").get<std::string>();
  if (mark != word_mark) refuse_tokenizer_part("Metaspace replacement", mark, "U+2581");
  const bool prepends = part.value("add_prefix_space", true);  // how older files say it
  const auto scheme = part.value("prepend_scheme", std::string(prepends ? "always" : "never"));
  steps.push_back(TextNormalizer::Replace{" ", mark});
  if (scheme == "always" || scheme == "first") {
    steps.push_back(TextNormalizer::Prepend{mark, scheme == "first", true});
    pipeline.drops_leading_space = true;
  } else if (scheme != "never") {
    refuse_tokenizer_part("Metaspace prepend_scheme", scheme, "always, first, never");
  }
  if (part.value("split", true)) stages.push_back({Regex(quoted(mark)), PreTokenizer::Behavior::with_next});
}

void read_byte_level(const Json& part, bool is_first, HuggingFacePipeline& pipeline, Steps& steps, Stages& stages) {
  pipeline.is_byte_level = true;
  if (part.value("add_prefix_space", true)) {
    // Behind other stages every piece would get a space of its own; no model in use wants that.
    if (!is_first) refuse_tokenizer_part("ByteLevel option", "add_prefix_space: true", "false behind other stages");
    steps.push_back(TextNormalizer::Prepend{" ", false, true});
  }
  if (part.value("use_regex", true)) stages.push_back({Regex(gpt2_expression)});
}

void read_pre_tokenizer(const Json& root, HuggingFacePipeline& pipeline, Steps& steps) {
  Stages stages;
  bool is_first = true;
  for (const Json& part : parts_of(root.value("pre_tokenizer", Json()), "pretokenizers")) {
    const std::string type = type_of(part);
    if (pipeline.is_byte_level) refuse_tokenizer_part("pre-tokenizer", type, "nothing after ByteLevel");
    if (type == "Split") {
      stages.push_back(read_split(part));
    } else if (type == "Digits") {
      stages.push_back({Regex(part.value("individual_digits", false) ? "\\p{N}" : "\\p{N}+")});
    } else if (type == "Punctuation") {
      stages.push_back(read_punctuation(part));
    } else if (type == "ByteLevel") {
      read_byte_level(part, is_first, pipeline, steps, stages);
    } else if (type == "Metaspace" && is_first) {
      read_metaspace(part, pipeline, steps, stages);
    } else {
      refuse_tokenizer_part("pre-tokenizer", type,
                            "Sequence, Split, Digits, Punctuation, ByteLevel, and Metaspace as the first");
    }
    is_first = false;
  }
  pipeline.pre_tokenizer = PreTokenizer(std::move(stages));
}

// How characters become text again: marks become spaces, byte tokens bytes, and a space in front may go.
void read_character_decoder(const Json& root, HuggingFacePipeline& pipeline) {
  const auto parts = parts_of(root.value("decoder", Json()), "decoders");
  if (parts.empty()) refuse_tokenizer_part("decoder", "none", "one that writes U+2581 as a space");
  bool writes_spaces = false;
  for (const Json& part : parts) {
    const std::string type = type_of(part);
    if (type == "Replace") {
      const Json& pattern = part.at("pattern");
      writes_spaces = pattern.value("String", std::string()) == word_mark && part.at("content") == " ";
      if (!writes_spaces) refuse_tokenizer_part("decoder", "Replace " + pattern.dump(), "U+2581 by a space");
    } else if (type == "Metaspace") {
      writes_spaces = true;
    } else if (type == "Strip") {
      const bool drops_one = part.at("content") == " " && part.at("start") == 1 && part.at("stop") == 0;
      if (!drops_one) refuse_tokenizer_part("decoder", part.dump(), "Strip of one space in front");
      pipeline.drops_leading_space = true;
    } else if (type != "ByteFallback" && type != "Fuse") {
      refuse_tokenizer_part("decoder", type, "Replace, Metaspace, Strip, ByteFallback, Fuse, Sequence");
    }
  }
  if (!writes_spaces) refuse_tokenizer_part("decoder", "without Replace", "one that writes U+2581 as a space");
}

// The token that the post-processor puts in front of every text, if any.
std::string read_leading_token(const Json& root) {
  for (const Json& part : parts_of(root.value("post_processor", Json()), "processors")) {
    if (type_of(part) != "TemplateProcessing") continue;
    const Json& single = part.at("single");
    if (!single.empty() && single.at(0).contains("SpecialToken")) {
      return single.at(0).at("SpecialToken").at("id").get<std::string>();
    }
  }
  return {};
}

}  // namespace

HuggingFacePipeline read_hugging_face_pipeline(const Json& root) {
  HuggingFacePipeline pipeline;
  Steps steps = read_normalizer(root);
  read_pre_tokenizer(root, pipeline, steps);
  pipeline.normalizer = TextNormalizer(std::move(steps));
  if (!pipeline.is_byte_level) read_character_decoder(root, pipeline);
  pipeline.leading_token = read_leading_token(root);
  return pipeline;
}

void refuse_tokenizer_part(const char* what, const std::string& actual, const char* supported) {
  throw bad_input(std::string("The ") + what + " \"" + printable(actual, 120) +
                  "\" of tokenizer.json is not supported; supported: " + supported + ".");
}

}  // namespace canopy
