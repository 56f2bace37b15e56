#include "engine/text/regex.h"

#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"

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

}  // namespace canopy
