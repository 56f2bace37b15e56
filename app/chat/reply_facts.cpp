#include "app/chat/reply_facts.h"

#include <cstdio>

#include "app/conversation/chat_json.h"
#include "app/look/widgets.h"
#include "app/state/progress_text.h"

namespace canopy::app {
namespace {

std::string figures(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string amount(uint64_t count, const char* one, const char* many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

std::string ending(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop_token: return "";
    case FinishReason::max_tokens: return "token limit";
    case FinishReason::context_full: return "context full";
    case FinishReason::cancelled: return "stopped";
    case FinishReason::failed: return "failed";
  }
  return "";
}

std::string sampling_of(const Message& message) {
  const SamplingSettings& s = message.parameters.sampling;
  if (s.temperature == 0) return "greedy";
  std::string out = "temperature " + figures(static_cast<double>(s.temperature), "%.3g");
  out += ", top-p " + figures(static_cast<double>(s.top_p), "%.3g");
  out += ", min-p " + figures(static_cast<double>(s.min_p), "%.3g");
  if (message.seed) out += ", seed " + std::to_string(*message.seed);
  return out;
}

}  // namespace

std::vector<std::string> reply_facts(const Message& message) {
  const ReplyFinished& r = *message.result;
  std::vector<std::string> facts;
  if (r.tokens_per_second > 0) facts.push_back(speed(r.tokens_per_second) + " tok/s");
  const bool drafted = r.tau > 0 && r.mode != DecodeMode::ar;
  if (drafted) facts.push_back("\u03c4 " + figures(r.tau, "%.2f"));
  if (const std::string end = ending(r.reason); !end.empty()) facts.push_back(end);
  facts.push_back(drafted && message.rounds > 0 ? amount(message.rounds, "round", "rounds")
                                                : amount(r.reply_tokens, "token", "tokens"));
  return facts;
}

std::string reply_details(const Message& message) {
  const ReplyFinished& r = *message.result;
  const ReplyParameters& p = message.parameters;
  std::string out;
  if (!p.model.empty()) out += p.model + (p.device.empty() ? "" : " on " + p.device) + "\n";
  if (message.created_ms > 0) out += time_text(message.created_ms).substr(0, 19).replace(10, 1, " ") + " UTC\n";
  out += "Drawn: " + sampling_of(message) + "\n";
  out += "Reply: " + amount(r.reply_tokens, "token", "tokens") + " in " + figures(r.decode_ms, "%.0f ms") + "\n";
  if (const std::string end = ending(r.reason); !end.empty()) out += "Ended: " + end + "\n";
  if (message.rounds > 0) out += "Rounds: " + grouped(message.rounds) + "\n";
  if (r.tau > 0) out += "\u03c4: tokens emitted by rounds / rounds = " + figures(r.tau, "%.2f") + "\n";
  out += "Prompt: " + amount(r.prompt_tokens, "token", "tokens") + " in " + figures(r.prefill_ms, "%.0f ms") + ", " +
         grouped(r.reused_tokens) + " of them reused\nAll measured";
  return out;
}

}  // namespace canopy::app
