// Reads Hugging Face's tokenizer.json: the vocabulary here, what surrounds it in hugging_face_pipeline.cpp.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/json_text.h"
#include "engine/text/bpe_tokenizer.h"
#include "engine/text/byte_token.h"
#include "engine/text/hugging_face_config.h"
#include "engine/text/hugging_face_pipeline.h"
#include "engine/text/tokenizer.h"
#include "engine/text/unigram_tokenizer.h"

namespace canopy {
namespace {

using Json = nlohmann::json;

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

std::unique_ptr<Tokenizer> read_tokenizer(std::string_view tokenizer_json, std::string_view config_json) {
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
  apply_config(read_hugging_face_config(config_json), pipeline.leading_token, vocabulary, data);
  data.unknown = vocabulary.find(model.text_or("unk_token", ""));
  if (is_unigram && model.has("unk_id")) data.unknown = model.u32("unk_id");
  return with_context(tokenizer_file, [&] {
    return is_unigram ? make_unigram(std::move(pipeline), data, std::move(scores), std::move(vocabulary.added))
                      : make_bpe(model, std::move(pipeline), data, std::move(vocabulary.added));
  });
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::from_tokenizer_json(std::string_view tokenizer_json,
                                                          std::string_view tokenizer_config_json) {
  return read_tokenizer(tokenizer_json, tokenizer_config_json);
}

}  // namespace canopy
