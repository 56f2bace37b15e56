#pragma once
// NVIDIA's driver: its functions, found at run time, what its results mean, the GPUs that it lists, and the file of
// kernels that it loads.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"

namespace canopy::cuda {

// The functions of NVIDIA's driver that Canopy calls, found in the driver's library at run time: no toolkit is needed
// to compile this, and none is linked. Names and meanings are those of the CUDA driver API; where the library has
// several versions of a function, the one named in driver.cpp.

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

// Opens NVIDIA's driver library (libcuda.so.1, nvcuda.dll).

/// The driver of this machine, or why there is none, as a sentence.
struct FoundDriver {
  std::optional<DriverApi> api;
  std::string reason;    // empty where there is one
  bool present = false;  // a driver is here, though perhaps too old
};

/// `library`: name or path; the usual one of this system by default. The library stays open until the program ends.
FoundDriver find_driver(const std::string& library = {});

// Turns results of the driver into errors.

/// Of the driver API's results those after which a context cannot be used, or the GPU itself is gone.
inline constexpr Result kLost[] = {
    4,    // deinitialized
    214,  // ECC uncorrectable
    220,  // NVLink uncorrectable
    226,  // an error that was contained to this process
    700,  // illegal address
    702,  // launch timeout
    709,  // context is destroyed
    710,  // assert
    714,  // hardware stack error
    715,  // illegal instruction
    716,  // misaligned address
    717,  // invalid address space
    718,  // invalid program counter
    719,  // launch failed
    721,  // tensor memory leak
    911,  // external device
    999,  // unknown, as after a driver's reset
};

/// Whether the context of such a result is unusable for good: illegal accesses, uncorrectable memory errors, a GPU that
/// has fallen off the bus. All later calls would fail alike.
inline bool is_lost(Result result) {
  return std::ranges::find(kLost, result) != std::end(kLost);
}

/// "CUDA_ERROR_INVALID_VALUE, invalid argument"
std::string describe(const DriverApi& api, Result result);

/// device_lost, out_of_memory or unavailable, with what was being done in front.
Error error_of(const DriverApi& api, Result result, const std::string& doing);

/// Throws where the result is no success.
inline void check(const DriverApi& api, Result result, const char* doing) {
  if (result != kSuccess) throw error_of(api, result, doing);
}

// The kernels: a file of their own, as who has no NVIDIA GPU needs none (cmake/CanopyCuda.cmake). The program knows
// what it must hold, as kernels of another build would take other arguments.

/// What each fat binary begins with.
inline constexpr uint32_t kFatbinMagic = 0xBA55ED50u;

/// The name of the file, which find_asset() finds.
inline constexpr std::string_view kKernelFile = "canopy_kernels.fatbin";

/// The file as it was built.
struct BuiltKernels {
  uint64_t bytes = 0;                   // 0 in a build without nvcc
  std::string_view sha256 = {};         // hex
  int least_driver = 0;                 // the oldest driver that runs them: 13000 is CUDA 13.0
  std::vector<int> architectures = {};  // compute capabilities, ascending: 89 is 8.9; the last also as PTX
};

/// Generated by tools/join_kernels.py.
const BuiltKernels& built_kernels();

struct Kernels {
  std::span<const std::byte> fatbins = {};  // one after the other; empty where there are none
  int least_driver = 0;                     // as BuiltKernels
  std::vector<int> architectures = {};      // likewise
  std::string reason = {};                  // why there are none, as a sentence; empty where they are there
  MappedFile file = {};                     // that `fatbins` lie in
};

/// The kernels in the file at `path`, which must be the one that was `built`. Without a path, and where the file cannot
/// be read or is another, there are none, and `reason` says why.
Kernels load_kernels(const BuiltKernels& built, const std::optional<std::filesystem::path>& path);

/// Those of this program, loaded at the first call.
const Kernels& installed_kernels();

/// The beginning of each fat binary of `joined`, which the driver loads as a module; the bytes stay the caller's.
/// Throws bad_input where the bytes are something else.
std::vector<const void*> split_fatbins(std::span<const std::byte> joined);

// The NVIDIA GPUs of this machine, and why those that cannot be used are not.

/// Compute capability 7.5: the first with the tensor-core instructions and the shared memory that the kernels need.
inline constexpr int kLeastCapability = 75;

struct DeviceFacts {
  int ordinal = 0;
  std::string name;
  std::string uuid;      // hex
  int capability = 0;    // 89 is 8.9
  int architecture = 0;  // whose code it runs: 90 on a GPU of 12.0 where the kernels have none that is later
  uint64_t memory_bytes = 0;
  uint32_t multiprocessors = 0;
  uint32_t l2_bytes = 0;
  uint32_t shared_bytes = 0;  // of a block, at most
  bool integrated = false;
  std::string pci_address;  // "0000:03:00.0"
  std::string driver;       // "NVIDIA 580.65.06, CUDA 13.0"
  std::string reason;       // why it cannot be used, as a sentence; empty where it can

  bool usable() const { return reason.empty(); }
};

/// Asks each GPU; one that does not answer is listed with what the driver says. `kernels` decide what GPUs and drivers
/// can be used. Throws what error_of() makes of a driver that cannot list its devices; no devices
/// is an empty list.
std::vector<DeviceFacts> list_devices(const DriverApi& api, const Kernels& kernels);

/// Whether products may be made for warpgroups: only machine code for 9.0 itself has them, which no later GPU runs.
bool has_warpgroups(const DeviceFacts& facts);

/// "integrated" or "discrete"
std::string device_type(const DeviceFacts& facts);

/// DeviceInfo::uuid of a device: changes with the GPU, its driver, and between backends.
std::string device_identity(const DeviceFacts& facts);

/// 89 -> "8.9"
std::string capability_words(int capability);

/// The version in what NVIDIA's kernel module says of itself (/proc/driver/nvidia/version); empty where there is none.
std::string module_version(const std::string& text);

}  // namespace canopy::cuda
