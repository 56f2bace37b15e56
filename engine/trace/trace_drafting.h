#pragma once
// The records that a re-run of a reply needs beside its rounds (docs/traces.md): how drafting stood when it began, and
// where its drafts come from.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/speculation/cost_table.h"
#include "engine/speculation/roofline.h"

namespace canopy {

/// What was known and allowed when the first round of a reply began.
struct TraceDrafting {
  uint32_t rules = 0;           // controller_rules of the program that recorded
  uint32_t block = 0;           // rows of the drafter's pass; 0: there was no drafter
  uint32_t drafted_tokens = 0;  // that its head is over
  uint32_t rows = 0;            // of a pass, at most
  uint32_t most_waiting = 0;    // features that can wait for a draft
  uint32_t backlog = 0;         // that waited
  uint32_t prompt_read = 0;     // of these or injected already: of the part of the prompt that was read for this reply
  bool goes_on = false;         // the rest of the prompt is the text of the reply before, with what waited of it
  uint32_t committed = 0;       // positions before the first round
  uint32_t remaining = 0;       // tokens that the reply might still get, the first round's included
  std::string policy;           // that costs were predicted by
  bool priced = false;          // the costs below were in force; else nothing was predicted
  std::optional<Roofline> roofline;  // of target and device, uncalibrated; none where it was not needed
  /// As they were measured before the reply; null: none were recorded.
  std::shared_ptr<const CostTable> costs;
  std::string state;  // SpeculationState::archive()
};

/// The drafts that a reply has beside those of its rounds: one behind each of `positions` roots from `first` on.
struct TraceDense {
  uint32_t reply = 0;  // in the file
  uint32_t first = 0;  // committed positions before the first root
  uint32_t positions = 0;
  std::string device = {};  // that drafted
  std::string driver = {};
  std::string variants = {};
  std::string canopy_version = {};
};

/// Appends the record. With `costs_as_before`, the costs are those of the file's record before this one.
void encode(const TraceDrafting& drafting, bool costs_as_before, std::string& bytes);
/// `before`: the costs of the file's record before this one. Throws bad_input naming what is wrong.
TraceDrafting decode_trace_drafting(std::string_view payload, const std::shared_ptr<const CostTable>& before);

nlohmann::ordered_json to_json(const TraceDrafting& drafting);
nlohmann::ordered_json to_json(const TraceDense& dense);
TraceDense parse_trace_dense(std::string_view json);

}  // namespace canopy
