#pragma once
// Who is next among those that wait: clients take turns, and what one of them asked for keeps its order.

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace canopy {

/// Round robin over clients, first in first out within one. A higher priority comes before all lower ones. A client
/// that asks anew stands behind those that already wait.
template <class T>
class FairQueue {
 public:
  void push(const std::string& client, int priority, T item) {
    std::deque<Line>& lines = classes_[-priority];
    for (Line& line : lines) {
      if (line.client != client) continue;
      line.items.push_back(std::move(item));
      return;
    }
    lines.push_back({client, {}});
    lines.back().items.push_back(std::move(item));
  }

  /// Whose turn it is; null where nobody waits.
  const T* next() const { return classes_.empty() ? nullptr : &classes_.begin()->second.front().items.front(); }

  /// Takes that one. There must be one.
  T pop() {
    std::deque<Line>& lines = classes_.begin()->second;
    Line line = std::move(lines.front());
    lines.pop_front();
    T item = std::move(line.items.front());
    line.items.pop_front();
    if (!line.items.empty()) lines.push_back(std::move(line));
    if (lines.empty()) classes_.erase(classes_.begin());
    return item;
  }

  /// The first one that the condition holds of; null where it holds of none.
  template <class Condition>
  const T* find_if(const Condition& condition) const {
    for (const auto& [priority, lines] : classes_)
      for (const Line& line : lines)
        for (const T& item : line.items)
          if (condition(item)) return &item;
    return nullptr;
  }

  template <class Condition>
  void erase_if(const Condition& condition) {
    for (auto& [priority, lines] : classes_) {
      for (Line& line : lines) std::erase_if(line.items, condition);
      std::erase_if(lines, [](const Line& line) { return line.items.empty(); });
    }
    std::erase_if(classes_, [](const auto& each) { return each.second.empty(); });
  }

  size_t size() const {
    size_t items = 0;
    for (const auto& [priority, lines] : classes_)
      for (const Line& line : lines) items += line.items.size();
    return items;
  }
  bool empty() const { return classes_.empty(); }

 private:
  struct Line {
    std::string client;
    std::deque<T> items;  // never empty
  };
  std::map<int, std::deque<Line>> classes_;  // by priority, the highest first; none without a line
};

}  // namespace canopy
