#include "app/rounds/dump_trace.h"

#include <ostream>

#include "app/rounds/trace_log.h"
#include "engine/base/error.h"
#include "engine/trace/round_statistics_json.h"
#include "engine/trace/trace_export.h"

namespace canopy::app {
namespace {

using Json = nlohmann::ordered_json;

Json replies_of(const TraceLog& log) {
  Json replies = Json::array();
  for (const ReplySummary& reply : log.replies()) {
    Json json{{"mode", to_string(reply.mode)},
              {"budget", reply.budget},
              {"first_round", reply.first_round},
              {"rounds", reply.rounds}};
    json["reason"] = reply.reason ? Json(json_name(*reply.reason)) : Json();
    json["text"] = reply.text;
    replies.push_back(std::move(json));
  }
  return replies;
}

}  // namespace

void check_round(uint64_t round, size_t rounds) {
  if (round < rounds) return;
  throw bad_input("There is no round " + std::to_string(round) + ": the trace has rounds 0 to " +
                  std::to_string(rounds - 1) + ".");
}

void dump_trace(const std::string& path, std::optional<uint64_t> round, std::ostream& out) {
  const TraceLog log(path);
  if (round) check_round(*round, log.rounds());
  Json json;
  json["trace"] = std::filesystem::path(path).filename().string();
  json["notice"] = log.reader().notice();
  json["header"] = to_json(log.reader().header());
  json["rounds"] = log.rounds();
  json["replies"] = replies_of(log);
  json["statistics"] = to_json(log.statistics());
  if (round) json["round"] = round_to_json(log.reader().round(*round), log.reader());
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace canopy::app
