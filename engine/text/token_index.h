#pragma once
// Tokens by their text.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

class TokenIndex {
 public:
  TokenIndex();

  /// Of tokens with the same text the first counts. Empty texts and ids of 2^32 - 1 are not kept. Throws
  /// Error(bad_input) when the texts together exceed 4 GiB.
  void add(std::string_view text, uint32_t id);

  std::optional<uint32_t> find(std::string_view text) const;

  /// Length in bytes of the longest token.
  size_t longest() const { return longest_; }

 private:
  /// In 32 bits each, since there is one for every token: vocabularies have hundreds of thousands.
  struct Entry {
    uint32_t begin = 0;  // in texts_
    uint32_t length = 0;
    uint32_t id = 0;
  };
  struct Slot {
    uint32_t tag = 0;    // half of the hash, compared before the text is
    uint32_t entry = 0;  // index + 1; 0: free
  };

  size_t slot_of(std::string_view text, uint64_t hash) const;
  std::string_view text_of(const Entry& entry) const {
    return std::string_view(texts_).substr(entry.begin, entry.length);
  }
  void grow();

  std::string texts_;  // of all tokens, one after the other
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // open addressing; the number of slots is a power of two
  size_t longest_ = 0;
};

}  // namespace canopy
