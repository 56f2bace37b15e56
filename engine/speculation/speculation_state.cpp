#include "engine/speculation/speculation_state.h"

#include <cmath>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr uint64_t smallest_point_bytes = 10;  // rows, context, a double
constexpr uint32_t most_points = 1u << 16;

enum class CostsIn : uint8_t { nowhere = 0, here = 1, record_before = 2 };

struct ShapeField {
  const char* name;
  uint32_t ModelShape::*value;
};
constexpr ShapeField shape_fields[] = {
    {"layers", &ModelShape::layers},
    {"hidden", &ModelShape::hidden},
    {"query_heads", &ModelShape::query_heads},
    {"kv_heads", &ModelShape::kv_heads},
    {"head_dim", &ModelShape::head_dim},
    {"ffn", &ModelShape::ffn},
    {"vocab", &ModelShape::vocab},
    {"moe_layers", &ModelShape::moe_layers},
    {"experts", &ModelShape::experts},
    {"experts_per_row", &ModelShape::experts_per_row},
    {"expert_ffn", &ModelShape::expert_ffn},
};
/// Those that are 0 in most models, and left out then.
constexpr ShapeField seldom_shape_fields[] = {
    {"shared_ffn", &ModelShape::shared_ffn},
    {"recurrent_layers", &ModelShape::recurrent_layers},
    {"recurrent_keys", &ModelShape::recurrent_keys},
    {"recurrent_values", &ModelShape::recurrent_values},
    {"recurrent_key_dim", &ModelShape::recurrent_key_dim},
    {"gated", &ModelShape::gated},
    {"layers_without_mixer", &ModelShape::layers_without_mixer},
    {"layers_without_ffn", &ModelShape::layers_without_ffn},
    {"ungated_ffn", &ModelShape::ungated_ffn},
    {"latent_rank", &ModelShape::latent_rank},
    {"latent_query_rank", &ModelShape::latent_query_rank},
    {"latent_key_dim", &ModelShape::latent_key_dim},
    {"latent_value_dim", &ModelShape::latent_value_dim},
};

struct BytesField {
  const char* name;
  double ModelShape::*value;
};
constexpr BytesField bytes_fields[] = {
    {"weight_bytes", &ModelShape::weight_bytes},
    {"kv_bytes", &ModelShape::kv_bytes},
    {"activation_bytes", &ModelShape::activation_bytes},
};

ordered_json to_json(const Roofline& roofline) {
  ordered_json object;
  for (const ShapeField& field : shape_fields) object[field.name] = roofline.shape().*field.value;
  for (const ShapeField& field : seldom_shape_fields) {
    if (roofline.shape().*field.value != 0) object[field.name] = roofline.shape().*field.value;
  }
  for (const BytesField& field : bytes_fields) object[field.name] = roofline.shape().*field.value;
  object["flops_per_second"] = roofline.peaks().flops_per_second;
  object["bytes_per_second"] = roofline.peaks().bytes_per_second;
  return object;
}

Roofline parse_roofline(const json& object) {
  const JsonFields fields(object, "the roofline of a reply");
  ModelShape shape;
  for (const ShapeField& field : shape_fields) shape.*field.value = fields.u32(field.name);
  for (const ShapeField& field : seldom_shape_fields) shape.*field.value = fields.u32_or(field.name, 0);
  for (const BytesField& field : bytes_fields) shape.*field.value = fields.number(field.name);
  return Roofline(shape, {fields.number("flops_per_second"), fields.number("bytes_per_second")});
}

void write_points(ByteWriter& out, const std::vector<CostPoint>& points) {
  out.whole(points.size());
  for (const CostPoint& point : points) {
    out.whole(point.rows);
    out.whole(point.context);
    out.number(point.ms);
  }
}

void write_costs(ByteWriter& out, const CostTable& costs) {
  out.whole(costs.tile());
  write_points(out, costs.verify_points());
  write_points(out, costs.draft_points());
  out.whole(costs.other_points().size());
  for (const OtherCost& other : costs.other_points()) {
    out.whole(other.width);
    out.number(other.ms);
  }
}

uint32_t read_points(Reader& reader, uint64_t smallest) {
  const uint32_t count = read_count(reader, smallest, "the number of measured passes");
  if (count <= most_points) return count;
  throw bad_input("A reply's costs hold " + std::to_string(count) + " passes; at most " + std::to_string(most_points) +
                  " are allowed.");
}

CostPoint read_point(Reader& reader) {
  CostPoint point;
  point.rows = read_whole(reader, "the rows of a measured pass");
  point.context = read_whole(reader, "the context of a measured pass");
  point.ms = reader.read<double>("the time of a measured pass");
  return point;
}

CostTable read_costs(Reader& reader) {
  const auto tile = read_whole(reader, "the tile of the costs");
  if (tile < 1 || tile > 1024) {
    throw bad_input("The tile of a reply's costs is " + std::to_string(tile) + "; 1 to 1024 is allowed.");
  }
  CostTable costs(tile);
  for (uint32_t left = read_points(reader, smallest_point_bytes); left > 0; --left) {
    const CostPoint point = read_point(reader);
    costs.set_verify(point.rows, point.context, point.ms);
  }
  for (uint32_t left = read_points(reader, smallest_point_bytes); left > 0; --left) {
    const CostPoint point = read_point(reader);
    costs.set_draft(point.rows, point.context, point.ms);
  }
  for (uint32_t left = read_points(reader, smallest_point_bytes - 1); left > 0; --left) {
    const auto width = read_whole(reader, "the rows of a measured rest");
    costs.set_other(width, reader.read<double>("the time of a measured rest"));
  }
  return costs;
}

}  // namespace

ordered_json to_json(const TraceDrafting& drafting) {
  ordered_json object = {{"rules", drafting.rules},
                         {"block", drafting.block},
                         {"drafted_tokens", drafting.drafted_tokens},
                         {"rows", drafting.rows},
                         {"most_waiting", drafting.most_waiting},
                         {"backlog", drafting.backlog},
                         {"prompt_read", drafting.prompt_read},
                         {"goes_on", drafting.goes_on},
                         {"committed", drafting.committed},
                         {"remaining", drafting.remaining},
                         {"beams", drafting.beams},
                         {"sources", source_names(drafting.sources)},
                         {"policy", drafting.policy},
                         {"priced", drafting.priced}};
  if (drafting.roofline) object["roofline"] = to_json(*drafting.roofline);
  return object;
}

void encode(const TraceDrafting& drafting, bool costs_as_before, std::string& bytes) {
  ByteWriter out(bytes);
  out.text(to_json(drafting).dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  if (drafting.costs == nullptr) {
    out.byte(static_cast<uint8_t>(CostsIn::nowhere));
  } else if (costs_as_before) {
    out.byte(static_cast<uint8_t>(CostsIn::record_before));
  } else {
    out.byte(static_cast<uint8_t>(CostsIn::here));
    write_costs(out, *drafting.costs);
  }
  out.text(drafting.state);
}

TraceDrafting decode_trace_drafting(std::string_view payload, const std::shared_ptr<const CostTable>& before) {
  Reader reader(std::as_bytes(std::span(payload)));
  const json object = parse_json(read_text(reader, "the fields of a drafting record"), "the drafting of a reply");
  const JsonFields fields(object, "the drafting of a reply");
  TraceDrafting drafting;
  drafting.rules = fields.u32("rules");
  drafting.block = fields.u32("block");
  drafting.drafted_tokens = fields.u32("drafted_tokens");
  drafting.rows = fields.u32("rows");
  drafting.most_waiting = fields.u32("most_waiting");
  drafting.backlog = fields.u32("backlog");
  drafting.prompt_read = fields.u32_or("prompt_read", 0);  // the first recordings of 1.1 lack it
  drafting.goes_on = fields.boolean_or("goes_on", false);
  drafting.committed = fields.u32("committed");
  drafting.remaining = fields.u32("remaining");
  drafting.beams = fields.u32_or("beams", 1);  // models drafted along one path before that was there
  if (fields.has("sources")) {                 // since 1.2
    drafting.sources = 0;
    for (const json& name : fields.list("sources")) {
      if (!name.is_string())
        throw bad_input("The field 'sources' of the drafting of a reply has an entry that is no text.");
      drafting.sources |= parse_sources(name.get<std::string>());
    }
  }
  drafting.policy = fields.text("policy");
  drafting.priced = fields.boolean_or("priced", false);
  if (const json* roofline = fields.object("roofline")) drafting.roofline = parse_roofline(*roofline);
  const auto place = reader.read<uint8_t>("where the costs are");
  switch (static_cast<CostsIn>(place)) {
    case CostsIn::nowhere: break;
    case CostsIn::here: drafting.costs = std::make_shared<const CostTable>(read_costs(reader)); break;
    case CostsIn::record_before:
      if (before == nullptr) throw bad_input("A reply has the costs of one before it, and there is none.");
      drafting.costs = before;
      break;
    default: throw bad_input("The costs of a reply are in the place " + std::to_string(place) + "; allowed: 0 to 2.");
  }
  drafting.state = read_text(reader, "what was learnt before a reply");
  return drafting;
}

ordered_json to_json(const TraceDense& dense) {
  return {{"reply", dense.reply},         {"first", dense.first},
          {"positions", dense.positions}, {"canopy_version", dense.canopy_version},
          {"device", dense.device},       {"driver", dense.driver},
          {"variants", dense.variants}};
}

TraceDense parse_trace_dense(std::string_view text) {
  const json object = parse_json(text, "the note on a reply's drafts");
  const JsonFields fields(object, "the note on a reply's drafts");
  TraceDense dense;
  dense.reply = fields.u32("reply");
  dense.first = fields.u32("first");
  dense.positions = fields.u32("positions");
  dense.canopy_version = fields.text_or("canopy_version", "");
  dense.device = fields.text_or("device", "");
  dense.driver = fields.text_or("driver", "");
  dense.variants = fields.text_or("variants", "");
  return dense;
}

ControllerOptions controller_options(CostPolicy policy) {
  ControllerOptions options;
  if (policy != CostPolicy::measured) {
    options.objective = WidthObjective::per_round;
    options.calibrate = false;
  }
  return options;
}

SpeculationState::SpeculationState(PairFacts pair, CostTable table)
    : pair_(std::move(pair)), table_(std::move(table)), controller_(controller_options(policy_), pair_.block_size) {
  table_.set_drafts_by_token(pair_.by_token);
}

const Roofline& SpeculationState::roofline() {
  if (!roofline_) roofline_ = pair_.roofline();
  return *roofline_;
}

void SpeculationState::use(CostPolicy policy) {
  started_ = true;
  if (policy == policy_) return;
  policy_ = policy;
  cost_.reset();
  controller_ = Controller(controller_options(policy_), pair_.block_size);
}

ObservedCost& SpeculationState::cost() {
  if (cost_ == nullptr) price();
  return *cost_;
}

void SpeculationState::replace(CostTable table) {
  table_ = std::move(table);
  table_.set_drafts_by_token(pair_.by_token);
  shared_table_.reset();
  if (cost_ != nullptr) price();
}

std::shared_ptr<const CostTable> SpeculationState::shared_table() const {
  if (shared_table_ == nullptr) shared_table_ = std::make_shared<const CostTable>(table_);
  return shared_table_;
}

void SpeculationState::archive(StateArchive& archive) {
  archive.flag(started_);
  controller_.archive(archive);
  bool priced = is_priced();
  archive.flag(priced);
  if (priced) cost().archive(archive);
}

std::string SpeculationState::learnt() {
  std::string bytes;
  StateWriter writer(bytes);
  uint32_t rules = controller_rules, block = pair_.block_size;
  writer.whole(rules, UINT32_MAX);
  writer.whole(block, UINT32_MAX);
  controller_.archive(writer);
  return bytes;
}

bool SpeculationState::take_learnt(std::string_view bytes) {
  Controller taken(controller_options(policy_), pair_.block_size);
  try {
    Reader reader(std::as_bytes(std::span(bytes)));
    StateReader state(reader);
    uint32_t rules = 0, block = 0;
    state.whole(rules, UINT32_MAX);
    state.whole(block, UINT32_MAX);
    if (rules != controller_rules || block != pair_.block_size) return false;
    taken.archive(state);
  } catch (const Error&) {
    return false;
  }
  taken.forget_times();
  controller_ = std::move(taken);
  return true;
}

double SpeculationState::ar_tokens_per_second(uint32_t context) const {
  return table_.verify_points().empty() ? 0 : 1000 / table_.ar_ms(context);
}

void SpeculationState::price() {
  table_.set_roofline(roofline());
  cost_ = make_cost(policy_, roofline(), table_);
}

}  // namespace canopy
