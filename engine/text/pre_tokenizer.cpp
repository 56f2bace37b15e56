#include "engine/text/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/error.h"
#include "engine/text/utf8.h"

namespace canopy {

const char* const gpt2_expression = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

constexpr const char* single_number = R"(\p{N})";
constexpr const char* llama3_expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen2_expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Known {
  std::string_view name;
  std::array<const char*, 2> expressions;  // one stage each; null where there is none
  PreTokenizerTraits traits;
};

// A new family is one line here.
const std::array<Known, 7> known = {{
    {"gpt-2", {gpt2_expression, nullptr}, {}},
    {"smollm", {single_number, gpt2_expression}, {}},
    {"qwen2", {qwen2_expression, nullptr}, {.normalizes_nfc = true}},
    {"deepseek-r1-qwen", {qwen2_expression, nullptr}, {.normalizes_nfc = true}},
    {"llama-bpe", {llama3_expression, nullptr}, {.ignores_merges = true}},
    {"llama-v3", {llama3_expression, nullptr}, {.ignores_merges = true}},
    {"llama3", {llama3_expression, nullptr}, {.ignores_merges = true}},
}};

const Known& known_by(std::string_view name) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const Known& entry) { return entry.name == name; });
  if (found != known.end()) return *found;
  throw bad_input("The pre-tokenizer \"" + std::string(name) +
                  "\" (tokenizer.ggml.pre) is not supported; supported are " + supported_pre_tokenizers() + ".");
}

// Calls piece(stretch, is_match) for every stretch of a text, in order; together they are the whole text.
template <class F>
void for_each_stretch(const Regex& regex, std::string_view text, Regex::Matcher& matcher, F&& piece) {
  size_t done = 0;
  size_t from = 0;
  while (from < text.size()) {
    const auto match = regex.find(text, from, matcher);
    if (!match) break;
    if (match->end == match->begin) {  // cuts nothing; go on behind the next character
      if (match->begin >= text.size()) break;
      from = match->begin + next_utf8(text.substr(match->begin)).length;
      continue;
    }
    if (match->begin > done) piece(text.substr(done, match->begin - done), false);
    piece(text.substr(match->begin, match->end - match->begin), true);
    done = from = match->end;
  }
  if (done < text.size()) piece(text.substr(done), false);
}

}  // namespace

PreTokenizer::PreTokenizer(std::vector<Stage> stages) : stages_(std::move(stages)) {}

PreTokenizer PreTokenizer::named(std::string_view name) {
  std::vector<Stage> stages;
  for (const char* expression : known_by(name).expressions) {
    if (expression != nullptr) stages.push_back({Regex(expression)});
  }
  return PreTokenizer(std::move(stages));
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  if (text.empty()) return pieces;
  pieces.push_back(text);
  Regex::Matcher matcher;
  for (const Stage& stage : stages_) {
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces) {
      for_each_stretch(stage.regex, piece, matcher, [&](std::string_view stretch, bool is_match) {
        const bool removed = stage.behavior == Behavior::removed && is_match != stage.invert;
        if (!removed) finer.push_back(stretch);
      });
    }
    pieces = std::move(finer);
  }
  return pieces;
}

PreTokenizerTraits traits_of_pre_tokenizer(std::string_view name) {
  return known_by(name).traits;
}

std::string supported_pre_tokenizers() {
  std::string names;
  for (const Known& entry : known) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

}  // namespace canopy
