#include "app/look/text_block.h"

#include <algorithm>
#include <cfloat>

namespace canopy::app {
namespace {

/// Moves a line break back to the last space, if the line has one. Dear ImGui also breaks after a quotation mark or a
/// full stop inside a word, which would cut '"word' and '3.14' apart.
const char* mend_break(const char* begin, const char* stop, const char* end) {
  if (stop <= begin + 1 || stop >= end || *stop == ' ' || stop[-1] == ' ') return stop;
  if (std::string_view(".,;!?\"").find(stop[-1]) == std::string_view::npos) return stop;
  const char* blank = stop - 1;
  while (blank > begin && *blank != ' ') --blank;
  while (blank > begin && blank[-1] == ' ') --blank;
  return blank > begin ? blank : stop;
}

}  // namespace

void TextBlock::layout(std::string_view text, Type type, float width) {
  const float size = text_height(type);
  const bool same_shape = width == width_ && size == size_;
  if (same_shape && text.size() == laid_out_) return;
  size_t start = 0;
  if (same_shape && text.size() > laid_out_ && !lines_.empty()) {
    // Lines are filled from left to right, so appended text can change only the last line.
    start = lines_.back().begin;
    lines_.pop_back();
  } else {
    lines_.clear();
    widest_ = 0;
  }
  width_ = width;
  size_ = size;
  laid_out_ = text.size();
  wrap_from(text, start, type);
}

void TextBlock::wrap_from(std::string_view text, size_t start, Type type) {
  const char* const base = text.data();
  const char* const end = base + text.size();
  const char* at = base + start;
  ImFont* font = font_of(type);
  const char* newline = nullptr;  // the end of the paragraph, which is looked for once: a paragraph may be very long
  while (at < end) {
    if (!newline || newline < at) newline = std::find(at, end, '\n');
    const char* stop = mend_break(at, font->CalcWordWrapPosition(size_, at, newline, width_), newline);
    if (stop == at && at < newline) {  // not even one character fits: take one all the same
      do ++stop;
      while (stop < newline && (static_cast<unsigned char>(*stop) & 0xC0) == 0x80);
    }
    lines_.push_back({static_cast<uint32_t>(at - base), static_cast<uint32_t>(stop - base)});
    widest_ = std::max(widest_, font->CalcTextSizeA(size_, FLT_MAX, 0, at, stop).x);
    if (stop == newline) {
      at = newline + 1;
      if (newline < end && at == end)
        lines_.push_back({static_cast<uint32_t>(at - base), static_cast<uint32_t>(at - base)});
    } else {
      at = stop;
      while (at < newline && *at == ' ') ++at;  // spaces at a soft break are not drawn
    }
  }
  if (lines_.empty()) lines_.push_back({0, 0});
}

size_t TextBlock::byte_at(ImVec2 point, ImVec2 pos, std::string_view text, Type type, float pitch) const {
  if (lines_.empty() || point.y < pos.y) return 0;
  const size_t row = static_cast<size_t>((point.y - pos.y) / pitch);
  if (row >= lines_.size()) return lines_.back().end;
  const Line& line = lines_[row];
  float x = pos.x;
  for (size_t at = line.begin; at < line.end;) {
    size_t next = at + 1;
    while (next < line.end && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    const float width = text_size(type, text.substr(at, next - at)).x;
    if (point.x < x + width * 0.5f) return at;
    x += width;
    at = next;
  }
  return line.end;
}

void TextBlock::draw_behind(ImDrawList* list, ImVec2 pos, std::string_view text, Type type, size_t begin, size_t end,
                            Colour colour, float pitch) const {
  for (size_t i = 0; i < lines_.size(); ++i) {
    const size_t a = std::max<size_t>(begin, lines_[i].begin), b = std::min<size_t>(end, lines_[i].end);
    // An empty line inside the selection gets a short bar, so that it is seen to belong to it.
    const bool passes = begin <= lines_[i].end && end > lines_[i].end;
    if (a > b || (a == b && !passes)) continue;
    const float y = pos.y + pitch * static_cast<float>(i);
    const float left = pos.x + text_size(type, text.substr(lines_[i].begin, a - lines_[i].begin)).x;
    const float right = left + text_size(type, text.substr(a, b - a)).x + (passes ? px(4) : 0);
    list->AddRectFilled({left, y}, {right, y + pitch}, colour);
  }
}

ImVec2 TextBlock::draw(ImDrawList* list, ImVec2 pos, std::string_view text, Type type, Colour colour,
                       float pitch) const {
  const ImVec2 clip_min = list->GetClipRectMin(), clip_max = list->GetClipRectMax();
  const float inset = (pitch - size_) * 0.5f;
  ImVec2 end = pos;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const float y = pos.y + pitch * static_cast<float>(i);
    const std::string_view line = text.substr(lines_[i].begin, lines_[i].end - lines_[i].begin);
    if (i + 1 == lines_.size()) end = {pos.x + text_size(type, line).x, y};
    if (y + pitch < clip_min.y || y > clip_max.y || line.empty()) continue;
    draw_text(list, {pos.x, y + inset}, type, colour, line);
  }
  return end;
}

}  // namespace canopy::app
