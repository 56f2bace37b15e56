// Every truncation and every flipped bit of each file of a Hugging Face folder, through the whole of loading: either a
// clear error, or a model with the values that the file now has.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/format/safetensors.h"
#include "engine/text/vocabulary.h"
#include "tests/base/temp_folder.h"
#include "tests/robustness/damage.h"
#include "tests/robustness/seed_model.h"
#include "tests/text/charsmap_builder.h"

namespace canopy::test {
namespace {

using nlohmann::json;

using Judge = std::function<std::string(const std::string& bytes, const WholeLoad& loaded)>;

class FolderDamage : public testing::Test {
 protected:
  /// Damages one file of the folder in every way; `judge` checks what was loaded.
  void load_all(const std::vector<SeedFile>& folder, const std::string& name, const Judge& judge,
                bool cuts_are_refused = true, uint64_t damaged_bytes = UINT64_MAX) {
    std::string bytes;
    for (const SeedFile& file : folder) {
      folder_.write(file.name, file.bytes);
      if (file.name == name) bytes = file.bytes;
    }
    ASSERT_FALSE(bytes.empty());
    try {
      whole_ = load_whole(folder_.path());
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unavailable) throw;
      GTEST_SKIP() << e.what();  // a build without sentencepiece
    }
    const Damages damages(bytes, damaged_bytes);
    DamagedLoad load{folder_.path(), folder_.path() / name, {}, {}};
    load.judge_load = [&](uint64_t index, const std::string& damaged, const WholeLoad& loaded) -> std::string {
      if (damages.is_cut(index) && cuts_are_refused) return "a file that was cut short was loaded";
      return judge(damaged, loaded);
    };
    const IsolatedTotals totals = load_every_damage(damages, load);
    EXPECT_GT(totals.refused, 0u);
    EXPECT_GT(totals.accepted, 0u);
  }

  const WholeLoad& whole() const { return whole_; }

 private:
  const TempFolder folder_;
  WholeLoad whole_;
};

/// Checks that the config has the JSON's values, or defaults for missing fields, and that everything else is unchanged.
std::string judge_config(const WholeLoad& whole, const std::string& bytes, const WholeLoad& loaded) {
  const json root = json::parse(bytes);
  ModelConfig expected = whole.config;
  const auto number = [&](const char* field, uint32_t& value, uint32_t fallback) {
    value = root.value(field, fallback);
  };
  number("hidden_size", expected.hidden, 0);
  number("num_hidden_layers", expected.layers, 0);
  number("num_attention_heads", expected.heads, 0);
  number("num_key_value_heads", expected.kv_heads, expected.heads);
  number("intermediate_size", expected.ffn, 0);
  number("vocab_size", expected.vocab, 0);
  number("max_position_embeddings", expected.max_context, 0);
  expected.head_dim = root.value("head_dim", expected.hidden / std::max(1u, expected.heads));
  expected.rms_eps = root.value("rms_norm_eps", 0.0f);
  expected.rope_theta = root.value("rope_theta", 10000.0);
  expected.rope_scaling = {};
  if (const json scaling = root.value("rope_scaling", json()); scaling.is_object() && scaling.contains("rope_type")) {
    expected.rope_scaling.kind = RopeScaling::Kind::llama3;
    expected.rope_scaling.factor = scaling.at("factor");
    expected.rope_scaling.low_freq_factor = scaling.at("low_freq_factor");
    expected.rope_scaling.high_freq_factor = scaling.at("high_freq_factor");
    expected.rope_scaling.original_context = scaling.at("original_max_position_embeddings");
  }
  // generation_config.json already has 18, 20 and 19.
  // An id that names no token is ignored.
  if (const json eos = root.value("eos_token_id", json());
      eos.is_number() && eos != 20 && eos != 19 && eos < expected.vocab) {
    expected.eos.push_back(eos);
  }
  for (const std::string& found : {difference_of_configs(expected, loaded.config), difference_of_text(whole, loaded),
                                   difference_of_values(whole, loaded)}) {
    if (!found.empty()) return found;
  }
  return "";
}

/// The tokens of a tokenizer.json by id, as bytes.
std::vector<std::string> tokens_of(const json& root) {
  std::vector<std::string> tokens;
  const auto put = [&](size_t id, std::string bytes) {
    if (tokens.size() <= id) tokens.resize(id + 1);
    tokens[id] = std::move(bytes);
  };
  for (const auto& [token, id] : root.at("model").at("vocab").items()) put(id, bytes_of_token(token));
  for (const json& added : root.value("added_tokens", json::array())) put(added.at("id"), added.at("content"));
  return tokens;
}

std::string judge_tokenizer(const WholeLoad& whole, const std::string& bytes, const WholeLoad& loaded) {
  if (loaded.tokens != tokens_of(json::parse(bytes))) return "the vocabulary is not what the file says";
  const std::string found = difference_of_configs(whole.config, loaded.config);
  return found.empty() ? difference_of_values(whole, loaded) : found;
}

/// If only data of a safetensors file changed, only elements of the tensor with that byte may differ.
std::string judge_weights(const WholeLoad& whole, const std::string& original, const std::string& bytes,
                          const WholeLoad& loaded) {
  const SafetensorsFile before = SafetensorsFile::parse(as_bytes(original));
  const SafetensorsFile after = SafetensorsFile::parse(as_bytes(bytes));
  WholeLoad expected = whole;
  int changed = 0;
  for (size_t i = 0; i < before.tensors().size(); ++i) {
    const TensorView& old = before.tensors()[i];
    const TensorView& now = after.tensors()[i];
    if (std::ranges::equal(old.bytes, now.bytes)) continue;
    ++changed;
    // Under which name the engine has the tensor does not matter here: it is the one whose values differ.
    for (auto& [name, values] : expected.values) {
      const std::vector<float>& read = loaded.values.at(name);
      if (values.size() != read.size()) continue;
      size_t differing = 0;
      for (size_t at = 0; at < values.size(); ++at)
        differing += std::bit_cast<uint32_t>(values[at]) != std::bit_cast<uint32_t>(read[at]);
      if (differing == 1) values = read;
    }
  }
  if (changed > 1) return "one bit changed several tensors";
  return difference(expected, loaded);
}

std::string bytes_of_file(const std::vector<SeedFile>& folder, const std::string& name) {
  for (const SeedFile& file : folder) {
    if (file.name == name) return file.bytes;
  }
  return "";
}

TEST_F(FolderDamage, EveryBitOfTheConfig) {
  load_all(seed_folder(), "config.json",
           [&](const std::string& bytes, const WholeLoad& loaded) { return judge_config(whole(), bytes, loaded); });
}

TEST_F(FolderDamage, EveryBitOfTheGenerationConfig) {
  load_all(seed_folder(), "generation_config.json", [&](const std::string& bytes, const WholeLoad& loaded) {
    const json root = json::parse(bytes);
    WholeLoad expected = whole();
    const uint32_t bos = root.value("bos_token_id", 18u);
    expected.config.bos = bos < expected.config.vocab ? bos : 18u;
    expected.config.eos = root.value("eos_token_id", std::vector<uint32_t>());
    std::erase_if(expected.config.eos, [&](uint32_t id) { return id >= expected.config.vocab; });
    if (std::ranges::find(expected.config.eos, 20u) == expected.config.eos.end()) expected.config.eos.push_back(20);
    return difference(expected, loaded);
  });
}

TEST_F(FolderDamage, EveryBitOfTheTokenizer) {
  load_all(seed_folder(), "tokenizer.json",
           [&](const std::string& bytes, const WholeLoad& loaded) { return judge_tokenizer(whole(), bytes, loaded); });
}

TEST_F(FolderDamage, EveryBitOfTheTokenizersConfig) {
  load_all(seed_folder(), "tokenizer_config.json", [&](const std::string&, const WholeLoad& loaded) {
    WholeLoad expected = whole();
    // The template may have changed, or a built-in one may be used with a warning.
    expected.prompt_ids = loaded.prompt_ids;
    return difference(expected, loaded);
  });
}

TEST_F(FolderDamage, EveryBitOfTheWeights) {
  const std::string original = bytes_of_file(seed_folder(), "model.safetensors");
  load_all(seed_folder(), "model.safetensors", [&](const std::string& bytes, const WholeLoad& loaded) {
    return judge_weights(whole(), original, bytes, loaded);
  });
}

/// What a packed folder may give whose config or header says other things: the same model, whose weights may differ.
std::string judge_packed(const WholeLoad& whole, const WholeLoad& loaded) {
  if (loaded.config.hidden != whole.config.hidden || loaded.config.vocab != whole.config.vocab)
    return "the sizes differ";
  if (loaded.values.size() != whole.values.size()) return "the number of tensors differs";
  for (const auto& [name, values] : whole.values) {
    if (loaded.values.at(name).size() != values.size()) return "the tensor " + name + " has another size";
  }
  return difference_of_text(whole, loaded);
}

TEST_F(FolderDamage, EveryBitOfTheConfigOfAFolderOfFp8) {
  load_all(seed_packed_folder("fp8"), "config.json",
           [&](const std::string&, const WholeLoad& loaded) { return judge_packed(whole(), loaded); });
}

TEST_F(FolderDamage, EveryBitOfTheConfigOfAFolderOfAwq) {
  load_all(seed_packed_folder("awq"), "config.json",
           [&](const std::string&, const WholeLoad& loaded) { return judge_packed(whole(), loaded); });
}

TEST_F(FolderDamage, EveryBitOfTheHeaderOfAFolderOfGptq) {
  constexpr uint64_t header = 2600;  // and some of the data
  load_all(
      seed_packed_folder("gptq"), "model.safetensors",
      [&](const std::string&, const WholeLoad& loaded) { return judge_packed(whole(), loaded); }, true, header);
}

TEST_F(FolderDamage, EveryBitOfTheIndexOfShards) {
  load_all(seed_folder_with_shards(), "model.safetensors.index.json",
           [&](const std::string&, const WholeLoad& loaded) { return difference(whole(), loaded); });
}

TEST_F(FolderDamage, EveryBitOfASentencePieceModel) {
  // Cut between two fields, it is still a valid model with fewer pieces.
  load_all(
      seed_folder_with_shards(), "tokenizer.model",
      [&](const std::string&, const WholeLoad& loaded) {
        // The tag of another field may be changed to that of a piece.
        if (loaded.tokens.size() > whole().tokens.size() + 1) return std::string("there are more pieces than before");
        const std::string found = difference_of_configs(whole().config, loaded.config);
        return found.empty() ? difference_of_values(whole(), loaded) : found;
      },
      false);
}

// The library follows the table without looking: whatever it is given must have been checked.
TEST_F(FolderDamage, EveryBitOfACompiledNormalizer) {
  std::vector<SeedFile> folder = seed_folder_with_shards();
  for (SeedFile& file : folder) {
    if (file.name == "tokenizer.model")
      file.bytes = seed_sentencepiece_model(charsmap({{"h", "a"}, {"g\xC3\xA9", "b"}}));
  }
  load_all(
      folder, "tokenizer.model",
      [&](const std::string&, const WholeLoad& loaded) {
        if (loaded.tokens.size() > whole().tokens.size() + 1) return std::string("there are more pieces than before");
        return difference_of_configs(whole().config, loaded.config);
      },
      false);
}

}  // namespace
}  // namespace canopy::test
