#pragma once
// Pre-tokenizers, which cut a text into the pieces inside which byte pairs may merge, and their regular expressions.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

// A compiled Unicode regular expression (PCRE2 with JIT). Matching never recurses on the program's stack, and its work
// and memory are bounded, whatever the expression and the text.

class Regex {
 public:
  /// Throws Error(bad_input) with PCRE2's explanation when the expression is not valid.
  explicit Regex(std::string pattern);

  struct Match {
    size_t begin = 0;  // bytes
    size_t end = 0;
  };

  /// Scratch memory of matching; one for each thread.
  class Matcher {
   public:
    Matcher();
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;

   private:
    friend class Regex;
    struct State;
    std::unique_ptr<State> state_;
  };

  /// The first match at or after `from`. The text must be valid UTF-8 (not checked: the caller has done it once for
  /// the whole). Throws Error(bad_input) when the expression needs more work than it may have.
  std::optional<Match> find(std::string_view text, size_t from, Matcher& matcher) const;

 private:
  struct CodeDeleter {
    void operator()(void* code) const;
  };
  std::string pattern_;
  std::unique_ptr<void, CodeDeleter> code_;
};

/// Cuts a text into the pieces inside which byte pairs may merge.
class PreTokenizer {
 public:
  /// The treatment of the stretches that an expression matches; those between matches are pieces of their own.
  enum class Behavior {
    isolated,       // a piece each
    removed,        // nothing
    with_previous,  // the end of the piece in front; of several matches in a row only the first
    with_next,      // the front of the piece behind; of several matches in a row only the last
    contiguous,     // one piece for as many as follow each other
  };

  struct Stage {
    Regex regex;
    Behavior behavior = Behavior::isolated;
    bool invert = false;  // matches and the stretches between them change roles
  };

  /// Each stage cuts the pieces of the one before; with no stage a text is one piece.
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<Stage> stages);

  /// By GGUF's name (tokenizer.ggml.pre), e.g. "smollm"; an empty one is that of a file that names none. Throws
  /// Error(bad_input) listing the names that are supported.
  static PreTokenizer named(std::string_view name);

  /// The pieces of a text, in order; views into it. The text must be valid UTF-8. Time is linear in its length for the
  /// expressions in use. Throws Error(bad_input) when an expression explodes.
  std::vector<std::string_view> split(std::string_view text) const;

  /// The same into a vector that is kept from call to call; what it held is forgotten.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  std::vector<Stage> stages_;
};

/// GPT-2's expression, which a ByteLevel pre-tokenizer of Hugging Face applies too.
extern const char* const gpt2_expression;

/// Properties that belong to a pre-tokenizer's name, besides its expression.
struct PreTokenizerTraits {
  bool normalizes_nfc = false;
  bool ignores_merges = false;  // a piece that is a token is not merged from its bytes
  bool adds_bos = false;        // where the file does not say
};
PreTokenizerTraits traits_of_pre_tokenizer(std::string_view name);

/// A sentence for the user where the name, or that there is none, leaves open how the model's text was cut; else empty.
std::string warning_of_pre_tokenizer(std::string_view name);

}  // namespace canopy
