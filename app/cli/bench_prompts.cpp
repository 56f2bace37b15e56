#include "app/cli/bench_prompts.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"

namespace canopy::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".jsonl") files.push_back(entry->path());
  }
  if (error) throw bad_input("The folder " + shown(path) + " cannot be read: " + error.message() + ".");
  if (files.empty()) throw bad_input("The folder " + shown(path) + " has no .jsonl file with prompts.");
  std::ranges::sort(files);
  return files;
}

std::vector<uint32_t> encode(const Engine& model, const std::string& text) {
  return model.prompt_ids({{"user", text}}, "");
}

/// The texts of the prompts joined to at least `bytes` bytes, beginning with number `first`; after the last one it
/// starts again with the first.
std::string joined(const std::vector<Prompt>& prompts, size_t first, size_t bytes) {
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

std::vector<uint32_t> prompt_of_length(const Engine& model, const std::vector<Prompt>& prompts, size_t first,
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

std::vector<Prompt> read_all_prompts(const std::vector<fs::path>& paths) {
  std::vector<Prompt> prompts;
  for (const fs::path& path : paths) {
    for (const fs::path& file : files_of(path)) {
      const std::vector<Prompt> more = read_prompts(file);
      prompts.insert(prompts.end(), more.begin(), more.end());
    }
  }
  return prompts;
}

std::vector<Prompt> limit_by_category(const std::vector<Prompt>& prompts, uint32_t limit) {
  std::vector<std::string> categories;
  std::map<std::string, std::vector<Prompt>> by_category;
  for (const Prompt& prompt : prompts) {
    std::vector<Prompt>& chosen = by_category[prompt.category];
    if (chosen.empty()) categories.push_back(prompt.category);
    if (limit == 0 || chosen.size() < limit) chosen.push_back(prompt);
  }
  std::vector<Prompt> result;
  for (const std::string& category : categories) {
    result.insert(result.end(), by_category[category].begin(), by_category[category].end());
  }
  return result;
}

std::vector<BenchPrompt> encode_prompts(const Engine& model, const std::vector<Prompt>& prompts) {
  std::vector<BenchPrompt> encoded;
  for (const Prompt& prompt : prompts) encoded.push_back({prompt.category, encode(model, prompt.text)});
  return encoded;
}

std::vector<BenchPrompt> long_prompts(const Engine& model, const std::vector<Prompt>& prompts,
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
