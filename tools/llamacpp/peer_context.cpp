#include "peer_context.h"

#include <ggml-backend.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

namespace canopy::peer {
namespace {

void log_problems(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

ggml_backend_dev_t find_device(Backend backend) {
  if (backend == Backend::cpu) return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  const ggml_backend_reg_t vulkan = ggml_backend_reg_by_name("Vulkan");
  if (vulkan == nullptr || ggml_backend_reg_dev_count(vulkan) == 0) {
    throw std::runtime_error(
        "llama.cpp sees no Vulkan device. It takes one of type CPU only when GGML_VK_VISIBLE_DEVICES names it.");
  }
  return ggml_backend_reg_dev_get(vulkan, 0);
}

}  // namespace

void start_llama() {
  llama_log_set(log_problems, nullptr);
  llama_backend_init();
}

PeerContext::PeerContext(const PeerOptions& options)
    : threads_(options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency())) {
  start_llama();
  const ggml_backend_dev_t device = find_device(options.backend);
  device_ = ggml_backend_dev_description(device);

  // Devices to offload to, ended by null; on the CPU none.
  ggml_backend_dev_t offload[2] = {options.backend == Backend::vulkan ? device : nullptr, nullptr};
  llama_model_params model_params = llama_model_default_params();
  model_params.devices = offload;
  model_params.n_gpu_layers = options.backend == Backend::vulkan ? -1 : 0;  // -1: all
  model_params.load_mtp = options.heads;
  model_.reset(llama_model_load_from_file(options.model.c_str(), model_params));
  if (!model_) throw std::runtime_error("llama.cpp could not load " + options.model + ".");
  vocab_ = static_cast<uint32_t>(llama_vocab_n_tokens(llama_model_get_vocab(model_.get())));

  llama_context_params params = llama_context_default_params();
  params.n_ctx = options.context;
  params.n_batch = options.context;
  params.ctx_other = options.target;
  if (options.reads_states) params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
  params.n_threads = static_cast<int32_t>(threads_);
  params.n_threads_batch = static_cast<int32_t>(threads_);
  if (options.f32_cache) {
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  }
  context_.reset(llama_init_from_model(model_.get(), params));
  if (!context_) throw std::runtime_error("llama.cpp could not make a context for " + options.model + ".");
}

void PeerContext::append(std::span<const int32_t> tokens, uint32_t first, Outputs outputs) {
  const auto count = static_cast<int32_t>(tokens.size());
  std::vector<int32_t> ids(tokens.begin(), tokens.end());
  std::vector<llama_pos> positions(tokens.size());
  for (int32_t i = 0; i < count; ++i) positions[i] = static_cast<llama_pos>(first) + i;
  std::vector<int8_t> wanted(tokens.size(), outputs == Outputs::all ? 1 : 0);
  wanted.back() = 1;

  llama_batch batch = {};
  batch.n_tokens = count;
  batch.token = ids.data();
  batch.pos = positions.data();
  batch.logits = wanted.data();
  const int32_t status = llama_decode(context_.get(), batch);
  if (status != 0) throw std::runtime_error("llama_decode ended with status " + std::to_string(status) + ".");
  llama_synchronize(context_.get());
}

void PeerContext::truncate(uint32_t first) {
  if (!llama_memory_seq_rm(llama_get_memory(context_.get()), 0, static_cast<llama_pos>(first), -1)) {
    throw std::runtime_error("llama.cpp could not forget the positions from " + std::to_string(first) + " on.");
  }
}

std::span<const float> PeerContext::logits(uint32_t row) const {
  const float* values = llama_get_logits_ith(context_.get(), static_cast<int32_t>(row));
  if (values == nullptr) throw std::runtime_error("llama.cpp has no logits for row " + std::to_string(row) + ".");
  return {values, vocab_};
}

int32_t PeerContext::best(uint32_t row) const {
  const std::span<const float> values = logits(row);
  return static_cast<int32_t>(std::ranges::max_element(values) - values.begin());
}

}  // namespace canopy::peer
