#include "engine/comparison/plan_difference.h"

#include <algorithm>
#include <sstream>

#include "engine/base/printable.h"

namespace canopy {
namespace {

std::string value_text(const std::string& value) {
  return value.empty() ? "none" : quoted_name(value);
}

template <class Number>
std::string value_text(Number value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

template <class T>
std::string differing(const std::string& what, const T& earlier, const T& now) {
  if (earlier == now) return {};
  return "its " + what + " is " + value_text(earlier) + ", and here it would be " + value_text(now);
}

/// The first of the sentences that says something.
std::string first_said(std::initializer_list<std::string> sentences) {
  for (const std::string& sentence : sentences)
    if (!sentence.empty()) return sentence;
  return {};
}

/// The context may be another one where memory is less; what tells the energy, and what the self-test said, are no part
/// of a plan.
std::string subject_difference(const SweepSubject& a, const SweepSubject& b) {
  return first_said({differing("model", a.model, b.model), differing("drafter", a.drafter, b.drafter),
                     differing("device", a.device, b.device), differing("driver", a.driver, b.driver),
                     differing("quantization", a.quantization, b.quantization),
                     differing("number of parameters", a.parameters, b.parameters),
                     differing("drafter's block", a.block, b.block), differing("type of keys and values", a.kv, b.kv),
                     differing("family of kernels", kernel_family(a.kernels), kernel_family(b.kernels)),
                     differing("type of device", a.device_type, b.device_type),
                     a.is_software == b.is_software ? "" : "one of the devices is a software device",
                     a.target == b.target ? "" : "its columns share models in another way"});
}

std::string settings_difference(const SweepSettings& a, const SweepSettings& b) {
  const SamplingSettings &x = a.sampling, &y = b.sampling;
  return first_said(
      {differing("number of repeats", a.repeats, b.repeats), differing("longest reply", a.max_tokens, b.max_tokens),
       differing("policy", std::string(to_string(a.policy)), std::string(to_string(b.policy))),
       differing("order's seed", a.order_seed, b.order_seed), differing("temperature", x.temperature, y.temperature),
       differing("top k", x.top_k, y.top_k), differing("top p", x.top_p, y.top_p), differing("min p", x.min_p, y.min_p),
       differing("seed", x.seed, y.seed), differing("repetition penalty", x.repetition_penalty, y.repetition_penalty)});
}

/// "ar, chain, tree 16"
std::string column_names(const Sweep& sweep) {
  std::string names;
  for (uint32_t i = 0; i < sweep.contestants.size(); ++i) names += (i == 0 ? "" : ", ") + sweep.name_of(i);
  return names;
}

std::string prompts_difference(const Sweep& a, const Sweep& b) {
  if (a.prompts == b.prompts) return {};
  const auto [in_a, in_b] = std::ranges::mismatch(a.prompts, b.prompts);
  if (in_a == a.prompts.end() || in_b == b.prompts.end())
    return differing("number of prompts", a.prompts.size(), b.prompts.size());
  const auto name = [](const SweepPrompt& prompt) { return prompt.category + ", " + prompt.id; };
  if (name(*in_a) == name(*in_b)) return "the text of its prompt " + quoted_name(in_a->id) + " is another one here";
  return differing("prompt", name(*in_a), name(*in_b));
}

}  // namespace

std::string plan_difference(const Sweep& earlier, const Sweep& now) {
  if (earlier.kind != now.kind) return "one is a sweep, the other a comparison";
  const size_t both = std::min(earlier.subjects.size(), now.subjects.size());
  for (size_t i = 0; i < both; ++i)
    if (std::string found = subject_difference(earlier.subjects[i], now.subjects[i]); !found.empty()) return found;
  const std::string columns = column_names(earlier), here = column_names(now);
  if (columns != here)
    return "its columns are " + quoted_name(columns) + ", and here they would be " + quoted_name(here);
  if (earlier.contestants != now.contestants || earlier.subjects.size() != now.subjects.size())
    return "its columns are of other models or devices";
  if (std::string prompts = prompts_difference(earlier, now); !prompts.empty()) return prompts;
  if (earlier.baseline != now.baseline)
    return "its baseline is " + quoted_name(earlier.name_of(earlier.baseline)) + ", and here it would be " +
           quoted_name(now.name_of(now.baseline));
  return settings_difference(earlier.settings, now.settings);
}

}  // namespace canopy
