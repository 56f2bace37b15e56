#include "engine/trace/trace_export.h"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"

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

double rate_of(uint64_t accepted, uint64_t offered) {
  return offered > 0 ? static_cast<double>(accepted) / static_cast<double>(offered) : 0;
}

ordered_json depths_of(const RoundStatistics& statistics) {
  ordered_json depths = ordered_json::array();
  for (size_t i = 0; i < statistics.by_depth().size(); ++i) {
    const DepthCounts& counts = statistics.by_depth()[i];
    depths.push_back({{"depth", i + 1},
                      {"offered", counts.offered},
                      {"accepted", counts.accepted},
                      {"rate", rate_of(counts.accepted, counts.offered)}});
  }
  return depths;
}

ordered_json nodes_by_source(const RoundStatistics& statistics) {
  ordered_json sets = ordered_json::object();
  for (const DraftSources sources : {kFromDflash, kFromSuffix, kUsualSources}) {
    const SourceCounts& counts = statistics.by_source(sources);
    sets[list_of(sources)] = {
        {"offered", counts.offered}, {"accepted", counts.accepted}, {"rate", rate_of(counts.accepted, counts.offered)}};
  }
  return sets;
}

ordered_json rounds_by_source(const RoundStatistics& statistics) {
  ordered_json sets = ordered_json::object();
  for (const DraftSources sources : {DraftSources{0}, kFromDflash, kFromSuffix, kUsualSources})
    sets[list_of(sources)] = statistics.rounds_by(sources);
  return sets;
}

}  // namespace

ordered_json to_json(const WentOn& went_on) {
  if (went_on.places == 0) return nullptr;
  return {{"times", went_on.times}, {"places", went_on.places}};
}

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
          {"by_source", nodes_by_source(statistics)},
          {"rounds_by_source", rounds_by_source(statistics)},
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

namespace {

std::string dump(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

using PieceOf = std::function<std::optional<trace::Piece>(uint32_t token)>;

PieceOf pieces_of(const TraceReader& trace) {
  return [&trace](uint32_t token) {
    const trace::Piece* piece = trace.piece(token);
    return piece == nullptr ? std::nullopt : std::optional(*piece);
  };
}

ordered_json text_of(uint32_t token, const PieceOf& pieces) {
  if (token == trace::other_chats_token) return std::string(trace::other_chats_words);
  const std::optional<trace::Piece> piece = pieces(token);
  return piece ? ordered_json(std::string(piece->bytes)) : ordered_json();
}

ordered_json texts_of(const std::vector<uint32_t>& tokens, const PieceOf& pieces) {
  ordered_json texts = ordered_json::array();
  for (const uint32_t token : tokens) texts.push_back(text_of(token, pieces));
  return texts;
}

std::string_view name_of(NodeState state) {
  switch (state) {
    case NodeState::accepted: return "accepted";
    case NodeState::rejected: return "rejected";
    case NodeState::not_reached: return "not_reached";
  }
  return "not_reached";
}

ordered_json node_to_json(const RoundNode& row, const PieceOf& pieces) {
  const TreeNode& node = row.node;
  const bool root = node.parent == TreeNode::none;
  const bool targeted = row.target_token != RoundNode::unknown;
  const bool hidden = node.token == trace::other_chats_token;
  return {{"token", hidden ? ordered_json() : ordered_json(node.token)},
          {"text", text_of(node.token, pieces)},
          {"parent", root ? ordered_json() : ordered_json(node.parent)},
          {"depth", node.depth},
          {"rank", node.rank},
          {"sources", source_names(node.sources)},
          {"went_on", to_json(node.went_on)},
          {"log_q", node.log_q},
          {"score", node.score},
          {"state", name_of(row.state)},
          {"target_token", targeted ? ordered_json(row.target_token) : ordered_json()},
          {"target_text", targeted ? text_of(row.target_token, pieces) : ordered_json()},
          {"log_p", row.log_p}};  // null where it is not known
}

ordered_json limit_to_json(uint32_t limit) {
  return limit == WidthLimits::none ? ordered_json() : ordered_json(limit);
}

ordered_json choice_to_json(const RoundChoice& choice) {
  ordered_json candidates = ordered_json::array();
  for (const WidthForecast& candidate : choice.candidates) {
    candidates.push_back({{"width", candidate.width},
                          {"expected", candidate.expected},
                          {"ms", candidate.ms},
                          {"tokens_per_second", candidate.tokens_per_second()}});
  }
  const WidthLimits& limits = choice.limits;
  return {{"reason", choice.reason},
          {"ar_tokens_per_second", choice.ar_tokens_per_second},
          {"limits",
           {{"budget", limit_to_json(limits.budget)},
            {"depth", limit_to_json(limits.depth)},
            {"tokens_left", limit_to_json(limits.tokens_left)},
            {"context_left", limit_to_json(limits.context_left)},
            {"rows", limit_to_json(limits.rows)}}},
          {"candidates", std::move(candidates)}};
}

ordered_json reply_to_json(const TraceReply& reply, const TraceReader& trace) {
  ordered_json json = to_json(reply.begin);
  json["prompt_texts"] = texts_of(reply.begin.prompt, pieces_of(trace));
  json["prefill"] = reply.prefill ? to_json(*reply.prefill) : ordered_json();
  json["end"] = reply.end ? to_json(*reply.end) : ordered_json();
  return json;
}

/// A number with all its digits, as JSON writes it.
std::string number(double value) {
  return dump(value);
}

std::string csv_text(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + '"';
}

constexpr std::array<std::string_view, 6> stages = {"draft", "build", "verify", "walk", "commit", "other"};

void add_times(std::string& line, const RoundTimes& times) {
  for (const double ms : {times.draft, times.build, times.verify, times.walk, times.commit, times.other}) {
    line += "," + number(ms);
  }
}

std::string csv_names() {
  std::string line = "reply,round,context,mode,shape,width,accepted,emitted";
  for (const std::string_view prefix : {"ms_", "device_ms_", "predicted_ms_"}) {
    for (const std::string_view stage : stages) line += "," + std::string(prefix) + std::string(stage);
  }
  return line + ",expected,predicted_tokens_per_second,ar_tokens_per_second,distinct_experts,match,sources,reason";
}

std::string csv_line(const RoundRecord& record, size_t reply) {
  std::string line;
  for (const uint64_t value : {uint64_t{reply}, uint64_t{record.round}, uint64_t{record.context}}) {
    line += std::to_string(value) + ",";
  }
  line += std::string(to_string(record.mode)) + "," + std::string(to_string(record.shape));
  for (const uint64_t value : {uint64_t{record.width}, uint64_t{record.accepted}, uint64_t{record.emitted.size()}}) {
    line += "," + std::to_string(value);
  }
  for (const RoundTimes* times : {&record.ms, &record.device_ms, &record.predicted}) add_times(line, *times);
  const WidthForecast* chosen = chosen_candidate(record);
  line += "," + (chosen != nullptr ? number(chosen->expected) : "");
  line += "," + (chosen != nullptr ? number(chosen->tokens_per_second()) : "");
  line += "," + number(record.choice.ar_tokens_per_second);
  line += "," + (record.distinct_experts > 0 ? number(record.distinct_experts) : "");
  line += "," + std::to_string(record.match) + "," + csv_text(list_of(guessed_by(record)));
  return line + "," + csv_text(record.choice.reason);
}

ordered_json whole_round(const RoundRecord& written, const PieceOf& pieces) {
  // Files of before have words of other chats, which are not told again.
  const RoundRecord record = without_other_chats(written);
  ordered_json nodes = ordered_json::array();
  for (const RoundNode& row : record.nodes) nodes.push_back(node_to_json(row, pieces));
  ordered_json result = {{"round", record.round},
                         {"context", record.context},
                         {"mode", to_string(record.mode)},
                         {"shape", to_string(record.shape)},
                         {"width", record.width},
                         {"accepted", record.accepted},
                         {"match", record.match},
                         {"backlog", record.backlog},
                         {"teaches", record.teaches},
                         {"emitted", record.emitted},
                         {"emitted_texts", texts_of(record.emitted, pieces)},
                         {"ms", to_json(record.ms)},
                         {"device_ms", to_json(record.device_ms)},
                         {"predicted_ms", to_json(record.predicted)},
                         {"choice", choice_to_json(record.choice)}};
  if (record.distinct_experts > 0) result["distinct_experts"] = record.distinct_experts;
  result["nodes"] = std::move(nodes);
  return result;
}

}  // namespace

ordered_json round_to_json(const RoundRecord& record, const TraceReader& trace) {
  return whole_round(record, pieces_of(trace));
}

ordered_json round_to_json(const RoundRecord& record, const TokenTexts& texts) {
  return whole_round(record, [&](uint32_t token) { return texts.find(token); });
}

namespace {

DecodeMode mode_of_round(const JsonFields& fields, const char* field) {
  const std::string name = fields.text(field);
  if (const auto mode = decode_mode_of(name)) return *mode;
  throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is " + quoted_name(name) +
                  "; allowed: ar, chain, tree, adaptive.");
}

RoundTimes times_of_round(const JsonFields& round, const char* field) {
  const JsonFields fields(round.at(field), "the field '" + std::string(field) + "' of " + round.what());
  return {fields.number("draft"), fields.number("build"),  fields.number("verify"),
          fields.number("walk"),  fields.number("commit"), fields.number("other")};
}

NodeState state_of_node(const JsonFields& fields) {
  const std::string name = fields.text("state");
  for (const NodeState state : {NodeState::accepted, NodeState::rejected, NodeState::not_reached})
    if (name_of(state) == name) return state;
  throw bad_input("The field 'state' of " + fields.what() + " is " + quoted_name(name) +
                  "; allowed: accepted, rejected, not_reached.");
}

DraftSources sources_of_node(const JsonFields& fields) {
  std::string list;
  for (const nlohmann::json& name : fields.list("sources")) {
    if (!name.is_string())
      throw bad_input("The field 'sources' of " + fields.what() + " has an entry that is no text.");
    list += (list.empty() ? "" : ",") + name.get<std::string>();
  }
  return list.empty() ? DraftSources{0} : parse_sources(list);
}

RoundNode node_from_json(const nlohmann::json& json) {
  const JsonFields fields(json, "a node of a pass");
  RoundNode row;
  row.node.token = fields.u32_or("token", trace::other_chats_token);
  row.node.parent = fields.u32_or("parent", TreeNode::none);
  row.node.depth = fields.u32("depth");
  row.node.rank = fields.u32("rank");
  row.node.sources = sources_of_node(fields);
  if (fields.has("went_on")) {
    const JsonFields went_on(fields.at("went_on"), "how often the text went on like a node of a pass");
    row.node.went_on.times = went_on.u32("times");
    row.node.went_on.places = went_on.u32("places");
  }
  row.node.log_q = fields.number("log_q");
  row.node.score = fields.number("score");
  row.state = state_of_node(fields);
  row.target_token = fields.u32_or("target_token", RoundNode::unknown);
  if (fields.has("log_p")) row.log_p = static_cast<float>(fields.number("log_p"));
  return row;
}

RoundChoice choice_from_json(const nlohmann::json& json) {
  const JsonFields fields(json, "the choice of a pass");
  RoundChoice choice;
  choice.reason = fields.text("reason");
  choice.ar_tokens_per_second = fields.number("ar_tokens_per_second");
  const JsonFields limits(fields.at("limits"), "the limits of a pass");
  choice.limits = {limits.u32_or("budget", WidthLimits::none), limits.u32_or("depth", WidthLimits::none),
                   limits.u32_or("tokens_left", WidthLimits::none), limits.u32_or("context_left", WidthLimits::none),
                   limits.u32_or("rows", WidthLimits::none)};
  for (const nlohmann::json& each : fields.list("candidates")) {
    const JsonFields candidate(each, "a candidate width of a pass");
    choice.candidates.push_back({candidate.u32("width"), candidate.number("expected"), candidate.number("ms")});
  }
  return choice;
}

}  // namespace

RoundRecord round_from_json(const nlohmann::json& json) {
  const JsonFields fields(json, "a pass");
  RoundRecord record;
  record.round = fields.u32("round");
  record.context = fields.u32("context");
  record.mode = mode_of_round(fields, "mode");
  record.shape = mode_of_round(fields, "shape");
  record.width = fields.u32("width");
  record.accepted = fields.u32("accepted");
  record.match = fields.u32("match");
  record.backlog = fields.u32_or("backlog", 0);
  record.teaches = fields.boolean_or("teaches", true);
  record.emitted = fields.ids("emitted");
  record.ms = times_of_round(fields, "ms");
  record.device_ms = times_of_round(fields, "device_ms");
  record.predicted = times_of_round(fields, "predicted_ms");
  record.choice = choice_from_json(fields.at("choice"));
  record.distinct_experts = static_cast<float>(fields.number_or("distinct_experts", 0));
  for (const nlohmann::json& node : fields.list("nodes")) record.nodes.push_back(node_from_json(node));
  validate(record);
  return record;
}

void export_json(const TraceReader& trace, std::ostream& out) {
  out << "{\"format\":\"canopytrace\",\"notice\":" << dump(trace.notice())
      << ",\n\"header\":" << dump(to_json(trace.header())) << ",\n\"replies\":[";
  for (size_t i = 0; i < trace.replies().size(); ++i) {
    const TraceReply& reply = trace.replies()[i];
    std::string head = dump(reply_to_json(reply, trace));
    head.pop_back();  // the object goes on with its rounds
    out << (i > 0 ? ",\n" : "\n") << head << ",\"rounds\":[";
    for (size_t round = 0; round < reply.rounds; ++round) {
      out << (round > 0 ? ",\n" : "\n") << dump(round_to_json(trace.round(reply.first_round + round), trace));
    }
    out << "]}";
  }
  out << "]}\n";
}

void export_csv(const TraceReader& trace, std::ostream& out) {
  out << csv_names() << "\r\n";
  for (size_t i = 0; i < trace.rounds(); ++i) out << csv_line(trace.round(i), trace.reply_of(i)) << "\r\n";
}

}  // namespace canopy
