// Filters of text, of its layout in lines, and for HTML.

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "engine/base/text.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {

namespace {

// Filters of text.

template <Text (*change)(Context&, const Text&)>
Value change_case(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("a change of case", arguments, {});
  return change(context, text_of(context, subject));
}

Value filter_title(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("title", arguments, {});
  return title(context, text_of(context, subject), WordStart::after_space_or_bracket);
}

Value filter_trim(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("trim", arguments, {"chars"});
  return strip(context, text_of(context, subject), p.text_or_null(0), Sides::both);
}

Value filter_replace(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("replace", arguments, {"old", "new", "count"}, 2);
  const int64_t limit = p.find(2) == nullptr || p.at(2).is_none() ? -1 : p.integer(2, -1);
  Text text = text_of(context, subject);
  Text to = text_of(context, p.at(1));
  if (!context.autoescape) {
    text.set_safe(false);
    return replace(context, text, text_of(context, p.at(0)), to, limit);
  }
  const bool old_is_safe = p.at(0).text() != nullptr && p.at(0).text()->is_safe();
  if (old_is_safe || to.is_safe()) text = escaped(context, text);
  if (text.is_safe()) to = escaped(context, to);
  Text result = replace(context, text, text_of(context, p.at(0)), to, limit);
  result.set_safe(text.is_safe());
  return result;
}

Value filter_string(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("string", arguments, {});
  return text_of(context, subject);
}

Value filter_format(Context& context, const Value& subject, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    throw Failure("'format' takes values by position or by name, not both.");
  }
  if (arguments.named.empty()) {
    return format_printf(context, text_of(context, subject), context.make(List{arguments.positional, List::tuple}));
  }
  Dict values;
  for (const auto& [name, value, key] : arguments.named) set_item(context, values, key, value);
  return format_printf(context, text_of(context, subject), context.make(std::move(values)));
}

Value filter_center(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("center", arguments, {"width"});
  return padded(context, text_of(context, subject), p.integer(0, 80), Text(" "), Align::center);
}

// Cut behind the last word that fits in front of the end mark; within the leeway it is not cut.
Value filter_truncate(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const Text mark = p.find(2) == nullptr ? Text("...") : p.text(2);
  const int64_t size = std::max<int64_t>(p.integer(0, 255), -1);
  const int64_t leeway = p.find(3) == nullptr || p.at(3).is_none() ? 5 : p.integer(3, 5);
  const int64_t kept = size - static_cast<int64_t>(count_characters(mark.bytes()));
  if (kept < 0 || leeway < 0) {
    throw Failure("'truncate' is given a length that its end mark does not fit into, or a leeway below zero.");
  }
  if (subject.text() == nullptr && !subject.is_undefined()) {
    if (static_cast<int64_t>(length(context, subject)) - leeway <= size) return subject;
    throw Failure("'truncate' is given " + std::string(subject.kind()) + "; it must be a string.");
  }
  const Text text = text_of(context, subject);
  context.use_text(text.size());
  const auto starts = character_starts(text.bytes());
  const auto count = static_cast<int64_t>(starts.size()) - 1;
  if (count - leeway <= size) return text;
  Text cut = text.part(0, starts[static_cast<size_t>(std::min(kept, count))]);
  if (!p.truth(1, false)) {
    const size_t blank = cut.bytes().rfind(' ');
    if (blank != std::string_view::npos) cut = cut.part(0, blank);
  }
  cut.set_safe(text.is_safe());
  return apply(context, BinaryOp::add, cut, mark);
}

Value filter_wordcount(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("wordcount", arguments, {});
  const Text text = text_of(context, subject);
  context.use_text(text.size());
  int64_t count = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    const bool is_part = c.valid && (c.value == '_' || is_letter(c.value) || is_numeric(c.value));
    if (is_part && !in_word) ++count;
    in_word = is_part;
    at += c.size;
  }
  return count;
}

// Indents lines but the first (unless `first`) and those that are empty (unless `blank`).
Value filter_indent(Context& context, const Value& subject, const Arguments& arguments) {
  constexpr int64_t widest = 1000;
  const Parameters p("indent", arguments, {"width", "first", "blank"});
  Text indent(std::string(4, ' '));
  if (p.find(0) != nullptr && p.at(0).text() != nullptr) {
    indent = p.text(0);
  } else if (p.find(0) != nullptr) {
    indent = Text(std::string(static_cast<size_t>(std::clamp<int64_t>(p.integer(0, 4), 0, widest)), ' '));
  }
  Text text = text_of(context, subject);
  const bool safe = text.is_safe();
  text.append("\n", Origin::markup);
  TextBuilder out(context);
  bool is_first = true;
  for (const Value& line : split_lines(context, text, false)) {
    if (!is_first) out.add("\n");
    const bool indents = is_first ? p.truth(1, false) : p.truth(2, false) || !line.text()->empty();
    if (indents) out.add(indent);
    out.add(*line.text());
    is_first = false;
  }
  Text indented = out.take();
  indented.set_safe(safe);
  return indented;
}

// Hugging Face's tojson: json.dumps without escaping what is not ASCII.
Value filter_tojson(Context& context, const Value& subject, const Arguments& arguments) {
  constexpr int64_t widest = 100;
  const Parameters p("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = p.truth(0, false);
  style.sort_keys = p.truth(3, false);
  if (p.find(1) != nullptr && p.at(1).text() != nullptr) {
    style.indent = std::string(p.text(1).bytes());
  } else if (p.find(1) != nullptr && !p.at(1).is_none()) {
    style.indent = std::string(static_cast<size_t>(std::clamp<int64_t>(p.integer(1, 0), 0, widest)), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (p.find(2) != nullptr && !p.at(2).is_none()) {
    const List* pair = p.at(2).list();
    if (pair == nullptr || pair->items.size() != 2 || pair->items[0].text() == nullptr ||
        pair->items[1].text() == nullptr) {
      throw Failure("The argument 'separators' of 'tojson' must be a pair of strings.");
    }
    style.item_separator = std::string(pair->items[0].text()->bytes());
    style.key_separator = std::string(pair->items[1].text()->bytes());
  }
  TextBuilder out(context);
  print_json(out, subject, style);
  return out.take();
}

// Filters that lay text out in lines of a width: wordwrap, and pprint, which shows literals so.

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

// Filters for HTML and for addresses in it.

Text marked_safe(Text text, bool safe) {
  text.set_safe(safe);
  return text;
}

Value filter_escape(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("escape", arguments, {});
  return escaped(context, to_text(context, subject));
}

Value filter_forceescape(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("forceescape", arguments, {});
  return escaped(context, marked_safe(to_text(context, subject), false));
}

Value filter_safe(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("safe", arguments, {});
  return marked_safe(to_text(context, subject), true);
}

// The characters from U+00A0 to U+00FF by their names in HTML, in order. HTML knows them without the semicolon too.
constexpr std::array<std::string_view, 96> latin_entities = {
    "nbsp",   "iexcl",  "cent",   "pound",  "curren", "yen",    "brvbar", "sect",   "uml",    "copy",   "ordf",
    "laquo",  "not",    "shy",    "reg",    "macr",   "deg",    "plusmn", "sup2",   "sup3",   "acute",  "micro",
    "para",   "middot", "cedil",  "sup1",   "ordm",   "raquo",  "frac14", "frac12", "frac34", "iquest", "Agrave",
    "Aacute", "Acirc",  "Atilde", "Auml",   "Aring",  "AElig",  "Ccedil", "Egrave", "Eacute", "Ecirc",  "Euml",
    "Igrave", "Iacute", "Icirc",  "Iuml",   "ETH",    "Ntilde", "Ograve", "Oacute", "Ocirc",  "Otilde", "Ouml",
    "times",  "Oslash", "Ugrave", "Uacute", "Ucirc",  "Uuml",   "Yacute", "THORN",  "szlig",  "agrave", "aacute",
    "acirc",  "atilde", "auml",   "aring",  "aelig",  "ccedil", "egrave", "eacute", "ecirc",  "euml",   "igrave",
    "iacute", "icirc",  "iuml",   "eth",    "ntilde", "ograve", "oacute", "ocirc",  "otilde", "ouml",   "divide",
    "oslash", "ugrave", "uacute", "ucirc",  "uuml",   "yacute", "thorn",  "yuml"};
struct Entity {
  std::string_view name;
  int32_t code_point;
};
constexpr Entity other_entities[] = {{"amp", '&'},      {"apos", '\''},    {"bull", 0x2022},   {"dagger", 0x2020},
                                     {"euro", 0x20AC},  {"gt", '>'},       {"hellip", 0x2026}, {"larr", 0x2190},
                                     {"ldquo", 0x201C}, {"lsquo", 0x2018}, {"lt", '<'},        {"mdash", 0x2014},
                                     {"minus", 0x2212}, {"ndash", 0x2013}, {"permil", 0x2030}, {"quot", '"'},
                                     {"rarr", 0x2192},  {"rdquo", 0x201D}, {"rsquo", 0x2019},  {"trade", 0x2122}};

std::optional<int32_t> entity(std::string_view name) {
  const auto* latin = std::find(latin_entities.begin(), latin_entities.end(), name);
  if (latin != latin_entities.end()) return 0xA0 + static_cast<int32_t>(latin - latin_entities.begin());
  for (const Entity& other : other_entities) {
    if (other.name == name) return other.code_point;
  }
  return std::nullopt;
}

// Entities by number, and the names that are in use on most pages.
Text unescaped(Context& context, const Text& text) {
  TextBuilder out(context);
  const std::string_view bytes = text.bytes();
  for (size_t at = 0; at < bytes.size();) {
    context.step();
    const size_t begin = std::min(bytes.find('&', at), bytes.size());
    out.add(text, at, begin - at);
    if (begin == bytes.size()) break;
    size_t end = begin + 1;
    std::optional<int32_t> found;
    if (end < bytes.size() && bytes[end] == '#') {
      const bool hexadecimal = end + 1 < bytes.size() && (bytes[end + 1] == 'x' || bytes[end + 1] == 'X');
      const char* first = bytes.data() + end + (hexadecimal ? 2 : 1);
      uint32_t number = 0;
      const auto result = std::from_chars(first, bytes.data() + bytes.size(), number, hexadecimal ? 16 : 10);
      if (result.ptr != first) {
        const bool valid =
            result.ec == std::errc() && number != 0 && number <= 0x10FFFF && (number < 0xD800 || number > 0xDFFF);
        found = valid ? static_cast<int32_t>(number) : 0xFFFD;
        end = static_cast<size_t>(result.ptr - bytes.data());
      }
    } else {
      while (end < bytes.size() && end - begin < 10 && std::isalnum(static_cast<unsigned char>(bytes[end])) != 0) ++end;
      found = entity(bytes.substr(begin + 1, end - begin - 1));
    }
    if (!found) {
      out.add(text, begin, 1);
      at = begin + 1;
      continue;
    }
    out.add(encode_utf8(*found), text.origin(begin));
    at = end < bytes.size() && bytes[end] == ';' ? end + 1 : end;
  }
  return out.take();
}

Value filter_striptags(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("striptags", arguments, {});
  const Text text = to_text(context, subject);
  const std::string_view bytes = text.bytes();
  TextBuilder kept(context);
  size_t at = 0;
  for (size_t open = 0; (open = bytes.find('<', at)) != std::string_view::npos;) {
    const bool comment = bytes.substr(open, 4) == "<!--";
    const size_t close = bytes.find(comment ? "-->" : ">", open + (comment ? 4 : 1));
    if (close == std::string_view::npos) break;
    kept.add(text, at, open - at);
    at = close + (comment ? 3 : 1);
  }
  kept.add(text, at, text.size());
  TextBuilder out(context);
  for (const Value& word : split(context, kept.take(), nullptr, -1)) {
    if (out.size() > 0) out.add(" ");
    out.add(*word.text());
  }
  return unescaped(context, out.take());
}

void add_quoted(TextBuilder& out, const Value& value, bool in_query) {
  const Text text = to_text(out.context(), value);
  for (size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text.bytes()[at]);
    if ((c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !in_query)) {
      out.add(text, at, 1);
    } else if (c == ' ' && in_query) {
      out.add("+", text.origin(at));
    } else {
      constexpr std::string_view digits = "0123456789ABCDEF";
      out.add(std::string{'%', digits[c / 16], digits[c % 16]}, text.origin(at));
    }
  }
}

Value filter_urlencode(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("urlencode", arguments, {});
  TextBuilder out(context);
  if (subject.text() != nullptr || !is_iterable(subject)) {
    add_quoted(out, subject, false);
    return out.take();
  }
  std::vector<std::pair<Value, Value>> pairs;
  if (subject.dict() != nullptr) {
    pairs = subject.dict()->items;
  } else {
    for (const Value& pair : elements(context, subject)) {
      const auto both = elements(context, pair);
      if (both.size() != 2) throw Failure("'urlencode' is given a list of something else than pairs.");
      pairs.emplace_back(both[0], both[1]);
    }
  }
  bool first = true;
  for (const auto& [key, value] : pairs) {
    if (!std::exchange(first, false)) out.add("&");
    add_quoted(out, key, true);
    out.add("=");
    add_quoted(out, value, true);
  }
  return out.take();
}

Value filter_xmlattr(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("xmlattr", arguments, {"autospace"});
  if (subject.dict() == nullptr)
    throw Failure("'xmlattr' is given " + std::string(subject.kind()) + "; it must be a dict.");
  TextBuilder out(context);
  bool first = true;
  for (const auto& [key, value] : subject.dict()->items) {
    if (value.is_none() || value.is_undefined()) continue;
    const Text name = to_text(context, key);
    if (name.bytes().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      throw Failure("'xmlattr' is given the name " + quoted_name(name.bytes()) + ", which no attribute can have.");
    }
    if (!std::exchange(first, false) || p.truth(0, true)) out.add(" ");
    out.add(escaped(context, name));
    out.add("=\"");
    out.add(escaped(context, to_text(context, value)));
    out.add("\"");
  }
  return marked_safe(out.take(), context.autoescape);
}

// ---- urlize

bool is_word_character(int32_t c) {
  return c == '_' || is_letter(c) || is_numeric(c);
}

// Whether all characters are of \w or among `others`, and there are between `least` and `most` of them.
bool is_label(std::string_view text, std::string_view others, size_t least = 1, size_t most = std::string_view::npos) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    const CodePoint c = code_point_at(text, at);
    const bool other = c.value < 0x80 && others.find(static_cast<char>(c.value)) != std::string_view::npos;
    if (!c.valid || (!other && !is_word_character(c.value))) return false;
    at += c.size;
  }
  return count >= least && count <= most;
}

bool is_domain(std::string_view labels, size_t least, size_t most) {  // "a.b." with the point at the end
  while (!labels.empty()) {
    const size_t point = labels.find('.');
    if (point == std::string_view::npos || !is_label(labels.substr(0, point), "%-", least, most)) return false;
    labels.remove_prefix(point + 1);
  }
  return true;
}

bool is_numbers(std::string_view text, size_t count) {  // four groups of up to three digits
  for (size_t i = 0; i < count; ++i) {
    const size_t end = i + 1 < count ? text.find('.') : text.size();
    if (end == std::string_view::npos || end < 1 || end > 3) return false;
    if (!std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char c) { return c >= '0' && c <= '9'; }))
      return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return text.empty();
}

bool is_ip_address(std::string_view text) {  // [1:2:3], up to eight groups
  if (!text.starts_with('[') || !text.ends_with(']') || std::count(text.begin(), text.end(), ':') < 2) return false;
  size_t digits = 0, groups = 0;
  for (const char c : text.substr(1, text.size() - 2)) {
    if (c == ':') {
      digits = 0;
      ++groups;
    } else if (std::isxdigit(static_cast<unsigned char>(c)) == 0 || ++digits > 4) {
      return false;
    }
  }
  return groups <= 8;
}

bool is_web_address(std::string_view whole) {
  std::string text(whole);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 0x20) : c;
  std::string_view rest = text;
  const bool has_scheme = rest.starts_with("https://") || rest.starts_with("http://");
  if (has_scheme) rest.remove_prefix(rest.find("//") + 2);
  const size_t host_end = rest.starts_with('[') ? std::min(rest.find(']'), rest.size() - 1) + 1
                                                : std::min(rest.find_first_of(":/?#"), rest.size());
  std::string_view host = rest.substr(0, host_end);
  rest.remove_prefix(host_end);
  if (rest.starts_with(':')) {
    const size_t end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    if (end < 2 || end > 6) return false;
    rest.remove_prefix(end);
  }
  if (!rest.empty() && std::string_view("/?#").find(rest.front()) == std::string_view::npos) return false;
  if (has_scheme && (is_numbers(host, 4) || is_ip_address(host))) return true;
  const bool has_www = host.starts_with("www.");
  std::string_view named = host;
  if (!has_scheme && has_www) named.remove_prefix(4);
  const size_t point = named.rfind('.');
  const size_t last = point == std::string_view::npos ? 0 : point + 1;
  const std::string_view top = named.substr(last);
  if (has_scheme || has_www) {
    const bool letters = std::all_of(top.begin(), top.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    const bool fits = (letters && top.size() >= 2 && top.size() <= 63) ||
                      (top.starts_with("xn--") && is_label(top.substr(4), "%", 2, 59));
    if (fits && is_domain(named.substr(0, last), 1, std::string_view::npos)) return true;
  }
  constexpr std::array<std::string_view, 8> tops = {"com", "net", "int", "edu", "gov", "org", "info", "mil"};
  const size_t host_last = host.rfind('.');
  return !has_scheme && host_last != std::string_view::npos &&
         std::find(tops.begin(), tops.end(), host.substr(host_last + 1)) != tops.end() &&
         is_domain(host.substr(0, host_last + 1), 2, 63);
}

bool is_mail_address(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view domain = text.substr(at + 1);
  const size_t point = domain.rfind('.');
  return point != std::string_view::npos && point > 0 && domain.front() != '.' && domain.front() != '-' &&
         is_label(domain.substr(0, point), ".-") && is_label(domain.substr(point + 1), "");
}

size_t count_of(std::string_view text, std::string_view sought) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(sought, at)) != std::string_view::npos; at += sought.size()) ++count;
  return count;
}

class Urlizer {
 public:
  Urlizer(Context& context, const Parameters& p) : out_(context) {
    if (p.find(0) != nullptr && !p.at(0).is_none()) limit_ = p.integer(0, 0);
    std::set<std::string> parts = {"noopener"};
    if (p.truth(1, false)) parts.insert("nofollow");
    if (const Text* rel = p.text_or_null(3)) {
      for (const Value& part : split(context, *rel, nullptr, -1)) parts.insert(std::string(part.text()->bytes()));
    }
    std::string rel;
    for (const std::string& part : parts) rel += (rel.empty() ? "" : " ") + part;
    const bool is_markup = p.text_or_null(3) == nullptr;
    attributes_ = Text(" rel=\"");
    attributes_.append(escaped(context, Text(rel, is_markup ? Origin::markup : Origin::content)));
    attributes_.append("\"", Origin::markup);
    if (const Text* target = p.text_or_null(2)) {
      attributes_.append(" target=\"", Origin::markup);
      attributes_.append(escaped(context, *target));
      attributes_.append("\"", Origin::markup);
    }
    if (p.find(4) == nullptr || p.at(4).is_none()) return;
    for (const Value& scheme : elements(context, p.at(4))) {
      const std::string name = scheme.text() == nullptr ? "" : std::string(scheme.text()->bytes());
      const size_t colon = name.find(':');
      const bool valid = colon != std::string::npos && is_label(std::string_view(name).substr(0, colon), ".+-", 2) &&
                         (name.substr(colon) == ":" || name.substr(colon) == ":/" || name.substr(colon) == "://");
      if (!valid) throw Failure("'urlize' is given " + quoted_name(name) + ", which does not begin an address.");
      schemes_.push_back(name);
    }
  }

  Text run(const Text& text) {
    const std::string_view bytes = text.bytes();
    size_t begin = 0;
    for (size_t at = 0; at < bytes.size();) {
      const CodePoint c = code_point_at(bytes, at);
      if (c.valid && is_space(c.value)) {
        add_word(text, begin, at);
        out_.add(text, at, c.size);
        begin = at + c.size;
      }
      at += c.size;
    }
    add_word(text, begin, bytes.size());
    return out_.take();
  }

 private:
  void add_word(const Text& text, size_t begin, size_t end) {
    if (begin == end) return;
    out_.context().step();
    const std::string_view word = text.bytes().substr(begin, end - begin);
    size_t head = 0, tail = word.size();
    while (head < word.size() && (word[head] == '(' || word[head] == '<' || word.substr(head, 4) == "&lt;")) {
      head += word[head] == '&' ? 4 : 1;
    }
    const auto ends = [&] {
      const std::string_view left = word.substr(head, tail - head);
      if (left.ends_with("&gt;")) return 4;
      return !left.empty() && std::string_view(")>.,").find(left.back()) != std::string_view::npos ? 1 : 0;
    };
    while (const int size = ends()) tail -= static_cast<size_t>(size);
    constexpr std::pair<std::string_view, std::string_view> pairs[] = {{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}};
    for (const auto& [open, close] : pairs) {
      const std::string_view middle = word.substr(head, tail - head);
      const size_t opened = count_of(middle, open);
      if (opened <= count_of(middle, close)) continue;
      for (size_t i = std::min(opened, count_of(word.substr(tail), close)); i > 0; --i)
        tail = word.find(close, tail) + close.size();
    }
    out_.add(text, begin, head);
    add_middle(text, begin + head, begin + tail);
    out_.add(text, begin + tail, word.size() - tail);
  }

  void add_middle(const Text& text, size_t begin, size_t end) {
    const std::string_view middle = text.bytes().substr(begin, end - begin);
    const bool at_sign = middle.find('@') != std::string_view::npos;
    if (is_web_address(middle)) {
      const bool has_scheme = middle.starts_with("https://") || middle.starts_with("http://");
      return link(has_scheme ? "" : "https://", text, begin, end, true, limit_, 0);
    }
    if (middle.starts_with("mailto:") && is_mail_address(middle.substr(7)))
      return link("", text, begin, end, false, {}, 7);
    if (at_sign && !middle.starts_with("www.") && !middle.starts_with('@') &&
        middle.find(':') == std::string_view::npos && is_mail_address(middle)) {
      return link("mailto:", text, begin, end, false, {}, 0);
    }
    for (const std::string& scheme : schemes_) {
      if (middle != scheme && middle.starts_with(scheme)) return link("", text, begin, end, true, {}, 0);
    }
    out_.add(text, begin, end - begin);
  }

  void link(std::string_view prefix, const Text& text, size_t begin, size_t end, bool with_attributes,
            std::optional<int64_t> limit, size_t hidden) {
    out_.add("<a href=\"");
    out_.add(prefix);
    out_.add(text, begin, end - begin);
    out_.add("\"");
    if (with_attributes) out_.add(attributes_);
    out_.add(">");
    const Text shown = text.part(begin + hidden, end - begin - hidden);
    const auto starts = character_starts(shown.bytes());
    const auto count = static_cast<int64_t>(starts.size()) - 1;
    if (limit && count > *limit) {
      out_.add(shown, 0, starts[static_cast<size_t>(std::max<int64_t>(*limit < 0 ? count + *limit : *limit, 0))]);
      out_.add("...");
    } else {
      out_.add(shown);
    }
    out_.add("</a>");
  }

  TextBuilder out_;
  Text attributes_;
  std::vector<std::string> schemes_;
  std::optional<int64_t> limit_;
};

Value filter_urlize(Context& context, const Value& subject, const Arguments& arguments) {
  const Parameters p("urlize", arguments, {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"});
  const Text text = escaped(context, to_text(context, subject));
  return marked_safe(Urlizer(context, p).run(text), context.autoescape);
}

constexpr Filter text_filter_list[] = {
    {"capitalize", change_case<capitalize>},
    {"center", filter_center},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"forceescape", filter_forceescape},
    {"format", filter_format},
    {"indent", filter_indent},
    {"lower", change_case<lower>},
    {"pprint", filter_pprint},
    {"replace", filter_replace},
    {"safe", filter_safe},
    {"string", filter_string},
    {"striptags", filter_striptags},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"upper", change_case<upper>},
    {"urlencode", filter_urlencode},
    {"urlize", filter_urlize},
    {"wordcount", filter_wordcount},
    {"wordwrap", filter_wordwrap},
    {"xmlattr", filter_xmlattr},
};

}  // namespace

std::span<const Filter> text_filters() {
  return text_filter_list;
}

}  // namespace canopy::jinja
