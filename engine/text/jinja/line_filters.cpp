// Filters that lay text out in lines of a width: wordwrap, and pprint, which shows literals so.

#include <algorithm>
#include <utility>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

// ---- word wrap, with the rules of Python's textwrap

class Wrapper {
 public:
  Wrapper(Context& context, const Text& text, size_t width, bool break_words, bool break_at_hyphens)
      : text_(text), width_(width), break_words_(break_words), break_at_hyphens_(break_at_hyphens) {
    context.use_text(text.size() * 8);
    starts_ = character_starts(text.bytes());
    for (size_t i = 0; i + 1 < starts_.size(); ++i)
      characters_.push_back(code_point_at(text.bytes(), starts_[i]).value);
  }

  std::vector<Text> run() {
    std::vector<Chunk> chunks = chunks_of();
    std::vector<Text> lines;
    for (size_t at = 0; at < chunks.size();) {
      if (is_blank(chunks[at]) && !lines.empty() && ++at == chunks.size()) break;
      Chunk line{chunks[at].begin, chunks[at].begin};
      size_t last = at;  // the chunk that the line ends with, if `used`
      bool used = false;
      const auto use = [&](size_t end) {
        line.end = end;
        last = at;
        used = true;
      };
      for (; at < chunks.size() && chunks[at].end - line.begin <= width_; ++at) use(chunks[at].end);
      size_t last_begin = used ? chunks[last].begin : line.begin;
      if (at < chunks.size() && chunks[at].end - chunks[at].begin > width_) {
        const size_t left = width_ - (line.end - line.begin);
        if (break_words_) {
          const size_t end = place_to_break(chunks[at], left);
          last_begin = chunks[at].begin;
          line.end = chunks[at].begin = end;
          used = true;
        } else if (!used) {
          last_begin = chunks[at].begin;
          line.end = chunks[at].end;
          used = true;
          ++at;
        }
      }
      if (used && is_blank({last_begin, line.end})) line.end = last_begin;
      if (line.end > line.begin)
        lines.push_back(text_.part(starts_[line.begin], starts_[line.end] - starts_[line.begin]));
    }
    return lines;
  }

 private:
  struct Chunk {  // characters
    size_t begin = 0, end = 0;
  };

  bool is(size_t i, bool (*kind)(int32_t)) const { return i < characters_.size() && kind(characters_[i]); }
  bool is(size_t i, int32_t c) const { return i < characters_.size() && characters_[i] == c; }
  static bool white(int32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  static bool word(int32_t c) { return c == '_' || is_letter(c) || is_numeric(c); }
  static bool letter(int32_t c) { return word(c) && !is_decimal_digit(c); }
  static bool punctuated(int32_t c) {
    return word(c) || (c < 0x80 && std::string_view("!\"'&.,?").find(static_cast<char>(c)) != std::string_view::npos);
  }

  bool is_blank(const Chunk& chunk) const {
    return std::all_of(characters_.begin() + static_cast<std::ptrdiff_t>(chunk.begin),
                       characters_.begin() + static_cast<std::ptrdiff_t>(chunk.end), is_space);
  }

  // The end of a dash of two or more hyphens that begins at `i` between words; i where there is none.
  size_t dash_end(size_t i) const {
    if (i == 0 || !is(i, '-') || !is(i - 1, punctuated)) return i;
    size_t end = i;
    while (is(end, '-')) ++end;
    return end - i >= 2 && is(end, word) ? end : i;
  }

  // Whether the hyphen at i may end a line: between letters of a word.
  bool breaks_at_hyphen(size_t i) const {
    if (!is(i, '-')) return false;
    const bool behind = (i >= 2 && is(i - 1, letter) && is(i - 2, letter)) ||
                        (i >= 3 && is(i - 3, letter) && is(i - 2, '-') && is(i - 1, punctuated));
    return behind && is(i + 1, letter) && (is(i + 2, letter) || (is(i + 2, '-') && is(i + 3, letter)));
  }

  std::vector<Chunk> chunks_of() const {
    std::vector<Chunk> chunks;
    for (size_t at = 0; at < characters_.size();) {
      size_t end = at;
      if (is(at, white)) {
        while (is(end, white)) ++end;
      } else if (!break_at_hyphens_) {
        while (end < characters_.size() && !white(characters_[end])) ++end;
      } else if (end = dash_end(at); end == at) {
        for (++end; end < characters_.size() && !white(characters_[end]); ++end) {
          if (dash_end(end) != end) break;
          if (breaks_at_hyphen(end)) {
            ++end;
            break;
          }
        }
      }
      chunks.push_back({at, end});
      at = end;
    }
    return chunks;
  }

  size_t place_to_break(const Chunk& chunk, size_t left) const {
    if (!break_at_hyphens_) return chunk.begin + left;
    for (size_t i = chunk.begin + left; i-- > chunk.begin + 1;) {
      if (characters_[i] != '-') continue;
      const auto begin = characters_.begin() + static_cast<std::ptrdiff_t>(chunk.begin);
      const auto end = characters_.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::any_of(begin, end, [](int32_t c) { return c != '-'; })) return i + 1;
      break;
    }
    return chunk.begin + left;
  }

  const Text& text_;
  size_t width_;
  bool break_words_, break_at_hyphens_;
  std::vector<size_t> starts_;
  std::vector<int32_t> characters_;
};

// ---- pprint

Value with_sorted_keys(Context& context, const Value& value) {
  context.step();
  if (const List* list = value.list(); list != nullptr && list->kind <= List::group) {
    List copy{{}, list->kind};
    for (const Value& item : list->items) copy.items.push_back(with_sorted_keys(context, item));
    return context.make(std::move(copy));
  }
  if (value.dict() == nullptr) return value;
  Dict copy;
  for (const auto& [key, held] : value.dict()->items) copy.items.emplace_back(key, with_sorted_keys(context, held));
  std::stable_sort(copy.items.begin(), copy.items.end(), [&](const auto& a, const auto& b) {
    const bool numbers = a.first.as_number() && b.first.as_number();
    if (numbers || a.first.kind() == b.first.kind()) {
      return !a.first.is_none() && !a.first.is_undefined() && less(context, a.first, b.first);
    }
    const auto name = [](const Value& key) {
      return key.is_none() ? "N" : key.kind().substr(key.kind().find(' ') + 1);
    };
    return name(a.first) < name(b.first);  // as the names of Python's types
  });
  return context.make(std::move(copy));
}

class PrettyPrinter {
 public:
  explicit PrettyPrinter(Context& context) : context_(context), out_(context) {}

  Text run(const Value& value) {
    add(value, 0, 0, 0);
    return out_.take();
  }

 private:
  static constexpr int64_t width = 80;

  Text literal(const Value& value) {
    TextBuilder out(context_);
    print_literal(out, value);
    return out.take();
  }
  int64_t length_of(const Text& text) {
    context_.use_text(text.size());
    return static_cast<int64_t>(count_characters(text.bytes()));
  }
  void break_line(int64_t indent) { out_.add("\n" + std::string(static_cast<size_t>(indent), ' ')); }

  // allowance: characters that follow on the last line
  void add(const Value& value, int64_t indent, int64_t allowance, int level) {
    const Text whole = literal(value);
    const List* list = value.list();
    if (length_of(whole) <= width - indent - allowance) {
      out_.add(whole);
    } else if (list != nullptr && (list->kind == List::list || list->kind == List::tuple)) {
      const std::string_view close = list->kind == List::list ? "]" : list->items.size() == 1 ? ",)" : ")";
      out_.add(list->is_tuple() ? "(" : "[");
      for (size_t i = 0; i < list->items.size(); ++i) {
        const bool last = i + 1 == list->items.size();
        if (i > 0) out_.add(",");
        if (i > 0) break_line(indent + 1);
        add(list->items[i], indent + 1, last ? allowance + static_cast<int64_t>(close.size()) : 1, level + 1);
      }
      out_.add(close);
    } else if (value.dict() != nullptr && !value.dict()->items.empty()) {
      out_.add("{");
      const auto& items = value.dict()->items;
      for (size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out_.add(",");
        if (i > 0) break_line(indent + 1);
        const Text key = literal(items[i].first);
        out_.add(key);
        out_.add(": ");
        add(items[i].second, indent + 1 + length_of(key) + 2, i + 1 == items.size() ? allowance + 1 : 1, level + 1);
      }
      out_.add("}");
    } else if (value.text() != nullptr && !value.text()->is_safe()) {
      add_string(*value.text(), whole, indent, allowance, level == 0);
    } else {
      out_.add(whole);
    }
  }

  // A string as several with a line each, which Python reads as one.
  void add_string(const Text& text, const Text& whole, int64_t indent, int64_t allowance, bool outermost) {
    if (outermost) {
      ++indent;
      ++allowance;
    }
    std::vector<Text> chunks;
    const auto lines = split_lines(context_, text, true);
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool last = i + 1 == lines.size();
      Text line = literal(lines[i]);
      if (length_of(line) <= width - indent - (last ? allowance : 0)) {
        chunks.push_back(std::move(line));
        continue;
      }
      const auto parts = words_with_space(*lines[i].text());
      Text current;
      for (size_t j = 0; j < parts.size(); ++j) {
        Text candidate = current;
        context_.use_text(current.size());
        candidate.append(parts[j]);
        const int64_t most = width - indent - (last && j + 1 == parts.size() ? allowance : 0);
        if (length_of(literal(candidate)) > most) {
          if (!current.empty()) chunks.push_back(literal(current));
          current = parts[j];
        } else {
          current = std::move(candidate);
        }
      }
      if (!current.empty()) chunks.push_back(literal(current));
    }
    if (chunks.size() == 1) return out_.add(whole);
    if (outermost) out_.add("(");
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) break_line(indent);
      out_.add(chunks[i]);
    }
    if (outermost) out_.add(")");
  }

  std::vector<Text> words_with_space(const Text& text) {
    context_.use_text(text.size());
    std::vector<Text> parts;
    bool in_space = false;
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text.bytes(), at);
      const bool space = c.valid && is_space(c.value);
      if (in_space && !space) {
        parts.push_back(text.part(begin, at - begin));
        begin = at;
      }
      in_space = space;
      at += c.size;
    }
    if (begin < text.size()) parts.push_back(text.part(begin));
    context_.step(parts.size());
    return parts;
  }

  Context& context_;
  TextBuilder out_;
};

Value filter_wordwrap(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("wordwrap", arguments, {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const int64_t width = p.integer(0, 79);
  if (width < 1) throw Failure("The argument 'width' of 'wordwrap' must be at least 1.");
  const Text* given = p.text_or_null(2);
  const Text separator = given == nullptr ? Text("\n") : *given;
  TextBuilder out(context);
  bool first = true;
  for (const Value& line : split_lines(context, text_of(context, subject), false)) {
    auto parts = Wrapper(context, *line.text(), static_cast<size_t>(width), p.truth(1, true), p.truth(3, true)).run();
    context.step(parts.size());
    if (parts.empty()) parts.emplace_back();
    for (const Text& part : parts) {
      if (!std::exchange(first, false)) out.add(separator);
      out.add(part);
    }
  }
  return out.take();
}

Value filter_pprint(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("pprint", arguments, {});
  return PrettyPrinter(context).run(with_sorted_keys(context, subject));
}

constexpr Filter line_filter_list[] = {{"pprint", filter_pprint}, {"wordwrap", filter_wordwrap}};

}  // namespace

std::span<const Filter> line_filters() {
  return line_filter_list;
}

}  // namespace canopy::jinja
