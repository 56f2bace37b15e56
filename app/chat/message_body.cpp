#include "app/chat/message_body.h"

#include <algorithm>

#include "app/conversation/thinking.h"

namespace canopy::app {

void MessageBody::layout(const Message& message, float width) {
  layout(message.text, thinking_of(message).answer, message.role == Role::user, width);
}

void MessageBody::layout_thinking(const Message& message, float width) {
  const Thinking thinking = thinking_of(message);
  layout(std::string_view(message.text).substr(0, thinking.end), thinking.begin, true, width);
}

void MessageBody::layout(std::string_view text, size_t first, bool plain, float width) {
  const float scale = text_height(Type::chat);
  const std::string_view shown = text.substr(first);
  const bool same_shape = width == width_ && scale == scale_ && first == first_ && !laid_.empty();
  if (same_shape && shown.size() == bytes_) return;
  is_plain_ = plain;
  size_t keep = 0;
  if (is_plain_) {
    plain_ = plain_block(shown);
  } else {
    if (first != first_) markdown_.clear();
    keep = same_shape ? markdown_.closed() : 0;
    markdown_.update(shown);
    keep = shown.size() < bytes_ ? 0 : keep;
  }
  width_ = width;
  scale_ = scale;
  first_ = first;
  bytes_ = shown.size();
  laid_.resize(blocks().size());
  tops_.resize(blocks().size());
  height_ = widest_ = 0;
  for (size_t i = 0; i < laid_.size(); ++i) {
    if (i >= keep) laid_[i].layout(blocks()[i], width);
    if (i > 0) height_ += laid_[i].gap();
    tops_[i] = height_;
    height_ += laid_[i].height();
    widest_ = std::max(widest_, laid_[i].widest());
  }
  if (laid_.empty()) height_ = px(22);  // before the first word of a reply: one line, for the caret
}

void MessageBody::draw_surfaces(ImDrawList* list, ImVec2 pos) const {
  const float top = list->GetClipRectMin().y, bottom = list->GetClipRectMax().y;
  for (size_t i = 0; i < laid_.size(); ++i) {
    const float y = pos.y + tops_[i];
    if (y + laid_[i].height() >= top && y <= bottom) laid_[i].draw_surfaces(list, {pos.x, y}, blocks()[i]);
  }
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

bool MessageBody::unshaped() const {
  return std::any_of(laid_.begin(), laid_.end(), [](const RichBlock& block) { return block.unshaped(); });
}

}  // namespace canopy::app
