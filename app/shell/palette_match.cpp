#include "app/shell/palette_match.h"

#include <cctype>
#include <string>

namespace canopy::app {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool starts_a_word(const std::string& line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1))
    if (at == 0 || !std::isalnum(static_cast<unsigned char>(line[at - 1]))) return true;
  return false;
}

bool every_word_starts_one(const std::string& line, std::string_view query) {
  while (!query.empty()) {
    const size_t end = query.find(' ');
    const std::string_view word = query.substr(0, end);
    if (!word.empty() && !starts_a_word(line, word)) return false;
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
  }
  return true;
}

bool letters_in_order(const std::string& line, std::string_view query) {
  size_t at = 0;
  for (const char c : query) {
    if (c == ' ') continue;
    at = line.find(c, at);
    if (at == std::string::npos) return false;
    ++at;
  }
  return true;
}

}  // namespace

int palette_match(std::string_view query_text, std::string_view line_text) {
  const std::string query = lower(query_text), line = lower(line_text);
  if (query.empty()) return 1;
  if (line.starts_with(query)) return 4;
  if (every_word_starts_one(line, query)) return 3;
  if (line.find(query) != std::string::npos) return 2;
  return letters_in_order(line, query) ? 1 : 0;
}

}  // namespace canopy::app
