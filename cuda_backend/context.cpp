#include "cuda_backend/context.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/base/figures.h"

namespace canopy::cuda {
namespace {

/// From here on the driver is asked beforehand what is free: under Windows it may give memory of the host's instead.
constexpr uint64_t kAskedBytes = uint64_t{16} << 20;

Error no_memory(std::string_view name, uint64_t bytes, uint64_t available) {
  return out_of_memory("There is no memory for " + std::string(name) + ": " + byte_figures(bytes, available) +
                       " are needed, " + byte_figures(available, bytes) + " are free.");
}

Error no_host_memory(std::string_view name, uint64_t bytes) {
  return out_of_memory("The host has no memory for " + std::string(name) +
                       " that could be pinned: " + byte_figures(bytes) + " are needed.");
}

}  // namespace

Memory::Memory(Context& context, uint64_t bytes, bool on_host, std::string_view name, MemoryContents contents)
    : context_(context), bytes_(bytes) {
  const DriverApi& api = context.api();
  if (!on_host && bytes >= kAskedBytes) {
    if (const uint64_t available = context.memory().available; available < bytes) {
      throw no_memory(name, bytes, available);
    }
  }
  const Result result =
      on_host ? api.allocate_host(&host_, bytes, kHostPortable | kHostMapped) : api.allocate(&address_, bytes);
  if (result == kOutOfMemory) {
    if (on_host) throw no_host_memory(name, bytes);
    throw no_memory(name, bytes, context.memory().available);
  }
  context.check(result, "Allocating memory");
  if (on_host) {
    if (contents == MemoryContents::zero) std::memset(host_, 0, bytes);
    address_ = reinterpret_cast<Address>(host_);
  } else if (contents == MemoryContents::zero) {
    try {
      context.fill(address_, 0, (bytes + 3) / 4);
    } catch (...) {
      context.note(api.free(address_));
      throw;
    }
  }
}

Memory::~Memory() {
  const DriverApi& api = context_.api();
  if (host_ != nullptr) {
    context_.note(api.free_host(host_));
  } else if (address_ != 0) {
    context_.note(api.free(address_));
  }
}

namespace {

constexpr uint64_t kStagingBytes = uint64_t{4} << 20;
/// Of a block's shared memory what every kernel may have without asking.
constexpr uint32_t kUsualSharedBytes = 48 << 10;
/// Compute capability 9.0: the first at which a kernel can start before those that it depends on have ended. Drivers
/// record that in graphs from CUDA 12.3 on.
constexpr int kOverlappingCapability = 90, kOverlappingDriver = 12030;
constexpr Result kNoBinaryForGpu = 209;

/// The context that the driver's calls of this thread are for. It is a state of the thread, and devices share theirs.
thread_local ContextHandle current = nullptr;

}  // namespace

// ---- graphs ---------------------------------------------------------------------------------------------------------

Graph::Graph(Context& context, std::span<const KernelCall> calls) : context_(context) {
  const DriverApi& api = context.api();
  // Found before the capture begins: loading a function is not to be recorded.
  for (const KernelCall& call : calls) context.function(call.kernel, call.shared_bytes);
  context.check(api.begin_capture(context.stream_, kCaptureThreadLocal), "Recording a pass");
  GraphHandle graph = nullptr;
  try {
    context.check(api.record_event(context.begin_, context.stream_, kEventRecordExternal), "Recording a pass");
    for (const KernelCall& call : calls) context.launch(call);
    context.check(api.record_event(context.end_, context.stream_, kEventRecordExternal), "Recording a pass");
  } catch (...) {
    context.note(api.end_capture(context.stream_, &graph));
    if (graph != nullptr) context.note(api.destroy_graph(graph));
    throw;
  }
  context.check(api.end_capture(context.stream_, &graph), "Recording a pass");
  const Result result = api.instantiate(&exec_, graph, 0);
  context.note(api.destroy_graph(graph));
  context.check(result, "Preparing a pass");
}

Graph::~Graph() {
  if (exec_ != nullptr) context_.note(context_.api().destroy_graph_exec(exec_));
}

// ---- opening and closing --------------------------------------------------------------------------------------------

Context::Context(const DriverApi& api, const DeviceFacts& facts, std::span<const std::byte> kernels)
    : api_(api), facts_(facts) {
  try {
    open(kernels);
  } catch (...) {
    close();
    throw;
  }
}

Context::~Context() {
  close();
}

void Context::open(std::span<const std::byte> kernels) {
  const std::vector<const void*> fatbins = split_fatbins(kernels);
  check(api_.device(&id_, facts_.ordinal), "Opening the GPU");
  check(api_.retain_context(&context_, id_), "Opening the GPU");
  check(api_.set_context(context_), "Opening the GPU");
  current = context_;
  check(api_.create_stream(&stream_, kStreamNonBlocking), "Opening the GPU");
  check(api_.create_stream(&copies_, kStreamNonBlocking), "Opening the GPU");
  check(api_.create_event(&begin_, kEventDefault), "Opening the GPU");
  check(api_.create_event(&end_, kEventDefault), "Opening the GPU");
  int driver = 0;
  check(api_.driver_version(&driver), "Opening the GPU");
  overlaps_ = facts_.capability >= kOverlappingCapability && driver >= kOverlappingDriver;
  for (const void* fatbin : fatbins) {
    ModuleHandle module = nullptr;
    const Result result = api_.load_module(&module, fatbin);
    if (result == kNoBinaryForGpu) {
      throw Error(ErrorKind::unavailable, "This build of Canopy has no CUDA kernels for a GPU of compute capability " +
                                              capability_words(facts_.capability) + ".");
    }
    check(result, "Loading the kernels");
    modules_.push_back(module);
  }
  const Result staged = api_.allocate_host(&staging_, kStagingBytes, kHostPortable);
  if (staged == kOutOfMemory) throw no_host_memory("copies", kStagingBytes);
  check(staged, "Allocating memory of the host");
}

/// Results are not looked at: after an error that ends a context, all of these fail, and the reset frees everything.
void Context::close() noexcept {
  if (context_ == nullptr) return;
  use();
  if (staging_ != nullptr) note(api_.free_host(staging_));
  for (const ModuleHandle module : modules_) note(api_.unload_module(module));
  for (const EventHandle event : {begin_, end_}) {
    if (event != nullptr) note(api_.destroy_event(event));
  }
  for (const StreamHandle stream : {stream_, copies_}) {
    if (stream != nullptr) note(api_.destroy_stream(stream));
  }
  api_.set_context(nullptr);
  current = nullptr;
  api_.release_context(id_);
  if (lost_) api_.reset_context(id_);
  context_ = nullptr;
}

void Context::use() const noexcept {
  if (current == context_) return;
  note(api_.set_context(context_));  // where it fails, so does the call that it is for
  current = context_;
}

void Context::check(Result result, const char* doing) const {
  if (result == kSuccess) return;
  note(result);
  const Error error = error_of(api_, result, doing);
  size_t available = 0, total = 0;
  if (result != kOutOfMemory || api_.memory_info(&available, &total) != kSuccess) throw error;
  throw out_of_memory(std::string(error.what()) + " " + byte_figures(available) + " of the GPU's memory are free.");
}

MemoryInfo Context::memory() const {
  size_t available = 0, total = 0;
  check(api().memory_info(&available, &total), "Asking for free memory");
  return {total, available};
}

// ---- copies ---------------------------------------------------------------------------------------------------------

std::span<std::byte> Context::stage(uint64_t bytes) {
  const uint64_t share = (bytes + 255) / 256 * 256;
  if (share > kStagingBytes - staged_) finish();
  auto* first = static_cast<std::byte*>(staging_) + staged_;
  staged_ += share;
  return {first, bytes};
}

void Context::write(Address to, std::span<const std::byte> from) {
  while (!from.empty()) {
    const auto part = from.first(std::min<uint64_t>(kStagingBytes, from.size()));
    const std::span<std::byte> staged = stage(part.size());
    std::memcpy(staged.data(), part.data(), part.size());
    pending_ = true;
    check(api().copy_to_device(to, staged.data(), part.size(), stream_), "Copying to the GPU");
    to += part.size();
    from = from.subspan(part.size());
  }
}

void Context::read(std::span<const DeviceRead> reads) {
  std::vector<std::pair<std::span<std::byte>, std::byte*>> arriving;
  const auto arrive = [&] {
    finish();
    for (const auto& [staged, to] : arriving) std::memcpy(to, staged.data(), staged.size());
    arriving.clear();
  };
  for (const DeviceRead& each : reads) {
    for (uint64_t done = 0; done < each.to.size();) {
      const uint64_t bytes = std::min<uint64_t>(kStagingBytes, each.to.size() - done);
      if ((bytes + 255) / 256 * 256 > kStagingBytes - staged_) arrive();
      const std::span<std::byte> staged = stage(bytes);
      pending_ = true;
      check(api().copy_to_host(staged.data(), each.from + done, bytes, stream_), "Copying from the GPU");
      arriving.emplace_back(staged, each.to.data() + done);
      done += bytes;
    }
  }
  arrive();
}

void Context::fill(Address to, uint32_t word, uint64_t words) {
  pending_ = true;
  check(api().fill(to, word, words, stream_), "Filling memory");
}

// ---- kernels --------------------------------------------------------------------------------------------------------

FunctionHandle Context::find_function(const std::string& name) {
  constexpr Result not_found = 500;
  for (const ModuleHandle module : modules_) {
    FunctionHandle found = nullptr;
    const Result result = api().function(&found, module, name.c_str());
    if (result == kSuccess) return found;
    if (result != not_found) check(result, "Loading a kernel");
  }
  throw bad_input("There is no CUDA kernel '" + name + "' in this build.");
}

FunctionHandle Context::function(const std::string& name, uint32_t shared_bytes) {
  auto known = functions_.find(name);
  if (known == functions_.end()) known = functions_.emplace(name, find_function(name)).first;
  const FunctionHandle found = known->second;
  uint32_t& allowed = shared_of_.try_emplace(found, kUsualSharedBytes).first->second;
  if (shared_bytes > allowed) {
    if (shared_bytes > facts_.shared_bytes) {
      throw bad_input("The kernel '" + name + "' needs " + std::to_string(shared_bytes) +
                      " bytes of shared memory; this GPU has " + std::to_string(facts_.shared_bytes) + ".");
    }
    check(api().set_function_attribute(found, kFunctionMaxDynamicSharedBytes, static_cast<int>(shared_bytes)),
          "Preparing a kernel");
    allowed = shared_bytes;
  }
  return found;
}

void Context::launch(const KernelCall& call) {
  const FunctionHandle kernel = function(call.kernel, call.shared_bytes);
  LaunchAttribute overlaps{kLaunchProgrammaticSerialization, 0, 1};
  LaunchConfig config;
  std::ranges::copy(call.grid, config.grid);
  config.block[0] = call.threads;
  config.shared_bytes = call.shared_bytes;
  config.stream = stream_;
  if (call.overlaps && overlaps_) {
    config.attributes = &overlaps;
    config.attribute_count = 1;
  }
  void* params[] = {const_cast<std::byte*>(call.params.data())};
  pending_ = true;
  check(api().launch(&config, kernel, params, nullptr), "Starting a kernel");
}

void Context::start(const Graph& graph) {
  pending_ = ran_ = true;
  check(api().launch_graph(graph.exec_, stream_), "Starting a pass");
}

void Context::finish() {
  if (pending_) {
    const auto start = std::chrono::steady_clock::now();
    const Result result = api().wait_stream(stream_);
    waited_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    check(result, "Waiting for the GPU");
  }
  pending_ = false;
  staged_ = 0;
}

double Context::last_ms() const {
  if (!ran_) return 0;
  float ms = 0;
  const Result result = api().elapsed(&ms, begin_, end_);
  if (result == kNotReady) return 0;
  check(result, "Asking how long a pass took");
  return static_cast<double>(ms);
}

}  // namespace canopy::cuda
