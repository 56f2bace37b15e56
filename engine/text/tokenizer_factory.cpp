// Which tokenizer a GGUF vocabulary asks for. A new kind gets its function and one line in from_vocabulary.

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/printable.h"
#include "engine/text/bpe_tokenizer.h"
#include "engine/text/byte_token.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/tokenizer.h"

namespace canopy {
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

// Without merges text would be cut into single bytes, which no model of this kind was trained on.
void require_merges(const VocabularyData& data) {
  if (!data.merges.empty()) return;
  throw bad_input(
      "The byte-level vocabulary has no merges (tokenizer.ggml.merges), without which text cannot be tokenized as the "
      "model learned it; the file was converted wrongly, convert the model again or get another file of it.");
}

// GPT-2's kind: byte-level, with a pre-tokenizer and a list of merges.
std::unique_ptr<Tokenizer> byte_level(VocabularyData data) {
  validate_vocabulary(data);
  require_types(data);
  require_merges(data);
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

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::from_vocabulary(const VocabularyData& data) {
  if (data.model == "gpt2") return byte_level(data);
  if (data.model == "llama") return sentence_pieces(data);
  throw bad_input("The tokenizer model \"" + printable(data.model, 80) +
                  "\" (tokenizer.ggml.model) is not supported; supported are \"gpt2\" (byte-level BPE) and \"llama\" "
                  "(SentencePiece with scores).");
}

}  // namespace canopy
