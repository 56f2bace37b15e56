#pragma once
// Text that others wrote: read as UTF-8 whatever its encoding, and made safe to show.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace canopy {

// Text as UTF-8: what byte-order marks say, and what a text that is no UTF-8 seems to be. And input that a user names,
// which may be a pipe.

struct DecodedCharacter {
  char32_t code = 0;
  size_t length = 0;  // bytes taken, at least 1
  bool valid = false;
};

/// The first character of a UTF-8 text that is not empty. Invalid: the bytes that one U+FFFD stands for (the longest
/// beginning of a character, as Unicode recommends). Overlong forms, surrogates and codes over U+10FFFF are invalid.
DecodedCharacter decode_first(std::string_view text);

/// Appends a character as UTF-8. `code` must be no surrogate and at most U+10FFFF.
void append_utf8(std::string& text, char32_t code);

/// The bytes of a text file as UTF-8 without a byte-order mark. UTF-8 is taken with a mark or without, UTF-16 and
/// UTF-32 with one. Throws bad_input on everything else, and where a character is 0: `name` (how the sentence begins,
/// "The file notes.txt"), what it seems to be, at which byte, and what is allowed.
std::string text_from_bytes(std::string bytes, std::string_view name);

/// All bytes of what a user named on the command line: a file, a pipe or a device, which is read to its end; "-" is
/// standard input. Waits for who writes a pipe. Throws bad_input, naming the path and the reason, when it is missing,
/// a directory, unreadable or larger than `max_bytes`. What must be mapped (models, recordings) cannot be read like
/// this.
std::string read_input(const std::filesystem::path& path, uint64_t max_bytes);

/// The same of a text: as UTF-8 without a byte-order mark (text_from_bytes()). Throws bad_input for what is no text,
/// too.
std::string read_text_input(const std::filesystem::path& path, uint64_t max_bytes);

/// "The file x.txt", or "Standard input" for "-", to begin a sentence with.
std::string input_name(const std::filesystem::path& path);

/// Whether the front of a file is that of a text, also of one that text_from_bytes() refuses: one in UTF-16 without a
/// mark, or with an old code page. False where a byte is 0 and UTF-16 or UTF-32 do not explain it.
bool begins_like_text(std::string_view front);

// The filter that makes foreign text safe to show in a terminal, a window or a log.

enum class LineBreaks { escape, keep };

/// Returns `text` as valid UTF-8 without characters that control a terminal or the text layout. Control characters (so
/// every terminal escape), line and paragraph separators, bidirectional overrides, invisible tag characters and
/// noncharacters appear as "\x1b" or "\u202e"; invalid UTF-8 becomes U+FFFD. Longer than `max_bytes`, it is cut between
/// characters and ends in "…". With LineBreaks::keep, newlines and tabs stay.
std::string printable(std::string_view text, size_t max_bytes = 256, LineBreaks line_breaks = LineBreaks::escape);

/// The letters A to Z as a to z, or the other way round; all other bytes stay.
std::string ascii_lower(std::string_view text);
std::string ascii_upper(std::string_view text);

/// A name from a file for a message: printable, in single quotes.
inline std::string quoted_name(std::string_view name) {
  return "'" + printable(name) + "'";
}

}  // namespace canopy
