#include "tests/app/support/scripted_engine.h"

namespace canopy::test {

ModelReady small_model() {
  ModelReady model;
  model.name = "SmolLM2 135M Instruct";
  model.file_name = "SmolLM2-135M-Instruct.Q4_1.gguf";
  model.architecture = "llama";
  model.quantization = "Q4_1";
  model.parameters = 134'515'008;
  model.weight_bytes = 98'000'000;
  model.context = 8192;
  model.model_context = 8192;
  model.device = "Radeon RX 7900 XTX";
  model.device_type = "discrete";
  model.driver = "RADV 25.2";
  model.kv_type = "f16";
  return model;
}

std::vector<DeviceChoice> some_devices() {
  constexpr uint64_t GiB = 1ull << 30;
  std::vector<DeviceChoice> devices = {
      {"0", "Radeon RX 7900 XTX", "discrete", true, "", 24 * GiB, "RADV 25.2", "Vulkan 1.3, RADV 25.2"},
      {"1", "llvmpipe (LLVM 15.0.6, 256 bits)", "software", true, "", 62 * GiB, "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)",
       "Vulkan 1.3, llvmpipe Mesa 22.3.6"},
      {"2", "Radeon HD 7000", "discrete", false, "Vulkan 1.2; 1.3 is needed", 1 * GiB, "RADV 25.2",
       "Vulkan 1.2, RADV 25.2"}};
  devices[0].preferred = true;
  return devices;
}

std::function<void(ScriptedEngine&, const Command&)> answers_with(std::vector<std::string> pieces) {
  return [pieces](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    engine.publish(PrefillProgress{generate->reply_id, 24, 24});
    uint32_t tokens = 0;
    for (const std::string& piece : pieces) {
      ++tokens;
      engine.publish(TextDelta{generate->reply_id, piece, tokens, 24 + tokens, 64.0});
    }
    ReplyFinished finished;
    finished.reply_id = generate->reply_id;
    finished.prompt_tokens = 24;
    finished.reply_tokens = tokens;
    finished.context_used = 24 + tokens;
    finished.prefill_ms = 38;
    finished.decode_ms = 1000.0 * tokens / 64;
    finished.tokens_per_second = 64;
    engine.publish(finished);
  };
}

}  // namespace canopy::test
