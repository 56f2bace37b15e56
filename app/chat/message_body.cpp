#include "app/chat/message_body.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "app/ui/script_text.h"

namespace canopy::app {
namespace {

constexpr float kPitch = 22;
constexpr float kIndent = 20;       // of a list
constexpr float kQuote = 14;        // of a block quote
constexpr float kCodePadding = 10;  // of the card of a code block
constexpr float kCodeHead = 30;     // height of its line with language and Copy
constexpr float kCellPadding = 8;
constexpr float kCellLeast = 100;  // a column is not wrapped narrower; the table scrolls instead
constexpr float kBarHeight = 6, kBarRoom = 12;
constexpr float kThumbLeast = 24;
constexpr float kWheelStep = 60, kKeyStep = 120;
constexpr float kNoteRise = 4;
constexpr float kMathsSize = 1.2f;  // its small letters are then as large as those of the text around it
constexpr size_t kMissingShown = 8;
constexpr float kCaretRoom = 11;
constexpr float kSlant = 0.2f;  // there is no italic font: upright letters are sheared by this

struct Decoded {
  uint32_t c = 0;
  uint32_t length = 1;
};

Decoded decode(const std::string& text, uint32_t at) {
  unsigned c = 0;
  const int length = ImTextCharFromUtf8(&c, text.data() + at, text.data() + text.size());
  return {c, static_cast<uint32_t>(std::max(1, length))};
}

/// Characters of scripts without spaces: a line may be broken after any of them.
bool breaks_anywhere(uint32_t c) {
  return (c >= 0x2E80 && c <= 0xD7FF && !(c >= 0xAC00 && c <= 0xD7A3)) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFF00 && c <= 0xFFEF) || (c >= 0x20000 && c <= 0x3FFFF);
}

/// Punctuation that must not begin a line.
bool clings(uint32_t c) {
  switch (c) {
    case 0x3001:
    case 0x3002:
    case 0x300D:
    case 0x300F:
    case 0x3011:
    case 0x3015:
    case 0xFF01:
    case 0xFF09:
    case 0xFF0C:
    case 0xFF0E:
    case 0xFF1A:
    case 0xFF1B:
    case 0xFF1F:
    case ',':
    case '.':
    case ')':
    case '!':
    case '?':
    case ':':
    case ';': return true;
    default: return false;
  }
}

float advance_of(Type type, uint32_t c) {
  ImFontBaked* baked = font_of(type)->GetFontBaked(text_height(type));
  return baked->GetCharAdvance(static_cast<ImWchar>(c)) * (text_height(type) / baked->Size);
}

/// From the top of a line of text to its baseline, in pixels.
float ascent_of(Type type) {
  ImFontBaked* baked = font_of(type)->GetFontBaked(text_height(type));
  return baked->Ascent * (text_height(type) / baked->Size);
}

/// From the top of a line of that height to the baseline of its letters, in pixels.
float chat_baseline(float pitch) {
  return (pitch - text_height(Type::chat)) * 0.5f + ascent_of(Type::chat);
}

bool has_glyph(Type type, uint32_t c) {
  return app::has_glyph(font_of(type), c);
}

/// Draws the box of a task; `at` is the middle of its left edge.
void draw_task_box(ImDrawList* list, ImVec2 at, bool done) {
  const Theme& t = colours();
  const ImVec2 a = {at.x, std::floor(at.y - px(6))}, b = {a.x + px(12), a.y + px(12)};
  if (!done) return list->AddRect(a, b, t.ctl, px(3), px(1.5f));
  list->AddRectFilled(a, b, t.accent, px(3));
  const ImVec2 tick[] = {{a.x + px(3), a.y + px(6)}, {a.x + px(5), a.y + px(9)}, {a.x + px(9), a.y + px(3)}};
  list->AddPolyline(tick, 3, t.on_accent, px(1.5f));
}

/// The room that lists and quotes around a block take at its left, in pixels.
float left_of_containers(std::string_view around) {
  float left = 0;
  for (const char c : around) left += px(c == 'q' ? kQuote : kIndent);
  return left;
}

}  // namespace

Type RichBlock::type_of(Face face) {
  switch (face) {
    case Face::regular: return Type::chat;
    case Face::strong: return Type::chat_semibold;
    case Face::mono: return Type::mono;
    case Face::title: return Type::title;
    case Face::note: return Type::caption;
  }
  return Type::chat;
}

RichBlock::Face RichBlock::face_for(const Block& block, uint8_t style) const {
  if (block.kind == Block::Kind::code || (style & (kCode | kMaths))) return Face::mono;
  if (style & kNote) return Face::note;
  if (block.kind == Block::Kind::heading) return block.level <= 2 ? Face::title : Face::strong;
  return style & kStrong ? Face::strong : Face::regular;
}

/// Measures the advance of each byte and finds the stretches of one face.
void RichBlock::measure(const Block& block, float room) {
  advance_.assign(block.text.size(), 0);
  faces_.clear();
  missing_.clear();
  formulas_.clear();
  if (block.kind == Block::Kind::code) code_.update(block.text, block.language);
  for (const TextRun& run : block.runs)
    if (!(run.style & kMaths) || (run.style & kUnended) || !measure_formula(block, run, room))
      measure_words(block, run);
}

/// Measures a formula. Returns false if it cannot be typeset.
bool RichBlock::measure_formula(const Block& block, const TextRun& run, float room) {
  const bool display = block.kind == Block::Kind::formula;
  const auto maths = typeset(std::string_view(block.text).substr(run.begin, run.end - run.begin), display);
  if (!maths) return false;
  const Type type = block.kind == Block::Kind::heading && block.level <= 2 ? Type::title : Type::chat;
  float em = text_height(type) / text_height(type, 1) * look().scale * kMathsSize;
  // In a line of text it must fit; in a table or in a line of its own it can be scrolled.
  if (!display && block.kind != Block::Kind::table) em *= std::min(1.0f, room / (maths->width * em));
  float letters = 0;
  for (uint32_t at = run.begin; at < run.end; at += decode(block.text, at).length) ++letters;
  for (uint32_t at = run.begin; at < run.end; at += decode(block.text, at).length)
    advance_[at] = maths->width * em / letters;
  formulas_.push_back({run.begin, run.end, maths, em});
  faces_.push_back({run.begin, run.end, 0, Face::regular, run.style, run.link, CodeKind::plain,
                    static_cast<uint32_t>(formulas_.size())});
  return true;
}

/// Measures words. Characters that a face lacks are taken from the regular one, which has the fonts of other scripts.
void RichBlock::measure_words(const Block& block, const TextRun& run) {
  auto code = code_.runs().begin();
  const auto code_end = block.kind == Block::Kind::code ? code_.runs().end() : code;
  code = std::partition_point(code, code_end, [&](const CodeRun& each) { return each.end <= run.begin; });
  for (uint32_t at = run.begin; at < run.end;) {
    const Decoded d = decode(block.text, at);
    Face face = face_for(block, run.style);
    if (face != Face::regular && d.c >= 0x80 && !has_glyph(type_of(face), d.c) && has_glyph(Type::chat, d.c))
      face = Face::regular;
    if (d.c >= 0x80 && !is_invisible(d.c) && !has_glyph(type_of(face), d.c) && missing_.size() < kMissingShown &&
        std::find(missing_.begin(), missing_.end(), d.c) == missing_.end())
      missing_.push_back(d.c);
    if (d.c != '\n' && !(d.c >= 0x80 && is_invisible(d.c)))
      advance_[at] = d.c == '\t' ? advance_of(type_of(face), ' ') * 4 : advance_of(type_of(face), d.c);
    while (code != code_end && code->end <= at) ++code;
    const CodeKind kind = code != code_end && code->begin <= at ? code->kind : CodeKind::plain;
    const uint32_t next = std::min(at + d.length, run.end);
    const bool same = !faces_.empty() && faces_.back().end == at && faces_.back().face == face &&
                      faces_.back().style == run.style && faces_.back().link == run.link &&
                      faces_.back().kind == kind && faces_.back().formula == 0;
    if (same)
      faces_.back().end = next;
    else
      faces_.push_back({at, next, 0, face, run.style, run.link, kind, 0});
    at = next;
  }
}

float RichBlock::advance(uint32_t begin, uint32_t end) const {
  float sum = 0;
  for (uint32_t i = begin; i < end; ++i) sum += advance_[i];
  return sum;
}

void RichBlock::add_line(uint32_t begin, uint32_t end, float x, float y) {
  float width = 0;
  for (uint32_t i = begin; i < end; ++i) {
    at_[i] = width;
    width += advance_[i];
  }
  lines_.push_back({begin, end, x, y, width, pitch_, 0});
  if (!formulas_.empty()) grow_for_formulas(lines_.back());
  widest_ = std::max(widest_, x + width);
}

/// Makes a line as high as the formulas in it need.
void RichBlock::grow_for_formulas(Line& line) const {
  const float over = chat_baseline(pitch_), under = pitch_ - over;
  float above = 0, below = 0;
  auto formula = std::partition_point(formulas_.begin(), formulas_.end(),
                                      [&](const Formula& each) { return each.end <= line.begin; });
  for (; formula != formulas_.end() && formula->begin < line.end; ++formula) {
    above = std::max(above, std::ceil(formula->maths->ascent * formula->em + px(3) - over));
    below = std::max(below, std::ceil(formula->maths->descent * formula->em + px(3) - under));
  }
  line.above = above;
  line.height = above + pitch_ + below;
}

float RichBlock::widest_formula(uint32_t begin, uint32_t end) const {
  float widest = 0;
  for (const Formula& formula : formulas_)
    if (formula.begin >= begin && formula.end <= end) widest = std::max(widest, formula.maths->width * formula.em + 1);
  return widest;
}

/// Breaks bytes [begin, end) into lines of at most `width` pixels, from y downwards.
void RichBlock::wrap(const Block& block, uint32_t begin, uint32_t end, float x, float width, float& y) {
  const std::string& text = block.text;
  uint32_t start = begin, stop = begin;  // of the line; the last place where it may be broken
  float used = 0;
  bool after_blank = false, after_wide = false;
  auto emit = [&](uint32_t to) {
    add_line(start, to, x, y);
    order_line(block);
    y += lines_.back().height;
  };
  auto formula =
      std::partition_point(formulas_.begin(), formulas_.end(), [&](const Formula& each) { return each.end <= begin; });
  for (uint32_t at = begin; at < end;) {
    const Decoded d = decode(text, at);
    const uint32_t next = std::min(at + d.length, end);
    while (formula != formulas_.end() && formula->end <= at) ++formula;
    const bool whole = formula != formulas_.end() && formula->begin < at;  // in a formula, which is never divided
    if (d.c == '\n' && !whole) {
      emit(at);
      start = stop = next;
      used = 0;
      after_blank = after_wide = false;
      at = next;
      continue;
    }
    const bool blank = (d.c == ' ' || d.c == '\t') && !whole, wide = breaks_anywhere(d.c) && !whole;
    if (at > start && !blank && !whole && (after_blank || ((wide || after_wide) && !clings(d.c)))) stop = at;
    if (!blank && at > start && used + advance_[at] > width && (!whole || stop > start)) {
      const uint32_t cut = stop > start ? stop : at;
      uint32_t shown = cut;  // without the spaces at the break
      while (shown > start && text[shown - 1] == ' ') --shown;
      emit(shown);
      for (uint32_t i = shown; i < cut; ++i) at_[i] = lines_.back().width;
      start = stop = cut;
      used = advance(start, at);
    }
    used += advance_[at];
    after_blank = blank;
    after_wide = wide;
    at = next;
  }
  emit(end);
}

void RichBlock::layout_table(const Block& block, float left, float width) {
  const auto columns = std::max(1u, block.columns);
  const float padding = px(kCellPadding);
  std::vector<float> wish(columns, px(24)), least(columns, px(24)), share(columns);
  for (const TableCell& cell : block.cells) {
    if (cell.column >= columns) continue;
    float widest = 0;
    for (uint32_t from = cell.begin; from <= cell.end;) {  // <br> makes lines
      const auto end = static_cast<uint32_t>(std::min<size_t>(block.text.find('\n', from), cell.end));
      widest = std::max(widest, advance(from, end) + 1);
      from = end + 1;
    }
    wish[cell.column] = std::max(wish[cell.column], widest);
    least[cell.column] =
        std::max({least[cell.column], std::min(widest, px(kCellLeast)), widest_formula(cell.begin, cell.end)});
  }
  float all = 0;
  for (const float w : wish) all += w;
  const float room = width - left - padding * 2 * static_cast<float>(columns);
  share = wish;
  if (all > room) {
    // If the columns are too wide together, narrow ones keep their width and the wide ones are wrapped, but none to
    // less than can be read: then the table is wider than the column.
    const float equal = room / static_cast<float>(columns);
    std::vector<bool> settled(columns);
    for (uint32_t i = 0; i < columns; ++i) settled[i] = wish[i] <= std::max(equal, least[i]);
    for (bool again = true; again;) {
      again = false;
      float spare = room, greedy = 0;
      for (uint32_t i = 0; i < columns; ++i) settled[i] ? spare -= share[i] : greedy += wish[i];
      for (uint32_t i = 0; i < columns; ++i) {
        if (settled[i]) continue;
        share[i] = std::floor(wish[i] * spare / greedy);
        if (share[i] >= least[i]) continue;
        share[i] = least[i];
        settled[i] = again = true;
      }
    }
  }
  float y = 0;
  for (size_t i = 0; i < block.cells.size();) {
    const uint32_t row = block.cells[i].row;
    float bottom = y + pitch_, x = left;
    for (; i < block.cells.size() && block.cells[i].row == row; ++i) {
      const TableCell& cell = block.cells[i];
      const float w = share[std::min(cell.column, columns - 1)];
      const size_t first = lines_.size();
      float cell_y = y + px(2);
      wrap(block, cell.begin, cell.end, x + padding, std::max(w, px(16)), cell_y);
      for (size_t l = first; l < lines_.size(); ++l) {
        const float spare = std::max(0.0f, w - lines_[l].width);
        if (cell.align == TableCell::Align::right) lines_[l].x += spare;
        if (cell.align == TableCell::Align::centre) lines_[l].x += spare * 0.5f;
      }
      bottom = std::max(bottom, cell_y);
      x += w + padding * 2;
    }
    y = bottom + px(2);
    rules_.push_back(y);
    widest_ = std::max(widest_, x);
  }
  height_ = y;
}

void RichBlock::layout(const Block& block, float width, bool hug) {
  lines_.clear();
  pieces_.clear();
  spans_.clear();
  rules_.clear();
  widest_ = 0;
  width_ = width;
  at_.assign(block.text.size() + 1, 0);
  left_ = std::min(left_of_containers(block.around), width * 0.5f);
  measure(block, std::max(px(40), width - left_));
  measure_order(block);
  pitch_ = px(kPitch);
  hidden_ = 0;
  gap_ = px(block.indent > 0 && !block.marker.empty() ? 4 : 8);
  if (block.kind == Block::Kind::heading) gap_ = px(14);
  top_ = 0;
  if (block.kind == Block::Kind::rule) {
    height_ = px(9);
  } else if (block.kind == Block::Kind::table) {
    layout_table(block, left_, width);
    place_in_view(left_, width);
  } else if (block.kind == Block::Kind::code) {
    top_ = px(kCodeHead);
    float y = top_ + px(6);
    wrap(block, 0, static_cast<uint32_t>(block.text.size()), left_ + px(kCodePadding), FLT_MAX, y);
    height_ = y + px(8);
    place_in_view(left_ + px(kCodePadding), std::max(left_ + px(kCodePadding) + px(40), width - px(kCodePadding)));
  } else {
    const bool formula = block.kind == Block::Kind::formula && !formulas_.empty();
    const float room = std::max(px(40), width - left_);
    const float centred = formula ? std::max(0.0f, (room - formulas_[0].maths->width * formulas_[0].em) * 0.5f) : 0;
    float y = 0;
    wrap(block, 0, static_cast<uint32_t>(block.text.size()), left_ + centred, formula ? FLT_MAX : room, y);
    height_ = y;
    if (formula) place_in_view(left_, left_ + room);
  }
  scroll_ = std::clamp(scroll_, 0.0f, hidden_);
  align_paragraphs(block, hug ? widest_ : width);
  cut_pieces();
}

/// Lets what is wider than the view, from x `from` to `to`, scroll in it.
void RichBlock::place_in_view(float from, float to) {
  view_from_ = from;
  view_to_ = to;
  hidden_ = std::max(0.0f, std::ceil(widest_ - to));
  widest_ = std::min(widest_, to);
  if (scrolls()) height_ += px(kBarRoom);
}

RichBlock::ScrollBar RichBlock::scroll_bar(ImVec2 pos) const {
  const float bottom = pos.y + height_ - px(3), view = view_to_ - view_from_;
  const float length = std::min(view, std::max(px(kThumbLeast), view * view / (view + hidden_)));
  return {{pos.x + view_from_, bottom - px(kBarHeight)},
          {pos.x + view_to_, bottom},
          pos.x + view_from_ + (view - length) * scroll_ / std::max(1.0f, hidden_),
          length};
}

void RichBlock::scroll_sideways(ImVec2 pos) {
  if (!scrolls()) return;
  const ImVec2 cursor = ImGui::GetCursorScreenPos();
  const ScrollBar bar = scroll_bar(pos);
  ImGui::PushItemFlag(ImGuiItemFlags_NoNav, true);
  ImGui::SetCursorScreenPos({bar.a.x, bar.a.y - px(3)});
  ImGui::InvisibleButton("Scroll sideways", {bar.b.x - bar.a.x, bar.b.y - bar.a.y + px(6)});
  ImGui::PopItemFlag();
  const ImGuiIO& io = ImGui::GetIO();
  const float way = bar.b.x - bar.a.x - bar.length;
  if (ImGui::IsItemActivated() && (io.MousePos.x < bar.thumb || io.MousePos.x > bar.thumb + bar.length))
    scroll_ = (io.MousePos.x - bar.a.x - bar.length * 0.5f) / std::max(1.0f, way) * hidden_;
  else if (ImGui::IsItemActive())
    scroll_ += io.MouseDelta.x / std::max(1.0f, way) * hidden_;
  const bool over = ImGui::IsMouseHoveringRect({pos.x + left_, pos.y}, {pos.x + width_, pos.y + height_}) &&
                    ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem);
  if (over) scroll_ -= (io.MouseWheelH + (io.KeyShift ? io.MouseWheel : 0)) * px(kWheelStep);
  // By keys moves what the mouse is on, and without it all that is in view.
  if (over) look().wide_pointed = ImGui::GetFrameCount();
  if (over || ImGui::GetFrameCount() - look().wide_pointed > 1)
    scroll_ += static_cast<float>(look().wide_steps) * px(kKeyStep);
  scroll_ = std::clamp(scroll_, 0.0f, hidden_);
  ImGui::SetCursorScreenPos(cursor);
}

void RichBlock::reveal(uint32_t begin, uint32_t end) {
  if (!scrolls()) return;
  const auto line = std::partition_point(lines_.begin(), lines_.end(), [&](const Line& l) { return l.end <= begin; });
  if (line == lines_.end()) return;
  const float from = line->x + x_of(*line, begin), to = line->x + x_of(*line, std::min(end, line->end)) + px(8);
  if (to - scroll_ > view_to_) scroll_ = to - view_to_;
  if (from - scroll_ < view_from_) scroll_ = from - view_from_;
  scroll_ = std::clamp(scroll_, 0.0f, hidden_);
}

/// Finds which way the text is read, and measures letters that are put together before they are drawn.
void RichBlock::measure_order(const Block& block) {
  order_ = {};
  if (block.kind == Block::Kind::table) {
    for (const TableCell& cell : block.cells)
      find_order(block.text, cell.begin, cell.end, ParagraphWay::by_text, order_);
  } else {
    const bool code = block.kind == Block::Kind::code;
    find_order(block.text, 0, block.text.size(), code ? ParagraphWay::code : ParagraphWay::by_text, order_);
  }
  for (const Formula& each : formulas_)  // read from left to right as a whole
    for (uint32_t at = each.begin; at < each.end && !order_.plain(); ++at)
      order_.levels[at] = order_.rtl_paragraph(at) ? 2 : 0;
  if (is_plain(block.text)) return;
  const auto rtl = [&](uint32_t at) { return !order_.plain() && order_.levels[at] % 2 == 1; };
  for (const Piece& face : faces_) {
    if (face.formula > 0) continue;
    const Type type = type_of(face.face);
    for (uint32_t at = face.begin; at < face.end;) {
      uint32_t stop = at + 1;
      while (stop < face.end && (order_.plain() || order_.levels[stop] == order_.levels[at])) ++stop;
      measure_shaped({font_of(type), text_height(type)}, block.text, at, stop, rtl(at), advance_);
      at = stop;
    }
  }
}

/// Puts the words of the last line in the order in which they are read.
void RichBlock::order_line(const Block& block) {
  if (order_.plain()) return;
  const Line& line = lines_.back();
  const std::vector<OrderedRun> runs = ordered_runs(block.text, order_, line.begin, line.end);
  if (std::none_of(runs.begin(), runs.end(), [](const OrderedRun& run) { return run.rtl; })) return;
  float x = 0;
  for (const OrderedRun& run : runs) {
    const float end_x = x + advance(run.begin, run.end);
    spans_.push_back({static_cast<uint32_t>(lines_.size() - 1), run.begin, run.end, run.rtl, x, end_x});
    float used = 0;
    for (uint32_t i = run.begin; i < run.end; ++i) {
      at_[i] = run.rtl ? end_x - used : x + used;
      used += advance_[i];
    }
    x = end_x;
  }
}

/// Moves the lines of paragraphs from right to left to the right, as far in as those of others are at the left.
void RichBlock::align_paragraphs(const Block& block, float right) {
  rtl_ = false;
  if (block.kind == Block::Kind::table || block.kind == Block::Kind::code) return;
  for (Line& line : lines_) {
    if (!order_.rtl_paragraph(line.begin)) continue;
    line.x = std::max(0.0f, right - left_ - line.width);
    widest_ = std::max(widest_, right - left_);
    rtl_ = true;
  }
}

/// Bytes [begin, end) of a line as they are seen, from left to right.
std::vector<RichBlock::Span> RichBlock::spans_of(const Line& line, uint32_t begin, uint32_t end) const {
  const auto index = static_cast<uint32_t>(&line - lines_.data());
  auto span = std::partition_point(spans_.begin(), spans_.end(), [&](const Span& each) { return each.line < index; });
  if (span == spans_.end() || span->line != index) {
    const float x = begin < line.end ? at_[begin] : line.width;
    return {{index, begin, end, false, x, x_of(line, end)}};
  }
  std::vector<Span> parts;
  for (; span != spans_.end() && span->line == index; ++span) {
    const uint32_t a = std::max(begin, span->begin), b = std::min(end, span->end);
    if (a >= b) continue;
    const auto edge = [&](uint32_t byte) { return byte < span->end ? at_[byte] : span->rtl ? span->x : span->end_x; };
    parts.push_back({index, a, b, span->rtl, std::min(edge(a), edge(b)), std::max(edge(a), edge(b))});
  }
  return parts;
}

/// Where more text goes on behind a line, from its beginning.
float RichBlock::end_of(const Line& line) const {
  for (const Span& span : spans_of(line, line.begin, line.end))
    if (span.rtl && span.end == line.end) return span.x - px(kCaretRoom);
  return line.width;
}

void RichBlock::cut_pieces() {
  size_t face = 0;
  for (uint32_t l = 0; l < lines_.size(); ++l) {
    const Line& line = lines_[l];
    while (face > 0 && faces_[face - 1].end > line.begin) --face;
    for (size_t f = face; f < faces_.size() && faces_[f].begin < line.end; ++f) {
      Piece piece = faces_[f];
      if (piece.end <= line.begin) continue;
      face = f;
      piece.begin = std::max(piece.begin, line.begin);
      piece.end = std::min(piece.end, line.end);
      piece.line = l;
      if (piece.begin >= piece.end) continue;
      for (const Span& span : spans_of(line, piece.begin, piece.end)) {
        pieces_.push_back(piece);
        Piece& part = pieces_.back();
        part.begin = span.begin, part.end = span.end;
        part.x = span.x, part.end_x = span.end_x;
        part.rtl = span.rtl;
      }
    }
  }
}

void RichBlock::draw_surfaces(ImDrawList* list, ImVec2 pos, const Block& block) const {
  const Theme& t = colours();
  for (size_t i = 0; i < block.around.size(); ++i) {
    if (block.around[i] != 'q') continue;
    const float x = pos.x + std::min(left_of_containers(std::string_view(block.around).substr(0, i)), left_);
    const float top = i < block.shared ? pos.y - gap_ : pos.y;  // one bar along all blocks of a quote
    list->AddRectFilled({x, top}, {x + px(3), pos.y + height_}, t.ctl, px(1));
  }
  const ImVec2 a = {pos.x + left_, pos.y}, b = {pos.x + width_, pos.y + height_};
  if (block.kind == Block::Kind::rule) {
    const float y = std::floor(pos.y + height_ * 0.5f);
    list->AddRectFilled({a.x, y}, {b.x, y + std::max(1.0f, px(1))}, t.line);
  } else if (block.kind == Block::Kind::code) {
    list->AddRectFilled(a, b, t.canvas, px(6));
    list->AddRect(a, b, t.line, px(6), std::max(1.0f, px(1)));
    list->AddRectFilled({a.x, a.y + top_}, {b.x, a.y + top_ + std::max(1.0f, px(1))}, t.line);
    app::draw_text_middle(list, a.x + px(kCodePadding), a.y + top_ * 0.5f, Type::secondary, t.text3,
                          block.language.empty() ? "text" : block.language);
  } else if (block.kind == Block::Kind::table) {
    const float right = pos.x + widest_;
    for (size_t i = 0; i + 1 < rules_.size(); ++i) {
      const float y = std::floor(pos.y + rules_[i]);
      list->AddRectFilled({a.x, y}, {right, y + std::max(1.0f, px(1))}, i == 0 ? t.ctl : t.line);
    }
  }
  if (scrolls()) list->PushClipRect({pos.x + view_from_, pos.y}, {pos.x + view_to_, pos.y + height_}, true);
  for (const Piece& piece : pieces_) {
    if (!(piece.style & kCode) || block.kind == Block::Kind::code) continue;
    const Line& line = lines_[piece.line];
    const float y = pos.y + line.y + line.above, x = pos.x + left_of(line);
    list->AddRectFilled({x + piece.x - px(2), y + px(2)}, {x + piece.end_x + px(2), y + pitch_ - px(2)}, t.raised,
                        px(3));
  }
  if (scrolls()) {
    list->PopClipRect();
    const ScrollBar bar = scroll_bar(pos);
    list->AddRectFilled(bar.a, bar.b, t.line, px(kBarHeight * 0.5f));
    list->AddRectFilled({bar.thumb, bar.a.y}, {bar.thumb + bar.length, bar.b.y}, t.ctl, px(kBarHeight * 0.5f));
  }
  if (!block.marker.empty()) {
    // Beside the list that it is of, also where the text stands further right in a quote.
    const float edge =
        std::min(left_, left_of_containers(std::string_view(block.around).substr(0, block.around.rfind('l') + 1)));
    const float x = rtl_ ? pos.x + width_ - edge + px(6) : pos.x + edge - px(6) - text_size(Type::chat, block.marker).x;
    const float above = lines_.empty() ? 0 : lines_[0].above;
    const float middle = pos.y + above + pitch_ * 0.5f;
    if (block.marker == "\u2610" || block.marker == "\u2611")  // the typeface has neither
      draw_task_box(list, {rtl_ ? x : std::max(pos.x, pos.x + edge - px(18)), middle}, block.marker == "\u2611");
    else
      app::draw_text_middle(list, std::max(pos.x, x), middle, Type::chat, t.text2, block.marker);
  }
}

ImVec2 RichBlock::draw_text(ImDrawList* list, ImVec2 pos, const Block& block) const {
  const Theme& t = colours();
  const float top = list->GetClipRectMin().y, bottom = list->GetClipRectMax().y;
  const float baseline = chat_baseline(pitch_);
  if (scrolls()) list->PushClipRect({pos.x + view_from_, pos.y}, {pos.x + view_to_, pos.y + height_}, true);
  for (const Piece& piece : pieces_) {
    const Line& line = lines_[piece.line];
    if (pos.y + line.y + line.height < top || pos.y + line.y > bottom) continue;
    const float y = pos.y + line.y + line.above;
    const Type type = type_of(piece.face);
    const float x = std::floor(pos.x + left_of(line) + piece.x);
    const float end_x = pos.x + left_of(line) + piece.end_x;
    if (scrolls() && (end_x < pos.x + view_from_ || x > pos.x + view_to_)) continue;
    const bool inline_code = (piece.style & kCode) && block.kind != Block::Kind::code;
    Colour colour = piece.link != TextRun::no_link || (piece.style & kNote) ? t.accent_text
                    : block.kind == Block::Kind::code                       ? code_colour(t, piece.kind)
                    : block.quotes > 0                                      ? t.text2
                                                                            : t.text;
    if (piece.formula > 0) {
      const Formula& formula = formulas_[piece.formula - 1];
      draw_maths(list, {x, std::round(y + baseline)}, *formula.maths, formula.em, colour);
      continue;
    }
    const float rise = piece.style & kNote ? px(kNoteRise) : 0;
    const float at_y = std::floor(y + baseline - rise - ascent_of(type));
    const int first = list->VtxBuffer.Size;
    draw_run(list, {x, at_y}, {font_of(type), text_height(type)}, ImGui::GetColorU32(colour), block.text, piece.begin,
             piece.end, piece.rtl);
    if (piece.style & kEmphasis && !inline_code)
      for (int v = first; v < list->VtxBuffer.Size; ++v)
        list->VtxBuffer[v].pos.x += (y + baseline - list->VtxBuffer[v].pos.y) * kSlant;
    const float thin = std::max(1.0f, px(1));
    if (piece.link != TextRun::no_link) {
      const float line_y = std::floor(y + baseline + px(2));
      list->AddRectFilled({x, line_y}, {end_x, line_y + thin}, with_alpha(colour, 0.6f));
    }
    if (piece.style & kStruck) {
      const float line_y = std::floor(y + baseline - px(4));
      list->AddRectFilled({x, line_y}, {end_x, line_y + thin}, colour);
    }
  }
  if (scrolls()) list->PopClipRect();
  if (lines_.empty()) return pos;
  const Line& last = lines_.back();
  const float end = left_of(last) + end_of(last);
  return {pos.x + (scrolls() ? std::clamp(end, view_from_, view_to_) : end), pos.y + last.y + last.above};
}

void RichBlock::rects(ImVec2 pos, uint32_t begin, uint32_t end, const std::function<void(ImVec2, ImVec2)>& f) const {
  auto line = std::partition_point(lines_.begin(), lines_.end(), [&](const Line& l) { return l.end < begin; });
  // What is scrolled out of view keeps its height, at the edge that it lies behind.
  const auto seen = [&](float x) { return pos.x + (scrolls() ? std::clamp(x, view_from_, view_to_) : x); };
  for (; line != lines_.end() && line->begin < end; ++line) {
    const uint32_t last = std::min(end, line->end);
    for (uint32_t a = std::max(begin, line->begin); a < last;) {
      const auto formula =
          std::partition_point(formulas_.begin(), formulas_.end(), [&](const Formula& each) { return each.end <= a; });
      const bool in_formula = formula != formulas_.end() && formula->begin <= a;
      const uint32_t next = formula == formulas_.end() ? last : in_formula ? formula->end : formula->begin;
      const uint32_t b = std::min(last, next);
      const float top = pos.y + line->y + (in_formula ? 0 : line->above);
      for (const Span& span : spans_of(*line, a, b))
        f({seen(left_of(*line) + span.x), top},
          {seen(left_of(*line) + span.end_x), top + (in_formula ? line->height : pitch_)});
      a = b;
    }
  }
}

uint32_t RichBlock::byte_at(ImVec2 point, ImVec2 pos, const Block& block) const {
  if (lines_.empty()) return 0;
  // The nearest line; of lines of a table beside each other the one under the point.
  const Line* best = nullptr;
  float best_distance = 0;
  for (const Line& line : lines_) {
    const float left = pos.x + left_of(line);
    const float dy = std::max({0.0f, pos.y + line.y - point.y, point.y - pos.y - line.y - line.height});
    const float dx = std::max({0.0f, left - point.x, point.x - left - line.width});
    const float distance = dy * 1000 + dx;
    if (best && distance >= best_distance) continue;
    best = &line;
    best_distance = distance;
  }
  const float x = point.x - pos.x - left_of(*best);
  const std::vector<Span> spans = spans_of(*best, best->begin, best->end);
  for (const Span& span : spans) {
    if (x >= span.end_x && &span != &spans.back()) continue;
    for (uint32_t at = span.begin; at < span.end; at += decode(block.text, at).length) {
      const float half = advance_[at] * 0.5f;  // 0: it belongs to the letters before it
      if (half > 0 && (span.rtl ? x > at_[at] - half : x < at_[at] + half)) return at;
    }
    return span.end;
  }
  return best->end;
}

uint16_t RichBlock::link_at(ImVec2 point, ImVec2 pos, const Block&) const {
  if (scrolls() && (point.x < pos.x + view_from_ || point.x >= pos.x + view_to_)) return TextRun::no_link;
  for (const Piece& piece : pieces_) {
    if (piece.link == TextRun::no_link) continue;
    const Line& line = lines_[piece.line];
    const float x = pos.x + left_of(line), y = pos.y + line.y;
    if (point.y >= y && point.y < y + line.height && point.x >= x + piece.x && point.x < x + piece.end_x)
      return piece.link;
  }
  return TextRun::no_link;
}

void MessageBody::layout(const Message& message, float width) {
  layout(message.text, thinking_of(message).answer, message.role == Role::user, message.writing, width);
}

void MessageBody::layout_thinking(const Message& message, float width) {
  const Thinking thinking = thinking_of(message);
  layout(std::string_view(message.text).substr(0, thinking.end), thinking.begin, true, message.writing, width);
}

void MessageBody::layout(std::string_view text, size_t first, bool plain, bool growing, float width) {
  const float scale = text_height(Type::chat);
  const std::string_view shown = text.substr(first);
  const bool same_shape = width == width_ && scale == scale_ && first == first_ && !laid_.empty();
  if (same_shape && shown.size() == bytes_ && growing == growing_) return;
  is_plain_ = plain;
  size_t keep = 0;
  if (is_plain_) {
    plain_ = plain_block(shown);
  } else {
    if (first != first_) markdown_.clear();
    keep = same_shape ? markdown_.closed() : 0;
    markdown_.update(shown, growing);
    keep = shown.size() < bytes_ ? 0 : keep;
  }
  width_ = width;
  scale_ = scale;
  first_ = first;
  bytes_ = shown.size();
  growing_ = growing;
  laid_.resize(blocks().size());
  tops_.resize(blocks().size());
  height_ = widest_ = 0;
  for (size_t i = 0; i < laid_.size(); ++i) {
    if (i >= keep) laid_[i].layout(blocks()[i], width, is_plain_);
    if (i > 0) height_ += laid_[i].gap();
    tops_[i] = height_;
    height_ += laid_[i].height();
    widest_ = std::max(widest_, laid_[i].widest());
  }
  if (laid_.empty()) height_ = px(22);  // before the first word of a reply: one line, for the caret
}

void MessageBody::draw_surfaces(ImDrawList* list, ImVec2 pos) {
  const float top = list->GetClipRectMin().y, bottom = list->GetClipRectMax().y;
  for (size_t i = 0; i < laid_.size(); ++i) {
    const float y = pos.y + tops_[i];
    if (y + laid_[i].height() < top || y > bottom) continue;
    ImGui::PushID(static_cast<int>(i));
    laid_[i].scroll_sideways({pos.x, y});
    ImGui::PopID();
    laid_[i].draw_surfaces(list, {pos.x, y}, blocks()[i]);
  }
}

void MessageBody::reveal(size_t from, size_t to) {
  if (to <= first_) return;
  const auto a = static_cast<uint32_t>(from - std::min(from, first_)), b = static_cast<uint32_t>(to - first_);
  for (size_t i = 0; i < laid_.size(); ++i)
    for (const auto& [begin, end] : blocks()[i].shown_of(a, b)) laid_[i].reveal(begin, end);
}

ImVec2 MessageBody::draw_text(ImDrawList* list, ImVec2 pos) const {
  const float top = list->GetClipRectMin().y, bottom = list->GetClipRectMax().y;
  ImVec2 end = pos;
  for (size_t i = 0; i < laid_.size(); ++i) {
    const float y = pos.y + tops_[i];
    const bool last = i + 1 == laid_.size();
    if (!last && (y + laid_[i].height() < top || y > bottom)) continue;
    end = laid_[i].draw_text(list, {pos.x, y}, blocks()[i]);
  }
  return end;
}

void MessageBody::rects(ImVec2 pos, size_t from, size_t to, const Rects& f) const {
  const auto& all = blocks();
  if (to <= first_) return;
  const auto a = static_cast<uint32_t>(from - std::min(from, first_)), b = static_cast<uint32_t>(to - first_);
  auto first = std::partition_point(all.begin(), all.end(), [&](const Block& block) { return block.source_end <= a; });
  for (auto i = static_cast<size_t>(first - all.begin()); i < all.size() && all[i].source_begin < b; ++i)
    for (const auto& [begin, end] : all[i].shown_of(a, b)) laid_[i].rects({pos.x, pos.y + tops_[i]}, begin, end, f);
}

std::pair<size_t, size_t> MessageBody::visible(ImVec2 pos, float top, float bottom) const {
  size_t from = SIZE_MAX, to = 0;
  for (size_t i = 0; i < laid_.size(); ++i) {
    const float y = pos.y + tops_[i];
    if (y + laid_[i].height() < top || y > bottom) continue;
    from = std::min<size_t>(from, blocks()[i].source_begin);
    to = std::max<size_t>(to, blocks()[i].source_end);
  }
  return {first_ + std::min(from, to), first_ + to};
}

size_t MessageBody::block_at(float y) const {
  size_t i = 0;
  while (i + 1 < laid_.size() && y >= tops_[i + 1]) ++i;
  return i;
}

size_t MessageBody::byte_at(ImVec2 point, ImVec2 pos) const {
  if (laid_.empty() || point.y < pos.y) return first_;
  const size_t i = block_at(point.y - pos.y);
  if (i + 1 == laid_.size() && point.y > pos.y + height_) return first_ + bytes_;
  return first_ + blocks()[i].source_of(laid_[i].byte_at(point, {pos.x, pos.y + tops_[i]}, blocks()[i]));
}

std::string MessageBody::link_at(ImVec2 point, ImVec2 pos) const {
  if (laid_.empty()) return "";
  const size_t i = block_at(point.y - pos.y);
  const uint16_t link = laid_[i].link_at(point, {pos.x, pos.y + tops_[i]}, blocks()[i]);
  return link < blocks()[i].links.size() ? blocks()[i].links[link] : "";
}

void MessageBody::code_blocks(ImVec2 pos, const std::function<void(const std::string&, ImVec2, float)>& f) const {
  for (size_t i = 0; i < laid_.size(); ++i)
    if (blocks()[i].kind == Block::Kind::code) f(blocks()[i].text, {pos.x + width_, pos.y + tops_[i]}, laid_[i].head());
}

std::vector<uint32_t> MessageBody::missing() const {
  std::vector<uint32_t> all;
  for (const RichBlock& block : laid_) all.insert(all.end(), block.missing().begin(), block.missing().end());
  return all;
}

}  // namespace canopy::app
