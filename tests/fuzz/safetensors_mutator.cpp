// Mutates safetensors files with knowledge of the format: after most mutations the length at the start is that of the
// header again, and often the data reaches the last offset, so that the reader gets further.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

constexpr size_t length_bytes = 8;

// The end of the header's object by its braces; the whole text if they do not match.
size_t header_size(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\') ++i;
      if (i < text.size() && text[i] == '"') in_string = false;
      continue;
    }
    if (text[i] == '"') in_string = true;
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i + 1;
  }
  return text.size();
}

// The largest number after "data_offsets", which the data must reach.
size_t data_size(std::string_view header) {
  size_t most = 0;
  for (size_t at = header.find("data_offsets"); at != std::string_view::npos;
       at = header.find("data_offsets", at + 1)) {
    size_t number = 0;
    for (const char c : header.substr(at, header.substr(at).find(']'))) {
      number = c >= '0' && c <= '9' ? std::min<size_t>(number * 10 + static_cast<size_t>(c - '0'), 1 << 20) : 0;
      most = std::max(most, number);
    }
  }
  return most;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size <= length_bytes || random() % 4 == 0) return size;
  const std::string_view rest(reinterpret_cast<const char*>(data) + length_bytes, size - length_bytes);
  const uint64_t header = header_size(rest);
  std::memcpy(data, &header, length_bytes);
  const size_t wanted = length_bytes + header + data_size(rest.substr(0, header));
  if (random() % 2 == 0 || wanted > max_size) return size;
  if (wanted > size) std::memset(data + size, 0, wanted - size);
  return wanted;
}
