#include "engine/model/load_plan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr QuantizeOnLoad kNarrowing[] = {QuantizeOnLoad::q8_0, QuantizeOnLoad::q4_k};

class LoadPlanner {
 public:
  LoadPlanner(const ModelFile& file, const Device& device, uint64_t available, const ModelLimits& limits,
              uint32_t requested_context)
      : file_(file), device_(device), available_(available), limits_(limits), requested_(requested_context) {}

  struct Planned {
    LoadPlan plan;
    ModelLimits limits;
  };

  /// Throws out_of_memory where it does not fit.
  Planned with(QuantizeOnLoad quantize) const {
    Planned planned{{plan_weights(file_, device_, quantize), {}, quantize}, limits_};
    planned.plan.memory = choose_context(file_.config(), planned.limits, requested_, planned.plan.weights.device_bytes,
                                         device_, available_);
    if (planned.plan.weights.quantized.to.empty()) planned.plan.quantized = QuantizeOnLoad::none;
    return planned;
  }

  std::optional<Planned> if_it_fits(QuantizeOnLoad quantize) const {
    try {
      return with(quantize);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::out_of_memory) throw;
      return std::nullopt;
    }
  }

  /// The widest choice with room for a conversation; where none has, the widest that fits at all.
  Planned widest() const {
    const uint32_t roomy = requested_ != 0 ? requested_ : std::min(kRoomyContext, file_.config().max_context);
    std::optional<Planned> cramped;
    for (const QuantizeOnLoad choice : {QuantizeOnLoad::none, QuantizeOnLoad::q8_0, QuantizeOnLoad::q4_k}) {
      std::optional<Planned> planned = if_it_fits(choice);
      if (!planned) continue;
      if (planned->limits.context >= roomy) return *std::move(planned);
      if (!cramped) cramped = std::move(planned);
    }
    if (cramped) return *std::move(cramped);
    return with(QuantizeOnLoad::q4_k);  // refuses
  }

  struct Advice {
    std::string text;  // further sentences of a refusal
    std::optional<QuantizeOnLoad> fits;
  };

  /// A sentence on what quantizing would save; empty where it would save nothing.
  Advice advice(QuantizeOnLoad refused) const {
    ModelLimits limits = limits_;
    limits.context = requested_ != 0 ? requested_ : std::min(kMinimumContext, file_.config().max_context);
    uint64_t best = plan_weights(file_, device_, refused).device_bytes;
    Advice advice;
    for (const QuantizeOnLoad choice : kNarrowing) {
      const uint64_t weights = plan_weights(file_, device_, choice).device_bytes;
      if (weights >= best) continue;
      best = weights;
      const uint64_t total = plan_memory(file_.config(), limits, weights, device_).total();
      const bool fits = total <= available_;
      if (fits && !advice.fits) advice.fits = choice;
      advice.text += " Quantized while loading it would need " + mebibytes(total) + " (--quantize " +
                     std::string(to_string(choice)) + ")" + (fits ? ", which fits." : ", still too much.");
    }
    return advice;
  }

 private:
  const ModelFile& file_;
  const Device& device_;
  const uint64_t available_;
  const ModelLimits& limits_;
  const uint32_t requested_;
};

}  // namespace

LoadPlan plan_load(const ModelFile& file, const Device& device, uint64_t available, ModelLimits& limits,
                   uint32_t requested_context, QuantizeOnLoad quantize,
                   const std::function<void(QuantizeOnLoad)>& would_fit) {
  const LoadPlanner planner(file, device, available, limits, requested_context);
  try {
    LoadPlanner::Planned planned = quantize == QuantizeOnLoad::automatic ? planner.widest() : planner.with(quantize);
    limits = planned.limits;
    return std::move(planned.plan);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::out_of_memory || quantize == QuantizeOnLoad::automatic) throw;
    const LoadPlanner::Advice advice = planner.advice(quantize);
    if (advice.fits && would_fit) would_fit(*advice.fits);
    throw out_of_memory(e.what() + advice.text);
  }
}

}  // namespace canopy
