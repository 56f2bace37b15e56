#include "engine/text/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/model_file.h"
#include "engine/text/bpe_tokenizer.h"
#include "engine/text/unicode.h"

namespace canopy {
namespace {

std::vector<AddedToken> as_written(const std::vector<AddedToken>& tokens) {
  std::vector<AddedToken> found;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(found),
               [](const AddedToken& token) { return !token.in_normalized_text; });
  return found;
}

// FNV-1a over the bytes and the type of each token, with its length in front.
uint64_t identity_of(const std::vector<std::string>& bytes, const std::vector<TokenType>& types) {
  uint64_t hash = 0xCBF29CE484222325u;
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001B3u; };
  for (size_t id = 0; id < bytes.size(); ++id) {
    for (int shift = 0; shift < 32; shift += 8) add(static_cast<unsigned char>(bytes[id].size() >> shift));
    for (const char c : bytes[id]) add(static_cast<unsigned char>(c));
    add(id < types.size() ? static_cast<unsigned char>(types[id]) : 0);
  }
  return hash;
}

}  // namespace

Tokenizer::Tokenizer(Table table)
    : bytes_(std::move(table.bytes)),
      types_(std::move(table.types)),
      identity_(identity_of(bytes_, types_)),
      added_(as_written(table.added)),
      all_added_(std::move(table.added)),
      bos_(table.bos),
      eos_(table.eos),
      add_bos_(table.add_bos),
      drops_leading_space_(table.drops_leading_space),
      chat_template_(std::move(table.chat_template)) {
  const std::vector<std::string_view> spellings(bytes_.begin(), bytes_.end());
  std::vector<int32_t> numbers;
  for (const TokenType type : types_) numbers.push_back(static_cast<int32_t>(type));
  NamedTokens named = named_tokens(spellings, numbers);
  end_ids_ = std::move(named.ends);
  message_end_ids_ = std::move(named.message_ends);
  if (eos_ && !std::binary_search(message_end_ids_.begin(), message_end_ids_.end(), *eos_)) end_ids_.push_back(*eos_);
  std::erase_if(end_ids_, [&](uint32_t id) { return !is_special(id) && id != eos_; });
  std::sort(end_ids_.begin(), end_ids_.end());
  end_ids_.erase(std::unique(end_ids_.begin(), end_ids_.end()), end_ids_.end());
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  const TextSpan span{text, special};
  return encode(std::span(&span, 1));
}

std::vector<uint32_t> Tokenizer::encode(std::span<const TextSpan> spans, TextPlace place) const {
  std::string text;
  std::vector<TextRange> special_ranges;
  for (const TextSpan& span : spans) {
    if (span.special == SpecialTokens::parse) special_ranges.push_back({text.size(), text.size() + span.text.size()});
    text.append(span.text);
  }
  std::vector<uint32_t> ids;
  size_t at = 0;
  while (at < text.size()) {
    const auto match = added_.find(text, at, special_ranges);
    const size_t ordinary_end = match ? match->begin : text.size();
    const std::string_view ordinary = std::string_view(text).substr(at, ordinary_end - at);
    if (!ordinary.empty()) encode_ordinary(ordinary, at == 0 ? place : TextPlace::segment_start, ids);
    if (!match) break;
    ids.push_back(match->token->id);
    at = match->end;
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const uint32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const uint32_t id : ids) {
    if (!skip_special || !is_special(id)) bytes.append(token_bytes(id));
  }
  if (drops_leading_space_ && bytes.starts_with(' ')) bytes.erase(0, 1);
  return to_valid_utf8(bytes);
}

std::string_view Tokenizer::token_bytes(uint32_t id) const {
  return id < bytes_.size() ? std::string_view(bytes_[id]) : std::string_view();
}

std::string Tokenizer::piece(uint32_t id) const {
  return printable(token_bytes(id));
}

bool Tokenizer::is_special(uint32_t id) const {
  return id < types_.size() && (types_[id] == TokenType::control || types_[id] == TokenType::unknown);
}

std::optional<uint32_t> Tokenizer::find_special(std::string_view spelling) const {
  const AddedToken* token = all_added_.lookup(spelling);
  return token == nullptr ? std::nullopt : std::optional(token->id);
}

namespace {

// The tokens that are looked for in normalized text, spelled as they look there.
std::vector<AddedToken> normalized_tokens(std::span<const AddedToken> added, const TextNormalizer& normalizer) {
  std::vector<AddedToken> found;
  std::string buffer;
  for (const AddedToken& token : added) {
    if (!token.in_normalized_text || valid_utf8_prefix(token.spelling) < token.spelling.size()) continue;
    found.push_back(token);
    found.back().spelling = std::string(normalizer.apply(token.spelling, TextPlace::text_start, buffer));
  }
  return found;
}

}  // namespace

Tokenizer::Table PipelineTokenizer::table_of(const VocabularyData& data, std::vector<AddedToken> added,
                                             bool drops_leading_space) {
  validate_vocabulary(data);
  Table table;
  table.types.reserve(data.tokens.size());
  table.bytes.reserve(data.tokens.size());
  for (size_t id = 0; id < data.tokens.size(); ++id) table.types.push_back(type_of_token(data, id));
  table.added = std::move(added);
  table.bos = data.bos;
  table.eos = data.eos;
  table.add_bos = data.add_bos.value_or(false) && data.bos.has_value();
  table.drops_leading_space = drops_leading_space;
  table.chat_template = data.chat_template;
  return table;
}

PipelineTokenizer::PipelineTokenizer(Table table, TextNormalizer normalizer, PreTokenizer pre_tokenizer)
    : Tokenizer(table),
      normalizer_(std::move(normalizer)),
      pre_tokenizer_(std::move(pre_tokenizer)),
      normalized_added_(normalized_tokens(table.added, normalizer_)) {}

void PipelineTokenizer::encode_ordinary(std::string_view bytes, TextPlace place, std::vector<uint32_t>& ids) const {
  std::string buffer;
  std::vector<std::string_view> pieces;
  while (!bytes.empty()) {
    const size_t valid = valid_utf8_prefix(bytes);
    const std::string_view text =
        valid > 0 ? normalizer_.apply(bytes.substr(0, valid), place, buffer) : std::string_view();
    for (size_t at = 0; at < text.size();) {
      const auto match = normalized_added_.find(text, at, {});
      const size_t end = match ? match->begin : text.size();
      if (end > at) {
        pre_tokenizer_.split(text.substr(at, end - at), pieces);
        encode_pieces(pieces, ids);
      }
      if (!match) break;
      ids.push_back(match->token->id);
      at = match->end;
    }
    place = TextPlace::inside;
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    const std::string_view damaged = bytes.substr(0, next_utf8(bytes).length);
    encode_pieces({&damaged, 1}, ids);
    bytes.remove_prefix(damaged.size());
  }
}

// Which tokenizer a GGUF vocabulary asks for. A new kind gets its function and one line in from_vocabulary.

namespace {

std::vector<AddedToken> added_by_type(VocabularyData& data) {
  std::vector<AddedToken> named;
  apply_token_names(data, named);  // their types are all that is wanted
  std::vector<AddedToken> added;
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    const TokenType type = type_of_token(data, id);
    const bool special = type == TokenType::control || type == TokenType::unknown;
    if (!special && type != TokenType::user_defined) continue;
    AddedToken token;
    token.id = static_cast<uint32_t>(id);
    token.spelling = data.tokens[id];
    token.special = special;
    token.strips_right = data.control_strips_right && (type == TokenType::control || token.spelling == "</s>") &&
                         token.spelling != "<s>" && token.spelling != "<|endoftext|>";
    added.push_back(std::move(token));
  }
  return added;
}

// Without types every control token would be text that anybody can write, and none would end a reply.
void require_types(const VocabularyData& data) {
  if (!data.types.empty()) return;
  throw bad_input(
      "The vocabulary has no token types (tokenizer.ggml.token_type), without which control tokens cannot be told from "
      "text; the file was converted wrongly, convert the model again or get another file of it.");
}

// Without merges text would be cut into single bytes or characters, which no model of these kinds was trained on.
void require_merges(const VocabularyData& data, const std::string& kind) {
  if (!data.merges.empty()) return;
  throw bad_input(
      "The " + kind +
      " vocabulary has no merges (tokenizer.ggml.merges), without which text cannot be tokenized as the model learned "
      "it; the file was converted wrongly, convert the model again or get another file of it.");
}

// GPT-2's kind: byte-level, with a pre-tokenizer and a list of merges.
std::unique_ptr<Tokenizer> byte_level(VocabularyData data) {
  validate_vocabulary(data);
  require_types(data);
  require_merges(data, "byte-level");
  const PreTokenizerTraits traits = traits_of_pre_tokenizer(data.pre_tokenizer);
  if (const std::string warning = warning_of_pre_tokenizer(data.pre_tokenizer); !warning.empty()) log_warning(warning);
  std::vector<AddedToken> added = added_by_type(data);
  BpeTokenizer::Options options;
  std::vector<TextNormalizer::Step> steps;
  if (traits.normalizes_nfc) steps.emplace_back(TextNormalizer::Unicode{UnicodeForm::nfc});
  options.normalizer = TextNormalizer(std::move(steps));
  options.pre_tokenizer = PreTokenizer::named(data.pre_tokenizer);
  options.ignore_merges = traits.ignores_merges;
  // Files often name the end of text as unknown; a byte without a token must not end it.
  if (data.unknown && type_of_token(data, *data.unknown) == TokenType::unknown) options.unknown = data.unknown;
  if (!data.add_bos) data.add_bos = traits.adds_bos;
  return std::make_unique<BpeTokenizer>(data, std::move(added), std::move(options));
}

// Llama 2's kind: SentencePiece, characters and scores. What a file leaves out is as in Llama 2.
std::unique_ptr<Tokenizer> sentence_pieces(VocabularyData data) {
  validate_vocabulary(data);
  require_types(data);
  const auto by_spelling = [&](std::optional<uint32_t>& role, std::string_view spelling) {
    const auto found = std::find(data.tokens.begin(), data.tokens.end(), spelling);
    if (!role && found != data.tokens.end()) role = static_cast<uint32_t>(found - data.tokens.begin());
  };
  by_spelling(data.bos, "<s>");
  by_spelling(data.eos, "</s>");
  by_spelling(data.unknown, "<unk>");
  if (!data.add_bos) data.add_bos = true;

  const bool has_own_space = data.add_space_prefix.value_or(true);
  const std::string mark(word_mark);
  std::vector<TextNormalizer::Step> steps;
  if (has_own_space) steps.push_back(TextNormalizer::Prepend{.text = mark});
  steps.push_back(TextNormalizer::Replace{" ", mark});

  BpeTokenizer::Options options;
  options.alphabet = BpeTokenizer::Alphabet::characters;
  options.normalizer = TextNormalizer(std::move(steps));
  options.ranks_by_score = true;
  options.unknown = data.unknown;
  options.fuses_unknown = true;
  options.drops_leading_space = has_own_space;
  std::vector<AddedToken> added = added_by_type(data);
  return std::make_unique<BpeTokenizer>(data, std::move(added), std::move(options));
}

// Gemma 4's kind: characters with a list of merges, over whole texts; bytes of what is missing.
std::unique_ptr<Tokenizer> merged_characters(VocabularyData data) {
  validate_vocabulary(data);
  require_types(data);
  require_merges(data, "Gemma");
  data.add_bos = true;  // the models were trained so, whatever a file says
  std::vector<TextNormalizer::Step> steps;
  steps.push_back(TextNormalizer::Replace{" ", std::string(word_mark)});
  BpeTokenizer::Options options;
  options.alphabet = BpeTokenizer::Alphabet::characters;
  options.normalizer = TextNormalizer(std::move(steps));
  options.unknown = data.unknown;
  options.fuses_unknown = true;
  std::vector<AddedToken> added = added_by_type(data);
  return std::make_unique<BpeTokenizer>(data, std::move(added), std::move(options));
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::from_vocabulary(const VocabularyData& data) {
  if (data.model == "gpt2") return byte_level(data);
  if (data.model == "llama") return sentence_pieces(data);
  if (data.model == "gemma4") return merged_characters(data);
  throw bad_input("The tokenizer model \"" + printable(data.model, 80) +
                  "\" (tokenizer.ggml.model) is not supported; supported are \"gpt2\" (byte-level BPE), \"llama\" "
                  "(SentencePiece with scores) and \"gemma4\" (characters with merges).");
}

namespace {

VocabularyData vocabulary_of(const TokenizerSource& source) {
  VocabularyData data;
  data.model = source.model;
  data.pre_tokenizer = source.pre;
  data.tokens = source.tokens;
  data.merges = source.merges;
  data.scores = source.scores;
  data.types = source.types;
  data.bos = source.bos;
  data.eos = source.eos;
  data.unknown = source.unknown;
  data.padding = source.padding;
  data.add_bos = source.add_bos;
  data.add_space_prefix = source.add_space_prefix;
  data.control_strips_right = source.control_strips_right;
  data.chat_template = source.chat_template;
  return data;
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerSource& source) {
  switch (source.kind) {
    case TokenizerSource::Kind::gguf: return Tokenizer::from_vocabulary(vocabulary_of(source));
    case TokenizerSource::Kind::hugging_face:
      if (source.tokenizer_json.empty()) {
        return Tokenizer::from_sentencepiece_model(source.tokenizer_model, source.tokenizer_config_json);
      }
      return Tokenizer::from_tokenizer_json(source.tokenizer_json, source.tokenizer_config_json);
    case TokenizerSource::Kind::none: break;
  }
  throw bad_input(
      "The model brings no tokenizer: a Hugging Face folder needs tokenizer.json or tokenizer.model, a GGUF file "
      "tokenizer.ggml.model.");
}

}  // namespace canopy
