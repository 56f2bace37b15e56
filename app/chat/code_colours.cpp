#include "app/chat/code_colours.h"

#include <algorithm>
#include <array>

namespace canopy::app {
namespace {

enum class Shape : uint8_t { code, shell, json, yaml, ini, css, html, diff };

/// The lists have a space before and behind each word.
struct Rules {
  std::string_view names, keywords, types, constants;
  std::string_view line_comment, other_line_comment;  // to the end of the line
  std::string_view comment, comment_end;
  std::string_view quotes;                      // characters that begin and end a string
  std::string_view long_quote, long_quote_end;  // of strings of several lines
  Shape shape = Shape::code;
  bool directives = false;     // lines that begin with #
  bool any_case = false;       // of keywords
  bool several_lines = false;  // strings go on over line ends
  bool capital_types = true;   // names that begin with a capital are types
};

constexpr std::string_view kCWords =
    " alignas alignof asm auto break case catch class co_await co_return co_yield concept const const_cast consteval "
    "constexpr constinit continue decltype default delete do dynamic_cast else enum explicit export extern final for "
    "friend goto if inline mutable namespace new noexcept operator override private protected public register "
    "reinterpret_cast requires restrict return sizeof static static_assert static_cast struct switch template this "
    "thread_local throw try typedef typeid typename union using virtual volatile while ";
constexpr std::string_view kCTypes =
    " bool char char8_t char16_t char32_t double float int long short signed unsigned void wchar_t size_t ssize_t "
    "ptrdiff_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t string string_view vector "
    "map set span optional variant array pair tuple unique_ptr shared_ptr unordered_map vec2 vec3 vec4 mat3 mat4 ";
constexpr std::string_view kScriptWords =
    " abstract as async await break case catch class const continue debugger declare default delete do else enum "
    "export "
    "extends finally for from function get if implements import in instanceof interface is keyof let namespace new of "
    "package private protected public readonly return satisfies set static super switch this throw try type typeof var "
    "void while with yield ";

constexpr std::array kLanguages = {
    Rules{.names = " c c++ cpp cc cxx h hpp hh objc cuda cu glsl hlsl ",
          .keywords = kCWords,
          .types = kCTypes,
          .constants = " true false nullptr NULL ",
          .line_comment = "//",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "\"'",
          .directives = true},
    Rules{.names = " python py python3 pycon ipython ",
          .keywords = " and as assert async await break case class continue def del elif else except finally for from "
                      "global if import in is lambda match nonlocal not or pass raise return try while with yield ",
          .types = " bool bytes complex dict float frozenset int list object set str tuple type self cls ",
          .constants = " True False None ",
          .line_comment = "#",
          .quotes = "\"'",
          .long_quote = "\"\"\"",
          .long_quote_end = "\"\"\""},
    Rules{.names = " javascript js jsx mjs typescript ts tsx node ",
          .keywords = kScriptWords,
          .types = " any bigint boolean never number object string symbol unknown ",
          .constants = " true false null undefined NaN Infinity ",
          .line_comment = "//",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "\"'",
          .long_quote = "`",
          .long_quote_end = "`"},
    Rules{.names = " json json5 jsonc jsonl ndjson ",
          .constants = " true false null ",
          .line_comment = "//",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "\"",
          .shape = Shape::json,
          .capital_types = false},
    Rules{.names = " html xml svg xhtml vue ",
          .comment = "<!--",
          .comment_end = "-->",
          .quotes = "\"'",
          .shape = Shape::html},
    Rules{.names = " css scss less ",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "\"'",
          .shape = Shape::css,
          .capital_types = false},
    Rules{.names = " sh bash shell zsh console shellscript fish dockerfile docker makefile make powershell ",
          .keywords = " case do done elif else esac exit export fi for function if in local return select set shift "
                      "source then trap unset until while FROM RUN COPY ADD CMD ENTRYPOINT ENV ARG WORKDIR EXPOSE "
                      "USER VOLUME ",
          .types = " alias cat cd chmod cp curl docker echo git grep ls make mkdir mv npm pip printf python python3 "
                   "read rm sed ssh sudo tar test touch wget ",
          .line_comment = "#",
          .quotes = "\"'",
          .shape = Shape::shell,
          .several_lines = true,
          .capital_types = false},
    Rules{.names = " rust rs ",
          .keywords = " as async await break const continue crate dyn else enum extern fn for if impl in let loop "
                      "match mod move mut pub ref return self static struct super trait type unsafe use where while ",
          .types = " bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize Self ",
          .constants = " true false None Some Ok Err ",
          .line_comment = "//",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "\"'",
          .long_quote = "r#\"",
          .long_quote_end = "\"#",
          .several_lines = true},
    Rules{.names = " go golang ",
          .keywords = " break case chan const continue default defer else fallthrough for func go goto if import "
                      "interface map package range return select struct switch type var ",
          .types = " any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string "
                   "uint uint8 uint16 uint32 uint64 uintptr ",
          .constants = " true false nil iota ",
          .line_comment = "//",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "\"'",
          .long_quote = "`",
          .long_quote_end = "`"},
    Rules{.names = " java kotlin kt scala swift groovy dart ",
          .keywords = " abstract assert break case catch class continue default defer do else enum extends extension "
                      "final finally for fun func guard if implements import in init instanceof interface is let "
                      "native new object open override package permits private protected protocol public record "
                      "return sealed static struct super switch synchronized this throw throws transient try val var "
                      "volatile when where while yield ",
          .types = " boolean byte char double float int long short void ",
          .constants = " true false null nil ",
          .line_comment = "//",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "\"'",
          .long_quote = "\"\"\"",
          .long_quote_end = "\"\"\""},
    Rules{.names = " csharp c# cs ",
          .keywords =
              " abstract as async await base break case catch checked class const continue default delegate do "
              "else enum event explicit extern finally fixed for foreach get goto if implicit in init interface "
              "internal is lock namespace new operator out override params partial private protected public "
              "readonly record ref required return sealed set sizeof stackalloc static struct switch this "
              "throw try typeof unchecked unsafe using virtual volatile when where while with yield ",
          .types = " bool byte char decimal double dynamic float int long nint object sbyte short string uint ulong "
                   "ushort var void ",
          .constants = " true false null ",
          .line_comment = "//",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "\"'",
          .long_quote = "\"\"\"",
          .long_quote_end = "\"\"\"",
          .directives = true},
    Rules{.names = " sql mysql postgresql postgres sqlite plsql tsql ",
          .keywords = " add all alter and as asc begin between by case cascade check column commit constraint create "
                      "cross database default delete desc distinct drop else end except exists explain foreign from "
                      "full group having if in index inner insert intersect into is join key left like limit not "
                      "offset on or order outer over partition primary references returning right rollback select set "
                      "table then transaction trigger truncate union unique update using values view when where with ",
          .types = " bigint blob boolean bool char date datetime decimal double float int integer json numeric real "
                   "serial smallint text time timestamp uuid varchar ",
          .constants = " null true false ",
          .line_comment = "--",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "'\"`",
          .any_case = true,
          .several_lines = true,
          .capital_types = false},
    Rules{.names = " yaml yml ",
          .constants = " true false null yes no on off ~ ",
          .line_comment = "#",
          .quotes = "\"'",
          .shape = Shape::yaml,
          .capital_types = false},
    Rules{.names = " toml ini cfg conf properties ",
          .constants = " true false ",
          .line_comment = "#",
          .other_line_comment = ";",
          .quotes = "\"'",
          .long_quote = "\"\"\"",
          .long_quote_end = "\"\"\"",
          .shape = Shape::ini,
          .capital_types = false},
    Rules{.names = " diff patch ", .shape = Shape::diff},
    Rules{.names = " lua luau ",
          .keywords = " and break do else elseif end for function goto if in local not or repeat return then until "
                      "while ",
          .constants = " true false nil ",
          .line_comment = "--",
          .comment = "--[[",
          .comment_end = "]]",
          .quotes = "\"'",
          .long_quote = "[[",
          .long_quote_end = "]]",
          .capital_types = false},
    Rules{.names = " php ruby rb perl r julia jl elixir ",
          .keywords =
              " abstract alias and as begin break case catch class const continue def default defmodule do each "
              "echo else elseif elsif end ensure extends final finally for foreach function global if "
              "implements in interface lambda let local module my namespace new next not or our private "
              "protected public repeat require rescue return self static struct sub super switch then this "
              "throw trait try unless until use using when where while yield ",
          .types = " array bool float int mixed object string void ",
          .constants = " true false nil null NULL TRUE FALSE NA nothing ",
          .line_comment = "#",
          .other_line_comment = "//",
          .comment = "/*",
          .comment_end = "*/",
          .quotes = "\"'"},
};

bool lists(std::string_view list, std::string_view word, bool any_case = false) {
  std::string wanted = " ";
  for (const char c : word) wanted += any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  wanted += ' ';
  return wanted.size() > 2 && list.find(wanted) != std::string_view::npos;
}

const Rules* rules_of(std::string_view language) {
  for (const Rules& rules : kLanguages)
    if (lists(rules.names, language, true)) return &rules;
  return nullptr;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool in_name(char c) {
  return begins_name(c) || is_digit(c);
}

/// Looks at one line of code.
class LineOfCode {
 public:
  LineOfCode(const Rules& rules, std::string_view code, size_t begin, size_t end, CodeState& state,
             std::vector<CodeRun>& runs)
      : rules_(rules), code_(code.substr(0, end)), begin_(begin), end_(end), at_(begin), state_(state), runs_(runs) {}

  void run() {
    if (rules_.shape == Shape::diff) return diff();
    if (state_.until.empty() && !state_.in_tag) keys_at_begin();
    while (at_ < end_) step();
  }

 private:
  bool here(std::string_view words) const { return !words.empty() && code_.substr(at_, end_ - at_).starts_with(words); }
  char next(size_t i = 1) const { return at_ + i < end_ ? code_[at_ + i] : '\0'; }

  void mark(size_t from, size_t to, CodeKind kind) {
    if (from >= to || kind == CodeKind::plain) return;
    if (!runs_.empty() && runs_.back().kind == kind && runs_.back().end == from)
      runs_.back().end = static_cast<uint32_t>(to);
    else
      runs_.push_back({static_cast<uint32_t>(from), static_cast<uint32_t>(to), kind});
  }
  void take(size_t to, CodeKind kind) {
    mark(at_, to, kind);
    at_ = to;
  }

  void diff() {
    const std::string_view line = code_.substr(begin_, end_ - begin_);
    const bool head =
        line.starts_with("+++") || line.starts_with("---") || line.starts_with("diff ") || line.starts_with("index ");
    take(end_, head                     ? CodeKind::comment
               : line.starts_with('+')  ? CodeKind::added
               : line.starts_with('-')  ? CodeKind::removed
               : line.starts_with("@@") ? CodeKind::keyword
                                        : CodeKind::plain);
  }

  /// What only the beginning of a line may be: the key of a mapping, a section, a directive.
  void keys_at_begin() {
    size_t word = std::min(code_.find_first_not_of(" \t", begin_), end_);
    if (word == end_) return;
    if (rules_.directives && code_[word] == '#') {
      size_t to = std::min(code_.find_first_not_of(" \t", word + 1), end_);
      while (to < end_ && in_name(code_[to])) ++to;
      const bool include = code_.substr(word, to - word).ends_with("include");
      take(to, CodeKind::keyword);
      const size_t file = std::min(code_.find_first_not_of(' ', to), end_);
      if (include && file < end_ && code_[file] == '<') at_ = file, take(end_, CodeKind::string);
    } else if (rules_.shape == Shape::ini && code_[word] == '[') {
      take(std::max(code_.rfind(']') + 1, word + 1), CodeKind::type);
    } else if (rules_.shape == Shape::ini) {
      const size_t to = code_.find_first_of("=#;\"", word);
      if (to > word && to < end_ && code_[to] == '=') take(code_.find_last_not_of(" \t", to - 1) + 1, CodeKind::key);
    } else if (rules_.shape == Shape::yaml) {
      while (word < end_ && code_.substr(word, 2) == "- ") word = code_.find_first_not_of(' ', word + 1);
      word = std::min(word, end_);
      for (size_t to = word; to < end_ && code_[to] != '#' && code_[to] != '"' && code_[to] != '{'; ++to) {
        if (code_[to] != ':' || (to + 1 < end_ && code_[to + 1] != ' ')) continue;
        at_ = word;
        return take(to, CodeKind::key);
      }
    }
  }

  void step() {
    if (!state_.until.empty()) return go_on();
    const char c = code_[at_];
    if (c == ' ' || c == '\t') {
      ++at_;
    } else if (here(rules_.comment)) {
      open(rules_.comment, rules_.comment_end, CodeKind::comment);
    } else if (begins_line_comment()) {
      take(end_, CodeKind::comment);
    } else if (here(rules_.long_quote)) {
      open(rules_.long_quote, rules_.long_quote_end, CodeKind::string);
    } else if (rules_.long_quote == "\"\"\"" && here("'''")) {
      open("'''", "'''", CodeKind::string);
    } else if (rules_.shape == Shape::html && !state_.in_tag) {
      text_of_html();
    } else if (rules_.quotes.find(c) != std::string_view::npos) {
      quoted();
    } else if (is_digit(c) || (c == '.' && is_digit(next()))) {
      number();
    } else if (begins_name(c)) {
      word();
    } else {
      sign();
    }
  }

  bool begins_line_comment() const {
    if (!here(rules_.line_comment) && !here(rules_.other_line_comment)) return false;
    // In these, # is a comment only where a word may begin: not in ${#x} nor a#b.
    const bool needs_blank = rules_.shape == Shape::shell || rules_.shape == Shape::yaml;
    return !needs_blank || at_ == begin_ || code_[at_ - 1] == ' ' || code_[at_ - 1] == '\t';
  }

  void open(std::string_view begins, std::string_view ends, CodeKind kind) {
    state_.until = ends;
    state_.kind = kind;
    take(at_ + begins.size(), kind);
  }

  /// The rest of what began earlier, as far as it is in this line.
  void go_on() {
    const bool escapes = state_.kind == CodeKind::string && state_.until != "]]" && state_.until != "\"#";
    size_t to = at_;
    while (to < end_ && !code_.substr(to, end_ - to).starts_with(state_.until))
      to += escapes && code_[to] == '\\' && to + 1 < end_ ? 2 : 1;
    const bool ended = to < end_;
    take(ended ? to + state_.until.size() : end_, state_.kind);
    if (ended) state_.until = {};
  }

  void quoted() {
    const char quote = code_[at_];
    if (quote == '\'' && rules_.keywords.find(" impl ") != std::string_view::npos) {  // Rust: 'a' or a lifetime
      const size_t close = code_.find('\'', at_ + 1);
      const bool letter = next() == '\\' ? close < end_ : close < end_ && close <= at_ + 5 && next(2) != ' ';
      if (!letter || (close > at_ + 2 && in_name(next()) && in_name(next(2)) && static_cast<signed char>(next()) > 0)) {
        ++at_;
        size_t to = at_;
        while (to < end_ && in_name(code_[to])) ++to;
        --at_;
        return take(to, CodeKind::type);
      }
    }
    size_t to = at_ + 1;
    while (to < end_ && code_[to] != quote) to += code_[to] == '\\' && to + 1 < end_ ? 2 : 1;
    const bool open = to >= end_;
    to = std::min(to + 1, end_);
    const size_t after = std::min(code_.find_first_not_of(" \t", to), end_);
    const bool key = rules_.shape == Shape::json && after < end_ && code_[after] == ':';
    if (open && (rules_.several_lines || (to > at_ && code_[to - 1] == '\\'))) {
      state_.until = rules_.quotes.substr(rules_.quotes.find(quote), 1);
      state_.kind = CodeKind::string;
    }
    take(to, key ? CodeKind::key : CodeKind::string);
  }

  void number() {
    size_t to = at_ + 1;
    while (to < end_) {
      const char c = code_[to], before = code_[to - 1];
      const bool exponent = (c == '+' || c == '-') && (before == 'e' || before == 'E') && code_.substr(at_, 2) != "0x";
      const bool separator = c == '\'' && rules_.directives && to + 1 < end_ && in_name(code_[to + 1]);
      const bool range = c == '.' && to + 1 < end_ && code_[to + 1] == '.';
      if (range || !(in_name(c) || c == '.' || exponent || separator || (c == '%' && rules_.shape == Shape::css)))
        break;
      ++to;
    }
    take(to, CodeKind::number);
  }

  void word() {
    const bool dashes = rules_.shape == Shape::css || rules_.shape == Shape::html;
    size_t to = at_ + 1;
    while (to < end_ && (in_name(code_[to]) || (dashes && code_[to] == '-'))) ++to;
    // The letters before a string, as in f"..." and u8"...", belong to it.
    if (to < end_ && to - at_ <= 2 && (code_[to] == '"' || code_[to] == '\'') && rules_.shape == Shape::code &&
        !rules_.any_case)
      return take(to, CodeKind::string);
    const std::string_view name = code_.substr(at_, to - at_);
    const size_t after = std::min(code_.find_first_not_of(" \t", to), end_);
    const char follows = after < end_ ? code_[after] : '\0';
    const bool member = at_ > begin_ && code_[at_ - 1] == '.';
    CodeKind kind = CodeKind::plain;
    if (rules_.shape == Shape::html) {
      kind = CodeKind::key;
    } else if (rules_.shape == Shape::css) {
      const bool property = follows == ':' && (after + 1 >= end_ || code_[after + 1] == ' ');
      kind = property ? CodeKind::key : follows == '(' ? CodeKind::function : CodeKind::plain;
    } else if (!member && lists(rules_.keywords, name, rules_.any_case)) {
      kind = CodeKind::keyword;
    } else if (!member && lists(rules_.constants, name, rules_.any_case)) {
      kind = CodeKind::number;
    } else if (lists(rules_.types, name, rules_.any_case)) {
      kind = CodeKind::type;
    } else if (rules_.shape == Shape::code && follows == '(') {
      kind = CodeKind::function;
    } else if (rules_.capital_types && name[0] >= 'A' && name[0] <= 'Z' && name.size() > 1 &&
               std::any_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; })) {
      kind = CodeKind::type;
    }
    take(to, kind);
  }

  void text_of_html() {
    if (code_[at_] == '<' && (begins_name(next()) || next() == '/' || next() == '!' || next() == '?')) {
      size_t to = at_ + 2;
      while (to < end_ && (in_name(code_[to]) || code_[to] == '-' || code_[to] == ':')) ++to;
      state_.in_tag = true;
      return take(to, CodeKind::keyword);
    }
    const size_t entity = code_[at_] == '&' ? code_.find(';', at_) : std::string_view::npos;
    if (entity < end_ && entity - at_ < 10) return take(entity + 1, CodeKind::number);
    ++at_;
  }

  void sign() {
    const char c = code_[at_];
    if (rules_.shape == Shape::html && (c == '>' || (c == '/' && next() == '>'))) {
      state_.in_tag = false;
      return take(at_ + (c == '>' ? 1 : 2), CodeKind::keyword);
    }
    size_t to = at_ + 1;
    const bool braces = c == '$' && next() == '{';
    if (braces) to = std::min(code_.find('}', at_), end_ - 1) + 1;
    while (!braces && to < end_ && (in_name(code_[to]) || (rules_.shape == Shape::css && code_[to] == '-'))) ++to;
    if (c == '$' && to > at_ + 1 && rules_.shape != Shape::html) return take(to, CodeKind::key);
    if (c == '@' && to > at_ + 1) return take(to, rules_.shape == Shape::css ? CodeKind::keyword : CodeKind::key);
    if (c == '#' && to > at_ + 1 && rules_.shape == Shape::css) return take(to, CodeKind::number);
    ++at_;
  }

  const Rules& rules_;
  std::string_view code_;  // up to the end of the line
  size_t begin_, end_, at_;
  CodeState& state_;
  std::vector<CodeRun>& runs_;
};

}  // namespace

void CodeColours::update(std::string_view code, std::string_view language) {
  if (language != language_ || !code.starts_with(done_)) *this = {};
  language_ = language;
  runs_.resize(done_runs_);
  const Rules* rules = rules_of(language);
  if (!rules) return;
  size_t at = done_.size();
  for (size_t end; (end = code.find('\n', at)) != std::string_view::npos; at = end + 1)
    LineOfCode(*rules, code, at, end, state_, runs_).run();
  done_ += code.substr(done_.size(), at - done_.size());
  done_runs_ = runs_.size();
  CodeState last = state_;
  LineOfCode(*rules, code, at, code.size(), last, runs_).run();
}

Colour code_colour(const Theme& t, CodeKind kind) {
  switch (kind) {
    case CodeKind::plain: return t.text;
    case CodeKind::keyword: return t.draft;
    case CodeKind::type: return t.accepted_text;
    case CodeKind::string: return t.accent_text;
    case CodeKind::number: return t.bonus_text;
    case CodeKind::comment: return t.text3;
    case CodeKind::function: return t.accepted_text;
    case CodeKind::key: return t.rejected_text;
    case CodeKind::added: return t.accent_text;
    case CodeKind::removed: return t.rejected_text;
  }
  return t.text;
}

}  // namespace canopy::app
