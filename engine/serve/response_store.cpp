#include "engine/serve/response_store.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace canopy {
namespace {

size_t bytes_of(const KeptResponse& response) {
  size_t bytes = sizeof(KeptResponse) + response.json.size();
  for (const ChatTurn& turn : response.turns) {
    bytes += sizeof(ChatTurn) + turn.role.size() + turn.content.size() + turn.thinking.size() + turn.fields.size() +
             (turn.tokens.ids.size() + turn.tokens.ending.size()) * sizeof(uint32_t);
    for (const std::string& part : turn.parts) bytes += sizeof(std::string) + part.size();
  }
  return bytes;
}

}  // namespace

std::list<ResponseStore::Entry>::iterator ResponseStore::place_of(size_t key, const std::string& id) {
  return std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.key == key && entry.id == id; });
}

void ResponseStore::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

void ResponseStore::put(size_t key, const std::string& id, KeptResponse response) {
  const size_t bytes = bytes_of(response);
  if (bytes > most_bytes_) return;
  auto kept = std::make_shared<const KeptResponse>(std::move(response));
  const std::lock_guard lock(mutex_);
  if (const auto same = place_of(key, id); same != entries_.end()) drop(same);
  entries_.push_front({key, id, std::move(kept), bytes});
  bytes_ += bytes;
  while (entries_.size() > most_ || bytes_ > most_bytes_) drop(std::prev(entries_.end()));
}

std::shared_ptr<const KeptResponse> ResponseStore::find(size_t key, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto entry = place_of(key, id);
  if (entry == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->response;
}

bool ResponseStore::erase(size_t key, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto entry = place_of(key, id);
  if (entry == entries_.end()) return false;
  drop(entry);
  return true;
}

}  // namespace canopy
