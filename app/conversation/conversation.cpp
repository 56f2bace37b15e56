#include "app/conversation/conversation.h"

#include <algorithm>
#include <utility>

#include "app/conversation/thinking.h"
#include "engine/base/printable.h"
#include "engine/text/case_folding.h"

namespace canopy::app {

size_t Conversation::find(uint64_t message_id) const {
  // From the end, as the newest messages are asked for most.
  for (size_t i = size(); i-- > 0;)
    if ((*this)[i].id == message_id) return i;
  return size();
}

size_t Conversation::unsent() const {
  size_t from = std::min<size_t>(left_out, size());
  while (from > 0 && (from >= size() || (*this)[from].role != Role::user)) --from;
  return from;
}

Message& Conversation::append(Message message) {
  const uint32_t parent = leaf(), node = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({std::move(message), parent, none});
  if (parent != none) nodes_[parent].shown_child = node;
  path_.push_back(node);
  return nodes_.back().message;
}

void Conversation::cut(size_t length) {
  if (length < path_.size()) path_.resize(length);
}

std::vector<uint32_t> Conversation::alternatives(size_t i) const {
  const uint32_t here = path_[i], parent = nodes_[here].parent;
  std::vector<uint32_t> found;
  for (uint32_t n = parent == none ? 0 : parent + 1; n < nodes_.size(); ++n)
    if (nodes_[n].parent == parent && (n == here || !nodes_[n].message.failed_unsaid())) found.push_back(n);
  return found;
}

Conversation::Place Conversation::place(size_t i) const {
  const std::vector<uint32_t> all = alternatives(i);
  const auto here = std::find(all.begin(), all.end(), path_[i]);
  return {static_cast<size_t>(here - all.begin()), all.size()};
}

void Conversation::show_alternative(size_t i, int by) {
  if (i >= size()) return;
  const std::vector<uint32_t> all = alternatives(i);
  const auto last = static_cast<std::ptrdiff_t>(all.size()) - 1;
  const auto here = static_cast<std::ptrdiff_t>(place(i).index);
  const uint32_t chosen = all[static_cast<size_t>(std::clamp<std::ptrdiff_t>(here + by, 0, last))];
  path_.resize(i);
  path_.push_back(chosen);
  if (i > 0) nodes_[path_[i - 1]].shown_child = chosen;
  extend_to_leaf();
}

void Conversation::extend_to_leaf() {
  for (uint32_t next = nodes_[path_.back()].shown_child; next != none; next = nodes_[next].shown_child)
    path_.push_back(next);
}

void Conversation::show_leaf(uint32_t node) {
  path_.clear();
  if (node >= nodes_.size()) return;
  for (uint32_t n = node; n != none; n = nodes_[n].parent) path_.push_back(n);
  std::reverse(path_.begin(), path_.end());
  for (size_t i = 0; i + 1 < path_.size(); ++i) nodes_[path_[i]].shown_child = path_[i + 1];
}

Conversation Conversation::copy_of_path(size_t length) const {
  Conversation copy;
  copy.title = title;
  copy.system_prompt = system_prompt;
  copy.left_out = left_out;
  for (size_t i = 0; i < std::min(length, size()); ++i) copy.append((*this)[i]);
  return copy;
}

std::string Conversation::shown_title() const {
  constexpr size_t kMostTitle = 256;  // bytes: a question may be a megabyte in one line, and titles are drawn always
  if (title.empty() && nodes_.empty()) return "New chat";
  std::string_view line = title;
  if (title.empty()) {
    const Message& first = nodes_.front().message;
    line = std::string_view(first.text).substr(thinking_of(first).answer);
  }
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r\n"), line.size()));
  line = line.substr(0, line.find_first_of("\r\n"));
  line = line.substr(0, line.find_last_not_of(" \t") + 1);
  std::string shown = printable(line, kMostTitle, LineBreaks::keep);
  std::ranges::replace(shown, '\t', ' ');
  return shown;
}

std::vector<ChatHit> find_in(const Conversation& conversation, std::string_view wanted, size_t most) {
  std::vector<ChatHit> hits;
  const FoldedText folded_wanted(wanted);
  if (folded_wanted.folded().empty()) return hits;
  for (const Message& message : conversation) {
    const FoldedText text(message.text);
    for (auto hit = text.find(folded_wanted); hit && hits.size() < most; hit = text.find(folded_wanted, hit->next))
      hits.push_back({message.id, hit->begin, hit->end});
  }
  return hits;
}

}  // namespace canopy::app
