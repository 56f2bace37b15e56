// The tokenizer of a tokenizer.model, by the sentencepiece library, whose tables are checked before it follows them.

#include <sentencepiece_processor.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/text/hugging_face_tokenizer.h"
#include "engine/text/normalizer.h"
#include "engine/text/tokenizer.h"
#include "engine/text/unicode.h"
#include "engine/text/vocabulary.h"

namespace canopy {
namespace {

// Protocol Buffers: a message is a run of fields, each a tag (number << 3 | kind) and a value.
struct Field {
  uint64_t number = 0;
  std::string_view bytes;  // of a field with a length; empty for other kinds
};

constexpr uint64_t normalizer_fields[] = {3, 5};  // ModelProto: normalizer_spec, denormalizer_spec
constexpr uint64_t compiled_table_field = 2;      // NormalizerSpec: precompiled_charsmap

std::optional<uint64_t> take_varint(std::string_view& message) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !message.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(message.front());
    message.remove_prefix(1);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// The next field; absent at the end and where the message is damaged, which the library finds by itself.
std::optional<Field> take_field(std::string_view& message) {
  const auto tag = take_varint(message);
  if (!tag) return std::nullopt;
  // Tags are 32 bits: what lies above is dropped here as the library drops it.
  Field field{(*tag & 0xFFFFFFFFu) >> 3, {}};
  switch (*tag & 7) {
    case 0: return take_varint(message) ? std::optional(field) : std::nullopt;
    case 1:
    case 5: {
      const size_t size = (*tag & 7) == 1 ? 8 : 4;
      if (message.size() < size) return std::nullopt;
      message.remove_prefix(size);
      return field;
    }
    case 2: {
      const auto size = take_varint(message);
      if (!size || *size > message.size()) return std::nullopt;
      field.bytes = message.substr(0, *size);
      message.remove_prefix(*size);
      return field;
    }
    default: return std::nullopt;  // groups, which these messages do not have
  }
}

/// Checks the compiled tables of replacements in a SentencePiece model (CompiledNormalizer), which the library
/// follows without looking, so that a damaged file would end the process. Throws Error(bad_input) where one is damaged.
void check_compiled_normalizers(std::string_view model) {
  while (const auto field = take_field(model)) {
    if (field->number != normalizer_fields[0] && field->number != normalizer_fields[1]) continue;
    std::string_view spec = field->bytes;
    while (const auto inner = take_field(spec)) {
      if (inner->number == compiled_table_field && !inner->bytes.empty()) {
        const CompiledNormalizer checked(inner->bytes, "tokenizer.model");
      }
    }
    // What is not understood here may be skipped by the library, which goes on behind it.
    if (!spec.empty()) throw bad_input("tokenizer.model is damaged: its normalizer does not end with a whole field.");
  }
  if (!model.empty()) throw bad_input("tokenizer.model is damaged: it does not end with a whole field.");
}

// SentencePiece models, through the sentencepiece library.

using Processor = sentencepiece::SentencePieceProcessor;

// ModelProto.normalizer_spec.add_dummy_prefix = false. Messages that come twice are merged, and the last value counts.
constexpr std::string_view without_dummy_prefix("\x1A\x02\x18\x00", 4);

std::unique_ptr<Processor> load(std::string_view file, const HuggingFaceConfig& config) {
  check_compiled_normalizers(file);
  std::string model(file);
  if (!config.legacy) model += without_dummy_prefix;
  auto processor = std::make_unique<Processor>();
  const auto status = processor->LoadFromSerializedProto(model);
  if (!status.ok()) {
    throw bad_input("tokenizer.model is not a SentencePiece model: " + printable(status.ToString()) + ".");
  }
  const int pieces = processor->GetPieceSize();
  if (pieces < 1 || static_cast<uint32_t>(pieces) > most_token_ids) {
    throw bad_input("tokenizer.model has " + std::to_string(pieces) + " pieces; 1 to " +
                    std::to_string(most_token_ids) + " are allowed.");
  }
  return processor;
}

TokenType type_of(const Processor& processor, int id) {
  if (processor.IsControl(id)) return TokenType::control;
  if (processor.IsUnknown(id)) return TokenType::unknown;
  if (processor.IsByte(id)) return TokenType::byte;
  return processor.IsUnused(id) ? TokenType::unused : TokenType::normal;
}

std::string bytes_of(const Processor& processor, int id, TokenType type) {
  const std::string& piece = processor.IdToPiece(id);
  if (type == TokenType::control || type == TokenType::unknown) return piece;
  if (type != TokenType::byte) return text_of_marked(piece);
  if (const auto byte = byte_of_token(piece)) return std::string(1, static_cast<char>(*byte));
  throw bad_input("Piece " + std::to_string(id) +
                  " of tokenizer.model is a byte, but its text is not of the form <0x0A>.");
}

std::optional<uint32_t> valid_id(int id) {
  return id < 0 ? std::nullopt : std::optional(static_cast<uint32_t>(id));
}

// The model says itself which of its pieces are which; the config knows tokens that came later.
void add_configured_tokens(const HuggingFaceConfig& config, std::vector<std::string>& bytes,
                           std::vector<TokenType>& types, std::vector<AddedToken>& added) {
  for (const AddedToken& token : config.added) {
    if (token.id >= bytes.size()) {
      bytes.resize(token.id + 1);
      types.resize(token.id + 1, TokenType::unused);
    }
    const auto known = std::find_if(added.begin(), added.end(), [&](const AddedToken& a) { return a.id == token.id; });
    if (known != added.end()) {
      *known = token;
    } else {
      added.push_back(token);
    }
    bytes[token.id] = token.spelling;
    types[token.id] = token.special ? TokenType::control : TokenType::user_defined;
  }
}

// As apply_token_names() does; a model of this kind lists no merges.
template <typename Table>
void make_named_control(Table& table) {
  VocabularyData data;
  data.tokens.assign(table.bytes.begin(), table.bytes.end());
  for (const TokenType type : table.types) data.types.push_back(static_cast<int32_t>(type));
  apply_token_names(data, table.added);
  for (size_t id = 0; id < table.types.size(); ++id) table.types[id] = static_cast<TokenType>(data.types[id]);
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<Processor> processor, const HuggingFaceConfig& config)
      : Tokenizer(table_of(*processor, config)), processor_(std::move(processor)), legacy_(config.legacy) {
    if (legacy_) return;
    prefixes_text_ = config.add_prefix_space;
    const int unknown = processor_->unk_id();
    if (unknown >= 0) unknown_ = processor_->IdToPiece(unknown);
    unknown_pieces_ = encoded(unknown_).size();
  }

  bool can_go_on() const override { return !legacy_; }

 private:
  static Table table_of(const Processor& processor, const HuggingFaceConfig& config) {
    Table table;
    for (int id = 0; id < processor.GetPieceSize(); ++id) {
      const TokenType type = type_of(processor, id);
      table.types.push_back(type);
      table.bytes.push_back(bytes_of(processor, id, type));
      if (type != TokenType::control && type != TokenType::unknown) continue;
      AddedToken token;
      token.id = static_cast<uint32_t>(id);
      token.spelling = processor.IdToPiece(id);
      table.added.push_back(std::move(token));
    }
    add_configured_tokens(config, table.bytes, table.types, table.added);
    make_named_control(table);
    const auto named = [&](const std::string& spelling, int otherwise) {
      const auto found = std::find(table.bytes.begin(), table.bytes.end(), spelling);
      if (spelling.empty() || found == table.bytes.end()) return valid_id(otherwise);
      return std::optional(static_cast<uint32_t>(found - table.bytes.begin()));
    };
    table.bos = named(config.bos, processor.bos_id());
    table.eos = named(config.eos, processor.eos_id());
    table.add_bos = config.add_bos.value_or(true) && table.bos.has_value();
    table.chat_template = config.chat_template;
    std::vector<std::string> pieces;
    const bool encoded = processor.Encode("a", &pieces).ok() && !pieces.empty();
    table.drops_leading_space =
        config.legacy ? encoded && pieces.front().starts_with(word_mark) : config.add_prefix_space;
    return table;
  }

  // The library takes valid UTF-8 only; what is damaged becomes U+FFFD.
  void encode_ordinary(std::string_view bytes, TextPlace place, std::vector<uint32_t>& ids) const override {
    if (bytes.size() > std::numeric_limits<int>::max() / 8) {
      throw bad_input("A text of " + std::to_string(bytes.size()) + " bytes is too long for a SentencePiece model.");
    }
    const std::string text = to_valid_utf8(bytes);
    for (const int id : legacy_ ? encoded(text) : encoded_as_it_is(text, place)) {
      ids.push_back(static_cast<uint32_t>(id));
    }
  }

  // As Hugging Face has it since `legacy: false`: a text begins with a space of its own, but what follows a token does
  // not, and keeps the spaces it has. The library may take those away at the front, so the unknown token's spelling is
  // put there and its pieces are taken off again.
  std::vector<int> encoded_as_it_is(std::string_view segment, TextPlace place) const {
    std::string text = text_of_marked(segment);
    if (place == TextPlace::text_start && prefixes_text_) text.insert(0, word_mark);
    if (!text.starts_with(word_mark) && !text.starts_with(' ')) return encoded(text);
    std::vector<int> ids = encoded(unknown_ + text);
    ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(std::min(unknown_pieces_, ids.size())));
    return ids;
  }

  std::vector<int> encoded(const std::string& text) const {
    std::vector<int> found;
    const auto status = processor_->Encode(text, &found);
    if (!status.ok()) throw bad_input("The text cannot be tokenized: " + printable(status.ToString()) + ".");
    return found;
  }

  std::unique_ptr<const Processor> processor_;
  bool legacy_ = true;
  bool prefixes_text_ = false;
  std::string unknown_;  // the unknown token's spelling
  size_t unknown_pieces_ = 0;
};

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::from_sentencepiece_model(std::string_view model,
                                                               std::string_view tokenizer_config_json) {
  const HuggingFaceConfig config = read_hugging_face_config(tokenizer_config_json);
  return std::make_unique<SentencePieceTokenizer>(load(model, config), config);
}

}  // namespace canopy
