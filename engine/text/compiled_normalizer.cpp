#include "engine/text/compiled_normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/base/error.h"
#include "engine/text/utf8.h"

namespace canopy {
namespace {

// A node: the byte that leads to it, whether a text ends in it, and where its children are.

constexpr uint32_t value_bit = 1u << 31;  // of a node that holds a place among the replacements

uint32_t label_of(uint32_t unit) {
  return unit & (value_bit | 0xFF);
}
bool has_value(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit >> 6) & 8);
}
uint32_t value_of(uint32_t unit) {
  return unit & ~value_bit;
}

/// Walks a table once, before anything follows it.
class TableCheck {
 public:
  TableCheck(const std::vector<uint32_t>& units, std::string_view replacements, std::string_view what)
      : units_(units),
        replacements_(replacements),
        what_(what),
        shortest_(units.size(), unseen),
        longest_(units.size()) {}

  void run() {
    if (units_.empty()) refuse("is empty");
    if (replacements_.empty() || replacements_.back() != '\0') refuse("does not end its last replacement");
    find_shortest_texts();
    // Children come after their parents in the order of longest paths, which the recursion finds; it is shallow, as
    // texts that are longer are refused.
    count_values(0, 0);
  }

 private:
  static constexpr uint32_t unseen = 0xFFFFFFFF;
  static constexpr uint32_t most_bytes = 128;   // of a text that is replaced
  static constexpr uint8_t most_values = 32;    // of prefixes of one text: what the library has room for
  static constexpr uint32_t most_growth = 64;   // bytes for each that is replaced
  static constexpr uint8_t in_progress = 0xFF;  // of longest_, whose counts are one more than the values

  [[noreturn]] void refuse(const std::string& why) const {
    throw bad_input(std::string(what_) + " normalizes text by a compiled table that is damaged: it " + why + ".");
  }

  uint32_t base_of(uint32_t node) const {
    const uint32_t base = node ^ offset_of(units_[node]);
    // Any byte may come next, so all places of its children are looked at.
    if ((base | 0xFFu) >= units_.size()) refuse("leads out of itself");
    return base;
  }

  template <class F>
  void for_each_child(uint32_t node, F&& child) const {
    const uint32_t base = base_of(node);
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (label_of(units_[base ^ byte]) == byte) child(base ^ byte);
    }
  }

  /// Breadth first: the shortest text that leads to a node bounds what may replace it.
  void find_shortest_texts() {
    std::vector<uint32_t> queue = {0};
    shortest_[0] = 0;
    for (size_t next = 0; next < queue.size(); ++next) {
      const uint32_t node = queue[next];
      if (has_value(units_[node])) check_replacement(value_of(units_[base_of(node)]), shortest_[node]);
      for_each_child(node, [&](uint32_t child) {
        if (shortest_[child] != unseen) return;
        shortest_[child] = shortest_[node] + 1;
        queue.push_back(child);
      });
    }
  }

  void check_replacement(uint32_t begin, uint32_t replaced_bytes) const {
    if (begin >= replacements_.size() || (begin > 0 && replacements_[begin - 1] != '\0')) {
      refuse("names a replacement that it does not have");
    }
    const std::string_view text = replacements_.substr(begin, replacements_.find('\0', begin) - begin);
    if (valid_utf8_prefix(text) < text.size()) refuse("has a replacement that is no UTF-8");
    if (text.size() > most_growth * std::max(replaced_bytes, 1u)) refuse("has a replacement that is absurdly long");
  }

  /// The most values on a path from a node on.
  uint8_t count_values(uint32_t node, uint32_t depth) {
    if (longest_[node] == in_progress) refuse("leads back into itself");
    if (longest_[node] != 0) return longest_[node] - 1;
    if (depth > most_bytes) refuse("replaces a text of more than " + std::to_string(most_bytes) + " bytes");
    longest_[node] = in_progress;
    uint8_t most = 0;
    for_each_child(node, [&](uint32_t child) { most = std::max(most, count_values(child, depth + 1)); });
    if (has_value(units_[node])) ++most;
    if (most > most_values) refuse("replaces too many prefixes of one text");
    longest_[node] = most + 1;
    return most;
  }

  const std::vector<uint32_t>& units_;
  std::string_view replacements_;
  std::string_view what_;
  std::vector<uint32_t> shortest_;  // bytes of the shortest text that leads to a node
  std::vector<uint8_t> longest_;
};

/// Where the cluster of characters at the front of a text ends.
size_t cluster_length(std::string_view text) {
  utf8proc_int32_t before = 0, state = 0;
  size_t at = 0;
  while (at < text.size()) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (length <= 0) return std::max<size_t>(at, 1);
    if (at > 0 && utf8proc_grapheme_break_stateful(before, code, &state)) return at;
    before = code;
    at += static_cast<size_t>(length);
  }
  return at;
}

}  // namespace

CompiledNormalizer::CompiledNormalizer(std::string_view table, std::string_view what) {
  uint32_t trie_bytes = 0;
  if (table.size() > sizeof trie_bytes) std::memcpy(&trie_bytes, table.data(), sizeof trie_bytes);
  if (trie_bytes == 0 || trie_bytes % sizeof(uint32_t) != 0 || trie_bytes > table.size() - sizeof trie_bytes) {
    throw bad_input(std::string(what) + " normalizes text by a compiled table that is damaged: its trie of " +
                    std::to_string(trie_bytes) + " bytes does not fit into its " + std::to_string(table.size()) + ".");
  }
  constexpr uint32_t most_trie_bytes = 8 << 20;  // real ones have 240 KB
  if (trie_bytes > most_trie_bytes) {
    throw bad_input(std::string(what) + " normalizes text by a compiled table whose trie has " +
                    std::to_string(trie_bytes) + " bytes; at most " + std::to_string(most_trie_bytes) +
                    " are allowed.");
  }
  table.remove_prefix(sizeof trie_bytes);
  units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), table.data(), trie_bytes);
  replacements_ = table.substr(trie_bytes);
  TableCheck(units_, replacements_, what).run();
}

std::optional<std::string_view> CompiledNormalizer::replacement_of(std::string_view chunk) const {
  uint32_t node = offset_of(units_[0]);
  for (const char c : chunk) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return std::nullopt;
    node ^= byte;
    const uint32_t unit = units_[node];
    if (label_of(unit) != byte) return std::nullopt;
    node ^= offset_of(unit);
    if (!has_value(unit)) continue;
    const size_t begin = value_of(units_[node]);
    return std::string_view(replacements_).substr(begin, replacements_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

void CompiledNormalizer::append(std::string_view cluster, std::string& out) const {
  constexpr size_t longest_whole = 5;
  if (cluster.size() <= longest_whole) {
    if (const auto replacement = replacement_of(cluster)) {
      out.append(*replacement);
      return;
    }
  }
  while (!cluster.empty()) {
    const std::string_view character = cluster.substr(0, next_utf8(cluster).length);
    out.append(replacement_of(character).value_or(character));
    cluster.remove_prefix(character.size());
  }
}

std::string CompiledNormalizer::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = cluster_length(text);
    append(text.substr(0, length), out);
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace canopy
