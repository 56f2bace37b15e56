#include "engine/text/hugging_face_pipeline.h"

#include <utility>

#include "engine/base/base64.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/text/byte_token.h"

namespace canopy {
namespace {

using Json = nlohmann::json;
using Stages = std::vector<PreTokenizer::Stage>;
using Steps = std::vector<TextNormalizer::Step>;

// The part itself, or the parts of a Sequence.
void append_parts(const Json& part, const char* list, const std::string& what, std::vector<JsonFields>& parts) {
  const JsonFields fields(part, what);
  if (fields.text("type") != "Sequence") {
    parts.push_back(fields);
    return;
  }
  for (const Json& inner : fields.list(list)) append_parts(inner, list, what, parts);
}

// The parts of a stage of the tokenizer, in order; `list` is what the stage calls the parts of its Sequence.
std::vector<JsonFields> parts_of(const JsonFields& root, const char* stage, const char* list) {
  std::vector<JsonFields> parts;
  const Json* part = root.find(stage);
  if (part != nullptr) append_parts(*part, list, "the " + std::string(stage) + " of " + root.what(), parts);
  return parts;
}

JsonFields pattern_of(const JsonFields& part) {
  return {part.at("pattern"), "the pattern in " + part.what()};
}

Regex read_regex(const JsonFields& pattern) {
  return with_context(pattern.what(), [&] { return Regex(pattern.text("Regex")); });
}

TextNormalizer::Step read_replace(const JsonFields& part) {
  const JsonFields pattern = pattern_of(part);
  std::string to = part.text("content");
  if (pattern.has("Regex")) return TextNormalizer::ReplaceMatches{read_regex(pattern), std::move(to)};
  return TextNormalizer::Replace{pattern.text("String"), std::move(to)};
}

TextNormalizer::Step read_precompiled(const JsonFields& part) {
  const auto table = decode_base64(part.text("precompiled_charsmap"));
  if (!table) throw bad_input("The field 'precompiled_charsmap' of " + part.what() + " is no base64.");
  return TextNormalizer::Compiled{std::make_shared<const CompiledNormalizer>(*table, part.what())};
}

Steps read_normalizer(const JsonFields& root) {
  Steps steps;
  for (const JsonFields& part : parts_of(root, "normalizer", "normalizers")) {
    const std::string type = part.text("type");
    if (type == "NFC") {
      steps.emplace_back(TextNormalizer::Unicode{UnicodeForm::nfc});
    } else if (type == "NFD") {
      steps.emplace_back(TextNormalizer::Unicode{UnicodeForm::nfd});
    } else if (type == "NFKC") {
      steps.emplace_back(TextNormalizer::Unicode{UnicodeForm::nfkc});
    } else if (type == "NFKD") {
      steps.emplace_back(TextNormalizer::Unicode{UnicodeForm::nfkd});
    } else if (type == "Prepend") {
      steps.emplace_back(TextNormalizer::Prepend{.text = part.text("prepend")});
    } else if (type == "Replace") {
      steps.push_back(read_replace(part));
    } else if (type == "Precompiled") {
      steps.push_back(read_precompiled(part));
    } else {
      refuse_tokenizer_part("normalizer", type,
                            "NFC, NFD, NFKC, NFKD, Precompiled, Prepend, Replace, Sequence, or none");
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

PreTokenizer::Stage read_split(const JsonFields& part) {
  const JsonFields pattern = pattern_of(part);
  Regex expression = pattern.has("Regex") ? read_regex(pattern) : Regex(quoted(pattern.text("String")));
  return {std::move(expression), read_behavior(part.text("behavior")), part.boolean_or("invert", false)};
}

PreTokenizer::Stage read_punctuation(const JsonFields& part) {
  return {Regex(R"([\p{P}$+<=>^`|~])"), read_behavior(part.text_or("behavior", "Isolated"))};
}

// Metaspace writes spaces as marks, puts one in front, and may cut in front of each.
void read_metaspace(const JsonFields& part, HuggingFacePipeline& pipeline, Steps& steps, Stages& stages) {
  const std::string mark = part.text("replacement");
  if (mark != word_mark) refuse_tokenizer_part("Metaspace replacement", mark, "U+2581");
  const bool prepends = part.boolean_or("add_prefix_space", true);  // how older files say it
  const std::string scheme = part.text_or("prepend_scheme", prepends ? "always" : "never");
  steps.emplace_back(TextNormalizer::Replace{" ", mark});
  if (scheme == "always" || scheme == "first") {
    steps.emplace_back(TextNormalizer::Prepend{mark, scheme == "first", true});
    pipeline.drops_leading_space = true;
  } else if (scheme != "never") {
    refuse_tokenizer_part("Metaspace prepend_scheme", scheme, "always, first, never");
  }
  if (part.boolean_or("split", true)) stages.push_back({Regex(quoted(mark)), PreTokenizer::Behavior::with_next});
}

void read_byte_level(const JsonFields& part, bool is_first, HuggingFacePipeline& pipeline, Steps& steps,
                     Stages& stages) {
  pipeline.is_byte_level = true;
  if (part.boolean_or("add_prefix_space", true)) {
    // Behind other stages every piece would get a space of its own; no model in use wants that.
    if (!is_first) refuse_tokenizer_part("ByteLevel option", "add_prefix_space: true", "false behind other stages");
    steps.emplace_back(TextNormalizer::Prepend{" ", false, true});
  }
  if (part.boolean_or("use_regex", true)) stages.push_back({Regex(gpt2_expression)});
}

void read_pre_tokenizer(const JsonFields& root, HuggingFacePipeline& pipeline, Steps& steps) {
  Stages stages;
  bool is_first = true;
  for (const JsonFields& part : parts_of(root, "pre_tokenizer", "pretokenizers")) {
    const std::string type = part.text("type");
    if (pipeline.is_byte_level) refuse_tokenizer_part("pre-tokenizer", type, "nothing after ByteLevel");
    if (type == "Split") {
      stages.push_back(read_split(part));
    } else if (type == "Digits") {
      stages.push_back({Regex(part.boolean_or("individual_digits", false) ? "\\p{N}" : "\\p{N}+")});
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

// Reads the decoder of a character vocabulary: marks become spaces, byte tokens bytes, and a leading space may go.
void read_character_decoder(const JsonFields& root, HuggingFacePipeline& pipeline) {
  const auto parts = parts_of(root, "decoder", "decoders");
  if (parts.empty()) refuse_tokenizer_part("decoder", "none", "one that writes U+2581 as a space");
  bool writes_spaces = false;
  for (const JsonFields& part : parts) {
    const std::string type = part.text("type");
    if (type == "Replace") {
      const std::string replaced = pattern_of(part).text_or("String", "an expression");
      writes_spaces = replaced == word_mark && part.text("content") == " ";
      if (!writes_spaces) refuse_tokenizer_part("decoder", "Replace " + replaced, "U+2581 by a space");
    } else if (type == "Metaspace") {
      writes_spaces = true;
    } else if (type == "Strip") {
      const bool drops_one = part.text("content") == " " && part.u32("start") == 1 && part.u32("stop") == 0;
      if (!drops_one) refuse_tokenizer_part("decoder", "Strip", "Strip of one space in front");
      pipeline.drops_leading_space = true;
    } else if (type != "ByteFallback" && type != "Fuse") {
      refuse_tokenizer_part("decoder", type, "Replace, Metaspace, Strip, ByteFallback, Fuse, Sequence");
    }
  }
  if (!writes_spaces) refuse_tokenizer_part("decoder", "without Replace", "one that writes U+2581 as a space");
}

// The token that the post-processor puts in front of every text, if any.
std::string read_leading_token(const JsonFields& root) {
  for (const JsonFields& part : parts_of(root, "post_processor", "processors")) {
    if (part.text("type") != "TemplateProcessing") continue;
    const Json& single = part.list("single");
    if (single.empty()) continue;
    const std::string what = "the first piece of " + part.what();
    const Json* token = JsonFields(single.front(), what).object("SpecialToken");
    if (token != nullptr) return JsonFields(*token, what).text("id");
  }
  return {};
}

}  // namespace

HuggingFacePipeline read_hugging_face_pipeline(const JsonFields& root) {
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
