#pragma once
// Earlier replies of a model, on disk and as a trie that later drafts come from: what a reply of one chat says again in
// another is found there. Bounded; a chat's replies can be forgotten.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/speculation/suffix_trie.h"

namespace canopy {

/// The file is appended to with each reply: a magic number, then records of their own length and hash, so that what is
/// interrupted loses the last reply at most. Belongs to one thread; another program's replies are read when it is
/// opened again.
class SuffixStore {
 public:
  /// Tokens of all replies that are kept: the trie takes some 170 bytes for each.
  static constexpr size_t kMostTokens = 200'000;

  /// In memory alone.
  SuffixStore() : read_only_(false), trie_(TextDrafter::kDepth) {}
  /// The file of a model in `folder`, which is made with the first reply. `model` names it, with its vocabulary. Never
  /// throws for what the file holds: a damaged one is renamed, and note() says so. `read_only`: what is on the disk
  /// stays as it is, and so does what was read.
  SuffixStore(std::filesystem::path folder, std::string_view model, uint64_t vocabulary, bool read_only = false);

  bool read_only() const { return read_only_; }
  /// Empty in memory alone.
  const std::filesystem::path& path() const { return path_; }

  /// Adds a reply of a chat, and forgets the oldest replies beyond the bound. Where it cannot be written it is kept
  /// until the program ends, and note() says so. Does nothing in one that is read only.
  void add(std::string_view chat, std::span<const uint32_t> reply);
  /// What the replies suggest; no text of it is being written.
  const SuffixTrie& trie() const { return trie_; }
  size_t replies() const { return replies_.size(); }
  size_t tokens() const { return tokens_; }
  size_t memory_bytes() const { return trie_.memory_bytes() + tokens_ * sizeof(uint32_t); }

  /// What went wrong since the last call, as a sentence; else empty.
  std::string take_note();

  /// Removes a chat's replies from all files of the folder, or all replies where `chat` is empty. Throws bad_input
  /// where a file cannot be written. Stores that are open hold them until reload().
  static void forget(const std::filesystem::path& folder, std::string_view chat);
  /// Reads the file again.
  void reload();

 private:
  struct Reply {
    std::string chat;
    std::vector<uint32_t> tokens;
  };

  static std::deque<Reply> read(const std::filesystem::path& path, std::string& damage);
  static std::string encode(const Reply& reply);
  void insert(Reply reply);
  void bound();

  std::filesystem::path path_;
  bool read_only_;
  std::deque<Reply> replies_;  // oldest first
  size_t tokens_ = 0;
  SuffixTrie trie_;
  std::string note_;
};

}  // namespace canopy
