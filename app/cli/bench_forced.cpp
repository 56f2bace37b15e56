#include "app/cli/bench_forced.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text_encoding.h"
#include "engine/format/json_text.h"

namespace canopy::cli {
namespace {

constexpr uint64_t max_file_bytes = 256 << 20;
constexpr const char* everything = "";  // in place of a category's name

/// The name of a way to decode in the file.
std::string file_name_of(const WayToDecode& way) {
  return way.budget > 0 ? "tree" + std::to_string(way.budget) : std::string(to_string(way.mode));
}

bool names_a_way(const std::string& field) {
  return field == "chain" || (field.starts_with("tree") && field.size() > 4 &&
                              field.find_first_not_of("0123456789", 4) == std::string::npos);
}

std::vector<uint32_t> read_lengths(const JsonFields& reply, const std::string& way) {
  const nlohmann::json& object = reply.at(way.c_str());
  std::vector<uint32_t> lengths = JsonFields(object, reply.what() + ", " + way).ids("acceptance_lengths");
  if (lengths.empty() || std::ranges::find(lengths, 0u) != lengths.end()) {
    throw bad_input(reply.what() + ", " + way +
                    ": acceptance_lengths is empty or holds a 0; a length of 1 or more for every round is needed.");
  }
  return lengths;
}

ForcedReply read_reply(const nlohmann::json& entry, const std::string& what) {
  const JsonFields fields(entry, what);
  ForcedReply reply;
  reply.category = fields.text_or("category", "replies");
  reply.prompt_ids = fields.ids("prompt_ids");
  reply.output_ids = fields.ids("output_ids");
  if (reply.prompt_ids.empty() || reply.output_ids.empty()) {
    throw bad_input(what + ": prompt_ids or output_ids is empty or missing; token ids are needed in both.");
  }
  for (const auto& [field, value] : entry.items()) {
    if (names_a_way(field)) reply.lengths[field] = read_lengths(fields, field);
  }
  return reply;
}

/// Rounds by their first token: [start] = length.
std::map<uint32_t, uint32_t> rounds_until(const std::vector<uint32_t>& lengths, uint32_t end) {
  std::map<uint32_t, uint32_t> rounds;
  uint32_t start = 1;  // token 0 comes out of the prompt's pass
  for (const uint32_t length : lengths) {
    if (start >= end) break;
    rounds[start] = length;
    start += length;
  }
  return rounds;
}

void add(RoundSum& sum, const std::map<uint32_t, uint32_t>& rounds) {
  for (const auto& [start, length] : rounds) {
    ++sum.rounds;
    sum.tokens += length;
  }
}

/// Only rounds that start before this token count.
uint32_t last_start(size_t reply_tokens, const std::vector<uint32_t>& theirs, uint32_t max_depth) {
  const auto tokens = static_cast<uint32_t>(reply_tokens);
  const uint32_t whole_block = tokens > max_depth ? tokens - max_depth : 0;
  // The file may leave out the last rounds, if the reply was too short to know their lengths.
  return std::min(whole_block, 1 + std::accumulate(theirs.begin(), theirs.end(), 0u));
}

void add_reply(ForcedResult& result, const std::map<uint32_t, uint32_t>& ours,
               const std::map<uint32_t, uint32_t>& theirs) {
  ++result.replies;
  add(result.ours, ours);
  add(result.theirs, theirs);
  for (const auto& [start, length] : ours) {
    const auto same = theirs.find(start);
    if (same == theirs.end()) continue;
    ++result.same_starts;
    if (same->second == length) ++result.same_lengths;
  }
}

const std::vector<uint32_t>& lengths_of(const ForcedReply& reply, const WayToDecode& way) {
  const auto found = reply.lengths.find(file_name_of(way));
  if (found != reply.lengths.end()) return found->second;
  std::string known;
  for (const auto& [name, lengths] : reply.lengths) known += (known.empty() ? "" : ", ") + name;
  throw bad_input("The forced replies have no acceptance lengths of " + file_name_of(way) + "; there are those of " +
                  (known.empty() ? "none" : known) + ".");
}

/// Nothing once stop was requested.
std::optional<std::vector<uint32_t>> forced_lengths(const Engine& model, const ForcedReply& reply,
                                                    const WayToDecode& way, const std::stop_token& stop) {
  SweepSettings shared;
  shared.max_tokens = static_cast<uint32_t>(reply.output_ids.size());
  ReplySettings settings = reply_settings(way, shared);
  settings.forced = reply.output_ids;
  ReplyCallbacks callbacks;
  callbacks.stop = stop;
  const Reply forced = model.reply(reply.prompt_ids, settings, callbacks);
  if (forced.reason == FinishReason::cancelled) return std::nullopt;
  if (forced.ids != reply.output_ids) {
    throw bad_input("A forced reply of " + std::to_string(reply.output_ids.size()) + " tokens ended after " +
                    std::to_string(forced.ids.size()) + ", at a stop of this model or at the end of its context.");
  }
  std::vector<uint32_t> lengths;
  for (const RoundRecord& round : forced.rounds) lengths.push_back(static_cast<uint32_t>(round.emitted.size()));
  return lengths;
}

/// The results of a category, one for each way; made when the category is first met.
ForcedResult* results_of(std::vector<ForcedResult>& results, const std::string& category,
                         const std::vector<WayToDecode>& ways) {
  auto found = std::ranges::find(results, category, &ForcedResult::category);
  if (found == results.end()) {
    const size_t first = results.size();
    for (const WayToDecode& way : ways) {
      ForcedResult result;
      result.way = way;
      result.category = category;
      results.push_back(result);
    }
    return results.data() + first;
  }
  return &*found;
}

}  // namespace

double ForcedResult::difference() const {
  return theirs.tau() > 0 ? ours.tau() / theirs.tau() - 1 : 0;
}

std::vector<ForcedReply> read_forced(const std::filesystem::path& path) {
  const std::string name = shown(path);
  const nlohmann::json json = parse_json(read_text_input(path, max_file_bytes), name);
  if (!json.is_array() || json.empty()) throw bad_input(name + " is not a JSON array of one or more replies.");
  std::vector<ForcedReply> replies;
  for (const nlohmann::json& entry : json) {
    replies.push_back(read_reply(entry, name + ", entry " + std::to_string(replies.size())));
  }
  return replies;
}

std::vector<ForcedResult> compare_forced(Engine& model, const std::vector<ForcedReply>& replies,
                                         const std::vector<WayToDecode>& ways, const ModesCallbacks& callbacks) {
  for (const ForcedReply& reply : replies) {
    // Checks that all lengths are there before the first reply takes its time.
    for (const WayToDecode& way : ways) lengths_of(reply, way);
  }
  const uint32_t max_depth = model.drafter->max_depth();
  std::vector<ForcedResult> results, overall;
  uint64_t done = 0;
  const auto compare_reply = [&](const ForcedReply& reply) {
    std::vector<std::vector<uint32_t>> lengths;
    for (const WayToDecode& way : ways) {
      if (callbacks.progress) callbacks.progress(done++, replies.size() * ways.size());
      auto of_way = forced_lengths(model, reply, way, callbacks.stop);
      if (!of_way) return false;
      lengths.push_back(std::move(*of_way));
    }
    for (size_t way = 0; way < ways.size(); ++way) {
      const std::vector<uint32_t>& theirs = lengths_of(reply, ways[way]);
      const uint32_t end = last_start(reply.output_ids.size(), theirs, max_depth);
      const auto our_rounds = rounds_until(lengths[way], end), their_rounds = rounds_until(theirs, end);
      add_reply(results_of(results, reply.category, ways)[way], our_rounds, their_rounds);
      add_reply(results_of(overall, everything, ways)[way], our_rounds, their_rounds);
    }
    return true;
  };
  static_cast<void>(std::ranges::all_of(replies, compare_reply));  // ends where it was stopped
  if (results.empty()) throw cancelled("The comparison was stopped before any reply was through all modes.");
  for (ForcedResult& result : overall) result.category = all_categories;
  results.insert(results.end(), overall.begin(), overall.end());
  return results;
}

}  // namespace canopy::cli
