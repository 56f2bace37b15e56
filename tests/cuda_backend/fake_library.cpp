// The made-up driver as a library that programs take for NVIDIA's: the functions of the driver API by their names.
// CANOPY_FAKE_CUDA describes the machine as JSON: {"driver_version": 13000, "init_result": 0, "computes": true, "gpus":
// [{"name": "A GPU", "capability": 90, "memory": 1000000}], "failures": [["launch_graph", 3, 700]]}; what is left out
// is as in FakeMachine.

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/cuda_backend/fake_driver.h"

namespace {

using namespace canopy::cuda;
using canopy::test::FakeGpu;
using canopy::test::FakeMachine;
using nlohmann::json;

FakeMachine machine_of(const json& text) {
  FakeMachine machine;
  machine.driver_version = text.value("driver_version", machine.driver_version);
  machine.computes = text.value("computes", machine.computes);
  machine.init_result = text.value("init_result", machine.init_result);
  if (text.contains("gpus")) machine.gpus.clear();
  for (const json& each : text.value("gpus", json::array())) {
    FakeGpu& gpu = machine.gpus.emplace_back();
    gpu.name = each.value("name", gpu.name);
    gpu.capability = each.value("capability", gpu.capability);
    gpu.memory = each.value("memory", gpu.memory);
  }
  for (const json& each : text.value("failures", json::array()))
    machine.failures.push_back({each[0], each[1], each[2]});
  return machine;
}

const DriverApi& api() {
  static const DriverApi driver = [] {
    const char* text = std::getenv("CANOPY_FAKE_CUDA");
    canopy::test::use_machine(machine_of(json::parse(text != nullptr ? text : "{}")));
    return canopy::test::fake_driver();
  }();
  return driver;
}

}  // namespace

extern "C" {

int cuInit(unsigned a) {
  return api().init(a);
}
int cuDriverGetVersion(int* a) {
  return api().driver_version(a);
}
int cuGetErrorName(Result a, const char** b) {
  return api().error_name(a, b);
}
int cuGetErrorString(Result a, const char** b) {
  return api().error_string(a, b);
}
int cuDeviceGetCount(int* a) {
  return api().device_count(a);
}
int cuDeviceGet(DeviceId* a, int b) {
  return api().device(a, b);
}
int cuDeviceGetName(char* a, int b, DeviceId c) {
  return api().device_name(a, b, c);
}
int cuDeviceGetUuid(Uuid* a, DeviceId b) {
  return api().device_uuid(a, b);
}
int cuDeviceGetAttribute(int* a, int b, DeviceId c) {
  return api().device_attribute(a, b, c);
}
int cuDeviceTotalMem_v2(size_t* a, DeviceId b) {
  return api().device_memory(a, b);
}
int cuDevicePrimaryCtxRetain(ContextHandle* a, DeviceId b) {
  return api().retain_context(a, b);
}
int cuDevicePrimaryCtxRelease_v2(DeviceId a) {
  return api().release_context(a);
}
int cuDevicePrimaryCtxReset_v2(DeviceId a) {
  return api().reset_context(a);
}
int cuCtxSetCurrent(ContextHandle a) {
  return api().set_context(a);
}
int cuMemGetInfo_v2(size_t* a, size_t* b) {
  return api().memory_info(a, b);
}
int cuMemAlloc_v2(Address* a, size_t b) {
  return api().allocate(a, b);
}
int cuMemFree_v2(Address a) {
  return api().free(a);
}
int cuMemHostAlloc(void** a, size_t b, unsigned c) {
  return api().allocate_host(a, b, c);
}
int cuMemFreeHost(void* a) {
  return api().free_host(a);
}
int cuMemcpyHtoDAsync_v2(Address a, const void* b, size_t c, StreamHandle d) {
  return api().copy_to_device(a, b, c, d);
}
int cuMemcpyDtoHAsync_v2(void* a, Address b, size_t c, StreamHandle d) {
  return api().copy_to_host(a, b, c, d);
}
int cuMemsetD32Async(Address a, unsigned b, size_t c, StreamHandle d) {
  return api().fill(a, b, c, d);
}
int cuStreamCreate(StreamHandle* a, unsigned b) {
  return api().create_stream(a, b);
}
int cuStreamDestroy_v2(StreamHandle a) {
  return api().destroy_stream(a);
}
int cuStreamSynchronize(StreamHandle a) {
  return api().wait_stream(a);
}
int cuEventCreate(EventHandle* a, unsigned b) {
  return api().create_event(a, b);
}
int cuEventDestroy_v2(EventHandle a) {
  return api().destroy_event(a);
}
int cuEventRecordWithFlags(EventHandle a, StreamHandle b, unsigned c) {
  return api().record_event(a, b, c);
}
int cuEventQuery(EventHandle a) {
  return api().query_event(a);
}
int cuEventSynchronize(EventHandle a) {
  return api().wait_event(a);
}
int cuStreamWaitEvent(StreamHandle a, EventHandle b, unsigned c) {
  return api().stream_waits(a, b, c);
}
int cuEventElapsedTime(float* a, EventHandle b, EventHandle c) {
  return api().elapsed(a, b, c);
}
int cuModuleLoadData(ModuleHandle* a, const void* b) {
  return api().load_module(a, b);
}
int cuModuleUnload(ModuleHandle a) {
  return api().unload_module(a);
}
int cuModuleGetFunction(FunctionHandle* a, ModuleHandle b, const char* c) {
  return api().function(a, b, c);
}
int cuFuncSetAttribute(FunctionHandle a, int b, int c) {
  return api().set_function_attribute(a, b, c);
}
int cuLaunchKernelEx(const LaunchConfig* a, FunctionHandle b, void** c, void** d) {
  return api().launch(a, b, c, d);
}
int cuStreamBeginCapture_v2(StreamHandle a, int b) {
  return api().begin_capture(a, b);
}
int cuStreamEndCapture(StreamHandle a, GraphHandle* b) {
  return api().end_capture(a, b);
}
int cuGraphInstantiateWithFlags(GraphExecHandle* a, GraphHandle b, unsigned long long c) {
  return api().instantiate(a, b, c);
}
int cuGraphLaunch(GraphExecHandle a, StreamHandle b) {
  return api().launch_graph(a, b);
}
int cuGraphDestroy(GraphHandle a) {
  return api().destroy_graph(a);
}
int cuGraphExecDestroy(GraphExecHandle a) {
  return api().destroy_graph_exec(a);
}

}  // extern "C"
