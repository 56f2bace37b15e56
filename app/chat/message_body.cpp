#include "app/chat/message_body.h"

#include <algorithm>

namespace canopy::app {

void MessageBody::layout(const Message& message, float width) {
  const float scale = text_height(Type::chat);
  const bool same_shape = width == width_ && scale == scale_ && !laid_.empty();
  if (same_shape && message.text.size() == bytes_) return;
  is_plain_ = message.role == Role::user;
  size_t keep = 0;
  if (is_plain_) {
    plain_ = plain_block(message.text);
  } else {
    keep = same_shape ? markdown_.closed() : 0;
    markdown_.update(message.text);
    keep = message.text.size() < bytes_ ? 0 : keep;
  }
  width_ = width;
  scale_ = scale;
  bytes_ = message.text.size();
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
  const auto a = static_cast<uint32_t>(from), b = static_cast<uint32_t>(to);
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
  return {std::min(from, to), to};
}

size_t MessageBody::block_at(float y) const {
  size_t i = 0;
  while (i + 1 < laid_.size() && y >= tops_[i + 1]) ++i;
  return i;
}

size_t MessageBody::byte_at(ImVec2 point, ImVec2 pos) const {
  if (laid_.empty() || point.y < pos.y) return 0;
  const size_t i = block_at(point.y - pos.y);
  if (i + 1 == laid_.size() && point.y > pos.y + height_) return bytes_;
  return blocks()[i].source_of(laid_[i].byte_at(point, {pos.x, pos.y + tops_[i]}, blocks()[i]));
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
