#pragma once
// The functions of NVIDIA's driver that Canopy calls, found in the driver's library at run time: no toolkit is needed
// to compile this, and none is linked. Names and meanings are those of the CUDA driver API; where the library has
// several versions of a function, the one named in driver_library.cpp.

#include <cstddef>
#include <cstdint>

namespace canopy::cuda {

using Result = int;
using DeviceId = int;
using Address = uint64_t;  // of device memory

struct ContextTag;
struct StreamTag;
struct EventTag;
struct ModuleTag;
struct FunctionTag;
struct GraphTag;
struct GraphExecTag;
using ContextHandle = ContextTag*;
using StreamHandle = StreamTag*;
using EventHandle = EventTag*;
using ModuleHandle = ModuleTag*;
using FunctionHandle = FunctionTag*;
using GraphHandle = GraphTag*;
using GraphExecHandle = GraphExecTag*;

// Results that Canopy tells apart; all others are failures like any.
inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kNotReady = 600;

// Attributes of a device.
inline constexpr int kMaxSharedBytesOfBlock = 97;  // that a kernel may opt into
inline constexpr int kMultiprocessors = 16;
inline constexpr int kIntegrated = 18;
inline constexpr int kComputeMode = 20;
inline constexpr int kPciBus = 33;
inline constexpr int kPciDevice = 34;
inline constexpr int kL2CacheBytes = 38;
inline constexpr int kPciDomain = 50;
inline constexpr int kCapabilityMajor = 75;
inline constexpr int kCapabilityMinor = 76;
inline constexpr int kComputeModeProhibited = 2;

// Attributes of a function.
inline constexpr int kFunctionMaxDynamicSharedBytes = 8;

inline constexpr unsigned kHostPortable = 1;
inline constexpr unsigned kHostMapped = 2;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventNoTiming = 2;
/// While a stream is being captured: the event is recorded by the graph, each time it runs.
inline constexpr unsigned kEventRecordExternal = 1;
inline constexpr int kCaptureThreadLocal = 1;

/// An attribute of a launch (CUlaunchAttribute).
struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  int value = 0;
  char rest[60] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);
/// The kernel may start while the one before it in the stream still runs; it waits for it by itself.
inline constexpr int kLaunchProgrammaticSerialization = 6;

/// How a kernel is launched (CUlaunchConfig).
struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

struct Uuid {
  unsigned char bytes[16];
};

struct DriverApi {
  Result (*init)(unsigned flags);
  Result (*driver_version)(int* version);  // 12040 is 12.4
  Result (*error_name)(Result, const char** name);
  Result (*error_string)(Result, const char** text);

  Result (*device_count)(int* count);
  Result (*device)(DeviceId*, int ordinal);
  Result (*device_name)(char* name, int bytes, DeviceId);
  Result (*device_uuid)(Uuid*, DeviceId);
  Result (*device_attribute)(int* value, int attribute, DeviceId);
  Result (*device_memory)(size_t* bytes, DeviceId);

  Result (*retain_context)(ContextHandle*, DeviceId);  // the device's primary one
  Result (*release_context)(DeviceId);
  Result (*reset_context)(DeviceId);
  Result (*set_context)(ContextHandle);

  Result (*memory_info)(size_t* available, size_t* total);
  Result (*allocate)(Address*, size_t bytes);
  Result (*free)(Address);
  Result (*allocate_host)(void**, size_t bytes, unsigned flags);
  Result (*free_host)(void*);
  Result (*copy_to_device)(Address to, const void* from, size_t bytes, StreamHandle);
  Result (*copy_to_host)(void* to, Address from, size_t bytes, StreamHandle);
  Result (*fill)(Address, unsigned word, size_t words, StreamHandle);

  Result (*create_stream)(StreamHandle*, unsigned flags);
  Result (*destroy_stream)(StreamHandle);
  Result (*wait_stream)(StreamHandle);
  Result (*create_event)(EventHandle*, unsigned flags);
  Result (*destroy_event)(EventHandle);
  Result (*record_event)(EventHandle, StreamHandle, unsigned flags);
  Result (*query_event)(EventHandle);  // kNotReady before what was recorded has ended
  Result (*wait_event)(EventHandle);
  Result (*stream_waits)(StreamHandle, EventHandle, unsigned flags);
  Result (*elapsed)(float* ms, EventHandle from, EventHandle to);

  Result (*load_module)(ModuleHandle*, const void* fatbin);
  Result (*unload_module)(ModuleHandle);
  Result (*function)(FunctionHandle*, ModuleHandle, const char* name);
  Result (*set_function_attribute)(FunctionHandle, int attribute, int value);
  Result (*launch)(const LaunchConfig*, FunctionHandle, void** params, void** extra);

  Result (*begin_capture)(StreamHandle, int mode);
  Result (*end_capture)(StreamHandle, GraphHandle*);
  Result (*instantiate)(GraphExecHandle*, GraphHandle, unsigned long long flags);
  Result (*launch_graph)(GraphExecHandle, StreamHandle);
  Result (*destroy_graph)(GraphHandle);
  Result (*destroy_graph_exec)(GraphExecHandle);
};

}  // namespace canopy::cuda
