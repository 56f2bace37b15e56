// The pre-tokenizers that GGUF files name. The expressions are those of the models' own tokenizer.json.

#include <algorithm>
#include <array>
#include <string>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/text/pre_tokenizer.h"

namespace canopy {

namespace {

constexpr const char* gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* single_number = R"(\p{N})";
constexpr const char* three_numbers = R"(\p{N}{1,3})";
constexpr const char* three_digits = "[0-9][0-9][0-9]";
constexpr const char* falcon_punctuation = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr const char* llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* o200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* tekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* deepseek3_script = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Stages; null where there is none.
using Expressions = std::array<const char*, 3>;
constexpr Expressions gpt2_stages = {gpt2};
constexpr Expressions digits_gpt2_stages = {single_number, gpt2};
constexpr Expressions falcon_stages = {falcon_punctuation, gpt2, three_digits};
constexpr Expressions deepseek3_stages = {three_numbers, deepseek3_script, deepseek3};

struct Known {
  std::string_view name;
  Expressions expressions;
  PreTokenizerTraits traits = {};
};

constexpr PreTokenizerTraits nfc = {.normalizes_nfc = true};
constexpr PreTokenizerTraits whole_tokens = {.ignores_merges = true, .adds_bos = true};

// A new family is one line here.
constexpr Known known[] = {
    {"gpt-2", gpt2_stages},
    {"phi-2", gpt2_stages},
    {"olmo", gpt2_stages},
    {"mpt", gpt2_stages},
    {"jais", gpt2_stages},
    {"exaone4", gpt2_stages},
    {"trillion", gpt2_stages},
    {"granite-docling", gpt2_stages},
    {"smollm", digits_gpt2_stages},
    {"starcoder", digits_gpt2_stages},
    {"refact", digits_gpt2_stages},
    {"command-r", digits_gpt2_stages},
    {"codeshell", digits_gpt2_stages},
    {"exaone", digits_gpt2_stages},
    {"minerva-7b", digits_gpt2_stages},
    {"qwen2", {qwen2}, nfc},
    {"deepseek-r1-qwen", {qwen2}, nfc},
    {"megrez", {qwen2}, nfc},
    {"qwen35", {qwen35}, nfc},
    {"stablelm2", {qwen2}},
    {"hunyuan", {qwen2}},
    {"grok-2", {qwen2}},
    {"llama-bpe", {llama3}, whole_tokens},
    {"llama-v3", {llama3}, whole_tokens},
    {"llama3", {llama3}, whole_tokens},
    {"falcon3", {llama3}, whole_tokens},
    {"lfm2", {llama3}, whole_tokens},
    {"pixtral", {llama3}, whole_tokens},
    {"dbrx", {llama3}},
    {"smaug-bpe", {llama3}},
    {"glm4", {llama3}},
    {"chatglm-bpe", {llama3}},
    {"gpt-4o", {o200k}},
    {"llama4", {o200k}},
    {"tekken", {tekken}, whole_tokens},
    {"deepseek-v3", deepseek3_stages},
    {"hunyuan-dense", deepseek3_stages},
    {"falcon", falcon_stages},
};

const Known& known_by(std::string_view name) {
  const auto* found = std::find_if(std::begin(known), std::end(known), [&](const Known& k) { return k.name == name; });
  if (found != std::end(known)) return *found;
  throw bad_input("The pre-tokenizer \"" + printable(name, 80) +
                  "\" (tokenizer.ggml.pre) is not supported; supported are " + supported_pre_tokenizers() + ".");
}

}  // namespace

const char* const gpt2_expression = gpt2;

PreTokenizer PreTokenizer::named(std::string_view name) {
  std::vector<Stage> stages;
  for (const char* expression : known_by(name).expressions) {
    if (expression != nullptr) stages.push_back({Regex(expression)});
  }
  return PreTokenizer(std::move(stages));
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
