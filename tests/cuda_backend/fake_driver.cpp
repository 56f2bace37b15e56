#include "tests/cuda_backend/fake_driver.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "cuda_backend/driver.h"
#include "tests/cuda_backend/host_gpu/block.h"
#include "tests/cuda_backend/host_gpu/host_kernels.h"
#include "tests/cuda_backend/host_gpu/host_memory.h"

namespace canopy::test {
namespace {

using namespace cuda;

using Work = std::function<void()>;

struct Stream {
  DeviceId gpu = 0;
  bool capturing = false;
  std::vector<Work> recorded;
  std::deque<Work> queue;
  uint64_t submitted = 0, done = 0;
};
struct Event {
  Stream* stream = nullptr;  // null before it was recorded, and where a graph records it
  uint64_t after = 0;        // work of the stream
  std::chrono::steady_clock::time_point at;
};
struct Recorded {
  std::vector<Work> work;
};
struct Module {
  const void* fatbin = nullptr;
};

struct State {
  FakeMachine machine;
  std::map<std::string, uint64_t, std::less<>> calls;
  std::map<uint64_t, uint64_t> memory;  // bytes by address, of device and host
  std::map<uint64_t, bool> is_host;
  std::map<uint64_t, DeviceId> gpu_of;  // of memory, by address
  std::map<DeviceId, uint64_t> device_bytes;
  std::map<FunctionHandle, int> shared_bytes;  // dynamic ones that a kernel may have
  std::set<Stream*> streams;
  std::map<DeviceId, const void*> last_fatbin;  // that was loaded on each GPU: the one that has the kernels
  uint64_t overlapping = 0;
  std::set<std::string> launched;  // kernels
  std::map<void*, std::shared_ptr<void>> objects;
  int retained = 0;
  Result lost = kSuccess;           // what every call gives from now on
  std::optional<DeviceId> current;  // whose context is that of the thread
};
State state;

/// Counts a call; what it must give without doing anything, if so.
std::optional<Result> intercept(const char* name) {
  const uint64_t nth = ++state.calls[name];
  for (const FakeMachine::Failure& failure : state.machine.failures) {
    if (failure.function != name || failure.nth != nth) continue;
    if (is_lost(failure.result)) state.lost = failure.result;
    return failure.result;
  }
  if (state.lost != kSuccess) return state.lost;
  return std::nullopt;
}

#define CANOPY_CALL(name) \
  if (const auto forced = intercept(name)) return *forced

// Of a block's dynamic shared memory: what every kernel may have, and what one may ask for on GPUs of a capability.
constexpr int kUsualSharedBytes = 48 << 10;
constexpr int most_shared_bytes(int capability) {
  if (capability < 80) return 64 << 10;
  if (capability < 86) return 163 << 10;
  return capability >= 90 && capability < 120 ? 227 << 10 : 99 << 10;
}
constexpr Result kNoContext = 201, kInvalidHandle = 400;

/// The same for what needs a context.
#define CANOPY_CALL_IN_CONTEXT(name) \
  CANOPY_CALL(name);                 \
  if (!state.current) return kNoContext

const FakeGpu& gpu(DeviceId id) {
  return state.machine.gpus.at(static_cast<size_t>(id));
}

template <class T, class Handle>
void create(Handle* handle) {
  const auto made = std::make_shared<T>();
  state.objects[made.get()] = made;
  *handle = reinterpret_cast<Handle>(made.get());
}
template <class Handle>
Result destroy(Handle handle) {
  return state.objects.erase(reinterpret_cast<void*>(handle)) == 1 ? kSuccess : 1;
}
Stream& stream_of(StreamHandle handle) {
  return *reinterpret_cast<Stream*>(handle);
}

/// Puts work into the stream's queue, or records it where the stream is being captured.
void submit(StreamHandle handle, Work work) {
  Stream& stream = stream_of(handle);
  if (stream.capturing) {
    stream.recorded.push_back(std::move(work));
  } else {
    stream.queue.push_back(std::move(work));
    ++stream.submitted;
  }
}

void run_until(Stream& stream, uint64_t done) {
  while (stream.done < done) {
    const Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    ++stream.done;
    work();
  }
}

void run_all() {
  for (Stream* stream : state.streams) run_until(*stream, stream->submitted);
}

Event& event_of(EventHandle handle) {
  return *reinterpret_cast<Event*>(handle);
}

void run_until(const Event& event) {
  if (event.stream != nullptr && state.streams.contains(event.stream)) run_until(*event.stream, event.after);
}

Result allocate(uint64_t bytes, bool on_host, uint64_t* address) {
  if (bytes == 0) return 1;
  uint64_t& taken = state.device_bytes[*state.current];
  if (!on_host && taken + bytes > gpu(*state.current).memory) return kOutOfMemory;
  *address = host_gpu::allocate_memory(bytes);
  state.memory[*address] = bytes;
  state.is_host[*address] = on_host;
  state.gpu_of[*address] = *state.current;
  if (!on_host) taken += bytes;
  return kSuccess;
}

/// Waits for all work first, as the driver does.
Result release(uint64_t address) {
  if (state.lost == kSuccess) run_all();
  const auto found = state.memory.find(address);
  if (found == state.memory.end()) return 1;
  if (!state.is_host[address]) state.device_bytes[state.gpu_of[address]] -= found->second;
  state.memory.erase(found);
  host_gpu::free_memory(address);
  return kSuccess;
}

Result device_attribute(int* value, int which, DeviceId id) {
  CANOPY_CALL("device_attribute");
  switch (which) {
    case kCapabilityMajor: *value = gpu(id).capability / 10; break;
    case kCapabilityMinor: *value = gpu(id).capability % 10; break;
    case kComputeMode: *value = gpu(id).prohibited ? kComputeModeProhibited : 0; break;
    case kMultiprocessors: *value = 4; break;
    case kPciBus: *value = id + 1; break;
    case kL2CacheBytes: *value = 1 << 20; break;
    case kMaxSharedBytesOfBlock: *value = most_shared_bytes(gpu(id).capability); break;
    default: *value = 0;
  }
  return kSuccess;
}

Result launch_kernel(const LaunchConfig* config, FunctionHandle function, void** params, void**) {
  CANOPY_CALL_IN_CONTEXT("launch");
  if (stream_of(config->stream).gpu != *state.current) return kInvalidHandle;
  const auto allowed = state.shared_bytes.try_emplace(function, kUsualSharedBytes).first->second;
  if (static_cast<int>(config->shared_bytes) > allowed) return 1;
  const auto* kernel = reinterpret_cast<const host_gpu::KernelEntry*>(function);
  state.launched.insert(kernel->name);
  const auto& [x, y, z] = config->grid;
  const unsigned threads = config->block[0];
  if (threads == 0 || threads > kernel->threads || x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535) return 1;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id != kLaunchProgrammaticSerialization || gpu(*state.current).capability < 90) return 1;
    state.overlapping += attribute.value != 0 ? 1 : 0;
  }
  if (!state.machine.computes) return kSuccess;
  // The driver copies the argument when the kernel is submitted or recorded.
  const auto* first = static_cast<const std::byte*>(params[0]);
  auto bytes = std::make_shared<std::vector<std::byte>>(first, first + kernel->params_bytes);
  const host_gpu::Launch launch{{x, y, z}, threads, config->shared_bytes};
  submit(config->stream, [=] { host_gpu::launch(kernel->name, kernel->body, bytes->data(), launch); });
  return kSuccess;
}

void fill_driver(DriverApi& api) {
  api.init = [](unsigned) -> Result {
    CANOPY_CALL("init");
    return state.machine.init_result;
  };
  api.driver_version = [](int* version) -> Result {
    CANOPY_CALL("driver_version");
    *version = state.machine.driver_version;
    return kSuccess;
  };
  api.error_name = [](Result result, const char** name) -> Result {
    *name = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == 214        ? "CUDA_ERROR_ECC_UNCORRECTABLE"
            : result == 700        ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                   : nullptr;
    return kSuccess;
  };
  api.error_string = [](Result, const char** text) -> Result {
    *text = nullptr;
    return kSuccess;
  };
}

void fill_devices(DriverApi& api) {
  api.device_count = [](int* count) -> Result {
    CANOPY_CALL("device_count");
    *count = static_cast<int>(state.machine.gpus.size());
    return kSuccess;
  };
  api.device = [](DeviceId* id, int ordinal) -> Result {
    CANOPY_CALL("device");
    *id = ordinal;
    return kSuccess;
  };
  api.device_name = [](char* name, int bytes, DeviceId id) -> Result {
    CANOPY_CALL("device_name");
    std::strncpy(name, gpu(id).name.c_str(), static_cast<size_t>(bytes));
    return kSuccess;
  };
  api.device_uuid = [](Uuid* uuid, DeviceId id) -> Result {
    CANOPY_CALL("device_uuid");
    *uuid = {};
    uuid->bytes[15] = static_cast<unsigned char>(id + 1);
    if (gpu(id).uuid.size() == sizeof(uuid->bytes)) std::memcpy(uuid->bytes, gpu(id).uuid.data(), sizeof(uuid->bytes));
    return kSuccess;
  };
  api.device_attribute = device_attribute;
  api.device_memory = [](size_t* bytes, DeviceId id) -> Result {
    CANOPY_CALL("device_memory");
    *bytes = gpu(id).memory;
    return kSuccess;
  };
}

void fill_contexts(DriverApi& api) {
  api.retain_context = [](ContextHandle* context, DeviceId id) -> Result {
    CANOPY_CALL("retain_context");
    ++state.retained;
    *context = reinterpret_cast<ContextHandle>(&state.machine.gpus.at(static_cast<size_t>(id)));
    return kSuccess;
  };
  api.release_context = [](DeviceId) -> Result {
    CANOPY_CALL("release_context");
    --state.retained;
    return kSuccess;
  };
  // Ends what uses the context and frees what is in it, whoever has forgotten it.
  api.reset_context = [](DeviceId) -> Result {
    ++state.calls["reset_context"];
    state.lost = kSuccess;
    for (Stream* stream : state.streams) stream->queue.clear(), stream->done = stream->submitted;
    while (!state.memory.empty()) release(state.memory.begin()->first);
    state.objects.clear();
    state.streams.clear();
    state.retained = 0;
    return kSuccess;
  };
  api.set_context = [](ContextHandle context) -> Result {
    CANOPY_CALL("set_context");
    state.current.reset();
    const auto* chosen = reinterpret_cast<const FakeGpu*>(context);
    if (chosen != nullptr) state.current = static_cast<DeviceId>(chosen - state.machine.gpus.data());
    return kSuccess;
  };
}

void fill_memory(DriverApi& api) {
  api.memory_info = [](size_t* available, size_t* total) -> Result {
    CANOPY_CALL_IN_CONTEXT("memory_info");
    *total = gpu(*state.current).memory;
    *available = *total - state.device_bytes[*state.current];
    return kSuccess;
  };
  api.allocate = [](Address* address, size_t bytes) -> Result {
    CANOPY_CALL_IN_CONTEXT("allocate");
    return allocate(bytes, false, address);
  };
  api.free = [](Address address) -> Result {
    CANOPY_CALL_IN_CONTEXT("free");
    return release(address);
  };
  api.allocate_host = [](void** memory, size_t bytes, unsigned) -> Result {
    CANOPY_CALL_IN_CONTEXT("allocate_host");
    uint64_t address = 0;
    const Result result = allocate(bytes, true, &address);
    *memory = reinterpret_cast<void*>(address);
    return result;
  };
  api.free_host = [](void* memory) -> Result {
    CANOPY_CALL_IN_CONTEXT("free_host");
    return release(reinterpret_cast<uint64_t>(memory));
  };
  api.copy_to_device = [](Address to, const void* from, size_t bytes, StreamHandle stream) -> Result {
    CANOPY_CALL_IN_CONTEXT("copy_to_device");
    submit(stream, [=] { std::memcpy(host_gpu::checked_address(to, bytes), from, bytes); });
    return kSuccess;
  };
  api.copy_to_host = [](void* to, Address from, size_t bytes, StreamHandle stream) -> Result {
    CANOPY_CALL_IN_CONTEXT("copy_to_host");
    submit(stream, [=] { std::memcpy(to, host_gpu::checked_address(from, bytes), bytes); });
    return kSuccess;
  };
  api.fill = [](Address to, unsigned word, size_t words, StreamHandle stream) -> Result {
    CANOPY_CALL_IN_CONTEXT("fill");
    submit(stream, [=] {
      auto* first = static_cast<uint32_t*>(host_gpu::checked_address(to, words * 4, 4));
      std::fill_n(first, words, word);
    });
    return kSuccess;
  };
}

void fill_streams(DriverApi& api) {
  api.create_stream = [](StreamHandle* stream, unsigned) -> Result {
    CANOPY_CALL_IN_CONTEXT("create_stream");
    create<Stream>(stream);
    stream_of(*stream).gpu = *state.current;
    state.streams.insert(&stream_of(*stream));
    return kSuccess;
  };
  api.destroy_stream = [](StreamHandle stream) -> Result {
    CANOPY_CALL("destroy_stream");
    run_until(stream_of(stream), stream_of(stream).submitted);
    state.streams.erase(&stream_of(stream));
    return destroy(stream);
  };
  api.wait_stream = [](StreamHandle stream) -> Result {
    CANOPY_CALL("wait_stream");
    run_until(stream_of(stream), stream_of(stream).submitted);
    return kSuccess;
  };
  api.create_event = [](EventHandle* event, unsigned) -> Result {
    CANOPY_CALL_IN_CONTEXT("create_event");
    create<Event>(event);
    return kSuccess;
  };
  api.destroy_event = [](EventHandle event) -> Result {
    CANOPY_CALL("destroy_event");
    run_until(event_of(event));
    return destroy(event);
  };
  api.record_event = [](EventHandle handle, StreamHandle stream, unsigned flags) -> Result {
    CANOPY_CALL("record_event");
    if ((flags == kEventRecordExternal) != stream_of(stream).capturing) return 1;
    submit(stream, [handle] { event_of(handle).at = std::chrono::steady_clock::now(); });
    if (!stream_of(stream).capturing) {
      event_of(handle).stream = &stream_of(stream);
      event_of(handle).after = stream_of(stream).submitted;
    }
    return kSuccess;
  };
  api.query_event = [](EventHandle handle) -> Result {
    CANOPY_CALL("query_event");
    const Event& event = event_of(handle);
    return event.stream == nullptr || event.stream->done >= event.after ? kSuccess : kNotReady;
  };
  api.wait_event = [](EventHandle handle) -> Result {
    CANOPY_CALL("wait_event");
    run_until(event_of(handle));
    return kSuccess;
  };
  api.stream_waits = [](StreamHandle stream, EventHandle handle, unsigned) -> Result {
    CANOPY_CALL("stream_waits");
    submit(stream, [event = event_of(handle)] { run_until(event); });
    return kSuccess;
  };
  api.elapsed = [](float* ms, EventHandle from, EventHandle to) -> Result {
    CANOPY_CALL("elapsed");
    *ms = std::chrono::duration<float, std::milli>(event_of(to).at - event_of(from).at).count();
    return kSuccess;
  };
}

Result load_module(ModuleHandle* module, const void* fatbin) {
  CANOPY_CALL_IN_CONTEXT("load_module");
  uint32_t magic = 0;
  std::memcpy(&magic, fatbin, sizeof(magic));
  if (magic != kFatbinMagic) return 200;  // invalid image
  create<Module>(module);
  reinterpret_cast<Module*>(*module)->fatbin = fatbin;
  state.last_fatbin[*state.current] = fatbin;
  return kSuccess;
}

Result end_capture(StreamHandle stream, GraphHandle* graph) {
  stream_of(stream).capturing = false;
  CANOPY_CALL("end_capture");
  create<Recorded>(graph);
  reinterpret_cast<Recorded*>(*graph)->work = std::exchange(stream_of(stream).recorded, {});
  return kSuccess;
}

void fill_kernels(DriverApi& api) {
  api.load_module = load_module;
  api.unload_module = [](ModuleHandle module) -> Result {
    CANOPY_CALL("unload_module");
    return destroy(module);
  };
  api.function = [](FunctionHandle* function, ModuleHandle module, const char* name) -> Result {
    CANOPY_CALL_IN_CONTEXT("function");
    const host_gpu::KernelEntry* kernel = host_gpu::find_kernel(name, gpu(*state.current).capability);
    const void* const fatbin = reinterpret_cast<const Module*>(module)->fatbin;
    if (kernel == nullptr || fatbin != state.last_fatbin[*state.current]) return 500;  // not found
    *function = reinterpret_cast<FunctionHandle>(const_cast<host_gpu::KernelEntry*>(kernel));
    return kSuccess;
  };
  api.set_function_attribute = [](FunctionHandle function, int, int value) -> Result {
    CANOPY_CALL_IN_CONTEXT("set_function_attribute");
    if (value > most_shared_bytes(gpu(*state.current).capability)) return 1;
    state.shared_bytes[function] = value;
    return kSuccess;
  };
  api.launch = launch_kernel;
  api.begin_capture = [](StreamHandle stream, int) -> Result {
    CANOPY_CALL_IN_CONTEXT("begin_capture");
    stream_of(stream).capturing = true;
    stream_of(stream).recorded.clear();
    return kSuccess;
  };
  api.end_capture = end_capture;
  api.instantiate = [](GraphExecHandle* exec, GraphHandle graph, unsigned long long) -> Result {
    CANOPY_CALL_IN_CONTEXT("instantiate");
    create<Recorded>(exec);
    reinterpret_cast<Recorded*>(*exec)->work = reinterpret_cast<Recorded*>(graph)->work;
    return kSuccess;
  };
  api.launch_graph = [](GraphExecHandle exec, StreamHandle stream) -> Result {
    CANOPY_CALL_IN_CONTEXT("launch_graph");
    if (stream_of(stream).gpu != *state.current) return kInvalidHandle;
    for (const Work& work : reinterpret_cast<Recorded*>(exec)->work) submit(stream, work);
    return kSuccess;
  };
  api.destroy_graph = [](GraphHandle graph) -> Result {
    CANOPY_CALL("destroy_graph");
    return destroy(graph);
  };
  api.destroy_graph_exec = [](GraphExecHandle graph) -> Result {
    CANOPY_CALL("destroy_graph_exec");
    return destroy(graph);
  };
}

}  // namespace

void use_machine(FakeMachine machine) {
  if (objects_alive() != 0) throw std::logic_error("The machine before still has objects that nobody gave back.");
  state = State();
  state.machine = std::move(machine);
}

DriverApi fake_driver() {
  host_gpu::register_kernels();
  DriverApi api = {};
  fill_driver(api);
  fill_devices(api);
  fill_contexts(api);
  fill_memory(api);
  fill_streams(api);
  fill_kernels(api);
  return api;
}

void fail_call(const std::string& function, uint64_t nth, Result result) {
  state.machine.failures.push_back({function, calls_of(function) + nth, result});
}

uint64_t calls_of(std::string_view function) {
  const auto found = state.calls.find(function);
  return found == state.calls.end() ? 0 : found->second;
}

const std::map<std::string, uint64_t, std::less<>>& all_calls() {
  return state.calls;
}

std::set<std::string> take_launched_kernels() {
  return std::exchange(state.launched, {});
}
uint64_t overlapping_launches() {
  return state.overlapping;
}

uint64_t objects_alive() {
  return state.objects.size() + state.memory.size() + static_cast<uint64_t>(state.retained);
}

}  // namespace canopy::test
