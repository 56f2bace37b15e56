// Mutates GGUF files with knowledge of the format. Every string has its length before it and every list its count, so
// plain mutations mostly make the reader run past the end; these keep a file readable and change its contents.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

constexpr size_t length_bytes = 8;
constexpr size_t header_bytes = 24;  // magic, version, two counts
constexpr size_t longest_string = 4096;

uint64_t read_length(const uint8_t* at) {
  uint64_t value = 0;
  std::memcpy(&value, at, length_bytes);
  return value;
}

void write_length(uint8_t* at, uint64_t value) {
  std::memcpy(at, &value, length_bytes);
}

bool is_text(const uint8_t* at, uint64_t length) {
  return std::all_of(at, at + length, [](uint8_t byte) { return byte >= 0x20 || byte == '\n'; });
}

// Offsets where strings probably begin: a small length, followed by that many bytes of text.
std::vector<size_t> find_strings(const uint8_t* data, size_t size) {
  std::vector<size_t> found;
  for (size_t at = header_bytes; at + length_bytes < size; ++at) {
    const uint64_t length = read_length(data + at);
    if (length == 0 || length > longest_string || length > size - at - length_bytes) continue;
    if (!is_text(data + at + length_bytes, length)) continue;
    found.push_back(at);
    at += length_bytes + length - 1;
  }
  return found;
}

// Mutates the bytes of one string and adjusts its length.
size_t mutate_string(uint8_t* data, size_t size, size_t max_size, size_t at) {
  const auto old_length = static_cast<size_t>(read_length(data + at));
  const size_t most = std::min(old_length + (max_size - size), longest_string);
  std::vector<uint8_t> text(std::max(most, old_length));
  uint8_t* begin = data + at + length_bytes;
  std::copy_n(begin, old_length, text.begin());
  const size_t new_length = LLVMFuzzerMutate(text.data(), old_length, std::max<size_t>(most, 1));
  if (size - old_length + new_length > max_size) return size;
  std::memmove(begin + new_length, begin + old_length, size - at - length_bytes - old_length);
  std::copy_n(text.begin(), new_length, begin);
  write_length(data + at, new_length);
  return size - old_length + new_length;
}

// Copies one string over another, length included, so that keys and names are combined in new ways.
size_t copy_string(uint8_t* data, size_t size, size_t max_size, size_t from, size_t to) {
  const auto length = static_cast<size_t>(read_length(data + from));
  const std::vector<uint8_t> copied(data + from, data + from + length_bytes + length);
  const size_t old_end = to + length_bytes + static_cast<size_t>(read_length(data + to));
  const size_t new_end = to + copied.size();
  if (size - old_end + new_end > max_size) return size;
  std::memmove(data + new_end, data + old_end, size - old_end);
  std::copy(copied.begin(), copied.end(), data + to);
  return size - old_end + new_end;
}

// Removes the bytes of an entry, from one string to the next, and reduces the count by one.
size_t drop_entry(uint8_t* data, size_t size, const std::vector<size_t>& strings, size_t index) {
  const size_t begin = strings[index], end = strings[index + 1];
  std::memmove(data + begin, data + end, size - end);
  const size_t count = read_length(data + 16) > 0 ? 16 : 8;  // metadata, or tensors
  write_length(data + count, read_length(data + count) - 1);
  return size - (end - begin);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  if (size < header_bytes || random() % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::vector<size_t> strings = find_strings(data, size);
  if (strings.size() < 2) return LLVMFuzzerMutate(data, size, max_size);
  const size_t chosen = random() % strings.size();
  switch (random() % 4) {
    case 0: return copy_string(data, size, max_size, strings[random() % strings.size()], strings[chosen]);
    case 1: return drop_entry(data, size, strings, std::min(chosen, strings.size() - 2));
    default: return mutate_string(data, size, max_size, strings[chosen]);
  }
}
