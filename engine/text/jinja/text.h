#pragma once
// A string that knows, byte by byte, who wrote it. Whatever a template does to a message — trim, split, replace,
// concatenate — the bytes of the message stay recognisable, so that no spelling in them becomes a control token.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace canopy::jinja {

/// The author of a byte: the template (markup), or a message (content). Values above content are content too, for a
/// caller that wants to tell messages apart.
enum class Origin : char { markup, content };

class Text {
 public:
  Text() = default;
  explicit Text(std::string bytes, Origin origin = Origin::markup);

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  Origin origin(size_t at) const { return static_cast<Origin>(origins_[at]); }

  void append(const Text& other);
  void append(const Text& other, size_t begin, size_t size);
  void append(std::string_view bytes, Origin origin);

  /// Clamped to what there is.
  Text part(size_t begin, size_t size = std::string_view::npos) const;

  /// A text that counts as HTML already, as 'safe' and 'escape' leave it: joined with others, it has them escaped.
  bool is_safe() const { return safe_; }
  void set_safe(bool safe) { safe_ = safe; }

  /// Length of the run of bytes of one origin that begins at `at`, which is inside the text.
  size_t run_length(size_t at) const;

 private:
  std::string bytes_;
  bool safe_ = false;
  std::string origins_;  // one Origin for each byte: makes every operation a pair of equal string operations
};

/// Where the characters of a UTF-8 text begin, and its size at the end. A byte that is not UTF-8 is one character.
std::vector<size_t> character_starts(std::string_view text);
size_t count_characters(std::string_view text);

/// The code point that begins at `at` and how many bytes it has; a byte that is not UTF-8 stands for itself.
struct CodePoint {
  int32_t value = 0;
  size_t size = 1;
  bool valid = true;
};
CodePoint code_point_at(std::string_view text, size_t at);
std::string encode_utf8(int32_t code_point);

/// White space as Python's str.strip() sees it.
bool is_space(int32_t code_point);
bool is_letter(int32_t code_point);
/// What str.isdecimal(), str.isdigit(), str.isnumeric() and str.isprintable() say of a character.
bool is_decimal_digit(int32_t code_point);
bool is_digit(int32_t code_point);
bool is_numeric(int32_t code_point);
bool is_printable(int32_t code_point);

}  // namespace canopy::jinja
