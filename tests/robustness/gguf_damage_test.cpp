// Every truncation and every flipped bit of a small GGUF file, through the whole of loading: either a clear error, or a
// model with the values that the file now has.

#include <gtest/gtest.h>

#include "engine/base/numbers.h"
#include "engine/format/gguf.h"
#include "engine/text/vocabulary.h"
#include "tests/base/temp_folder.h"
#include "tests/robustness/damage.h"
#include "tests/robustness/seed_model.h"

namespace canopy::test {
namespace {

std::string payload(const GgufValue& value) {
  switch (value.type) {
    case GgufType::u8:
    case GgufType::boolean: return le(static_cast<uint8_t>(value.unsigned_value));
    case GgufType::u16: return le(static_cast<uint16_t>(value.unsigned_value));
    case GgufType::u32: return le(static_cast<uint32_t>(value.unsigned_value));
    case GgufType::u64: return le(value.unsigned_value);
    case GgufType::i8: return le(static_cast<int8_t>(value.signed_value));
    case GgufType::i16: return le(static_cast<int16_t>(value.signed_value));
    case GgufType::i32: return le(static_cast<int32_t>(value.signed_value));
    case GgufType::i64: return le(value.signed_value);
    case GgufType::f32: return le(static_cast<float>(value.float_value));
    case GgufType::f64: return le(value.float_value);
    case GgufType::string: return gguf_string(value.text);
    case GgufType::array: break;
  }
  return le(static_cast<uint32_t>(value.element_type)) + le(value.count) +
         std::string(reinterpret_cast<const char*>(value.elements.data()), value.elements.size());
}

struct Rewritten {
  std::string header;       // up to the padding before the data
  uint64_t tensors_at = 0;  // offset of the list of tensors
  uint64_t data_at = 0;
};

/// Writes again what was read from `bytes`. The result must equal the beginning of `bytes`, or something was misread.
Rewritten rewrite(const GgufFile& file, std::string_view bytes) {
  Rewritten r;
  r.header = "GGUF" + le(file.version()) + le<uint64_t>(file.tensors().size()) + le<uint64_t>(file.metadata().size());
  for (const GgufValue& value : file.metadata()) {
    r.header += gguf_string(value.key) + le(static_cast<uint32_t>(value.type)) + payload(value);
  }
  r.tensors_at = r.header.size();
  uint64_t list = 0;
  for (const TensorView& tensor : file.tensors()) list += 8 + tensor.name.size() + 4 + 8 * tensor.rank + 4 + 8;
  r.data_at = checked_align_up<uint64_t>(r.header.size() + list, file.alignment(), "data");
  for (const TensorView& tensor : file.tensors()) {
    r.header += gguf_string(tensor.name) + le(tensor.rank);
    for (uint32_t i = tensor.rank; i > 0; --i) r.header += le(tensor.shape[i - 1]);
    const auto offset = reinterpret_cast<const char*>(tensor.bytes.data()) - bytes.data();
    r.header += le(static_cast<uint32_t>(tensor.type)) + le(static_cast<uint64_t>(offset) - r.data_at);
  }
  return r;
}

/// The tensor that a byte of the file belongs to, and the elements of its block; null for header and padding.
const TensorView* owner_of(const GgufFile& file, const char* byte) {
  for (const TensorView& tensor : file.tensors()) {
    const auto* begin = reinterpret_cast<const char*>(tensor.bytes.data());
    if (byte >= begin && byte < begin + tensor.bytes.size()) return &tensor;
  }
  return nullptr;
}

class GgufDamage : public testing::Test {
 protected:
  /// Damages the file in every way and loads it. With header_only the weights are not damaged.
  void load_all(const GgufBuilder& seed, bool header_only = false) {
    const std::string bytes = seed.build();
    const uint64_t data_at = rewrite(GgufFile::parse(as_bytes(bytes)), bytes).data_at;
    const Damages damages(bytes, header_only ? data_at : bytes.size());
    const std::filesystem::path path = folder_.write("seed.gguf", damages.whole());
    whole_ = load_whole(path);
    original_ = damages.whole();
    const GgufFile parsed = GgufFile::parse(as_bytes(original_));
    file_ = &parsed;
    layout_ = rewrite(parsed, original_);
    ASSERT_TRUE(original_.starts_with(layout_.header));
    ASSERT_EQ(whole_.chat_warning.empty(), parsed.find("tokenizer.chat_template") != nullptr);

    DamagedLoad load{path, path, {}, {}};
    load.judge_refusal = [&](uint64_t index, const std::string& message) {
      return damages.is_cut(index) ? std::string() : judge_refusal(damages.byte(index), message);
    };
    load.judge_load = [&](uint64_t index, const std::string& bytes, const WholeLoad& loaded) -> std::string {
      if (damages.is_cut(index)) return "a file that was cut short was loaded";
      return damages.byte(index) < layout_.data_at ? judge_header(damages.byte(index), bytes, loaded)
                                                   : judge_data(damages.byte(index), loaded);
    };
    const IsolatedTotals totals = load_every_damage(damages, load);
    EXPECT_GT(totals.refused, 0u);
    EXPECT_GT(totals.accepted, 0u);
  }

 private:
  /// A change of weights is refused only if a number became infinite or NaN.
  std::string judge_refusal(uint64_t byte, const std::string& message) const {
    if (byte < layout_.data_at) return "";
    const TensorView* tensor = owner_of(*file_, original_.data() + byte);
    if (tensor == nullptr) return "a flipped bit of padding was refused: " + message;
    const std::string name = tensor->name.substr(0, tensor->name.rfind(".weight"));
    const bool says_why =
        message.find("not a number") != std::string::npos || message.find("not finite") != std::string::npos;
    return says_why && message.find(name) != std::string::npos ? "" : "weights were refused with: " + message;
  }

  /// What was read and written again must equal the file; the weights are unchanged unless the list of tensors was
  /// changed.
  std::string judge_header(uint64_t byte, const std::string& bytes, const WholeLoad& loaded) const {
    const GgufFile file = GgufFile::parse(as_bytes(bytes));
    const Rewritten again = rewrite(file, bytes);
    if (!bytes.starts_with(again.header)) return "what was read is not what the file says";
    const ModelConfig& c = loaded.config;
    const bool config_is_read =
        c.layers == file.u32("llama.block_count") && c.hidden == file.u32("llama.embedding_length") &&
        c.ffn == file.u32("llama.feed_forward_length") && c.max_context == file.u32("llama.context_length") &&
        c.heads == file.u32("llama.attention.head_count") &&
        c.kv_heads == file.u32_if("llama.attention.head_count_kv").value_or(c.heads) &&
        c.rope_theta == file.number_if("llama.rope.freq_base").value_or(10000) &&
        c.rms_eps == static_cast<float>(file.number("llama.attention.layer_norm_rms_epsilon"));
    if (!config_is_read) return "the config is not what the file says";
    if (loaded.tokens.size() != file.texts("tokenizer.ggml.tokens").size()) return "the vocabulary has another size";
    return byte < layout_.tensors_at ? difference_of_values(whole_, loaded) : "";
  }

  /// Only the block with the flipped bit may differ.
  std::string judge_data(uint64_t byte, const WholeLoad& loaded) const {
    const TensorView* tensor = owner_of(*file_, original_.data() + byte);
    WholeLoad expected = whole_;
    if (tensor != nullptr) {
      const TensorTypeInfo& info = tensor_type_info(tensor->type);
      const auto offset = original_.data() + byte - reinterpret_cast<const char*>(tensor->bytes.data());
      const uint64_t first = static_cast<uint64_t>(offset) / info.block_bytes * info.block_elements;
      const std::string name = tensor->name.substr(0, tensor->name.rfind(".weight"));
      const std::vector<float>& now = loaded.values.at(name);
      std::copy_n(now.begin() + static_cast<ptrdiff_t>(first), info.block_elements,
                  expected.values.at(name).begin() + static_cast<ptrdiff_t>(first));
    }
    return difference(expected, loaded);
  }

  const TempFolder folder_;
  std::string original_;
  const GgufFile* file_ = nullptr;
  Rewritten layout_;
  WholeLoad whole_;
};

TEST_F(GgufDamage, EveryBitOfAFileWithAByteLevelVocabulary) {
  load_all(seed_gguf());
}

TEST_F(GgufDamage, EveryBitOfTheHeaderWithAVocabularyOfScores) {
  load_all(seed_gguf_with_scores(), true);
}

}  // namespace
}  // namespace canopy::test
