#include "app/cli/bench_prompts.h"

#include <algorithm>

#include "engine/base/error.h"

namespace canopy::cli {
namespace {

std::vector<uint32_t> encode(const Engine& model, const std::string& text) {
  return model.prompt_ids({{"user", text}}, "");
}

/// The texts of the prompts joined to at least `bytes` bytes, beginning with number `first`; after the last one it
/// starts again with the first.
std::string joined(const std::vector<MeasuredPrompt>& prompts, size_t first, size_t bytes) {
  std::string text;
  for (size_t i = first; text.size() < bytes; ++i) text += prompts[i % prompts.size()].text + "\n\n";
  return text;
}

/// The byte positions after the words of a text, where it may be cut.
std::vector<size_t> word_ends(const std::string& text) {
  std::vector<size_t> ends = {0};
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == ' ' && text[i - 1] != ' ') ends.push_back(i);
  }
  return ends;
}

std::vector<uint32_t> prompt_of_length(const Engine& model, const std::vector<MeasuredPrompt>& prompts, size_t first,
                                       uint32_t length) {
  constexpr size_t bytes_a_token = 16;  // more than any token of running text has
  const std::string text = joined(prompts, first, length * bytes_a_token);
  const std::vector<size_t> ends = word_ends(text);
  // Search for the largest number of words that fits: more words give more tokens.
  size_t fits = 0, too_many = ends.size();
  std::vector<uint32_t> best = encode(model, "");
  if (best.size() > length) {
    throw bad_input("A prompt of " + std::to_string(length) + " tokens was asked for; the chat template alone has " +
                    std::to_string(best.size()) + ".");
  }
  while (too_many - fits > 1) {
    const size_t middle = fits + (too_many - fits) / 2;
    std::vector<uint32_t> ids = encode(model, text.substr(0, ends[middle]));
    if (ids.size() > length) {
      too_many = middle;
    } else {
      fits = middle;
      best = std::move(ids);
    }
  }
  return best;
}

}  // namespace

std::vector<BenchPrompt> encode_prompts(const Engine& model, const std::vector<MeasuredPrompt>& prompts) {
  std::vector<BenchPrompt> encoded;
  for (const MeasuredPrompt& prompt : prompts) encoded.push_back({prompt.category, encode(model, prompt.text)});
  return encoded;
}

std::vector<BenchPrompt> long_prompts(const Engine& model, const std::vector<MeasuredPrompt>& prompts,
                                      const std::vector<uint32_t>& lengths, uint32_t count) {
  std::vector<BenchPrompt> result;
  for (const uint32_t length : lengths) {
    for (uint32_t i = 0; i < count; ++i) {
      const size_t first = prompts.size() * i / count;
      result.push_back({std::to_string(length) + " tokens", prompt_of_length(model, prompts, first, length)});
    }
  }
  return result;
}

}  // namespace canopy::cli
