#include "engine/elsewhere/costs_elsewhere.h"

#include <algorithm>
#include <charconv>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/calibration/calibration_file.h"
#include "engine/elsewhere/recorded_shapes.h"
#include "engine/predict/predicted_costs.h"

namespace canopy {
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
    if (reply.drafting.block >= 2) sizes.block = std::min(reply.drafting.block, 256u);
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
    return reply.drafting.block >= 2 && (reply.mode != DecodeMode::ar || reply.dense);
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

}  // namespace canopy
