#include "engine/whatif/elsewhere.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/drafter_config.h"
#include "engine/speculation/calibration.h"
#include "engine/trace/trace_writer.h"
#include "engine/whatif/prediction.h"

namespace canopy {
namespace {

constexpr uint32_t usual_layers = 5, usual_taps = 5;  // of drafters
constexpr uint32_t most_taps = 64;

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text) result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::ranges::replace(result, ' ', '-');
  return result;
}

std::optional<predict::NamedShape> known_shape(const std::string& name) {
  try {
    return predict::model_shape(name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// "SmolLM2-135M-Instruct.Q4_1.gguf" of Q4_1 is smollm2-135m-q4_1: the longest beginning that is known.
predict::NamedShape shape_by_name(const TraceModel& model) {
  const std::string type = "-" + lower(model.quantization);
  for (std::string name : {lower(model.name), lower(model.file_name)}) {
    while (!name.empty()) {
      if (auto shape = known_shape(name + type)) return *std::move(shape);
      const size_t cut = name.find_last_of("-._");
      name.resize(cut == std::string::npos ? 0 : cut);
    }
  }
  throw bad_input(
      "Times cannot be predicted for this recording: it was made by an earlier version and does not say how large its "
      "model " +
      quoted_name(model.name) + " is; name its shape: " + predict::allowed_shapes() + ".");
}

TensorType tensor_type_named(const std::string& name, const std::string& kind) {
  for (const TensorTypeInfo& info : all_tensor_types()) {
    if (info.name == name) return info.type;
  }
  throw bad_input("The recording names the type " + quoted_name(name) + " for weights " + quoted_name(kind) +
                  ", which is not known.");
}

/// One with layers of these kinds.
std::string architecture_of(const TraceModel& model) {
  if (model.architecture == "gemma2" || model.architecture == "gemma3") return model.architecture;
  if (model.architecture == "gemma4") return "gemma3";  // whose layers do the same work
  for (const char* own : {"granitehybrid", "lfm2", "qwen2", "gpt-oss", "glm4moe", "deepseek2"}) {
    if (model.architecture == own) return own;
  }
  const TraceSizes& sizes = *model.sizes;
  if (sizes.recurrent_layers > 0) return sizes.expert_layers > 0 ? "qwen35moe" : "qwen35";
  return sizes.expert_layers > 0 ? "qwen3moe" : sizes.qk_norm ? "qwen3" : "llama";
}

/// Which of the layers are recurrences changes no time.
void add_recurrences(const TraceSizes& sizes, ModelConfig& config) {
  for (uint32_t n = 0; n < std::min(config.layers, 1u << 16); ++n) {
    config.recurrent.push_back(n < sizes.recurrent_layers);
  }
  if (config.architecture == "lfm2") {
    config.conv_taps = sizes.conv_taps;
    return;
  }
  config.delta_net = {.key_heads = sizes.key_heads,
                      .value_heads = sizes.value_heads,
                      .key_dim = sizes.key_dim,
                      .value_dim = sizes.value_dim,
                      .taps = sizes.conv_taps};
  if (config.architecture == "granitehybrid") {
    config.delta_net.scans = config.delta_net.has_conv_bias = true;
    config.gates_shared_expert = false;
  }
  config.rotary_dim = sizes.rotary_dim;
  config.has_output_gate = sizes.output_gate;
}

/// Biases and sinks, what turns of heads, and how experts are chosen are the architecture's.
void add_biases_and_choice(const Architecture& architecture, ModelConfig& config) {
  config.has_qkv_bias = architecture.has_qkv_bias || architecture.is_glm4;
  config.has_output_bias = architecture.has_output_bias;
  if (architecture.is_glm4) config.rotary_dim = config.head_dim / 2;
  config.has_sinks = config.has_expert_bias = architecture.is_gpt_oss;
  if (!architecture.has_dense_start) return;
  config.gates_shared_expert = false;
  config.router_has_sigmoid = config.has_choice_bias = architecture.router_has_sigmoid;
}

void add_latents(const TraceSizes& sizes, ModelConfig& config) {
  config.latent = {.rank = sizes.latent_rank,
                   .query_rank = sizes.latent_query_rank,
                   .key_dim = sizes.latent_key_dim,
                   .value_dim = sizes.latent_value_dim};
  config.rotary_dim = sizes.head_dim > sizes.latent_rank ? sizes.head_dim - sizes.latent_rank : 0;
  config.query_width = double{1} * sizes.latent_key_dim + config.rotary_dim;
}

predict::NamedShape shape_of(const TraceModel& model, uint32_t vocabulary, const std::string& what) {
  const TraceSizes& sizes = *model.sizes;
  const bool has_recurrences =
      std::ranges::find(sizes.types, "ssm_out", [](const auto& type) { return type.first; }) != sizes.types.end();
  if (has_recurrences && sizes.recurrent_layers == 0) {  // of before they were written down
    throw bad_input(
        "Times cannot be predicted for this recording: " + what + " " + quoted_name(model.name) +
        " has recurrent layers, whose sizes it does not name; name another shape: " + predict::allowed_shapes() + ".");
  }
  if (model.architecture.starts_with("nemotron_h")) {
    throw bad_input("Times cannot be predicted for this recording: " + what + " " + quoted_name(model.name) +
                    " has layers that are a mixer or a feed-forward each, whose kinds a recording does not name; name "
                    "another shape: " +
                    predict::allowed_shapes() + ".");
  }
  if (model.architecture == "deepseek2" && sizes.latent_rank == 0) {  // likewise
    throw bad_input("Times cannot be predicted for this recording: " + what + " " + quoted_name(model.name) +
                    " has attention to latents, whose sizes it does not name; name another shape: " +
                    predict::allowed_shapes() + ".");
  }
  predict::NamedShape shape;
  shape.name = model.name;
  shape.weights = "f16";  // of what the recording does not name
  ModelConfig& config = shape.config;
  config.architecture = architecture_of(model);
  config.has_post_norms = config.architecture.starts_with("gemma");
  config.name = model.name;
  config.layers = sizes.layers;
  config.hidden = sizes.hidden;
  config.heads = sizes.heads;
  config.kv_heads = sizes.kv_heads;
  config.head_dim = sizes.head_dim;
  config.ffn = sizes.ffn;
  config.vocab = vocabulary;
  config.experts = sizes.experts;
  config.experts_used = sizes.experts_used;
  config.expert_ffn = sizes.expert_ffn;
  // Which of the layers have experts changes no time.
  for (uint32_t n = 0; sizes.expert_layers > 0 && n < std::min(config.layers, 1u << 16); ++n) {
    config.has_experts.push_back(n < sizes.expert_layers);
  }
  config.shared_ffn = sizes.shared_ffn;
  if (sizes.recurrent_layers > 0) add_recurrences(sizes, config);
  add_biases_and_choice(architecture_by_name(config.architecture), config);
  if (config.architecture == "deepseek2") add_latents(sizes, config);
  config.max_context = 131072;
  config.rms_eps = 1e-6f;
  config.rope_theta = 1e6;
  config.has_qk_norm = sizes.qk_norm;
  config.tied_head = sizes.tied_head;
  with_context("The recording's sizes of " + what, [&] { validate_config(config); });
  for (const auto& [kind, type] : sizes.types) shape.types.emplace(kind, tensor_type_named(type, kind));
  return shape;
}

}  // namespace

predict::NamedShape target_shape(const TraceHeader& header, const std::string& model) {
  if (!model.empty()) return predict::model_shape(model);
  if (!header.target.sizes) return shape_by_name(header.target);
  return shape_of(header.target, header.target.sizes->vocab, "the model");
}

/// Throws bad_input for sizes of a relative of DFlash that no drafter can have.
void require_relative(const TraceSizes& sizes) {
  const bool convolves = sizes.row_conv_taps > 0 || sizes.row_conv_group > 0;
  const bool fits = sizes.row_conv_taps > 0 && sizes.row_conv_taps <= max_conv_taps && sizes.row_conv_group > 0 &&
                    sizes.hidden % sizes.row_conv_group == 0;
  if (convolves && !fits) {
    throw bad_input("The recording's drafter has convolutions of " + std::to_string(sizes.row_conv_taps) +
                    " taps in groups of " + std::to_string(sizes.row_conv_group) + "; 1 to " +
                    std::to_string(max_conv_taps) + " taps in groups that divide " + std::to_string(sizes.hidden) +
                    " are allowed.");
  }
  if (sizes.markov_rank > max_markov_rank) {
    throw bad_input("The recording's drafter has a Markov head of rank " + std::to_string(sizes.markov_rank) +
                    "; up to " + std::to_string(max_markov_rank) + " is allowed.");
  }
}

std::optional<predict::NamedShape> drafter_shape(const TraceHeader& header, const predict::NamedShape& target) {
  if (!header.drafter) return std::nullopt;
  if (!header.drafter->sizes) {
    predict::NamedShape shape = target;
    shape.config.layers = std::min(usual_layers, target.config.layers);
    shape.taps = usual_taps;
    return shape;
  }
  const TraceSizes& sizes = *header.drafter->sizes;
  if (sizes.taps == 0 || sizes.taps > most_taps) {
    throw bad_input("The recording's drafter reads " + std::to_string(sizes.taps) + " layers; allowed: 1 to " +
                    std::to_string(most_taps) + ".");
  }
  const uint32_t tokens = sizes.drafted_tokens > 0 ? sizes.drafted_tokens : target.config.vocab;
  predict::NamedShape shape = shape_of(*header.drafter, tokens, "the drafter");
  shape.taps = sizes.taps;
  require_relative(sizes);
  shape.markov_rank = sizes.markov_rank;
  shape.row_conv_taps = sizes.row_conv_taps;
  shape.row_conv_group = sizes.row_conv_group;
  shape.config.tied_head = true;  // one matrix stands for both: of the embedding a few rows are read
  const std::string_view head = target.config.tied_head ? "token_embd" : "output";
  const TensorType type = predict::type_of_tensor(target, head, target.config.hidden);
  if (!shape.types.contains("token_embd")) shape.types.emplace("token_embd", type);
  return shape;
}

namespace {

constexpr uint32_t most_rows = 1025;  // of a pass whose time is predicted; wider ones go on at the mean slope
constexpr uint32_t least_waiting = 16;

/// The number before that word: 135 of "smol.gguf, 135 parameters, 90 bytes".
std::optional<uint64_t> number_before(std::string_view text, std::string_view word) {
  const size_t end = text.find(word);
  if (end == std::string_view::npos) return std::nullopt;
  size_t first = end;
  while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9') --first;
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data() + first, text.data() + end, value);
  return error == std::errc() && stop == text.data() + end ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> number_behind(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  const char* const first = text.data() + at + word.size();
  const auto [stop, error] = std::from_chars(first, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

void require_equal(const std::string& path, const std::string& what, std::optional<uint64_t> theirs,
                   std::optional<uint64_t> recorded) {
  if (!theirs || !recorded || *theirs == *recorded) return;
  throw bad_input("The calibration " + quoted_name(path) + " was measured with another pair than the recording's: " +
                  what + " " + std::to_string(*theirs) + " there, " + std::to_string(*recorded) + " recorded.");
}

/// Weights of the same sizes cost the same, whatever they are called; of others nothing can be said.
void check_pair(const std::string& path, const CalibrationKey& key, const TraceHeader& header,
                std::span<const RecordedReply> replies) {
  std::optional<uint64_t> parameters, block;
  if (header.target.sizes) parameters = header.target.sizes->parameters;
  for (const RecordedReply& reply : replies) {
    if (reply.knows_drafting && reply.drafting.block > 0) block = reply.drafting.block;
  }
  require_equal(path, "the model's parameters are", number_before(key.model, " parameters"), parameters);
  require_equal(path, "the drafter's block is", number_behind(key.drafter, "block "), block);
}

predict::RoundSizes round_sizes(std::span<const RecordedReply> replies) {
  predict::RoundSizes sizes;
  sizes.rows = 1;
  sizes.context = 0;
  for (const RecordedReply& reply : replies) {
    const uint64_t last = uint64_t{reply.drafting.committed} + reply.text.size();
    sizes.context = static_cast<uint32_t>(std::min<uint64_t>(std::max<uint64_t>(sizes.context, last), 1u << 20));
    sizes.rows = std::clamp(reply.drafting.rows, sizes.rows, most_rows);
    // Token by token, a pass over one row makes one.
    const bool by_token = (reply.drafting.sources & kFromSteps) != 0;
    if (reply.drafting.block >= 2) sizes.block = by_token ? 1 : std::min(reply.drafting.block, 256u);
    sizes.most_waiting = std::clamp(reply.drafting.most_waiting, least_waiting, most_rows);
  }
  return sizes;
}

}  // namespace

const char* to_string(CostSource source) {
  switch (source) {
    case CostSource::recorded: return "recorded";
    case CostSource::measured: return "measured elsewhere";
    case CostSource::predicted: return "predicted";
  }
  return "";
}

DecodeMode mode_elsewhere(std::span<const RecordedReply> replies) {
  const bool any = std::ranges::any_of(replies, [](const RecordedReply& reply) {
    // Of a reply under way its rounds tell the sources; what its text suggests can be found where its prompt is known.
    const bool looks = reply.knows_drafting || !reply.prompt.empty();
    const bool finds = looks && (reply.drafting.sources & kFromSuffix) != 0;
    return finds || (reply.drafting.block >= 2 && (reply.mode != DecodeMode::ar || reply.dense));
  });
  return any ? DecodeMode::adaptive : DecodeMode::ar;
}

CostsElsewhere costs_as_recorded(const TraceHeader& header) {
  return {CostSource::recorded, header.device.empty() ? "as recorded" : header.device,
          "The times are those of the recording.", std::nullopt};
}

CostsElsewhere costs_of_file(const std::filesystem::path& path, const TraceHeader& header,
                             std::span<const RecordedReply> replies) {
  ForeignCalibration calibration = read_calibration(path);
  check_pair(path.string(), calibration.key, header, replies);
  CostsElsewhere elsewhere;
  elsewhere.source = CostSource::measured;
  elsewhere.name = printable(path.stem().string());
  elsewhere.from = "Passes were measured elsewhere, with the driver " + calibration.key.driver + " and the model " +
                   calibration.key.model + ".";
  elsewhere.costs = WhatIfCosts{std::move(calibration.table), nullptr};
  return elsewhere;
}

CostsElsewhere costs_of_device(const predict::DeviceProfile& device, const TraceHeader& header,
                               std::span<const RecordedReply> replies, const std::string& model) {
  const predict::NamedShape shape = target_shape(header, model);
  const std::optional<predict::NamedShape> drafting = drafter_shape(header, shape);
  predict::RecordedModel target(shape);
  std::optional<predict::RecordedModel> drafter;
  if (drafting) drafter.emplace(*drafting);
  const predict::Kernels kernels = predict::default_kernels(device);
  CostsElsewhere elsewhere;
  elsewhere.source = CostSource::predicted;
  elsewhere.name = std::string(device.gpu.substr(0, device.gpu.find(',')));
  elsewhere.from = "Passes are predicted for " + std::string(device.gpu) + ", with the kernels '" +
                   predict::to_string(kernels) + "'; nothing was measured there.";
  elsewhere.costs = WhatIfCosts{predict::predict_costs(target, drafter ? &*drafter : nullptr, device,
                                                       predict::rules_of(kernels), round_sizes(replies)),
                                nullptr};
  return elsewhere;
}

namespace {

TraceHeader header_elsewhere(const TraceReader& trace, const CostsElsewhere& there) {
  TraceHeader header = trace.header();
  if (there.source == CostSource::recorded) return header;
  header.device = there.name;
  header.backend.clear();
  header.driver.clear();
  header.variants.clear();
  header.calibration.clear();
  header.times = to_string(there.source);
  return header;
}

/// A reply in the mode, by the policy and with the tree that it was re-run with.
TraceReplyBegin begin_elsewhere(TraceReplyBegin begin, const WhatIf& run, size_t reply, CostPolicy recorded,
                                const WhatIfWish& wish) {
  const auto first = std::ranges::find(run.rounds, reply, &WhatIfRound::reply);
  if (first != run.rounds.end()) begin.mode = first->record.mode;
  begin.policy = begin.mode == DecodeMode::adaptive ? to_string(wish.policy.value_or(recorded)) : "";
  if (wish.budget && begin.mode == DecodeMode::tree) begin.budget = *wish.budget;
  return begin;
}

struct Written {
  uint32_t tokens = 0;
  double ms = 0;
};

Written write_rounds(const WhatIf& run, size_t reply, TraceWriter& writer) {
  Written written;
  for (const WhatIfRound& round : run.rounds) {
    if (round.reply != reply) continue;
    writer.append(round.record);
    written.tokens += static_cast<uint32_t>(round.record.emitted.size());
    written.ms += round.record.ms.total();
  }
  return written;
}

}  // namespace

void write_recording_elsewhere(const std::filesystem::path& path, const TraceReader& trace,
                               std::span<const RecordedReply> replies, const WhatIf& run, const WhatIfWish& wish,
                               const CostsElsewhere& there) {
  if (!run.exact) {
    throw bad_input("This re-run cannot be written as a recording, since its passes do not make up the text. " +
                    run.why_not);
  }
  const auto piece = [&trace](uint32_t token) {
    const trace::Piece* const known = trace.piece(token);
    return known != nullptr ? *known : trace::Piece{};
  };
  TraceWriter writer(path, header_elsewhere(trace, there), piece);
  for (size_t i = 0; i < replies.size(); ++i) {
    const TraceReply& recorded = trace.replies()[replies[i].index];
    writer.begin(begin_elsewhere(recorded.begin, run, i, replies[i].policy, wish));
    writer.prefilled({recorded.prefill->reused_tokens, 0, recorded.prefill->first_token});
    const Written written = write_rounds(run, i, writer);
    // An interrupted text may end before the last pass, whose end is not known.
    if (!recorded.end || written.tokens + 1 != replies[i].text.size()) continue;
    TraceReplyEnd end = *recorded.end;
    end.decode_ms = written.ms;
    writer.end(end);
  }
  writer.finish();
  if (!writer.problem().empty()) throw bad_input(writer.problem());
}

}  // namespace canopy
