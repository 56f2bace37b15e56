#pragma once
// Builds safetensors files in memory, right or wrong on purpose.

#include <string>
#include <string_view>
#include <vector>

#include "tests/format/gguf_builder.h"

namespace canopy::test {

/// A file of this header text and this data, whether or not they fit each other.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  return le<uint64_t>(header.size()) + std::string(header) + std::string(data);
}

/// "[1,2]"
inline std::string json_list(const std::vector<uint64_t>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
  return text + "]";
}

/// A header entry: "name":{...}
inline std::string safetensors_entry(std::string_view name, std::string_view dtype, const std::vector<uint64_t>& shape,
                                     uint64_t begin, uint64_t end) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":" + json_list(shape) +
         ",\"data_offsets\":" + json_list({begin, end}) + "}";
}

/// Builds well-formed files, with tensors one after the other.
class SafetensorsBuilder {
 public:
  SafetensorsBuilder& tensor(std::string_view name, std::string_view dtype, const std::vector<uint64_t>& shape,
                             std::string_view data) {
    header_ +=
        (header_.empty() ? "" : ",") + safetensors_entry(name, dtype, shape, data_.size(), data_.size() + data.size());
    data_ += data;
    return *this;
  }
  /// Adds a tensor of F32 zeros.
  SafetensorsBuilder& zeros(std::string_view name, const std::vector<uint64_t>& shape) {
    uint64_t bytes = 4;
    for (const uint64_t extent : shape) bytes *= extent;
    return tensor(name, "F32", shape, std::string(bytes, '\0'));
  }
  std::string build() const { return safetensors_file("{" + header_ + "}", data_); }

 private:
  std::string header_;
  std::string data_;
};

}  // namespace canopy::test
