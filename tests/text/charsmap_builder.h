#pragma once
// SentencePiece's compiled tables of replacements, built plainly: each node of the trie has a block of 256 units for
// its children of its own, whose first holds its value.

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace canopy::test {

inline std::string charsmap(const std::map<std::string, std::string>& rules) {
  constexpr uint32_t value_bit = 1u << 31, unused = value_bit;
  std::vector<uint32_t> units(512, unused);
  std::string replacements;
  std::map<std::string, uint32_t> blocks = {{"", 256}};  // of prefixes: where their children are
  units[0] = 256 << 10;
  for (const auto& [text, replacement] : rules) {
    for (size_t length = 1; length <= text.size(); ++length) {
      const std::string prefix = text.substr(0, length);
      if (blocks.contains(prefix)) continue;
      const auto block = static_cast<uint32_t>(units.size());
      units.resize(units.size() + 256, unused);
      const uint32_t label = static_cast<unsigned char>(prefix.back());
      const uint32_t node = blocks.at(text.substr(0, length - 1)) ^ label;
      units[node] = (node ^ block) << 10 | label;
      blocks[prefix] = block;
      if (length == text.size()) {
        units[node] |= 1u << 8;
        units[block] = value_bit | static_cast<uint32_t>(replacements.size());
      }
    }
    replacements += replacement + '\0';
  }
  const auto bytes = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string table(sizeof bytes + bytes, '\0');
  std::memcpy(table.data(), &bytes, sizeof bytes);
  std::memcpy(table.data() + sizeof bytes, units.data(), bytes);
  return table + replacements;
}

}  // namespace canopy::test
