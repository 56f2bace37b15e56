#include "engine/session/reply_trace.h"

#include <algorithm>
#include <string>
#include <utility>

namespace canopy {
namespace {

TraceHeader header_of(const Engine& loaded) {
  const ModelReady model = loaded.describe();
  TraceHeader header;
  header.target = {model.name,         model.file_name,    model.architecture,
                   model.quantization, model.quantized_to, loaded.target_sizes};
  if (loaded.drafter != nullptr) {
    const ModelConfig& drafter = loaded.drafter->config().transformer;
    header.drafter =
        TraceModel{drafter.name, model.drafter, drafter.architecture, drafter.quantization, "", loaded.drafter_sizes};
    header.calibration = loaded.speculation != nullptr && !loaded.speculation->table().verify_points().empty()
                             ? calibration_path({}, loaded.calibration_key()).filename().string() + ", " +
                                   std::to_string(loaded.speculation->table().verify_points().size()) + " passes"
                             : "";
  }
  header.device = model.device;
  header.driver = model.driver;
  header.backend = model.backend;
  header.kv_type = model.kv_type;
  header.context = model.context;
  header.variants = loaded.model->device().info().kernels;
  return header;
}

TraceReplyBegin begin_of(std::span<const uint32_t> prompt, const ReplySettings& settings) {
  TraceReplyBegin begin;
  begin.turn = settings.turn;
  begin.mode = settings.mode;
  if (settings.mode == DecodeMode::adaptive) begin.policy = to_string(settings.policy);
  if (settings.mode == DecodeMode::tree) begin.budget = settings.budget;
  begin.max_tokens = settings.max_tokens;
  begin.sampling = settings.sampling;
  begin.stop_strings = settings.stop_strings;
  begin.prompt.assign(prompt.begin(), prompt.end());
  // For a trace, a reply that goes on is one to a prompt that ends in what was begun.
  begin.begun_tokens = static_cast<uint32_t>(settings.begun.size());
  begin.prompt.insert(begin.prompt.end(), settings.begun.begin(), settings.begun.end());
  return begin;
}

}  // namespace

ReplyTrace::ReplyTrace(const std::filesystem::path& path, const Engine& model, bool redact)
    : model_(model), writer_(path, header_of(model), trace_pieces(*model.text.tokenizer), redact) {}

Reply ReplyTrace::record(std::span<const uint32_t> prompt, ReplySettings settings, ReplyCallbacks callbacks) {
  settings.probabilities = true;
  settings.drafts = true;
  size_t begun_bytes = std::string::npos;  // until the reply has started nothing of it is new
  callbacks.started = [this, &begun_bytes, then = std::move(callbacks.started)](const ReplyStart& start) {
    begun_bytes = start.begun_bytes;
    writer_.prefilled({start.reused_tokens, start.prefill_ms, start.first_token});
    if (then) then(start);
  };
  callbacks.drafting = [this, then = std::move(callbacks.drafting)](const TraceDrafting& drafting) {
    writer_.drafting(drafting);
    if (then) then(drafting);
  };
  callbacks.round = [this, then = std::move(callbacks.round)](const RoundRecord& round) {
    writer_.append(round);
    if (then) then(round);
  };
  writer_.begin(begin_of(prompt, settings));
  Reply reply;
  try {
    reply = model_.reply(prompt, settings, callbacks);
  } catch (...) {
    writer_.end({.reason = FinishReason::failed});
    throw;
  }
  writer_.end({reply.reason, static_cast<uint32_t>(reply.ids.size() - settings.begun.size()), reply.decode_ms,
               reply.text.substr(std::min(begun_bytes, reply.text.size()))});
  return reply;
}

}  // namespace canopy
