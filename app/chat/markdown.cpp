#include "app/chat/markdown.h"

#include <md4c.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "app/chat/markdown_spans.h"

namespace canopy::app {
namespace {

constexpr unsigned kFlags =
    MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_PERMISSIVEAUTOLINKS | MD_FLAG_NOHTML;
// What stands for a formula while md4c reads: a letter has no meaning, and the word of them is never divided.
constexpr char kStandIn = 'x';
// Lists and quotes inside each other; deeper ones are not indented further, for lack of room.
constexpr uint8_t kDeepest = 12;
constexpr size_t kLongestMarker = 2;  // of a footnote, in bytes: it stands where the number of a list item does

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
  } else if (c < 0x10000) {
    out += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
            static_cast<char>(0x80 | (c & 63))};
  } else {
    out += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
            static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
  }
}

/// The character of "&amp;" or "&#955;"; the entity itself if it is not known.
std::string entity_text(std::string_view entity) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kNamed = {{{"&amp;", "&"},
                                                                                     {"&lt;", "<"},
                                                                                     {"&gt;", ">"},
                                                                                     {"&quot;", "\""},
                                                                                     {"&apos;", "'"},
                                                                                     {"&nbsp;", "\u00a0"},
                                                                                     {"&ndash;", "\u2013"},
                                                                                     {"&mdash;", "\u2014"},
                                                                                     {"&hellip;", "\u2026"},
                                                                                     {"&times;", "\u00d7"},
                                                                                     {"&rarr;", "\u2192"},
                                                                                     {"&copy;", "\u00a9"}}};
  for (const auto& [name, text] : kNamed)
    if (entity == name) return std::string(text);
  if (!entity.starts_with("&#")) return std::string(entity);
  const bool hex = entity.size() > 2 && (entity[2] == 'x' || entity[2] == 'X');
  const unsigned long c = std::strtoul(std::string(entity.substr(hex ? 3 : 2)).c_str(), nullptr, hex ? 16 : 10);
  if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return std::string(entity);
  std::string out;
  append_utf8(out, static_cast<uint32_t>(c));
  return out;
}

struct List {
  bool ordered = false;
  unsigned next = 1;
};

/// The text as md4c gets it.
std::string with_stand_ins(std::string_view text, const std::vector<MarkdownSpan>& spans) {
  std::string out(text);
  for (const MarkdownSpan& span : spans)
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(span.begin),
              out.begin() + static_cast<std::ptrdiff_t>(span.end), kStandIn);
  return out;
}

/// Receives md4c's calls and makes blocks of them.
class Builder {
 public:
  /// `read`: what md4c reads; of the same length as `text`.
  Builder(std::string_view text, std::string_view read, const std::vector<MarkdownSpan>& spans, uint32_t offset)
      : text_(text), source_(read), spans_(spans), offset_(offset) {}

  std::vector<Block> take() {
    close();
    return std::move(blocks_);
  }

  void enter(MD_BLOCKTYPE type, void* detail) {
    switch (type) {
      case MD_BLOCK_QUOTE: around_ += 'q'; break;
      case MD_BLOCK_UL:
        around_ += 'l';
        lists_.push_back({false, 0});
        break;
      case MD_BLOCK_OL:
        around_ += 'l';
        lists_.push_back({true, static_cast<MD_BLOCK_OL_DETAIL*>(detail)->start});
        break;
      case MD_BLOCK_LI: begin_item(*static_cast<MD_BLOCK_LI_DETAIL*>(detail)); break;
      case MD_BLOCK_HR:
        open(Block::Kind::rule);
        close();
        break;
      case MD_BLOCK_H:
        open(Block::Kind::heading).level = static_cast<uint8_t>(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level);
        break;
      case MD_BLOCK_CODE: {
        const MD_ATTRIBUTE& lang = static_cast<MD_BLOCK_CODE_DETAIL*>(detail)->lang;
        open(Block::Kind::code).language = written(lang);
        break;
      }
      case MD_BLOCK_HTML:
      case MD_BLOCK_P: open(Block::Kind::paragraph); break;
      case MD_BLOCK_TABLE:
        open(Block::Kind::table).columns = static_cast<MD_BLOCK_TABLE_DETAIL*>(detail)->col_count;
        row_ = UINT32_MAX;
        break;
      case MD_BLOCK_TR: ++row_, column_ = 0; break;
      case MD_BLOCK_TH:
      case MD_BLOCK_TD: begin_cell(static_cast<MD_BLOCK_TD_DETAIL*>(detail)->align); break;
      default: break;
    }
  }

  void leave(MD_BLOCKTYPE type) {
    switch (type) {
      case MD_BLOCK_QUOTE: leave_container(); break;
      case MD_BLOCK_UL:
      case MD_BLOCK_OL:
        leave_container();
        lists_.pop_back();
        break;
      case MD_BLOCK_LI: end_item(); break;
      case MD_BLOCK_TH:
      case MD_BLOCK_TD: blocks_.back().cells.back().end = static_cast<uint32_t>(blocks_.back().text.size()); break;
      case MD_BLOCK_H:
      case MD_BLOCK_CODE:
      case MD_BLOCK_P:
      case MD_BLOCK_HTML:
      case MD_BLOCK_TABLE: close(); break;
      default: break;
    }
  }

  void enter_span(MD_SPANTYPE type, void* detail) {
    if (type == MD_SPAN_A || type == MD_SPAN_IMG) {
      const MD_ATTRIBUTE& href = type == MD_SPAN_A ? static_cast<MD_SPAN_A_DETAIL*>(detail)->href
                                                   : static_cast<MD_SPAN_IMG_DETAIL*>(detail)->src;
      std::vector<std::string>& links = block().links;
      around_link_.push_back(link_);
      if (links.size() < TextRun::no_link) {
        link_ = static_cast<uint16_t>(links.size());
        links.push_back(written(href));
      }
      image_begin_ = block().text.size();
    }
    styles_.push_back(style());
    if (type == MD_SPAN_EM) styles_.back() |= kEmphasis;
    if (type == MD_SPAN_STRONG) styles_.back() |= kStrong;
    if (type == MD_SPAN_CODE) styles_.back() |= kCode;
    if (type == MD_SPAN_DEL) styles_.back() |= kStruck;
  }

  void leave_span(MD_SPANTYPE type) {
    if (type == MD_SPAN_IMG && block().text.size() == image_begin_)  // no words for it
      add("image", TextRun::no_source, TextRun::no_source);
    if (type == MD_SPAN_A || type == MD_SPAN_IMG) {
      link_ = around_link_.empty() ? TextRun::no_link : around_link_.back();
      if (!around_link_.empty()) around_link_.pop_back();
    }
    if (!styles_.empty()) styles_.pop_back();
  }

  void text(MD_TEXTTYPE type, std::string_view piece) {
    switch (type) {
      case MD_TEXT_BR:
      case MD_TEXT_SOFTBR: add_break(); break;
      case MD_TEXT_NULLCHAR:
        add_indentation(std::string_view::npos);
        add("\uFFFD", TextRun::no_source, TextRun::no_source);
        break;
      case MD_TEXT_ENTITY: {
        const uint32_t at = source_of(piece);
        add(entity_text(piece), at, at == TextRun::no_source ? at : at + static_cast<uint32_t>(piece.size()));
        break;
      }
      default: {
        const uint32_t at = source_of(piece);
        if (at == TextRun::no_source && piece == "\n") return add_break();
        if (at == TextRun::no_source && block().kind == Block::Kind::code) {
          // Columns only, since md4c turns tabs into spaces; the original characters are added with the next words.
          indentation_ += piece.size();
          return;
        }
        add_indentation(at == TextRun::no_source ? std::string_view::npos : at - offset_);
        if (at == TextRun::no_source)
          add(piece, at, at);
        else if (type == MD_TEXT_CODE)
          add_source(at - offset_, at - offset_ + piece.size());
        else
          add_words(at - offset_, at - offset_ + piece.size());
      }
    }
  }

 private:
  uint8_t style() const { return styles_.empty() ? static_cast<uint8_t>(kPlain) : styles_.back(); }

  /// The source position of a piece of text from md4c, or no_source: md4c makes some pieces up (line ends,
  /// indentation).
  uint32_t source_of(std::string_view piece) const {
    const auto at = reinterpret_cast<uintptr_t>(piece.data()), begin = reinterpret_cast<uintptr_t>(source_.data());
    if (at < begin || at + piece.size() > begin + source_.size()) return TextRun::no_source;
    return offset_ + static_cast<uint32_t>(at - begin);
  }

  /// An attribute as it stands in the source.
  std::string written(const MD_ATTRIBUTE& attribute) const {
    const std::string_view read(attribute.text ? attribute.text : "", attribute.size);
    const uint32_t at = source_of(read);
    return std::string(read.empty() || at == TextRun::no_source ? read : text_.substr(at - offset_, read.size()));
  }

  Block& block() { return is_open_ ? blocks_.back() : open(Block::Kind::paragraph); }

  Block& open(Block::Kind kind) {
    close();
    Block block;
    block.kind = kind;
    block.around = around_.substr(0, kDeepest) + (in_note_ ? "l" : "");
    block.indent = static_cast<uint8_t>(std::count(block.around.begin(), block.around.end(), 'l'));
    block.quotes = static_cast<uint8_t>(block.around.size() - block.indent);
    block.shared = static_cast<uint8_t>(std::min({shared_, around_.size(), size_t{kDeepest}}));
    shared_ = around_.size();
    skips_blanks_ = false;
    block.marker = std::exchange(marker_, "");
    blocks_.push_back(std::move(block));
    is_open_ = true;
    return blocks_.back();
  }

  void close() {
    if (!is_open_) return;
    is_open_ = false;
    Block& block = blocks_.back();
    if (block.kind == Block::Kind::code && block.text.ends_with('\n')) trim_end(block);
    if (block.kind != Block::Kind::code && block.kind != Block::Kind::table)
      while (block.text.ends_with('\n') || block.text.ends_with(' ')) trim_end(block);
    block.source_begin = TextRun::no_source;
    block.source_end = 0;
    for (const TextRun& run : block.runs) {
      if (run.source == TextRun::no_source) continue;
      block.source_begin = std::min(block.source_begin, run.source);
      block.source_end = std::max(block.source_end, run.source_end);
    }
    if (block.source_begin == TextRun::no_source)
      block.source_begin = block.source_end = last_;
    else
      last_ = block.source_end;
  }

  /// Removes the last character, a newline or a blank: the one at the end of code would show as an empty line.
  static void trim_end(Block& block) {
    block.text.pop_back();
    TextRun& last = block.runs.back();
    --last.end;
    if (last.source != TextRun::no_source) --last.source_end;
    if (last.begin == last.end) block.runs.pop_back();
  }

  void leave_container() {
    close();
    around_.pop_back();
    shared_ = std::min(shared_, around_.size());
  }

  void begin_item(const MD_BLOCK_LI_DETAIL& item) {
    close();
    List& list = lists_.back();
    marker_ = list.ordered ? std::to_string(list.next++) + "." : "\u2022";
    if (item.is_task) marker_ = item.task_mark == ' ' ? "\u2610" : "\u2611";
  }

  /// Adds bytes [from, end) of the source, in which there may be spans.
  void add_words(size_t from, size_t end) {
    auto span =
        std::partition_point(spans_.begin(), spans_.end(), [&](const MarkdownSpan& each) { return each.end <= from; });
    for (; span != spans_.end() && span->begin < end; ++span) {
      if (span->begin > from) add_source(from, span->begin);
      add_span(*span);
      from = span->end;
    }
    if (from < end) add_source(from, end);
  }

  void add_source(size_t from, size_t end) {
    add(text_.substr(from, end - from), offset_ + static_cast<uint32_t>(from), offset_ + static_cast<uint32_t>(end));
  }

  /// Adds the inner part of a span in a style.
  void add_inner(const MarkdownSpan& span, int style_bits) {
    styles_.push_back(static_cast<uint8_t>(style() | style_bits | (span.open ? kUnended : 0)));
    add_source(span.inner_begin, span.inner_end);
    styles_.pop_back();
  }

  void add_span(const MarkdownSpan& span) {
    switch (span.kind) {
      case MarkdownSpan::Kind::formula: add_inner(span, kMaths); break;
      case MarkdownSpan::Kind::display: add_display(span); break;
      case MarkdownSpan::Kind::note: add_inner(span, kNote); break;
      case MarkdownSpan::Kind::note_text: begin_note(span); break;
      case MarkdownSpan::Kind::line_break:
        add("\n", offset_ + static_cast<uint32_t>(span.begin), offset_ + static_cast<uint32_t>(span.end));
        break;
    }
    last_ = std::max(last_, offset_ + static_cast<uint32_t>(span.end));
  }

  /// A formula with a line of its own: between two paragraphs, where what is around it can be divided.
  void add_display(const MarkdownSpan& span) {
    const bool divides = (!is_open_ || blocks_.back().kind == Block::Kind::paragraph) && link_ == TextRun::no_link;
    if (!divides || span.inner_begin == span.inner_end) return add_inner(span, kMaths);
    drop_if_empty();
    open(Block::Kind::formula);
    add_inner(span, kMaths);
    close();
    skips_blanks_ = true;
  }

  /// A paragraph with the text of a footnote.
  void begin_note(const MarkdownSpan& span) {
    if (is_open_ && blocks_.back().kind != Block::Kind::paragraph) return add_source(span.begin, span.end);
    drop_if_empty();
    const std::string label(text_.substr(span.inner_begin, span.inner_end - span.inner_begin));
    const bool fits = label.size() <= kLongestMarker;
    marker_ = fits ? label + "." : "\u2020";
    in_note_ = true;
    open(Block::Kind::paragraph);
    in_note_ = false;
    if (!fits) add_inner(span, kNote);
    skips_blanks_ = fits;
  }

  /// Takes the open paragraph back if nothing is in it.
  void drop_if_empty() {
    if (!is_open_ || blocks_.back().text.find_first_not_of(" \n") != std::string::npos) return;
    marker_ = blocks_.back().marker;
    shared_ = blocks_.back().shared;
    blocks_.pop_back();
    is_open_ = false;
  }

  void end_item() {
    if (!marker_.empty()) open(Block::Kind::paragraph);  // an item without text, to show its marker
    close();
  }

  void begin_cell(MD_ALIGN align) {
    const auto at = static_cast<uint32_t>(block().text.size());
    const auto side = align == MD_ALIGN_CENTER  ? TableCell::Align::centre
                      : align == MD_ALIGN_RIGHT ? TableCell::Align::right
                                                : TableCell::Align::left;
    blocks_.back().cells.push_back({at, at, row_, column_++, side});
  }

  /// Adds a newline, which stands for the next line end of the source.
  void add_break() {
    const size_t from = last_ - offset_;
    const size_t at = source_.find('\n', from);
    add_indentation(std::min(at, source_.size()));
    if (at == std::string_view::npos) return add("\n", TextRun::no_source, TextRun::no_source);
    const auto source = offset_ + static_cast<uint32_t>(at);
    add("\n", source, source + 1);
  }

  /// Adds the indentation before byte `words` of a line of code: the spaces and tabs of the source, as many columns as
  /// md4c reported. Where the source has none (a list indented inside a tab), adds that many spaces.
  void add_indentation(size_t words) {
    const size_t width = std::exchange(indentation_, 0);
    if (width == 0) return;
    if (words <= source_.size()) {
      const size_t line = words == 0 ? 0 : source_.rfind('\n', words - 1) + 1;
      const auto next = [&](size_t column, size_t i) { return source_[i] == '\t' ? (column / 4 + 1) * 4 : column + 1; };
      // Goes over the line twice, not once for each space: a model that repeats itself may write thousands of spaces.
      size_t end = 0, from = words;
      for (size_t i = line; i < words; ++i) end = next(end, i);
      for (size_t i = line, column = 0; i < words; column = next(column, i), ++i)
        if (column + width == end) from = i;
      const bool blank = source_.substr(from, words - from).find_first_not_of(" \t") == std::string_view::npos;
      if (from < words && blank) {
        const uint32_t source = offset_ + static_cast<uint32_t>(from);
        return add(source_.substr(from, words - from), source, source + static_cast<uint32_t>(words - from));
      }
    }
    add(std::string(width, ' '), TextRun::no_source, TextRun::no_source);
  }

  void add(std::string_view piece, uint32_t source, uint32_t source_end) {
    if (skips_blanks_) {  // a paragraph that goes on below a formula, without what divided them
      const size_t words = std::min(piece.find_first_not_of(" \n"), piece.size());
      const bool exact_blanks = source != TextRun::no_source && source_end - source == piece.size();
      piece.remove_prefix(words);
      if (exact_blanks) source += static_cast<uint32_t>(words);
      if (piece.empty() && source != TextRun::no_source) last_ = std::max(last_, source_end);
    }
    if (piece.empty()) return;
    skips_blanks_ = false;
    Block& to = block();
    const auto begin = static_cast<uint32_t>(to.text.size()), end = begin + static_cast<uint32_t>(piece.size());
    to.text += piece;
    if (source != TextRun::no_source) last_ = source_end;
    const bool exact = source == TextRun::no_source || source_end - source == piece.size();
    if (!to.runs.empty() && exact) {
      TextRun& back = to.runs.back();
      const bool back_exact =
          back.source != TextRun::no_source && back.source_end - back.source == back.end - back.begin;
      const bool goes_on = source != TextRun::no_source && back_exact && back.source_end == source;
      if (goes_on && back.style == style() && back.link == link_) {
        back.end = end;
        back.source_end = source_end;
        return;
      }
    }
    to.runs.push_back({begin, end, source, source_end, style(), link_});
  }

  std::string_view text_, source_;
  const std::vector<MarkdownSpan>& spans_;
  uint32_t offset_;
  uint32_t last_ = offset_;  // end of the source that has been shown so far
  std::vector<Block> blocks_;
  bool is_open_ = false;
  std::vector<List> lists_;
  std::string around_;  // the lists and quotes that are open
  size_t shared_ = 0;   // how many of them the last block was in
  bool in_note_ = false;
  bool skips_blanks_ = false;  // until the next word
  std::string marker_;
  std::vector<uint8_t> styles_;
  uint16_t link_ = TextRun::no_link;
  std::vector<uint16_t> around_link_;  // an image may be in a link
  size_t image_begin_ = 0;
  uint32_t row_ = 0, column_ = 0;
  size_t indentation_ = 0;  // columns before the next words of code
};

Builder& of(void* data) {
  return *static_cast<Builder*>(data);
}

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> Block::shown_of(uint32_t from, uint32_t to) const {
  std::vector<std::pair<uint32_t, uint32_t>> shown;
  if (to <= source_begin || from >= source_end) return shown;
  for (const TextRun& run : runs) {
    if (run.source == TextRun::no_source || run.source >= to || run.source_end <= from) continue;
    const bool exact = run.source_end - run.source == run.end - run.begin;
    uint32_t a = run.begin, b = run.end;
    if (exact) {
      a += std::max(from, run.source) - run.source;
      b -= run.source_end - std::min(to, run.source_end);
    }
    if (!shown.empty() && shown.back().second == a)
      shown.back().second = b;
    else
      shown.emplace_back(a, b);
  }
  return shown;
}

uint32_t Block::source_of(uint32_t byte) const {
  uint32_t before = source_begin;
  for (const TextRun& run : runs) {
    if (run.source == TextRun::no_source) continue;
    if (byte < run.begin) return before;
    const bool exact = run.source_end - run.source == run.end - run.begin;
    if (byte < run.end) return exact ? run.source + (byte - run.begin) : run.source;
    before = run.source_end;
  }
  return before;
}

std::vector<Block> parse_markdown(std::string_view text, uint32_t offset, bool growing) {
  const std::string ended = growing ? completed(text) : std::string();
  if (growing) text = ended;
  const std::vector<MarkdownSpan> spans = find_spans(text, growing);
  const std::string read = with_stand_ins(text, spans);
  Builder builder(text, read, spans, offset);
  MD_PARSER parser = {};
  parser.flags = kFlags;
  parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* data) { return of(data).enter(type, detail), 0; };
  parser.leave_block = [](MD_BLOCKTYPE type, void*, void* data) { return of(data).leave(type), 0; };
  parser.enter_span = [](MD_SPANTYPE type, void* detail, void* data) { return of(data).enter_span(type, detail), 0; };
  parser.leave_span = [](MD_SPANTYPE type, void*, void* data) { return of(data).leave_span(type), 0; };
  parser.text = [](MD_TEXTTYPE type, const MD_CHAR* piece, MD_SIZE size, void* data) {
    return of(data).text(type, {piece, size}), 0;
  };
  if (md_parse(read.data(), static_cast<MD_SIZE>(read.size()), &parser, &builder) != 0) {
    std::vector<Block> plain = plain_block(text);  // used if md4c fails: out of memory, or nested too deeply
    for (Block& block : plain) {
      block.runs[0].source += offset, block.runs[0].source_end += offset;
      block.source_begin += offset, block.source_end += offset;
    }
    return plain;
  }
  return builder.take();
}

std::vector<Block> plain_block(std::string_view text) {
  Block block;
  block.text = text;
  const auto size = static_cast<uint32_t>(text.size());
  block.runs.push_back({0, size, 0, size, kPlain, TextRun::no_link});
  block.source_end = size;
  return {std::move(block)};
}

size_t open_tail(std::string_view text, size_t from) {
  size_t tail = from, fenced = 0;
  char fence_mark = 0;
  bool after_empty = false;
  for (size_t at = from; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const bool empty = line.find_first_not_of(" \t\r") == std::string_view::npos;
    if (!fenced && after_empty && !empty && line[0] != ' ' && line[0] != '\t') tail = at;
    char mark = 0;
    const size_t length = fence_of(line, mark);
    if (!fenced && length) {
      fenced = length;
      fence_mark = mark;
    } else if (fenced && ends_fence(line, fence_mark, fenced)) {
      fenced = 0;
    }
    after_empty = empty && end < text.size();
    at = end + 1;
  }
  return tail;
}

void MarkdownText::update(std::string_view text, bool growing) {
  if (text.size() == bytes_ && growing == growing_ && bytes_ > 0) return;
  if (text.size() < bytes_) clear();
  bytes_ = text.size();
  growing_ = growing;
  const size_t tail = open_tail(text, closed_bytes_);
  blocks_.resize(closed_blocks_);
  auto add = [&](size_t begin, size_t end) {
    const bool open = growing && end == text.size();
    for (Block& block : parse_markdown(text.substr(begin, end - begin), static_cast<uint32_t>(begin), open)) {
      // A block without text (a rule) gets the source position after the block before it, however the text was cut.
      if (block.source_begin == block.source_end)
        block.source_begin = block.source_end = blocks_.empty() ? 0 : blocks_.back().source_end;
      blocks_.push_back(std::move(block));
    }
  };
  if (tail > closed_bytes_) {
    add(closed_bytes_, tail);
    closed_bytes_ = tail;
    closed_blocks_ = blocks_.size();
  }
  add(tail, text.size());
}

}  // namespace canopy::app
