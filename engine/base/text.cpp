#include "engine/base/text.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"

namespace canopy {
namespace {

/// UTF-16 or UTF-32: units of 2 or 4 bytes.
struct WideEncoding {
  const char* name;
  std::string_view mark;
  size_t unit;  // bytes
  bool big_endian;
};

using namespace std::string_view_literals;

constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";
// The mark of UTF-32 first: it begins like that of UTF-16, which has no character 0 behind it.
constexpr std::array<WideEncoding, 4> wide_encodings = {{{"UTF-32", "\xFF\xFE\0\0"sv, 4, false},
                                                         {"UTF-32", "\0\0\xFE\xFF"sv, 4, true},
                                                         {"UTF-16", "\xFF\xFE"sv, 2, false},
                                                         {"UTF-16", "\xFE\xFF"sv, 2, true}}};

struct WideCharacter {
  char32_t code = 0;
  size_t length = 0;  // bytes; 0: none, as the text ends inside it or half a pair stands alone
};

char32_t unit_at(std::string_view bytes, size_t at, const WideEncoding& encoding) {
  char32_t code = 0;
  for (size_t i = 0; i < encoding.unit; ++i) {
    const size_t byte = at + (encoding.big_endian ? i : encoding.unit - 1 - i);
    code = (code << 8) | static_cast<unsigned char>(bytes[byte]);
  }
  return code;
}

WideCharacter wide_character(std::string_view bytes, size_t at, const WideEncoding& encoding) {
  const auto is_half = [](char32_t code, char32_t first) { return code >= first && code < first + 0x400; };
  if (bytes.size() - at < encoding.unit) return {};
  const char32_t code = unit_at(bytes, at, encoding);
  if (encoding.unit == 2 && is_half(code, 0xD800) && bytes.size() - at >= 4) {
    const char32_t low = unit_at(bytes, at + 2, encoding);
    if (is_half(low, 0xDC00)) return {0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), 4};
  }
  if (code > 0x10FFFF || is_half(code, 0xD800) || is_half(code, 0xDC00)) return {};
  return {code, encoding.unit};
}

/// Whether a text is written with such a character: no control character but those of lines and columns.
bool is_written(char32_t code) {
  return code >= 0x20 ? code != 0x7F : code == '\t' || code == '\n' || code == '\r' || code == '\f';
}

/// Whether bytes without a mark look like text in that encoding. A cut at their end is allowed.
bool looks_like(std::string_view bytes, const WideEncoding& encoding) {
  const size_t whole = bytes.size() - bytes.size() % encoding.unit;
  size_t characters = 0, ascii = 0, byte_pairs = 0;
  for (size_t at = 0; at < whole; ++characters) {
    const WideCharacter next = wide_character(bytes.substr(0, whole), at, encoding);
    if (next.length == 0 && whole - at == 2 && characters > 0) break;  // the first half of a pair
    if (next.length == 0 || !is_written(next.code)) return false;
    ascii += next.code < 0x80 ? 1 : 0;
    byte_pairs += next.code < 0x7F00 && next.code >= 0x2000 && (next.code & 0xFF) - 0x20 < 0x5F ? 1 : 0;
    at += next.length;
  }
  // Every script has spaces, digits and ends of lines in ASCII, which are what has the zeros. Text in bytes with a 0 in
  // it reads as characters of two ASCII letters each, as which Chinese has one in five.
  return characters > 0 && ascii * 32 >= characters && byte_pairs * 2 < characters;
}

/// The encoding of a text that has bytes 0 and no mark; null where it is no text.
const WideEncoding* unmarked_encoding(std::string_view bytes) {
  for (const WideEncoding& encoding : wide_encodings)
    if (looks_like(bytes, encoding)) return &encoding;
  return nullptr;
}

[[noreturn]] void refuse(std::string_view name, const std::string& what) {
  throw bad_input(std::string(name) + " " + what +
                  "; text must be UTF-8, or UTF-16 or UTF-32 that begins with a byte-order mark.");
}

std::string byte(size_t at) {
  return "byte " + std::to_string(at);
}

std::string from_wide(std::string_view bytes, const WideEncoding& encoding, std::string_view name) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = encoding.mark.size(); at < bytes.size();) {
    const WideCharacter next = wide_character(bytes, at, encoding);
    if (next.length == 0 || next.code == 0) {
      const bool cut = next.length == 0 && bytes.size() - at < encoding.unit;
      refuse(name, "begins as " + std::string(encoding.name) + " but " +
                       (cut ? "ends inside" : "has no character of text") + (cut ? " the character at " : " at ") +
                       byte(at));
    }
    append_utf8(text, next.code);
    at += next.length;
  }
  return text;
}

std::string system_words(int error) {
  return std::generic_category().message(error);
}

/// Opens what read_input() reads; standard input by a descriptor of its own.
int open_input(const std::filesystem::path& path) {
  // By its number also where it has a name: a socket cannot be opened by one.
  const bool standard = path == "-" || path == "/dev/stdin";
  const int descriptor =
      standard ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0) return descriptor;
  if (errno == ENOENT) throw bad_input("The file " + shown(path) + " does not exist.");
  if (errno == EISDIR) throw bad_input("A file is expected, but " + shown(path) + " is a directory.");  // on Windows
  throw bad_input(input_name(path) + " cannot be opened: " + system_words(errno) + ".");
}

struct OpenInput {
  explicit OpenInput(const std::filesystem::path& path) : descriptor(open_input(path)) {}
  OpenInput(const OpenInput&) = delete;
  OpenInput& operator=(const OpenInput&) = delete;
  ~OpenInput() { ::close(descriptor); }
  int descriptor;
};

void check_utf8(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter next = decode_first(text.substr(at));
    if (!next.valid) {
      char value[8];
      std::snprintf(value, sizeof value, "0x%02X", static_cast<unsigned char>(text[at]));
      refuse(name, "is not in UTF-8: " + byte(at) + " is " + value + ", as in Latin-1 or another code page");
    }
    at += next.length;
  }
}

}  // namespace

std::string read_input(const std::filesystem::path& path, uint64_t max_bytes) {
  constexpr size_t step = size_t{256} << 10;
  const OpenInput input(path);
  struct stat status = {};
  if (::fstat(input.descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    throw bad_input("A file is expected, but " + shown(path) + " is a directory.");
  }
  std::string bytes;
  for (size_t filled = 0;;) {
    bytes.resize(filled + step);
    const ssize_t got = ::read(input.descriptor, bytes.data() + filled, step);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw bad_input(input_name(path) + " cannot be read: " + system_words(errno) + ".");
    filled += static_cast<size_t>(got);
    bytes.resize(filled);
    if (filled > max_bytes) {
      throw bad_input(input_name(path) + " has more than " + std::to_string(max_bytes) + " bytes; at most " +
                      std::to_string(max_bytes) + " are allowed.");
    }
    if (got == 0) return bytes;
  }
}

std::string read_text_input(const std::filesystem::path& path, uint64_t max_bytes) {
  return text_from_bytes(read_input(path, max_bytes), input_name(path));
}

std::string input_name(const std::filesystem::path& path) {
  return path == "-" ? "Standard input" : "The file " + shown(path);
}

DecodedCharacter decode_first(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  if (lead < 0xc2 || lead > 0xf4) return {0, 1, false};
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  char32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size()) return {0, i, false};
    // The second byte's range excludes overlong forms, surrogates and codes beyond U+10FFFF.
    const unsigned char low = i == 1 && lead == 0xe0 ? 0xa0 : i == 1 && lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = i == 1 && lead == 0xed ? 0x9f : i == 1 && lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(i) < low || byte(i) > high) return {0, i, false};
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  return {code, length, true};
}

void append_utf8(std::string& text, char32_t code) {
  const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  if (length == 1) {
    text += static_cast<char>(code);
    return;
  }
  text += static_cast<char>((0xF00u >> length & 0xF0u) | code >> 6 * (length - 1));
  for (size_t i = length - 1; i-- > 0;) text += static_cast<char>(0x80u | (code >> 6 * i & 0x3Fu));
}

std::string text_from_bytes(std::string bytes, std::string_view name) {
  for (const WideEncoding& encoding : wide_encodings)
    if (bytes.starts_with(encoding.mark)) return from_wide(bytes, encoding, name);
  if (bytes.starts_with(utf8_mark)) bytes.erase(0, utf8_mark.size());
  if (const size_t zero = bytes.find('\0'); zero != std::string::npos) {
    const WideEncoding* encoding = unmarked_encoding(bytes);
    if (encoding == nullptr || bytes.size() % encoding->unit != 0) refuse(name, "is no text: " + byte(zero) + " is 0");
    refuse(name, "seems to be " + std::string(encoding->name) + " without a byte-order mark");
  }
  check_utf8(bytes, name);
  return bytes;
}

bool begins_like_text(std::string_view front) {
  for (const WideEncoding& encoding : wide_encodings)
    if (front.starts_with(encoding.mark)) return true;
  return front.find('\0') == std::string_view::npos || unmarked_encoding(front) != nullptr;
}

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view ellipsis = "\xe2\x80\xa6";     // …

bool is_hostile(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  return code < 0x20 || within(0x7f, 0x9f)                        // control characters
         || within(0x2028, 0x2029)                                // line and paragraph separator
         || code == 0x061c || within(0x200e, 0x200f)              // bidirectional marks
         || within(0x202a, 0x202e) || within(0x2066, 0x2069)      // bidirectional overrides and isolates
         || within(0xfff9, 0xfffb) || within(0xe0000, 0xe007f)    // interlinear and tag characters: invisible text
         || within(0xfdd0, 0xfdef) || (code & 0xfffe) == 0xfffe;  // noncharacters
}

std::string escaped(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  char text[16];
  std::snprintf(text, sizeof text, code < 0x100 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(code));
  return text;
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes, LineBreaks line_breaks) {
  std::string result;
  size_t cut = 0;  // where to cut so that the ellipsis still fits
  while (!text.empty()) {
    const DecodedCharacter next = decode_first(text);
    const bool kept_break = line_breaks == LineBreaks::keep && (next.code == '\n' || next.code == '\t');
    if (!next.valid) {
      result += replacement;
    } else if (is_hostile(next.code) && !kept_break) {
      result += escaped(next.code);
    } else {
      result += text.substr(0, next.length);
    }
    if (result.size() > max_bytes) {
      result.resize(cut);
      if (max_bytes >= ellipsis.size()) result += ellipsis;
      return result;
    }
    if (result.size() + ellipsis.size() <= max_bytes) cut = result.size();
    text.remove_prefix(next.length);
  }
  return result;
}

std::string ascii_lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string ascii_upper(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return result;
}

}  // namespace canopy
