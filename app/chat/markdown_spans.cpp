#include "app/chat/markdown_spans.h"

#include <algorithm>
#include <array>
#include <utility>

namespace canopy::app {
namespace {

constexpr size_t kNowhere = std::string_view::npos;
constexpr std::string_view kBlanks = " \t\r\n";
constexpr size_t kLongestLabel = 32;

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_blank_at(std::string_view text, size_t at) {
  return at >= text.size() || kBlanks.find(text[at]) != kNowhere;
}

/// Where the paragraph that `at` is in ends: at the newline before an empty line, or at the end of the text.
size_t paragraph_end(std::string_view text, size_t at) {
  for (size_t line = text.find('\n', at); line != kNowhere; line = text.find('\n', line + 1)) {
    const size_t next = text.find_first_not_of(" \t\r", line + 1);
    if (next == kNowhere && text.find('\n', line + 1) == kNowhere) return text.size();
    if (next == kNowhere || text[next] == '\n') return line;
  }
  return text.size();
}

/// A line without what lists and quotes put in front of it.
std::string_view inside_containers(std::string_view line) {
  for (;;) {
    const size_t at = line.find_first_not_of(" \t>");
    if (at == kNowhere) return {};
    line.remove_prefix(at);
    const size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
    const bool number = digits > 0 && digits < 10 && digits + 1 < line.size() &&
                        (line[digits] == '.' || line[digits] == ')') && line[digits + 1] == ' ';
    const bool bullet = line.size() > 1 && (line[0] == '-' || line[0] == '*' || line[0] == '+') && line[1] == ' ';
    if (!number && !bullet) return line;
    line.remove_prefix(number ? digits + 2 : 2);
  }
}

/// Goes over a text once and collects its spans.
class SpanFinder {
 public:
  SpanFinder(std::string_view text, bool growing) : text_(text), growing_(growing) {}

  std::vector<MarkdownSpan> run() {
    while (at_ < text_.size()) {
      if (line_begins_ && skip_code_block()) continue;
      step();
    }
    return std::move(spans_);
  }

 private:
  using Kind = MarkdownSpan::Kind;

  /// Goes over the lines of a fence and of what is in it.
  bool skip_code_block() {
    line_begins_ = false;
    size_t end = line_end(at_);
    end_of_paragraph_ = paragraph_end_ > at_ ? paragraph_end_ : (paragraph_end_ = paragraph_end(text_, at_));
    char mark = 0;
    const size_t length = fence_of(inside_containers(text_.substr(at_, end - at_)), mark);
    if (length == 0) return false;
    while (end < text_.size()) {
      const size_t begin = end + 1;
      end = line_end(begin);
      if (ends_fence(inside_containers(text_.substr(begin, end - begin)), mark, length)) break;
    }
    at_ = std::min(end + 1, text_.size());
    line_begins_ = true;
    return true;
  }

  size_t line_end(size_t from) const { return std::min(text_.find('\n', from), text_.size()); }

  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      line_begins_ = true;
      ++at_;
    } else if (c == '\\') {
      backslash();
    } else if (c == '`') {
      code();
    } else if (c == '$') {
      dollar();
    } else if (c == '[' && text_.substr(at_).starts_with("[^")) {
      note();
    } else if (c == '<') {
      line_break();
    } else {
      ++at_;
    }
  }

  void add(Kind kind, size_t end, size_t inner_begin, size_t inner_end, bool open = false) {
    while (inner_begin < inner_end && is_blank_at(text_, inner_begin)) ++inner_begin;
    while (inner_end > inner_begin && is_blank_at(text_, inner_end - 1)) --inner_end;
    spans_.push_back({at_, end, inner_begin, inner_end, kind, open});
    at_ = end;
  }

  /// The first place from `from` on, in this paragraph, of `end`, which no backslash escapes.
  size_t find_end(size_t from, std::string_view end) {
    // What an earlier search in this paragraph did not find, a later one does not: a model may repeat \( for pages.
    for (const auto& [missing, paragraph] : missing_)
      if (paragraph == end_of_paragraph_ && missing == end) return kNowhere;
    for (size_t i = from; i < end_of_paragraph_; ++i) {
      if (text_.substr(i, end_of_paragraph_ - i).starts_with(end)) return i;
      if (text_[i] == '\\') ++i;
    }
    if (!missing_.empty() && missing_.back().second != end_of_paragraph_) missing_.clear();
    missing_.emplace_back(end, end_of_paragraph_);
    return kNowhere;
  }

  /// A formula from here to `end`; open, if the text ends before that.
  bool formula(Kind kind, size_t inner, std::string_view end) {
    const size_t found = find_end(inner, end);
    if (found != kNowhere) return add(kind, found + end.size(), inner, found), true;
    if (end_of_paragraph_ < text_.size()) return false;
    add(kind, text_.size(), inner, text_.size(), true);
    // Half of the end is no part of the formula.
    MarkdownSpan& span = spans_.back();
    if (span.inner_end > span.inner_begin && text_[span.inner_end - 1] == end[0] && end.size() > 1 &&
        !(span.inner_end - span.inner_begin > 1 && text_[span.inner_end - 2] == '\\'))
      --span.inner_end;
    return true;
  }

  void backslash() {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (next == '(' && formula(Kind::formula, at_ + 2, "\\)")) return;
    if (next == '[' && formula(Kind::display, at_ + 2, "\\]")) return;
    if (text_.substr(at_).starts_with("\\begin{") && environment()) return;
    at_ += next == '\n' || next == '\0' ? 1 : 2;
  }

  /// A formula that is an environment of its own: its \begin and \end belong to it.
  bool environment() {
    constexpr std::array<std::string_view, 7> kNames = {"equation", "align",   "gather", "multline",
                                                        "eqnarray", "alignat", "math"};
    const size_t name = at_ + 7, length = text_.substr(name, 12).find('}');
    if (length == kNowhere) return false;
    const std::string_view whole = text_.substr(name, length);
    const std::string_view bare = whole.ends_with('*') ? whole.substr(0, whole.size() - 1) : whole;
    if (std::find(kNames.begin(), kNames.end(), bare) == kNames.end()) return false;
    const std::string end = "\\end{" + std::string(whole) + "}";
    const size_t found = find_end(name, end);
    if (found == kNowhere && end_of_paragraph_ < text_.size()) return false;
    const size_t to = found == kNowhere ? text_.size() : found + end.size();
    add(Kind::display, to, at_, to, found == kNowhere);
    return true;
  }

  void code() {
    const size_t ticks = std::min(text_.find_first_not_of('`', at_), text_.size()) - at_;
    for (size_t i = at_ + ticks; i < end_of_paragraph_;) {
      i = text_.find('`', i);
      if (i == kNowhere || i >= end_of_paragraph_) break;
      const size_t run = std::min(text_.find_first_not_of('`', i), text_.size()) - i;
      if (run == ticks) return void(at_ = i + run);
      i += run;
    }
    // Code whose end is yet to come is code; else these are only letters.
    at_ = growing_ && end_of_paragraph_ == text_.size() ? text_.size() : at_ + ticks;
  }

  void dollar() {
    if (text_.substr(at_).starts_with("$$")) {
      if (formula(Kind::display, at_ + 2, "$$")) return;
      return void(at_ += 2);
    }
    const bool begins = (at_ == 0 || !is_alphanumeric(text_[at_ - 1])) && !is_blank_at(text_, at_ + 1);
    const size_t end = begins ? find_end(at_ + 1, "$") : kNowhere;
    const size_t line = line_end(at_);
    if (end != kNowhere && end < line && !is_blank_at(text_, end - 1) &&
        (end + 1 >= text_.size() || !is_alphanumeric(text_[end + 1])) &&
        !is_price(text_.substr(at_ + 1, end - at_ - 1)))
      return add(Kind::formula, end + 1, at_ + 1, end);
    const std::string_view rest = text_.substr(at_ + 1);
    if (growing_ && begins && end == kNowhere && line == text_.size() && rest.find_first_of("\\^_{") != kNowhere &&
        !is_price(rest))
      return add(Kind::formula, text_.size(), at_ + 1, text_.size(), true);
    ++at_;
  }

  /// Whether what stands between two dollars is an amount and words behind it: "5 for one and 6 for two, not 7".
  static bool is_price(std::string_view inner) {
    if (inner.empty() || inner[0] < '0' || inner[0] > '9') return false;
    if (inner.find_first_of("\\^_=") != kNowhere) return false;
    for (size_t i = 1; i + 1 < inner.size(); ++i)
      if (inner[i - 1] == ' ' && is_alphanumeric(inner[i]) && is_alphanumeric(inner[i + 1]) && inner[i] > '9')
        return true;
    return false;
  }

  void note() {
    const size_t label = at_ + 2, length = text_.substr(label, kLongestLabel).find(']'), close = label + length;
    if (length == kNowhere || length == 0 || text_.substr(label, length).find_first_of(" \t\r\n[^") != kNowhere)
      return void(++at_);
    size_t line = at_;
    while (line > 0 && at_ - line < 3 && text_[line - 1] == ' ') --line;
    const bool first = line == 0 || text_[line - 1] == '\n';
    if (!first || close + 1 >= text_.size() || text_[close + 1] != ':') return add(Kind::note, close + 1, label, close);
    add(Kind::note_text, close + 2, label, close);
  }

  void line_break() {
    for (const std::string_view tag : {"<br>", "<br/>", "<br />", "<BR>", "<BR/>", "<BR />"})
      if (text_.substr(at_).starts_with(tag)) return add(Kind::line_break, at_ + tag.size(), at_, at_);
    ++at_;
  }

  std::string_view text_;
  bool growing_;
  size_t at_ = 0, paragraph_end_ = 0, end_of_paragraph_ = 0;
  bool line_begins_ = true;
  std::vector<std::pair<std::string, size_t>> missing_;  // ends that are not in the paragraph that ends there
  std::vector<MarkdownSpan> spans_;
};

/// What ends where a block ends: the marks that are open in the last lines of a text.
class OpenMarks {
 public:
  /// The text, ended.
  static std::string end(std::string_view text, const std::vector<MarkdownSpan>& spans) {
    OpenMarks marks;
    size_t cut = text.size();
    auto span = std::partition_point(spans.begin(), spans.end(),
                                     [from = block_begin(text)](const MarkdownSpan& s) { return s.end <= from; });
    for (size_t i = block_begin(text); i < text.size();) {
      if (span != spans.end() && span->begin == i) {
        i = span->end;
        ++span;
        continue;
      }
      const char c = text[i];
      if (c == '\\') {
        i += 2;
      } else if (c == '`') {
        const size_t ticks = run(text, i);
        const size_t close = find_ticks(text, i + ticks, ticks);
        if (close == kNowhere && i + ticks == text.size()) {
          cut = i;
          break;
        }
        if (close == kNowhere) {
          // Ticks at the end are the first of those that end the code.
          while (cut > i + ticks && text[cut - 1] == '`') --cut;
          return std::string(text.substr(0, cut)) + std::string(ticks, '`') + marks.closing();
        }
        i = close + ticks;
      } else if (c == '*' || c == '_' || c == '~') {
        const size_t length = run(text, i);
        if (i + length == text.size()) {
          cut = marks.last(text, i, length);
          break;
        }
        marks.see(text, i, length);
        i += length;
      } else if (c == '[' || c == '!') {
        ++i;
      } else if (c == ']' && i + 1 < text.size() && text[i + 1] == '(') {
        const size_t close = text.find_first_of(")\n", i);
        if (close == kNowhere && text.find(' ', i) == kNowhere) return std::string(text) + ")" + marks.closing();
        i = close == kNowhere ? text.size() : close;
      } else {
        ++i;
      }
    }
    const std::string closing = marks.closing();
    while (!closing.empty() && cut > 0 && (text[cut - 1] == ' ' || text[cut - 1] == '\t')) --cut;
    return std::string(text.substr(0, cut)) + closing;
  }

 private:
  struct Mark {
    char c;
    size_t length;
  };

  static size_t run(std::string_view text, size_t at) {
    return std::min(text.find_first_not_of(text[at], at), text.size()) - at;
  }
  static size_t find_ticks(std::string_view text, size_t from, size_t ticks) {
    for (size_t i = text.find('`', from); i != kNowhere; i = text.find('`', i)) {
      const size_t length = run(text, i);
      if (length == ticks) return i;
      i += length;
    }
    return kNowhere;
  }

  /// Where the last block of a text begins: in its last line, or in one before that this one goes on from.
  static size_t block_begin(std::string_view text) {
    for (size_t end = text.size();;) {
      const size_t newline = end == 0 ? kNowhere : text.rfind('\n', end - 1);
      const size_t line = newline == kNowhere ? 0 : newline + 1;
      const std::string_view words = text.substr(line, end - line), inside = inside_containers(words);
      if (inside.empty()) return std::min(end + 1, text.size());
      const size_t before = words.size() - inside.size();
      if (inside.starts_with('|')) return line + words.rfind('|') + 1;
      if (inside.starts_with('#') || words.substr(0, before).find_first_not_of(" \t") != kNowhere) return line + before;
      if (line == 0) return 0;
      end = newline;
    }
  }

  void see(std::string_view text, size_t at, size_t length) {
    const char c = text[at];
    const bool blank_before = at == 0 || is_blank_at(text, at - 1), blank_behind = is_blank_at(text, at + length);
    const bool in_word =
        !blank_before && is_alphanumeric(text[at - 1]) && !blank_behind && is_alphanumeric(text[at + length]);
    if (c == '_' && in_word) return;
    if (c == '~' && length != 2) return;
    if (!blank_before)
      while (length > 0 && !open_.empty() && open_.back().c == c && open_.back().length <= length) {
        length -= open_.back().length;
        open_.pop_back();
      }
    if (length > 0 && length <= 3 && !blank_behind) open_.push_back({c, length});
  }

  /// Marks at the very end: those that end what is open stay, others wait for what comes.
  size_t last(std::string_view text, size_t at, size_t length) {
    const char c = text[at];
    const bool blank_before = at == 0 || is_blank_at(text, at - 1);
    if (!blank_before && !open_.empty() && open_.back().c == c && open_.back().length <= length) {
      const size_t used = open_.back().length;
      open_.pop_back();
      return used == length ? text.size() : at + used;
    }
    return at;
  }

  std::string closing() const {
    std::string out;
    for (auto mark = open_.rbegin(); mark != open_.rend(); ++mark) out += std::string(mark->length, mark->c);
    return out;
  }

  std::vector<Mark> open_;
};

/// The line that goes below the first one of a table, if the text ends with that first line.
std::string table_rule(std::string_view text) {
  const size_t newline = text.rfind('\n'), begin = newline == kNowhere ? 0 : newline + 1;
  const std::string_view line = text.substr(begin);
  if (!line.starts_with('|') || (begin > 1 && text[begin - 2] != '\n')) return "";  // or not the first of a paragraph
  size_t cells = 0;
  bool written = false;  // something is in the cell
  for (size_t i = 1; i < line.size(); ++i) {
    const bool bar = line[i] == '|' && line[i - 1] != '\\';
    cells += bar ? 1 : 0;
    written = !bar && (written || line[i] != ' ');
  }
  if (written) ++cells;
  if (cells == 0) return "";
  std::string rule = "\n|";
  for (size_t i = 0; i < cells; ++i) rule += "---|";
  return rule;
}

/// The character of the fence, if the text ends in code between fences; else 0.
char open_fence(std::string_view text) {
  size_t fenced = 0;
  char mark = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = inside_containers(text.substr(at, end - at));
    if (fenced > 0)
      fenced = ends_fence(line, mark, fenced) ? 0 : fenced;
    else
      fenced = fence_of(line, mark);
    at = end + 1;
  }
  return fenced > 0 ? mark : '\0';
}

/// A text without marks at its very end that are the beginning of something: of a formula, of a link.
std::string_view without_beginning(std::string_view text, const std::vector<MarkdownSpan>& spans) {
  if (text.empty() || (!spans.empty() && spans.back().end == text.size())) return text;
  if (text.back() == '$' || text.back() == '[') return text.substr(0, text.size() - 1);
  const size_t slashes = text.size() - (text.find_last_not_of('\\') + 1);
  return text.substr(0, text.size() - slashes % 2);
}

}  // namespace

size_t fence_of(std::string_view line, char& mark) {
  const size_t at = std::min(line.find_first_not_of(' '), line.size());
  if (at > 3 || at == line.size() || (line[at] != '`' && line[at] != '~')) return 0;
  const size_t end = std::min(line.find_first_not_of(line[at], at), line.size());
  if (end - at < 3 || (line[at] == '`' && line.find('`', end) != kNowhere)) return 0;
  mark = line[at];
  return end - at;
}

bool ends_fence(std::string_view line, char mark, size_t length) {
  char other = 0;
  const size_t found = fence_of(line, other);
  if (found < length || other != mark) return false;
  const size_t last = line.find_last_not_of(" \t\r");
  return line[last] == mark && line.find(mark) + found == last + 1;
}

std::vector<MarkdownSpan> find_spans(std::string_view text, bool growing) {
  return SpanFinder(text, growing).run();
}

std::string completed(std::string_view text) {
  const size_t newline = text.rfind('\n'), line = newline == kNowhere ? 0 : newline + 1;
  if (const char mark = open_fence(text.substr(0, line)); mark != '\0') {
    // The characters of the fence that ends it, or of the first of them, are no code.
    const std::string_view last = inside_containers(text.substr(line));
    const bool ending = !last.empty() && last.find_first_not_of(mark) == kNowhere;
    return std::string(ending ? text.substr(0, line) : text);
  }
  char mark = 0;
  if (fence_of(inside_containers(text.substr(line)), mark) > 0) return std::string(text);
  // A last line of marks alone can become many things, and would make a heading of the line above, for a moment.
  if (text.find_first_not_of(" \t-=*_+#>|:`~![]", line) == kNowhere) text = text.substr(0, line);
  const size_t end = text.find_last_not_of('\n') + 1;
  if (text.size() - end > 1) return std::string(text);  // an empty line has ended everything
  text = text.substr(0, end);
  const std::string rule = table_rule(text);
  const std::vector<MarkdownSpan> spans = find_spans(text, true);
  if (!spans.empty() && spans.back().open) return std::string(text) + rule;
  return OpenMarks::end(without_beginning(text, spans), spans) + rule;
}

}  // namespace canopy::app
