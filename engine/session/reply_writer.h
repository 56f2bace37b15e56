#pragma once
// The state of one reply while it is written: prefill, then rounds until something ends it.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/session/reply_text.h"
#include "engine/session/round_planner.h"
#include "engine/session/text_session.h"
#include "engine/session/tree_verifier.h"
#include "engine/speculation/sampler.h"

namespace canopy {

/// What a reply is written with; the sequence is the session's and kept true at every step.
struct ReplyParts {
  Model& model;
  const TextModel& text;
  Drafter* drafter = nullptr;
  SpeculationState* state = nullptr;
  Sequence& sequence;
  uint32_t prefill_chunk = 1;
};

class ReplyWriter {
 public:
  /// Throws what TextSession::reply() throws for its arguments. All references must outlive the writer.
  ReplyWriter(const ReplyParts& parts, std::span<const uint32_t> prompt, const ReplySettings& settings,
              const ReplyCallbacks& callbacks);

  Reply write();

 private:
  std::unique_ptr<RoundPlanner> make_planner() const;
  void check(std::span<const uint32_t> prompt) const;
  void require_token(uint32_t id, const char* where) const;
  bool stopped() const { return callbacks_.stop.stop_requested(); }
  HeadOutput head() const { return settings_.sampling.is_plain_greedy() ? HeadOutput::argmax : HeadOutput::logits; }
  uint32_t committed() const { return parts_.sequence.length(); }

  bool prefill();
  void reuse_cache();
  bool read_prompt(std::span<const uint32_t> tokens, bool last);

  bool round();
  RoundStart start() const;
  bool accept_path(RoundRecord& record);
  uint32_t choose(uint32_t node);
  void commit(RoundRecord& record);
  void describe_nodes(RoundRecord& record) const;
  bool cancelled();

  bool append(uint32_t token);
  void report(std::string_view shown) const;

  ReplyParts parts_;
  const ReplySettings& settings_;
  const ReplyCallbacks& callbacks_;
  Sampler sampler_;
  ReplyText text_;
  std::vector<uint32_t> history_;  // prompt and reply; its last token is the root
  TreeVerifier verifier_;
  Drafter* drafter_ = nullptr;  // whose features are kept; null in mode ar
  std::unique_ptr<RoundPlanner> planner_;
  const DraftTree* tree_ = nullptr;  // of the round
  AcceptedPath path_;                // of the round
  uint32_t longest_ = 0;             // tokens of the reply
  Reply reply_;
};

}  // namespace canopy
