#pragma once
// Text to token ids and back: the interface, what tokenizers of all kinds do around their model, and the choice of the
// one that a model file needs.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/normalizer.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/vocabulary.h"

namespace canopy {

// Text to token ids and back. A tokenizer is immutable once built and may be used from several threads.

/// Whether the spelling of a control token in a text stands for that token. Text of a user is always as_text: nobody
/// may write "<|im_end|>" and end a turn by it. Tokens that were added without being control tokens ("<think>") are
/// recognised in both.
enum class SpecialTokens { parse, as_text };

/// A stretch of a prompt with its own rule about special tokens.
struct TextSpan {
  std::string_view text;
  SpecialTokens special = SpecialTokens::as_text;
};

class Tokenizer {
 public:
  /// Builds the tokenizer of a GGUF file. Throws Error(bad_input) for an algorithm or a pre-tokenizer that is not
  /// supported (the message lists those that are), and for a vocabulary that contradicts itself.
  static std::unique_ptr<Tokenizer> from_vocabulary(const VocabularyData& data);

  /// Builds the tokenizer of a Hugging Face tokenizer.json. tokenizer_config.json, if there is one, says which tokens
  /// begin and end a text and brings the chat template. Throws Error(bad_input) as above.
  static std::unique_ptr<Tokenizer> from_tokenizer_json(std::string_view tokenizer_json,
                                                        std::string_view tokenizer_config_json = {});

  /// Builds the tokenizer of a SentencePiece model ("tokenizer.model"), with the tokens and the chat template that
  /// tokenizer_config.json adds. Throws Error(bad_input) as above, and Error(unavailable) in a build without the
  /// sentencepiece library.
  static std::unique_ptr<Tokenizer> from_sentencepiece_model(std::string_view model,
                                                             std::string_view tokenizer_config_json = {});

  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Ids of a text, with nothing put in front or behind. Any bytes are accepted: those that are not UTF-8 become the
  /// tokens of single bytes.
  std::vector<uint32_t> encode(std::string_view text, SpecialTokens special) const;

  /// Ids of the concatenation of spans. A special token is recognised only where it lies wholly inside one span that
  /// allows it; all other text is tokenized as if the spans were one string, as the model was trained to see it.
  /// place: where the text begins, inside for one that goes on behind tokens that are there already.
  std::vector<uint32_t> encode(std::span<const TextSpan> spans, TextPlace place = TextPlace::text_start) const;

  /// Whether encode() can go on inside a text. The sentencepiece library cannot: it begins every text anew.
  virtual bool can_go_on() const { return true; }

  /// Names the vocabulary: equal only where ids stand for the same bytes and are of the same types.
  uint64_t identity() const { return identity_; }

  /// The text of ids as valid UTF-8 (invalid bytes become U+FFFD). skip_special leaves control tokens out. Ids outside
  /// the vocabulary have no text. Where drops_leading_space(), the space that a text begins with is left out.
  std::string decode(std::span<const uint32_t> ids, bool skip_special = true) const;

  /// The bytes a token stands for; not always whole characters. Empty for an id outside the vocabulary.
  std::string_view token_bytes(uint32_t id) const;

  /// True where every text is encoded with a space of its own in front (Llama 2): decode() takes it away again.
  bool drops_leading_space() const { return drops_leading_space_; }

  /// A token for showing alone: its bytes through printable(), so a newline shows as an escape.
  std::string piece(uint32_t id) const;

  /// True for control tokens, whose text belongs to the prompt's structure and not to the reply.
  bool is_special(uint32_t id) const;

  /// Entries of the vocabulary; a model's head may have more rows (padding).
  uint32_t vocab_size() const { return static_cast<uint32_t>(bytes_.size()); }

  /// The id of a control or added token by its spelling.
  std::optional<uint32_t> find_special(std::string_view spelling) const;

  std::optional<uint32_t> bos() const { return bos_; }
  std::optional<uint32_t> eos() const { return eos_; }
  bool adds_bos() const { return add_bos_; }

  /// Tokens that end a reply: eos and those that do by their name ("<|im_end|>", "<|eot_id|>", ...), sorted.
  std::span<const uint32_t> end_ids() const { return end_ids_; }

  /// Tokens that end one of several messages of a reply, and never the reply, whatever else a file says; sorted.
  std::span<const uint32_t> message_end_ids() const { return message_end_ids_; }

  /// The model's chat template in Jinja; empty where it brings none.
  const std::string& chat_template() const { return chat_template_; }

 protected:
  /// The tokens of a tokenizer of any kind.
  struct Table {
    std::vector<std::string> bytes;  // by id
    std::vector<TokenType> types;    // by id
    std::vector<AddedToken> added;   // recognised by their spelling
    std::optional<uint32_t> bos, eos;
    bool add_bos = false;
    bool drops_leading_space = false;
    std::string chat_template;
  };
  explicit Tokenizer(Table table);

  /// Appends the ids of a text without special tokens. bytes may be anything; place says where they begin, inside only
  /// where the tokenizer can_go_on().
  virtual void encode_ordinary(std::string_view bytes, TextPlace place, std::vector<uint32_t>& ids) const = 0;

 private:
  std::vector<std::string> bytes_;
  std::vector<TokenType> types_;
  uint64_t identity_ = 0;
  AddedTokens added_;      // recognised in the text as it was written
  AddedTokens all_added_;  // and those that are looked for in normalized text
  std::optional<uint32_t> bos_, eos_;
  bool add_bos_ = false;
  bool drops_leading_space_ = false;
  std::vector<uint32_t> end_ids_, message_end_ids_;
  std::string chat_template_;
};

// What tokenizers of all kinds do around their model: normalize a text, find the tokens that are looked for in
// normalized text, cut the rest into pieces. A model makes ids of pieces.

class PipelineTokenizer : public Tokenizer {
 protected:
  /// What every vocabulary of tokens says of itself; the bytes of its tokens are the model's to add. Throws
  /// Error(bad_input) for an invalid vocabulary.
  static Table table_of(const VocabularyData& data, std::vector<AddedToken> added, bool drops_leading_space);

  PipelineTokenizer(Table table, TextNormalizer normalizer, PreTokenizer pre_tokenizer);

  /// Appends the ids of pieces of normalized text, or of a byte that is no UTF-8, which is a piece alone.
  virtual void encode_pieces(std::span<const std::string_view> pieces, std::vector<uint32_t>& ids) const = 0;

 private:
  void encode_ordinary(std::string_view bytes, TextPlace place, std::vector<uint32_t>& ids) const final;

  TextNormalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  AddedTokens normalized_added_;
};

// The tokenizer that a model file brings.

struct TokenizerSource;

/// Builds the tokenizer from what the file holds. Throws Error(bad_input) when it holds none, or one that is not
/// supported or contradicts itself.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerSource& source);

}  // namespace canopy
