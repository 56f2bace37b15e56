#include "engine/cuda_backend/context.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/cuda_backend/check.h"

namespace canopy::cuda {
namespace {

constexpr uint64_t kStagingBytes = uint64_t{4} << 20;
/// Of a block's shared memory what every kernel may have without asking.
constexpr uint32_t kUsualSharedBytes = 48 << 10;

}  // namespace

// ---- memory ---------------------------------------------------------------------------------------------------------

Memory::Memory(Context& context, uint64_t bytes, bool on_host, std::string_view name)
    : context_(context), bytes_(bytes) {
  const DriverApi& api = context.api_;
  const Result result =
      on_host ? api.allocate_host(&host_, bytes, kHostPortable | kHostMapped) : api.allocate(&address_, bytes);
  if (result == kOutOfMemory) {
    throw out_of_memory("There is no memory for " + std::string(name) + ": " + std::to_string(bytes) +
                        " bytes are needed, " + std::to_string(context.memory().available) + " are free.");
  }
  context.check(result, "Allocating memory");
  if (on_host) {
    std::memset(host_, 0, bytes);
    address_ = reinterpret_cast<Address>(host_);  // the device sees it at the same address
  } else if (bytes > 0) {
    context.fill(address_, 0, (bytes + 3) / 4);
  }
}

Memory::~Memory() {
  if (host_ != nullptr) {
    context_.api_.free_host(host_);
  } else if (address_ != 0) {
    context_.api_.free(address_);
  }
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

Graph::Graph(Context& context, std::span<const KernelCall> calls) : context_(context) {
  const DriverApi& api = context.api_;
  // Found before the capture begins: loading a function is not to be recorded.
  for (const KernelCall& call : calls) context.function(call.kernel, call.shared_bytes);
  context.check(api.begin_capture(context.stream_, kCaptureThreadLocal), "Recording a pass");
  GraphHandle graph = nullptr;
  try {
    for (const KernelCall& call : calls) context.launch(call);
  } catch (...) {
    api.end_capture(context.stream_, &graph);
    if (graph != nullptr) api.destroy_graph(graph);
    throw;
  }
  context.check(api.end_capture(context.stream_, &graph), "Recording a pass");
  const Result result = api.instantiate(&exec_, graph, 0);
  api.destroy_graph(graph);
  context.check(result, "Preparing a pass");
}

Graph::~Graph() {
  if (exec_ != nullptr) context_.api_.destroy_graph_exec(exec_);
}

// ---- context --------------------------------------------------------------------------------------------------------

Context::Context(const DriverApi& api, const DeviceFacts& facts, const void* fatbin) : api_(api), facts_(facts) {
  try {
    check(api_.device(&id_, facts.ordinal), "Opening the GPU");
    check(api_.retain_context(&context_, id_), "Opening the GPU");
    check(api_.set_context(context_), "Opening the GPU");
    check(api_.create_stream(&stream_, kStreamNonBlocking), "Opening the GPU");
    check(api_.create_event(&begin_, kEventDefault), "Opening the GPU");
    check(api_.create_event(&end_, kEventDefault), "Opening the GPU");
    check(api_.load_module(&module_, fatbin), "Loading the kernels");
    check(api_.allocate_host(&staging_, kStagingBytes, kHostPortable), "Allocating memory of the host");
  } catch (...) {
    close();
    throw;
  }
}

Context::~Context() {
  close();
}

/// Results are not looked at: after an error that ends a context, all of these fail, and the reset frees everything.
void Context::close() noexcept {
  if (context_ == nullptr) return;
  if (staging_ != nullptr) api_.free_host(staging_);
  if (module_ != nullptr) api_.unload_module(module_);
  if (begin_ != nullptr) api_.destroy_event(begin_);
  if (end_ != nullptr) api_.destroy_event(end_);
  if (stream_ != nullptr) api_.destroy_stream(stream_);
  api_.set_context(nullptr);
  api_.release_context(id_);
  if (lost_) api_.reset_context(id_);
  context_ = nullptr;
}

void Context::check(Result result, const char* doing) {
  if (result == kSuccess) return;
  lost_ = lost_ || is_lost(result);
  throw error_of(api_, result, doing);
}

MemoryInfo Context::memory() const {
  size_t available = 0, total = 0;
  if (api_.memory_info(&available, &total) != kSuccess) return {facts_.memory_bytes, 0};
  return {total, available};
}

void Context::write(Address to, std::span<const std::byte> from) {
  for (uint64_t done = 0; done < from.size();) {
    const uint64_t bytes = std::min<uint64_t>(kStagingBytes, from.size() - done);
    std::memcpy(staging_, from.data() + done, bytes);
    check(api_.copy_to_device(to + done, staging_, bytes, stream_), "Copying to the GPU");
    finish();
    done += bytes;
  }
}

void Context::read(Address from, std::span<std::byte> to) {
  for (uint64_t done = 0; done < to.size();) {
    const uint64_t bytes = std::min<uint64_t>(kStagingBytes, to.size() - done);
    check(api_.copy_to_host(staging_, from + done, bytes, stream_), "Copying from the GPU");
    finish();
    std::memcpy(to.data() + done, staging_, bytes);
    done += bytes;
  }
}

void Context::fill(Address to, uint32_t word, uint64_t words) {
  check(api_.fill(to, word, words, stream_), "Filling memory");
}

FunctionHandle Context::function(const std::string& name, uint32_t shared_bytes) {
  FunctionHandle found = nullptr;
  if (const auto known = functions_.find(name); known != functions_.end()) {
    found = known->second;
  } else {
    if (api_.function(&found, module_, name.c_str()) != kSuccess) {
      throw bad_input("There is no CUDA kernel '" + name + "' in this build.");
    }
    functions_[name] = found;
  }
  uint32_t& allowed = shared_of_.try_emplace(found, kUsualSharedBytes).first->second;
  if (shared_bytes > allowed) {
    if (shared_bytes > facts_.shared_bytes) {
      throw bad_input("The kernel '" + name + "' needs " + std::to_string(shared_bytes) +
                      " bytes of shared memory; this GPU has " + std::to_string(facts_.shared_bytes) + ".");
    }
    check(api_.set_function_attribute(found, kFunctionMaxDynamicSharedBytes, static_cast<int>(shared_bytes)),
          "Preparing a kernel");
    allowed = shared_bytes;
  }
  return found;
}

void Context::launch(const KernelCall& call) {
  const FunctionHandle kernel = function(call.kernel, call.shared_bytes);
  void* params[] = {const_cast<std::byte*>(call.params.data())};
  check(api_.launch(kernel, call.grid[0], call.grid[1], call.grid[2], call.threads, 1, 1, call.shared_bytes, stream_,
                    params, nullptr),
        "Starting a kernel");
}

void Context::start(const Graph& graph) {
  check(api_.record_event(begin_, stream_), "Starting a pass");
  check(api_.launch_graph(graph.exec_, stream_), "Starting a pass");
  check(api_.record_event(end_, stream_), "Starting a pass");
}

void Context::finish() {
  check(api_.wait_stream(stream_), "Waiting for the GPU");
}

double Context::last_ms() {
  float ms = 0;
  return api_.elapsed(&ms, begin_, end_) == kSuccess ? static_cast<double>(ms) : 0;
}

}  // namespace canopy::cuda
