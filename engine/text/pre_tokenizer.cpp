#include "engine/text/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/text/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace canopy {
namespace {

// A pre-tokenizer needs a few steps for each byte of a piece; these limits only stop expressions that explode.
constexpr uint32_t match_limit = 100'000'000;    // internal steps
constexpr uint32_t heap_limit_kib = 256 * 1024;  // of the interpreter
constexpr size_t jit_stack_start = 64 * 1024;    // bytes
constexpr size_t jit_stack_most = 64 * 1024 * 1024;

std::string explain(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// A pattern comes from a file: for messages it must be safe to show.
std::string shown(const std::string& pattern) {
  return "\"" + printable(pattern, 200) + "\"";
}

}  // namespace

struct Regex::Matcher::State {
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);  // the whole match; groups do not matter
  pcre2_jit_stack* stack = nullptr;  // made when the 32 KiB that PCRE2 takes by itself are not enough

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    pcre2_jit_stack_free(stack);
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
};

Regex::Matcher::Matcher() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr || state_->data == nullptr) {
    throw out_of_memory("The scratch memory of a regular expression could not be allocated.");
  }
  pcre2_set_match_limit(state_->context, match_limit);
  pcre2_set_heap_limit(state_->context, heap_limit_kib);
}

Regex::Matcher::~Matcher() = default;

void Regex::CodeDeleter::operator()(void* code) const {
  pcre2_code_free(static_cast<pcre2_code*>(code));
}

Regex::Regex(std::string pattern) : pattern_(std::move(pattern)) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern_.data()), pattern_.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    throw bad_input("The regular expression " + shown(pattern_) + " is not valid at byte " + std::to_string(offset) +
                    ": " + explain(error) + ".");
  }
  code_.reset(code);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where it fails, the interpreter does the same, slower
}

std::optional<Regex::Match> Regex::find(std::string_view text, size_t from, Matcher& matcher) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  Matcher::State& state = *matcher.state_;
  const auto match = [&](uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK | options,
                       state.data, state.context);
  };
  int result = match(0);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT && state.stack == nullptr) {
    state.stack = pcre2_jit_stack_create(jit_stack_start, jit_stack_most, nullptr);
    pcre2_jit_stack_assign(state.context, nullptr, state.stack);
    result = match(0);
  }
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NO_JIT);
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0) {
    throw bad_input("The regular expression " + shown(pattern_) + " failed on a text of " +
                    std::to_string(text.size()) + " bytes at byte " + std::to_string(from) + ": " + explain(result) +
                    ".");
  }
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(state.data);
  // \K in a lookahead could put the start behind the end.
  if (bounds[0] < from || bounds[1] < bounds[0]) return std::nullopt;
  return Match{bounds[0], bounds[1]};
}

namespace {

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

// Puts stretches together as a behavior asks. A matching stretch that joined the one in front does not draw in the next
// match, as Hugging Face has it.
class PieceJoiner {
 public:
  PieceJoiner(PreTokenizer::Behavior behavior, std::vector<std::string_view>& pieces)
      : behavior_(behavior), pieces_(pieces), first_(pieces.size()) {}

  void add(std::string_view stretch, bool is_match) {
    using enum PreTokenizer::Behavior;
    const bool is_first = pieces_.size() == first_;
    switch (behavior_) {
      case isolated: pieces_.push_back(stretch); break;
      case removed:
        if (!is_match) pieces_.push_back(stretch);
        break;
      case with_previous: put(stretch, is_match && !after_match_ && !is_first); break;
      case with_next: put(stretch, after_match_ && !is_match && !is_first); break;
      case contiguous: put(stretch, is_match == after_match_ && !is_first); break;
    }
    after_match_ = is_match;
  }

 private:
  void put(std::string_view stretch, bool joins) {
    if (joins) {
      pieces_.back() = {pieces_.back().data(), pieces_.back().size() + stretch.size()};
    } else {
      pieces_.push_back(stretch);
    }
  }

  PreTokenizer::Behavior behavior_;
  std::vector<std::string_view>& pieces_;
  size_t first_;
  bool after_match_ = false;
};

}  // namespace

PreTokenizer::PreTokenizer(std::vector<Stage> stages) : stages_(std::move(stages)) {}

void PreTokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  pieces.clear();
  if (text.empty()) return;
  pieces.push_back(text);
  Regex::Matcher matcher;
  std::vector<std::string_view> coarser;
  for (const Stage& stage : stages_) {
    std::swap(coarser, pieces);
    pieces.clear();
    for (const std::string_view piece : coarser) {
      PieceJoiner joiner(stage.behavior, pieces);
      for_each_stretch(stage.regex, piece, matcher,
                       [&](std::string_view stretch, bool is_match) { joiner.add(stretch, is_match != stage.invert); });
    }
  }
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  split(text, pieces);
  return pieces;
}

// The pre-tokenizers that GGUF files name. The expressions are those of the models' own tokenizer.json.

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

constexpr const char* seed_coder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* line_break = R"([\r\n])";
constexpr const char* several_numbers = R"(\p{N}+)";
constexpr const char* deepseek_script = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
// The letters with two cases that Unicode had, without some of their blocks.
constexpr const char* deepseek_cased =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134})"
    R"(\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr const char* deepseek_punctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* viking = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";
constexpr const char* default_punctuation = R"([\p{P}\$\+<=>\^~\|]+)";

// Stages; null where there is none.
using Expressions = std::array<const char*, 6>;
constexpr Expressions gpt2_stages = {gpt2};
constexpr Expressions digits_gpt2_stages = {single_number, gpt2};
constexpr Expressions falcon_stages = {falcon_punctuation, gpt2, three_digits};
constexpr Expressions deepseek_coder_stages = {line_break, R"(\s?\p{L}+)", R"(\s?\p{P}+)", deepseek_script,
                                               single_number};
constexpr Expressions deepseek_llm_stages = {line_break, deepseek_cased,  deepseek_punctuation,
                                             R"(\s+$)",  deepseek_script, several_numbers};
// What llama.cpp does with a file that names none.
constexpr Expressions default_stages = {default_punctuation, gpt2, several_numbers, three_digits};
constexpr Expressions deepseek3_stages = {three_numbers, deepseek3_script, deepseek3};

struct Known {
  std::string_view name;
  Expressions expressions;
  PreTokenizerTraits traits = {};
};

constexpr std::string_view default_name = "default";
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
    {"mellum", gpt2_stages},
    {"gigachat", gpt2_stages},
    {"a.x-4.0", gpt2_stages},
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
    {"kormo", {qwen2}, nfc},
    {"f2llmv2", {qwen2}, nfc},
    {"qwen35", {qwen35}, nfc},
    {"stablelm2", {qwen2}},
    {"hunyuan", {qwen2}},
    {"grok-2", {qwen2}},
    {"llama-bpe", {llama3}, whole_tokens},
    {"llama-v3", {llama3}, whole_tokens},
    {"llama3", {llama3}, whole_tokens},
    {"falcon3", {llama3}, whole_tokens},
    {"falcon-h1", {llama3}, whole_tokens},
    {"midm-2.0", {llama3}, whole_tokens},
    {"jina-v5-nano", {llama3}, whole_tokens},
    {"lfm2", {llama3}, whole_tokens},
    {"pixtral", {llama3}, whole_tokens},
    {"dbrx", {llama3}},
    {"smaug-bpe", {llama3}},
    {"glm4", {llama3}, {.ignores_merges = true}},
    {"glm5", {llama3}, {.ignores_merges = true}},
    {"chatglm-bpe", {llama3}},
    {"gpt-4o", {o200k}},
    {"llama4", {o200k}},
    {"kanana2", {o200k}},
    {"talkie", {o200k}},
    {"tekken", {tekken}, whole_tokens},
    {"deepseek-coder", deepseek_coder_stages},
    {"deepseek-llm", deepseek_llm_stages},
    {"deepseek-v3", deepseek3_stages},
    {"hunyuan-dense", deepseek3_stages},
    {"falcon", falcon_stages},
    {"seed-coder", {seed_coder}},
    {"viking", {viking, single_number}},
    {default_name, default_stages},
};

/// "gpt-2, llama-bpe, ..."
std::string supported_pre_tokenizers() {
  std::string names;
  for (const Known& entry : known) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

const Known& known_by(std::string_view name) {
  if (name.empty()) name = default_name;
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

std::string warning_of_pre_tokenizer(std::string_view name) {
  if (!name.empty() && name != default_name) return "";
  return std::string("The file ") +
         (name.empty() ? "does not say how text is cut before it is tokenized (tokenizer.ggml.pre)"
                       : "says only \"default\" of how text is cut before it is tokenized (tokenizer.ggml.pre)") +
         ", as old converters left it; it is cut as llama.cpp does then, which may not be what the model was trained "
         "on. A newer file of the model is better.";
}

}  // namespace canopy
