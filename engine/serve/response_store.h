#pragma once
// Responses that were given, for those who ask for them again or go on from them: in memory alone, bounded.

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/text/chat_turn.h"

namespace canopy {

struct KeptResponse {
  std::vector<ChatTurn> turns;  // that a request goes on from: the input and the output, without instructions
  std::string json;             // the response as it was given
};

/// May be used from any thread. Nobody finds what was kept for another key.
class ResponseStore {
 public:
  ResponseStore(size_t most, size_t most_bytes) : most_(most), most_bytes_(most_bytes) {}

  /// Those that were used longest ago give way. One that is larger than all may be is not kept.
  void put(size_t key, const std::string& id, KeptResponse response);
  /// Null where it is not there.
  std::shared_ptr<const KeptResponse> find(size_t key, const std::string& id);
  bool erase(size_t key, const std::string& id);

 private:
  struct Entry {
    size_t key;
    std::string id;
    std::shared_ptr<const KeptResponse> response;
    size_t bytes;
  };
  std::list<Entry>::iterator place_of(size_t key, const std::string& id);
  void drop(std::list<Entry>::iterator entry);

  const size_t most_, most_bytes_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_: the last used in front
  size_t bytes_ = 0;          // likewise
};

}  // namespace canopy
