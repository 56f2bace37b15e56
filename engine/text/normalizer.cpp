#include "engine/text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/text/unicode.h"

namespace canopy {
namespace {

constexpr size_t most_marks = 256;

// End of the next part that can be normalised alone: before an ASCII character, which never composes with what stands
// in front of it, or inside an endless run of marks.
size_t part_end(std::string_view text, size_t from) {
  size_t at = from;
  size_t marks = 0;
  while (at < text.size()) {
    utf8proc_int32_t code_point = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
    if (length <= 0) return text.size();  // not valid UTF-8: utf8proc reports it
    if (at > from && code_point < 0x80) return at;
    marks = utf8proc_get_property(code_point)->combining_class == 0 ? 0 : marks + 1;
    at += static_cast<size_t>(length);
    if (marks == most_marks) return at;
  }
  return at;
}

utf8proc_option_t options_of(UnicodeForm form) {
  const bool composes = form == UnicodeForm::nfc || form == UnicodeForm::nfkc;
  const bool is_compatible = form == UnicodeForm::nfkc || form == UnicodeForm::nfkd;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (is_compatible ? UTF8PROC_COMPAT : 0));
}

void append_normalized(std::string_view part, UnicodeForm form, std::string& out) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(part.data()),
                                               static_cast<utf8proc_ssize_t>(part.size()), &mapped, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (length < 0) {
    throw out_of_memory("A text of " + std::to_string(part.size()) +
                        " bytes could not be brought to a Unicode normal form: " + utf8proc_errmsg(length) + ".");
  }
  out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
}

}  // namespace

bool is_ascii(std::string_view text) {
  uint64_t bits = 0;
  for (; text.size() >= sizeof bits; text.remove_prefix(sizeof bits)) {
    std::memcpy(&bits, text.data(), sizeof bits);
    if ((bits & 0x8080808080808080u) != 0) return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string to_unicode_form(std::string_view text, UnicodeForm form) {
  if (is_ascii(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    const auto is_high = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
    const auto high = static_cast<size_t>(std::find_if(text.begin() + static_cast<ptrdiff_t>(at), text.end(), is_high) -
                                          text.begin());
    // The last ASCII character in front may compose with the mark that follows.
    const size_t begin = high == text.size() ? high : std::max(at, high == 0 ? 0 : high - 1);
    out.append(text.substr(at, begin - at));
    if (begin == text.size()) break;
    at = part_end(text, begin);
    append_normalized(text.substr(begin, at - begin), form, out);
  }
  return out;
}

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

namespace {

// Steps come with a model: thirty of them that double a text would fill the memory. Normal forms, the greatest that
// anybody needs, make at most eleven bytes of one.
class GrowthLimit {
 public:
  explicit GrowthLimit(size_t text) : text_(text) {}

  void check(size_t bytes) const {
    if (bytes / 64 <= text_ + 1024) return;
    throw bad_input("The normalizer of tokenizer.json makes " + std::to_string(bytes) + " bytes of a text of " +
                    std::to_string(text_) + "; at most 64 times as many and 65,536 more are allowed.");
  }

 private:
  size_t text_;  // bytes before the first step
};

// Each step returns whether it changed the text, and then its result in `out`.

bool run(const TextNormalizer::Unicode& step, std::string_view text, TextPlace, const GrowthLimit& limit,
         std::string& out) {
  if (is_ascii(text)) return false;
  out = to_unicode_form(text, step.form);
  limit.check(out.size());
  return true;
}

bool run(const TextNormalizer::Prepend& step, std::string_view text, TextPlace place, const GrowthLimit& limit,
         std::string& out) {
  if (text.empty() || place == TextPlace::inside) return false;
  if (step.only_at_text_start && place != TextPlace::text_start) return false;
  if (step.unless_there && text.starts_with(step.text)) return false;
  limit.check(step.text.size() + text.size());
  out.assign(step.text).append(text);
  return true;
}

bool run(const TextNormalizer::Replace& step, std::string_view text, TextPlace, const GrowthLimit& limit,
         std::string& out) {
  size_t at = step.from.empty() ? std::string_view::npos : text.find(step.from);
  if (at == std::string_view::npos) return false;
  out.clear();
  out.reserve(text.size() + text.size() / 2);
  size_t done = 0;
  for (; at != std::string_view::npos; at = text.find(step.from, done)) {
    out.append(text.substr(done, at - done)).append(step.to);
    limit.check(out.size());
    done = at + step.from.size();
  }
  out.append(text.substr(done));
  return true;
}

bool run(const TextNormalizer::ReplaceMatches& step, std::string_view text, TextPlace, const GrowthLimit& limit,
         std::string& out) {
  Regex::Matcher matcher;
  out.clear();
  size_t done = 0;
  for (size_t from = 0; from <= text.size();) {
    const auto match = step.regex.find(text, from, matcher);
    if (!match) break;
    out.append(text.substr(done, match->begin - done)).append(step.to);
    limit.check(out.size());
    done = from = match->end;
    if (match->end == match->begin) {  // go on behind the next character
      if (from == text.size()) break;
      from += next_utf8(text.substr(from)).length;
    }
  }
  out.append(text.substr(done));
  return true;
}

bool run(const TextNormalizer::Compiled& step, std::string_view text, TextPlace, const GrowthLimit& limit,
         std::string& out) {
  out = step.table->apply(text);
  limit.check(out.size());
  return true;
}

}  // namespace

std::string_view TextNormalizer::apply(std::string_view text, TextPlace place, std::string& buffer) const {
  const GrowthLimit limit(text.size());
  std::string next;
  for (const Step& step : steps_) {
    const bool changed = std::visit([&](const auto& s) { return run(s, text, place, limit, next); }, step);
    if (!changed) continue;
    std::swap(buffer, next);
    text = buffer;
  }
  return text;
}

}  // namespace canopy
