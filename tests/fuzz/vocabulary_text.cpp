#include "tests/fuzz/vocabulary_text.h"

#include <charconv>
#include <cstdlib>
#include <string>

namespace canopy::fuzz {
namespace {

std::string_view take_until(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

template <class T>
T number(std::string_view text) {
  T value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void read_line(std::string_view line, VocabularyData& data) {
  const std::string_view field = take_until(line, ' ');
  if (field == "t") {
    data.types.push_back(number<int32_t>(take_until(line, ' ')));
    data.scores.push_back(std::strtof(std::string(take_until(line, ' ')).c_str(), nullptr));
    data.tokens.push_back(line);
  }
  if (field == "m") data.merges.push_back(line);
  if (field == "model") data.model = line;
  if (field == "pre") data.pre_tokenizer = line;
  if (field == "bos") data.bos = number<uint32_t>(line);
  if (field == "eos") data.eos = number<uint32_t>(line);
  if (field == "unk") data.unknown = number<uint32_t>(line);
  if (field == "add_bos") data.add_bos = line == "1";
  if (field == "add_space_prefix") data.add_space_prefix = line == "1";
  if (field == "no_types") data.types.clear();
  if (field == "no_scores") data.scores.clear();
}

}  // namespace

VocabularyText read_vocabulary_text(std::string_view input) {
  VocabularyText result;
  while (!input.empty()) {
    const std::string_view line = take_until(input, '\n');
    if (line.empty()) break;
    read_line(line, result.data);
  }
  result.text = input;
  return result;
}

}  // namespace canopy::fuzz
