#include "engine/trace/round_statistics_json.h"

#include <string>
#include <utility>

namespace canopy {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const ShapeCounts& counts) {
  return {{"rounds", counts.rounds}, {"emitted", counts.emitted}, {"rows", counts.rows},
          {"ms", counts.ms},         {"tau", counts.tau()},       {"tokens_per_second", counts.tokens_per_second()}};
}

ordered_json to_json(const PredictionError& error) {
  return {{"rounds", error.rounds},
          {"predicted_ms", error.predicted_ms},
          {"measured_ms", error.measured_ms},
          {"mean_error", error.mean_error()},
          {"bias", error.bias()}};
}

ordered_json shares_of(const RoundTimes& times) {
  const double total = times.total();
  ordered_json shares = canopy::to_json(times);
  for (auto& [stage, share] : shares.items()) share = total > 0 ? share.get<double>() / total : 0.0;
  return shares;
}

ordered_json histogram_of(const RoundStatistics& statistics) {
  ordered_json histogram = ordered_json::object();
  for (const auto& [accepted, rounds] : statistics.accepted_histogram()) histogram[std::to_string(accepted)] = rounds;
  return histogram;
}

ordered_json depths_of(const RoundStatistics& statistics) {
  ordered_json depths = ordered_json::array();
  for (size_t i = 0; i < statistics.by_depth().size(); ++i) {
    const DepthCounts& counts = statistics.by_depth()[i];
    const double rate =
        counts.offered > 0 ? static_cast<double>(counts.accepted) / static_cast<double>(counts.offered) : 0;
    depths.push_back({{"depth", i + 1}, {"offered", counts.offered}, {"accepted", counts.accepted}, {"rate", rate}});
  }
  return depths;
}

}  // namespace

ordered_json to_json(const RoundTimes& times) {
  return {{"draft", times.draft}, {"build", times.build},   {"verify", times.verify},
          {"walk", times.walk},   {"commit", times.commit}, {"other", times.other}};
}

ordered_json to_json(const RoundStatistics& statistics) {
  ordered_json shapes = ordered_json::object();
  for (const DecodeMode shape : {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree}) {
    shapes[std::string(to_string(shape))] = to_json(statistics.of(shape));
  }
  return {{"rounds", statistics.rounds()},
          {"emitted", statistics.emitted()},
          {"cut_rounds", statistics.cut_rounds()},
          {"ms_total", statistics.ms().total()},
          {"tau", statistics.tau()},
          {"tokens_per_second", statistics.tokens_per_second()},
          {"rows", statistics.rows()},
          {"drafted", statistics.drafted()},
          {"accepted", statistics.accepted()},
          {"node_utilisation", statistics.node_utilisation()},
          {"row_utilisation", statistics.row_utilisation()},
          {"accepted_histogram", histogram_of(statistics)},
          {"by_depth", depths_of(statistics)},
          {"shapes", std::move(shapes)},
          {"ms", to_json(statistics.ms())},
          {"share_of_ms", shares_of(statistics.ms())},
          {"device_ms", to_json(statistics.device_ms())},
          {"prediction",
           {{"total", to_json(statistics.total_error())},
            {"draft", to_json(statistics.draft_error())},
            {"verify", to_json(statistics.verify_error())}}},
          {"expected_against_emitted",
           {{"rounds", statistics.expectation().pairs},
            {"mean_expected", statistics.expectation().mean_x},
            {"mean_emitted", statistics.expectation().mean_y},
            {"correlation", statistics.expectation().value()}}}};
}

}  // namespace canopy
