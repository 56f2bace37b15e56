#pragma once
// What drafts the tokens behind a text: a model's drafter, or a recording of one.

#include <cstdint>
#include <stop_token>
#include <vector>

#include "engine/speculation/block_draft.h"

namespace canopy {

class DraftSource {
 public:
  virtual ~DraftSource() = default;

  /// Tokens of the longest draft, B - 1.
  virtual uint32_t max_depth() const = 0;
  /// Features that the next draft injects first.
  virtual uint32_t backlog() const = 0;
  /// Features that can wait for one.
  virtual uint32_t most_waiting() const = 0;
  /// Tokens that are drafted at all: the vocabulary, or a part of it.
  virtual uint32_t drafted_tokens() const = 0;

  /// Drafts `depths` tokens behind the root, which stands behind the text; 1 ... max_depth(). Null when stop was
  /// requested. Stays as it is until the next call.
  virtual const BlockDraft* draft(uint32_t root, uint32_t depths, const std::stop_token& stop) = 0;
  /// Milliseconds of the last draft by the device's clock; 0 where it has none.
  virtual double device_ms() const { return 0; }

  /// Replaces both lists by the candidates of a depth of the last draft: those that it had, then others, `count` of
  /// them where there are as many. False where no more are known than `known`.
  virtual bool more(uint32_t depth, uint32_t known, uint32_t count, std::vector<uint32_t>& tokens,
                    std::vector<float>& logits) = 0;
};

}  // namespace canopy
