#pragma once
// A conversation as a tree: editing a question or answering it again adds a branch, and nothing is ever removed. One
// path from the first message to a leaf is shown; size(), [] and iteration go over that path.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "app/conversation/message.h"

namespace canopy::app {

class Conversation {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  struct Node {
    Message message;
    uint32_t parent = none;       // the node of the message before; none for a first message
    uint32_t shown_child = none;  // the child that was shown last; shown again when the user returns to this branch
  };

  /// Which version of a message is shown: `index` (from 0) of `count`. Answers that failed before their first word do
  /// not count.
  struct Place {
    size_t index = 0, count = 1;
  };

  // ---- the shown path ----
  size_t size() const { return path_.size(); }
  bool empty() const { return path_.empty(); }
  const Message& operator[](size_t i) const { return nodes_[path_[i]].message; }
  const Message& front() const { return (*this)[0]; }
  const Message& back() const { return (*this)[size() - 1]; }
  Message& back() { return nodes_[path_.back()].message; }

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Message;
    using difference_type = std::ptrdiff_t;
    using pointer = const Message*;
    using reference = const Message&;

    Iterator() = default;
    Iterator(const Conversation* owner, size_t at) : owner_(owner), at_(at) {}
    reference operator*() const { return (*owner_)[at_]; }
    pointer operator->() const { return &(*owner_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return {owner_, at_++}; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const Conversation* owner_ = nullptr;
    size_t at_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  /// Position of a message on the shown path; size() where it is not on it.
  size_t find(uint64_t message_id) const;

  // ---- the tree ----
  const std::vector<Node>& nodes() const { return nodes_; }
  /// Node of the last message on the path; `none` for an empty conversation.
  uint32_t leaf() const { return path_.empty() ? none : path_.back(); }

  /// Adds a message after the last one of the path, and shows it.
  Message& append(Message message);
  /// Shows only the first `length` messages. The next append() begins a branch there.
  void cut(size_t length);
  Place place(size_t i) const;
  /// Shows another version of message i: the one `by` places further, clamped to those that exist. Below it, shows the
  /// path that was shown there last.
  void show_alternative(size_t i, int by);
  /// Shows the path from the first message to this node.
  void show_leaf(uint32_t node);
  /// A new conversation of the first `length` messages of the path, with the same title and system prompt.
  Conversation copy_of_path(size_t length) const;
  /// Removes everything.
  void clear() { *this = {}; }

  /// The title that was given, or else the first line of the first question.
  std::string shown_title() const;

  std::string id;             // names its file; empty until the chat is saved
  std::string title;          // empty: shown_title() makes one
  std::string system_prompt;  // empty: none
  int64_t created_ms = 0;
  uint32_t left_out = 0;  // messages at the beginning of the path that are not sent to the model any more

  /// Number of messages at the beginning of the shown path that are not sent: `left_out`, or fewer on a path so short
  /// that its last question would be among them. What is sent begins with a question.
  size_t unsent() const;

 private:
  std::vector<uint32_t> alternatives(size_t i) const;
  void extend_to_leaf();

  std::vector<Node> nodes_;     // parents before children
  std::vector<uint32_t> path_;  // numbers of nodes
};

/// Bytes [begin, end) of a message's text.
struct ChatHit {
  uint64_t message = 0;
  size_t begin = 0, end = 0;
  bool operator==(const ChatHit&) const = default;
};

/// All places in the shown path where `wanted` occurs, in order, at most `most`. Upper and lower case are the same
/// (FoldedText).
std::vector<ChatHit> find_in(const Conversation& conversation, std::string_view wanted, size_t most = 10'000);

}  // namespace canopy::app
