#pragma once
// A conversation is a tree: asking a question anew or answering it again adds a branch, and nothing is ever taken away.
// One path from the beginning to a leaf is shown; this class reads as that path.

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
    uint32_t parent = none;       // a node before this one; none: the conversation begins here
    uint32_t shown_child = none;  // the branch that was shown last, and is again when the reader comes back
  };

  /// Alternatives of one message: this one is `index` of `count`, from 0. Answers that failed unsaid do not count.
  struct Place {
    size_t index = 0, count = 1;
  };

  // ---- the path that is shown ----
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

  /// The place of a message on the path; size() where it is not there.
  size_t find(uint64_t message_id) const;

  // ---- the tree ----
  const std::vector<Node>& nodes() const { return nodes_; }
  /// Node of the path's last message; none for an empty conversation.
  uint32_t leaf() const { return path_.empty() ? none : path_.back(); }

  /// Adds a message after the last one of the path, which it extends.
  Message& append(Message message);
  /// Shows only the first `length` messages: what is appended next begins a branch there.
  void cut(size_t length);
  Place place(size_t i) const;
  /// Shows the alternative `by` places on (clamped), and below it what was shown there last.
  void show_alternative(size_t i, int by);
  /// Shows the path that ends in a node.
  void show_leaf(uint32_t node);
  /// The first `length` messages of the path as a conversation of their own, with the same title and system prompt.
  Conversation copy_of_path(size_t length) const;
  /// Forgets everything.
  void clear() { *this = {}; }

  /// Its own title, or else the start of its first question.
  std::string shown_title() const;

  std::string id;             // names its file; empty until it is kept anywhere
  std::string title;          // empty: shown_title() makes one
  std::string system_prompt;  // empty: none
  int64_t created_ms = 0;

 private:
  std::vector<uint32_t> alternatives(size_t i) const;
  void extend_to_leaf();

  std::vector<Node> nodes_;     // parents before children
  std::vector<uint32_t> path_;  // nodes
};

/// Bytes [begin, end) of a message's text.
struct ChatHit {
  uint64_t message = 0;
  size_t begin = 0, end = 0;
  bool operator==(const ChatHit&) const = default;
};

/// Where `wanted` occurs on the shown path, in its order; ASCII letters are alike in either case. At most `most`.
std::vector<ChatHit> find_in(const Conversation& conversation, std::string_view wanted, size_t most = 10'000);

}  // namespace canopy::app
