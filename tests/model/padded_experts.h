#pragma once
// tiny-nemotron-h for devices whose experts have whole tiles of rows: its experts have 24, those written here 32. What
// is more is zeros, whose relu(x)^2 is 0, so that it is the same model.

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/gguf.h"
#include "engine/format/safetensors.h"
#include "tests/base/temp_folder.h"
#include "tests/format/gguf_builder.h"
#include "tests/format/safetensors_builder.h"

namespace canopy::test {

inline constexpr uint64_t kExpertRows = 24, kPaddedRows = 32;

/// Every `chunk` bytes with zeros behind them, up to `wanted`.
inline std::string with_zeros(std::span<const std::byte> bytes, uint64_t chunk, uint64_t wanted) {
  std::string result;
  const std::string_view data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t at = 0; at < data.size(); at += chunk) {
    result += data.substr(at, chunk);
    result.append(wanted - chunk, '\0');
  }
  return result;
}

/// Of a matrix of an expert, or of those of all experts; its data and its shape, the slowest dimension first.
struct PaddedTensor {
  explicit PaddedTensor(const TensorView& tensor) : shape(tensor.shape.begin(), tensor.shape.begin() + tensor.rank) {
    const bool is_expert =
        tensor.name.find("experts.") != std::string::npos && tensor.name.find("shared") == std::string::npos;
    const bool is_of_experts = is_expert || tensor.name.find("_exps") != std::string::npos;
    uint64_t chunk = tensor.bytes.size(), wanted = chunk;
    if (is_of_experts) {
      const uint64_t element = tensor.bytes.size() / tensor.elements(), cols = shape.back();
      const bool is_down = cols == kExpertRows;
      uint64_t& extent = is_down ? shape.back() : shape[shape.size() - 2];
      chunk = element * (is_down ? kExpertRows : kExpertRows * cols);
      extent = kPaddedRows;
      wanted = chunk / kExpertRows * kPaddedRows;
    }
    data = with_zeros(tensor.bytes, chunk, wanted);
  }
  std::vector<uint64_t> shape;
  std::string data;
};

inline void write_padded_folder(const TempFolder& folder, const std::filesystem::path& model) {
  std::ifstream in(model / "config.json");
  nlohmann::json config = nlohmann::json::parse(in);
  config["moe_intermediate_size"] = kPaddedRows;
  folder.write("config.json", config.dump());
  const SafetensorsFile file = SafetensorsFile::open(model / "model.safetensors");
  SafetensorsBuilder builder;
  for (const TensorView& tensor : file.tensors()) {
    const PaddedTensor padded(tensor);
    builder.tensor(tensor.name, to_string(tensor.type), padded.shape, padded.data);
  }
  folder.write("model.safetensors", builder.build());
}

inline std::filesystem::path write_padded_gguf(const TempFolder& folder, const std::filesystem::path& model) {
  const GgufFile file = GgufFile::open(model);
  GgufBuilder builder;
  const std::string architecture(file.text("general.architecture"));
  builder.text("general.architecture", architecture);
  for (const GgufValue& value : file.metadata()) {
    const std::string key(value.key);
    if (key == "general.architecture" || key.starts_with("general.") || key.starts_with("tokenizer.")) continue;
    if (key == architecture + ".feed_forward_length") {
      std::vector<int32_t> lengths = file.i32s(key);
      for (int32_t& length : lengths) length = length == 0 ? 0 : int32_t{kPaddedRows};
      builder.numbers(key, lengths);
    } else if (value.type == GgufType::array) {
      builder.numbers(key, file.i32s(key));
    } else if (value.type == GgufType::f32) {
      builder.value(key, static_cast<float>(value.float_value));
    } else if (value.type == GgufType::boolean) {
      builder.value(key, value.unsigned_value != 0);
    } else {
      const bool is_width = key == architecture + ".expert_feed_forward_length";
      builder.value(key, static_cast<uint32_t>(is_width ? kPaddedRows : value.unsigned_value));
    }
  }
  for (const TensorView& tensor : file.tensors()) {
    const PaddedTensor padded(tensor);
    builder.tensor(tensor.name, {padded.shape.rbegin(), padded.shape.rend()}, tensor.type, padded.data);
  }
  return folder.write("padded.gguf", builder.build());
}

/// A copy in `folder` of that folder or GGUF file.
inline std::filesystem::path write_padded_experts(const TempFolder& folder, const std::filesystem::path& model) {
  if (model.extension() == ".gguf") return write_padded_gguf(folder, model);
  write_padded_folder(folder, model);
  return folder.path();
}

}  // namespace canopy::test
