#include "engine/text/hugging_face_tokenizer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/text/bpe_tokenizer.h"
#include "engine/text/normalizer.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/tokenizer.h"
#include "engine/text/unigram_tokenizer.h"

namespace canopy {
namespace {

using Json = nlohmann::json;

constexpr const char* config_file = "tokenizer_config.json";

/// An id as JSON. Throws Error(bad_input) for anything but a whole number from 0 on; the token is named in the message.
uint64_t read_token_id(const Json& id, const std::string& token) {
  if (id.is_number_unsigned()) return id.get<uint64_t>();  // nlohmann would turn -1 or 1e30 into some other number
  throw bad_input("The token \"" + printable(token, 80) + "\" of tokenizer.json has the id " +
                  printable(id.dump(), 80) + "; an id must be a whole number from 0 on.");
}

/// Throws Error(bad_input) when an id is not below most_token_ids.
uint32_t checked_token_id(uint64_t id, std::string_view token) {
  if (id < most_token_ids) return static_cast<uint32_t>(id);
  throw bad_input("The token \"" + printable(token, 80) + "\" has the id " + std::to_string(id) +
                  "; ids must be below " + std::to_string(most_token_ids) + ".");
}

/// Reads an entry of added_tokens, or of added_tokens_decoder. Throws Error(bad_input) where it is damaged.
AddedToken read_added_token(const JsonFields& entry, uint64_t id) {
  AddedToken token;
  token.spelling = entry.text("content");
  token.id = checked_token_id(id, token.spelling);
  token.special = entry.boolean_or("special", false);
  token.strips_left = entry.boolean_or("lstrip", false);
  token.strips_right = entry.boolean_or("rstrip", false);
  // A control token is always looked for in the text as it stands: normalizing would move the borders between what may
  // hold one and what a user wrote.
  token.in_normalized_text = !token.special && entry.boolean_or("normalized", false);
  token.single_word = entry.boolean_or("single_word", false);
  return token;
}

// A token is written as a string or as an object; null and absent mean there is none.
std::string configured_token(const JsonFields& config, const char* key) {
  const Json* token = config.find(key);
  if (token == nullptr || !token->is_object()) return config.text_or(key, "");
  return JsonFields(*token, "the field '" + std::string(key) + "' of " + config.what()).text("content");
}

// A template is a string, or several with names, as a list or as an object; "default" is the one for chats.
std::string configured_template(const JsonFields& config) {
  const Json* chat = config.find("chat_template");
  if (chat != nullptr && chat->is_object()) {
    return JsonFields(*chat, "the field 'chat_template' of " + config.what()).text_or("default", "");
  }
  if (chat == nullptr || !chat->is_array()) return config.text_or("chat_template", "");
  for (const Json& entry : *chat) {
    const JsonFields fields(entry, "an entry of the field 'chat_template' of " + config.what());
    if (fields.text("name") == "default") return fields.text("template");
  }
  return {};
}

std::vector<AddedToken> configured_added_tokens(const JsonFields& config) {
  std::vector<AddedToken> added;
  const Json* entries = config.object("added_tokens_decoder");
  if (entries == nullptr) return added;
  for (const auto& [key, entry] : entries->items()) {
    uint64_t id = 0;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size()) {
      throw bad_input("The field 'added_tokens_decoder' of tokenizer_config.json has the key \"" + printable(key, 80) +
                      "\"; keys must be ids.");
    }
    added.push_back(read_added_token(JsonFields(entry, "the added token " + key + " of " + config.what()), id));
  }
  std::sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return added;
}

}  // namespace

HuggingFaceConfig read_hugging_face_config(std::string_view text) {
  HuggingFaceConfig config;
  if (text.empty()) return config;
  const Json root = parse_json(text, config_file);
  const JsonFields fields(root, config_file);
  config.bos = configured_token(fields, "bos_token");
  config.eos = configured_token(fields, "eos_token");
  config.padding = configured_token(fields, "pad_token");
  if (fields.has("add_bos_token")) config.add_bos = fields.boolean_or("add_bos_token", false);
  config.legacy = fields.boolean_or("legacy", true);
  config.add_prefix_space = fields.boolean_or("add_prefix_space", true);
  config.added = configured_added_tokens(fields);
  config.chat_template = configured_template(fields);
  return config;
}

namespace {

// The parts of a Hugging Face tokenizer.json around its model: normalizer, pre-tokenizer, decoder, post-processor. Only
// what is understood is accepted: a part that is skipped would silently give other ids than the model was trained on.

struct HuggingFacePipeline {
  TextNormalizer normalizer;
  PreTokenizer pre_tokenizer;
  bool is_byte_level = false;        // pieces are bytes in GPT-2's alphabet; otherwise characters
  bool drops_leading_space = false;  // in decoded text
  std::string leading_token;         // put in front of every text by the post-processor; empty: nothing
};

/// Throws Error(bad_input): the `what` of this name is not supported.
[[noreturn]] void refuse_tokenizer_part(const char* what, const std::string& actual, const char* supported) {
  throw bad_input(std::string("The ") + what + " \"" + printable(actual, 120) +
                  "\" of tokenizer.json is not supported; supported: " + supported + ".");
}

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

/// Reads the parts from the root of tokenizer.json. Throws Error(bad_input) naming the part that is not supported, or
/// the field that is missing or of another type.
HuggingFacePipeline read_hugging_face_pipeline(const JsonFields& root) {
  HuggingFacePipeline pipeline;
  Steps steps = read_normalizer(root);
  read_pre_tokenizer(root, pipeline, steps);
  pipeline.normalizer = TextNormalizer(std::move(steps));
  if (!pipeline.is_byte_level) read_character_decoder(root, pipeline);
  pipeline.leading_token = read_leading_token(root);
  return pipeline;
}

// The vocabulary and the model.

constexpr const char* tokenizer_file = "tokenizer.json";

// The strings that VocabularyData's views point into.
struct Vocabulary {
  std::vector<std::string> tokens;  // by id
  std::vector<std::string> merges;
  std::vector<int32_t> types;
  std::vector<AddedToken> added;

  /// Whether an id has a token already.
  bool has(uint64_t id) const { return id < types.size() && types[id] != static_cast<int32_t>(TokenType::unused); }

  void put(uint64_t wanted, std::string token, TokenType type) {
    const size_t id = checked_token_id(wanted, token);
    if (id >= tokens.size()) {
      tokens.resize(id + 1);
      types.resize(id + 1, static_cast<int32_t>(TokenType::unused));
    }
    tokens[id] = std::move(token);
    types[id] = static_cast<int32_t>(type);
  }

  std::optional<uint32_t> find(const std::string& token) const {
    const auto found = std::find(tokens.begin(), tokens.end(), token);
    if (token.empty() || found == tokens.end()) return std::nullopt;
    return static_cast<uint32_t>(found - tokens.begin());
  }
};

std::string read_merge(const Json& merge, size_t rank) {
  if (merge.is_string()) return merge.get<std::string>();
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  throw bad_input("Merge " + std::to_string(rank) + " of tokenizer.json is " + printable(merge.dump(), 80) +
                  "; two tokens in a list, or in a string with a space between them, are expected.");
}

void read_model(const JsonFields& model, bool is_byte_level, Vocabulary& vocabulary) {
  const bool has_byte_tokens = !is_byte_level && model.boolean_or("byte_fallback", false);
  model.at("vocab");
  for (const auto& [token, number] : model.object("vocab")->items()) {
    const bool is_byte = has_byte_tokens && byte_of_token(token).has_value();
    const uint64_t id = read_token_id(number, token);
    if (vocabulary.has(id)) {
      throw bad_input("The tokens \"" + printable(vocabulary.tokens[id], 80) + "\" and \"" + printable(token, 80) +
                      "\" of tokenizer.json both have the id " + std::to_string(id) + "; each needs its own.");
    }
    vocabulary.put(id, token, is_byte ? TokenType::byte : TokenType::normal);
  }
  for (const Json& merge : model.list("merges")) {
    vocabulary.merges.push_back(read_merge(merge, vocabulary.merges.size()));
  }
}

void read_added_tokens(const JsonFields& root, Vocabulary& vocabulary) {
  if (!root.has("added_tokens")) return;
  for (const Json& entry : root.list("added_tokens")) {
    const JsonFields fields(entry, "an added token of tokenizer.json");
    const uint64_t id = read_token_id(fields.at("id"), fields.text("content"));
    AddedToken token = read_added_token(fields, id);
    vocabulary.put(id, token.spelling, token.special ? TokenType::control : TokenType::user_defined);
    vocabulary.added.push_back(std::move(token));
  }
}

void check_bpe(const JsonFields& model) {
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text_or(affix, "").empty()) refuse_tokenizer_part("model option", affix, "none");
  }
  // Dropout randomises training; a file that was saved with it is read as if it were off, as its own library does.
}

// A Unigram model lists its tokens by id, each with its score.
std::vector<double> read_unigram(const JsonFields& model, Vocabulary& vocabulary) {
  const bool has_byte_tokens = model.boolean_or("byte_fallback", false);
  const int64_t unknown = model.has("unk_id") ? int64_t{model.u32("unk_id")} : -1;
  std::vector<double> scores;
  for (const Json& entry : model.list("vocab")) {
    const size_t id = scores.size();
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      throw bad_input("Token " + std::to_string(id) + " of tokenizer.json is " + printable(entry.dump(), 80) +
                      "; a token and its score in a list are expected.");
    }
    const auto token = entry[0].get<std::string>();
    const bool is_byte = has_byte_tokens && byte_of_token(token).has_value();
    vocabulary.put(id, token,
                   static_cast<int64_t>(id) == unknown ? TokenType::unknown
                   : is_byte                           ? TokenType::byte
                                                       : TokenType::normal);
    scores.push_back(entry[1].get<double>());
  }
  return scores;
}

void apply_config(const HuggingFaceConfig& config, const std::string& leading_token, const Vocabulary& vocabulary,
                  VocabularyData& data) {
  data.bos = vocabulary.find(config.bos);
  data.eos = vocabulary.find(config.eos);
  data.padding = vocabulary.find(config.padding);
  data.chat_template = config.chat_template;
  if (const auto leading = vocabulary.find(leading_token)) {
    data.bos = leading;
    data.add_bos = true;
  }
}

std::unique_ptr<Tokenizer> make_bpe(const JsonFields& model, HuggingFacePipeline pipeline, const VocabularyData& data,
                                    std::vector<AddedToken> added) {
  using Alphabet = BpeTokenizer::Alphabet;
  BpeTokenizer::Options options;
  options.alphabet = pipeline.is_byte_level ? Alphabet::bytes : Alphabet::characters;
  options.normalizer = std::move(pipeline.normalizer);
  options.pre_tokenizer = std::move(pipeline.pre_tokenizer);
  options.ignore_merges = model.boolean_or("ignore_merges", false);
  options.unknown = data.unknown;
  options.fuses_unknown = model.boolean_or("fuse_unk", false);
  options.drops_leading_space = pipeline.drops_leading_space;
  return std::make_unique<BpeTokenizer>(data, std::move(added), std::move(options));
}

std::unique_ptr<Tokenizer> make_unigram(HuggingFacePipeline pipeline, const VocabularyData& data,
                                        std::vector<double> scores, std::vector<AddedToken> added) {
  if (pipeline.is_byte_level) refuse_tokenizer_part("pre-tokenizer of a Unigram model", "ByteLevel", "Metaspace");
  UnigramTokenizer::Options options;
  options.normalizer = std::move(pipeline.normalizer);
  options.pre_tokenizer = std::move(pipeline.pre_tokenizer);
  options.scores = std::move(scores);
  // Added tokens have none: one that is not the least, from which that of an unknown character is reckoned.
  const double some = options.scores.empty() ? 0 : *std::max_element(options.scores.begin(), options.scores.end());
  options.scores.resize(data.tokens.size(), some);
  options.unknown = data.unknown;
  options.drops_leading_space = pipeline.drops_leading_space;
  return std::make_unique<UnigramTokenizer>(data, std::move(added), std::move(options));
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::from_tokenizer_json(std::string_view tokenizer_json,
                                                          std::string_view tokenizer_config_json) {
  const Json json = parse_json(tokenizer_json, tokenizer_file);
  const JsonFields root(json, tokenizer_file);
  const JsonFields model(root.at("model"), "the model of tokenizer.json");
  HuggingFacePipeline pipeline = read_hugging_face_pipeline(root);
  const std::string type = model.text_or("type", model.has("merges")   ? "BPE"
                                                 : model.has("unk_id") ? "Unigram"
                                                                       : "unnamed");
  if (type != "BPE" && type != "Unigram") refuse_tokenizer_part("model", type, "BPE, Unigram");
  const bool is_unigram = type == "Unigram";
  Vocabulary vocabulary;
  std::vector<double> scores;
  if (is_unigram) {
    scores = read_unigram(model, vocabulary);
  } else {
    check_bpe(model);
    read_model(model, pipeline.is_byte_level, vocabulary);
  }
  read_added_tokens(root, vocabulary);

  VocabularyData data;
  data.tokens.assign(vocabulary.tokens.begin(), vocabulary.tokens.end());
  data.merges.assign(vocabulary.merges.begin(), vocabulary.merges.end());
  data.types = vocabulary.types;
  apply_token_names(data, vocabulary.added);
  apply_config(read_hugging_face_config(tokenizer_config_json), pipeline.leading_token, vocabulary, data);
  data.unknown = vocabulary.find(model.text_or("unk_token", ""));
  if (is_unigram && model.has("unk_id")) data.unknown = model.u32("unk_id");
  return with_context(tokenizer_file, [&] {
    return is_unigram ? make_unigram(std::move(pipeline), data, std::move(scores), std::move(vocabulary.added))
                      : make_bpe(model, std::move(pipeline), data, std::move(vocabulary.added));
  });
}

}  // namespace canopy
