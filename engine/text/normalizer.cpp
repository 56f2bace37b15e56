#include "engine/text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "engine/base/error.h"

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

}  // namespace canopy
