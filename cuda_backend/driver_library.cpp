#include "cuda_backend/driver_library.h"

#ifdef _WIN32
#define NOMINMAX
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include "engine/base/printable.h"

namespace canopy::cuda {
namespace {

#ifdef _WIN32
constexpr const char* kLibrary = "nvcuda.dll";
void* open_library(const char* name) {
  return reinterpret_cast<void*>(LoadLibraryA(name));
}
void* symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}
#else
constexpr const char* kLibrary = "libcuda.so.1";
void* open_library(const char* name) {
  return ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
void* symbol(void* library, const char* name) {
  return ::dlsym(library, name);
}
#endif

/// Fills the table; the first name that the library lacks stays in missing().
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(symbol(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void find_devices(Symbols& symbols, DriverApi& api) {
  symbols.find(api.init, "cuInit");
  symbols.find(api.driver_version, "cuDriverGetVersion");
  symbols.find(api.error_name, "cuGetErrorName");
  symbols.find(api.error_string, "cuGetErrorString");
  symbols.find(api.device_count, "cuDeviceGetCount");
  symbols.find(api.device, "cuDeviceGet");
  symbols.find(api.device_name, "cuDeviceGetName");
  symbols.find(api.device_uuid, "cuDeviceGetUuid");
  symbols.find(api.device_attribute, "cuDeviceGetAttribute");
  symbols.find(api.device_memory, "cuDeviceTotalMem_v2");
  symbols.find(api.retain_context, "cuDevicePrimaryCtxRetain");
  symbols.find(api.release_context, "cuDevicePrimaryCtxRelease_v2");
  symbols.find(api.reset_context, "cuDevicePrimaryCtxReset_v2");
  symbols.find(api.set_context, "cuCtxSetCurrent");
}

void find_memory(Symbols& symbols, DriverApi& api) {
  symbols.find(api.memory_info, "cuMemGetInfo_v2");
  symbols.find(api.allocate, "cuMemAlloc_v2");
  symbols.find(api.free, "cuMemFree_v2");
  symbols.find(api.allocate_host, "cuMemHostAlloc");
  symbols.find(api.free_host, "cuMemFreeHost");
  symbols.find(api.copy_to_device, "cuMemcpyHtoDAsync_v2");
  symbols.find(api.copy_to_host, "cuMemcpyDtoHAsync_v2");
  symbols.find(api.fill, "cuMemsetD32Async");
}

void find_execution(Symbols& symbols, DriverApi& api) {
  symbols.find(api.create_stream, "cuStreamCreate");
  symbols.find(api.destroy_stream, "cuStreamDestroy_v2");
  symbols.find(api.wait_stream, "cuStreamSynchronize");
  symbols.find(api.create_event, "cuEventCreate");
  symbols.find(api.destroy_event, "cuEventDestroy_v2");
  symbols.find(api.record_event, "cuEventRecordWithFlags");
  symbols.find(api.query_event, "cuEventQuery");
  symbols.find(api.wait_event, "cuEventSynchronize");
  symbols.find(api.stream_waits, "cuStreamWaitEvent");
  symbols.find(api.elapsed, "cuEventElapsedTime");
  symbols.find(api.load_module, "cuModuleLoadData");
  symbols.find(api.unload_module, "cuModuleUnload");
  symbols.find(api.function, "cuModuleGetFunction");
  symbols.find(api.set_function_attribute, "cuFuncSetAttribute");
  symbols.find(api.launch, "cuLaunchKernelEx");
  symbols.find(api.begin_capture, "cuStreamBeginCapture_v2");
  symbols.find(api.end_capture, "cuStreamEndCapture");
  symbols.find(api.instantiate, "cuGraphInstantiateWithFlags");
  symbols.find(api.launch_graph, "cuGraphLaunch");
  symbols.find(api.destroy_graph, "cuGraphDestroy");
  symbols.find(api.destroy_graph_exec, "cuGraphExecDestroy");
}

}  // namespace

FoundDriver find_driver(const std::string& given) {
  const std::string name = given.empty() ? kLibrary : given;
  void* const library = open_library(name.c_str());
  if (library == nullptr) return {std::nullopt, "There is no NVIDIA driver here (" + printable(name) + ")."};
  DriverApi api = {};
  Symbols symbols(library);
  find_devices(symbols, api);
  find_memory(symbols, api);
  find_execution(symbols, api);
  if (!symbols.missing().empty()) {
    return {std::nullopt,
            "The NVIDIA driver is too old: " + printable(name) + " has no " + symbols.missing() +
                "; drivers from 550 on (CUDA 12.4) have it.",
            true};
  }
  return {api, {}, true};
}

}  // namespace canopy::cuda
