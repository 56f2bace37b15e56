#pragma once
// A compiled Unicode regular expression (PCRE2 with JIT). Matching never recurses on the program's stack, and its work
// and memory are bounded, whatever the expression and the text.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace canopy {

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

}  // namespace canopy
