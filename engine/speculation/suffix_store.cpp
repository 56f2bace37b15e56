#include "engine/speculation/suffix_store.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStoreMagic = "CanopyS1";
constexpr const char* kStoreEnding = ".suffixes";
constexpr uint64_t kLargestStore = uint64_t{64} << 20;
constexpr uint64_t kLargestReply = uint64_t{16} << 20;  // bytes

}  // namespace

SuffixStore::SuffixStore(fs::path folder, std::string_view model, uint64_t vocabulary, bool read_only)
    : read_only_(read_only), trie_(TextDrafter::kDepth) {
  const std::string name = std::string(model) + ", " + std::to_string(vocabulary);
  path_ = std::move(folder) / (damage_hash_text(name) + kStoreEnding);
  reload();
}

void SuffixStore::reload() {
  replies_.clear();
  trie_.clear();
  tokens_ = 0;
  std::string damage;
  for (Reply& reply : read(path_, damage)) insert(std::move(reply));
  bound();
  if (damage.empty()) return;
  if (read_only_) {
    note_ = "Not all earlier replies could be read: " + damage;
    return;
  }
  std::error_code failed;
  const fs::path aside = path_.string() + ".damaged";
  fs::rename(path_, aside, failed);
  note_ = "Earlier replies that guesses may come from could not be read: " + damage +
          (failed ? std::string() : " The file is now " + shown(aside) + ".");
}

/// The whole replies of a file; `damage` says what is wrong with it, but for an end that was not written.
std::deque<SuffixStore::Reply> SuffixStore::read(const fs::path& path, std::string& damage) {
  std::deque<Reply> replies;
  std::error_code failed;
  const uint64_t size = fs::file_size(path, failed);
  if (failed) return replies;
  if (size > kLargestStore) {
    damage = shown(path) + " has " + std::to_string(size) + " bytes; at most " + std::to_string(kLargestStore) +
             " are allowed.";
    return replies;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Reader reader(std::as_bytes(std::span(bytes)));
  try {
    if (reader.text(std::min<uint64_t>(kStoreMagic.size(), reader.remaining()), "its first bytes") != kStoreMagic) {
      throw bad_input("it is no file of earlier replies.");
    }
    while (reader.remaining() >= sizeof(uint32_t) + sizeof(uint64_t)) {
      const auto length = reader.read<uint32_t>("the length of a reply");
      const auto hash = reader.read<uint64_t>("the hash of a reply");
      if (length > kLargestReply) throw bad_input("a reply has " + std::to_string(length) + " bytes.");
      if (length > reader.remaining()) break;  // its writing was interrupted
      const std::span<const std::byte> payload = reader.bytes(length, "a reply");
      if (damage_hash(payload) != hash) throw bad_input("a reply is not what was written.");
      Reader fields(payload);
      Reply& reply = replies.emplace_back();
      reply.chat = read_text(fields, "the chat of a reply");
      reply.tokens.resize(read_count(fields, 1, "the tokens of a reply"));
      for (uint32_t& token : reply.tokens) token = read_whole(fields, "a token of a reply");
    }
  } catch (const Error& e) {
    damage = shown(path) + ": " + e.what();
  }
  return replies;
}

std::string SuffixStore::encode(const Reply& reply) {
  std::string payload;
  ByteWriter out(payload);
  out.text(reply.chat);
  out.whole(reply.tokens.size());
  for (const uint32_t token : reply.tokens) out.whole(token);
  std::string record;
  ByteWriter frame(record);
  frame.fixed(static_cast<uint32_t>(payload.size()));
  frame.fixed(damage_hash(std::as_bytes(std::span(payload))));
  return record + payload;
}

void SuffixStore::insert(Reply reply) {
  trie_.begin_text();
  trie_.append(reply.tokens);
  trie_.begin_text();  // no text that is being written ends there
  tokens_ += reply.tokens.size();
  replies_.push_back(std::move(reply));
}

/// Each reply is two texts of the trie: its own and an empty one behind it.
void SuffixStore::bound() {
  while (tokens_ > kMostTokens && replies_.size() > 1) {
    tokens_ -= replies_.front().tokens.size();
    replies_.pop_front();
    trie_.forget_oldest();
    trie_.forget_oldest();
  }
}

void SuffixStore::add(std::string_view chat, std::span<const uint32_t> reply) {
  if (read_only_ || reply.empty() || reply.size() > kMostTokens / 2) return;
  insert({std::string(chat), {reply.begin(), reply.end()}});
  const size_t before = replies_.size();
  bound();
  if (replies_.size() < before) note_ = "The oldest replies that guesses may come from were forgotten, to make room.";
  if (path_.empty()) return;
  try {
    std::error_code failed;
    fs::create_directories(path_.parent_path(), failed);
    const uint64_t size = fs::file_size(path_, failed);
    // What was forgotten leaves the file now and then, not with each reply.
    if (failed || size > 8 * kMostTokens) {
      std::string all(kStoreMagic);
      for (const Reply& each : replies_) all += encode(each);
      write_file_atomically(path_, all);
      fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_write, failed);
      return;
    }
    std::ofstream file(path_, std::ios::binary | std::ios::app);
    file << encode(replies_.back()) << std::flush;
    if (!file) throw bad_input("The file " + shown(path_) + " cannot be written.");
  } catch (const Error& e) {
    note_ = "A reply that later guesses may come from was not kept: " + std::string(e.what());
  }
}

std::string SuffixStore::take_note() {
  return std::exchange(note_, {});
}

void SuffixStore::forget(const fs::path& folder, std::string_view chat) {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const fs::path path = entry.path();
    if (chat.empty()) {
      // Those set aside as damaged, too.
      if (path.string().find(kStoreEnding) != std::string::npos && !fs::remove(path, failed)) {
        throw bad_input("The file " + shown(path) + " cannot be removed.");
      }
      continue;
    }
    if (path.extension() != kStoreEnding) continue;
    std::string damage, rest(kStoreMagic);
    bool any = false;
    for (const Reply& reply : read(path, damage)) {
      any = any || reply.chat == chat;
      if (reply.chat != chat) rest += encode(reply);
    }
    if (any || !damage.empty()) write_file_atomically(path, rest);
  }
}

}  // namespace canopy
