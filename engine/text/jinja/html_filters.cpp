// Filters for HTML and for addresses in it.

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "engine/base/printable.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/format_text.h"
#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/text_operations.h"

namespace canopy::jinja {
namespace {

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

constexpr Filter html_filter_list[] = {
    {"e", filter_escape},      {"escape", filter_escape},       {"forceescape", filter_forceescape},
    {"safe", filter_safe},     {"striptags", filter_striptags}, {"urlencode", filter_urlencode},
    {"urlize", filter_urlize}, {"xmlattr", filter_xmlattr},
};

}  // namespace

std::span<const Filter> html_filters() {
  return html_filter_list;
}

}  // namespace canopy::jinja
