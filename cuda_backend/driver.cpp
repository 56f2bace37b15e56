#include "cuda_backend/driver.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/base/files.h"
#include "engine/base/posix.h"
#include "engine/base/text.h"

namespace canopy::cuda {
namespace {

#ifdef _WIN32
constexpr const char* kLibrary = "nvcuda.dll";
#else
constexpr const char* kLibrary = "libcuda.so.1";
#endif

/// Fills the table; the first name that the library lacks stays in missing().
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
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
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
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

std::string describe(const DriverApi& api, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.error_name(result, &name);
  api.error_string(result, &text);
  const std::string number = "CUDA error " + std::to_string(result);
  return (name != nullptr ? name : number) + (text != nullptr ? ", " + std::string(text) : "");
}

Error error_of(const DriverApi& api, Result result, const std::string& doing) {
  const std::string why = doing + " failed: " + describe(api, result) + ".";
  if (is_lost(result)) return Error(ErrorKind::device_lost, why + " The device must be opened again.");
  if (result == kOutOfMemory) return out_of_memory(why);
  return Error(ErrorKind::unavailable, why);
}

namespace {

/// What a fat binary begins with, as nvcc writes it.
struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;  // behind the header
};
static_assert(sizeof(FatbinHeader) == 16);

}  // namespace

std::vector<const void*> split_fatbins(std::span<const std::byte> joined) {
  std::vector<const void*> fatbins;
  for (uint64_t at = 0; at < joined.size();) {
    const uint64_t left = joined.size() - at;
    FatbinHeader header = {};
    if (left >= sizeof(header)) std::memcpy(&header, joined.data() + at, sizeof(header));
    if (header.magic != kFatbinMagic || header.header_bytes < sizeof(header) || header.header_bytes > left ||
        header.bytes > left - header.header_bytes) {
      throw bad_input("The CUDA kernels are damaged at byte " + std::to_string(at) + " of " +
                      std::to_string(joined.size()) + ".");
    }
    fatbins.push_back(joined.data() + at);
    at += header.header_bytes + header.bytes;
  }
  return fatbins;
}

Kernels load_kernels(const BuiltKernels& built, const std::optional<std::filesystem::path>& path) {
  Kernels kernels;
  if (built.bytes == 0) {
    kernels.reason = "This build of Canopy has no CUDA kernels; it was made without nvcc.";
    return kernels;
  }
  if (!path) {
    kernels.reason = "Canopy's CUDA kernels are not installed: they are a package of their own (canopy-cuda).";
    return kernels;
  }
  try {
    kernels.file = MappedFile::open(*path);
    const std::span<const std::byte> bytes = kernels.file.bytes();
    const std::string of_file = "The file of CUDA kernels " + shown(*path);
    if (bytes.size() != built.bytes) {
      throw bad_input(of_file + " has " + std::to_string(bytes.size()) + " bytes; that of this build of Canopy has " +
                      std::to_string(built.bytes) + ". Install the package canopy-cuda of version " CANOPY_VERSION ".");
    }
    std::string sha256;
    kernels.file.read_checked([&](std::span<const std::byte> all) {
      Sha256 hash;
      hash.add(all);
      sha256 = hex_digits(hash.digest());
    });
    if (sha256 != built.sha256) {
      throw bad_input(of_file + " is not that of this build of Canopy: its SHA-256 is " + sha256 + " instead of " +
                      std::string(built.sha256) + ". Install the package canopy-cuda of version " CANOPY_VERSION ".");
    }
    kernels.fatbins = bytes;
    kernels.least_driver = built.least_driver;
    kernels.architectures = built.architectures;
  } catch (const Error& e) {
    kernels.reason = e.what();
  }
  return kernels;
}

const Kernels& installed_kernels() {
  static const Kernels kernels = load_kernels(built_kernels(), find_asset(kKernelFile));
  return kernels;
}

namespace {

/// 13000 -> "13.0"
std::string version_words(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

int attribute(const DriverApi& api, int which, DeviceId id) {
  int value = 0;
  check(api, api.device_attribute(&value, which, id), "Asking the GPU for its properties");
  return value;
}

std::string hex(const Uuid& uuid) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : uuid.bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

/// The architecture whose code a GPU runs, 0 where it runs none. Machine code runs on GPUs of its generation that are
/// not older; PTX, which is of the last architecture, on any that is not older.
int architecture_of(const Kernels& kernels, int capability) {
  const auto& known = kernels.architectures;
  int found = 0;
  for (const int a : known) {
    if (a / 10 == capability / 10 && a <= capability) found = a;
  }
  return found == 0 && !known.empty() && capability >= known.back() ? known.back() : found;
}

std::string refusal(const DriverApi& api, const DeviceFacts& facts, int version, const Kernels& kernels, DeviceId id) {
  if (facts.capability < kLeastCapability) {
    return "Its compute capability is " + capability_words(facts.capability) + "; " +
           capability_words(kLeastCapability) + " or later is needed.";
  }
  if (attribute(api, kComputeMode, id) == kComputeModeProhibited) {
    return "Its owner has switched off computing on it (compute mode 'prohibited').";
  }
  if (!kernels.reason.empty()) return kernels.reason;
  if (facts.architecture == 0) {
    return "This build of Canopy has no CUDA kernels for its compute capability " + capability_words(facts.capability) +
           ".";
  }
  if (version < kernels.least_driver) {
    return "Its driver supports CUDA " + version_words(version) + "; " + version_words(kernels.least_driver) +
           " or later is needed.";
  }
  if (facts.memory_bytes == 0) return "It has no memory of its own that can be used.";
  return {};
}

std::string pci_address(const DriverApi& api, DeviceId id) {
  std::array<char, 24> text = {};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", static_cast<unsigned>(attribute(api, kPciDomain, id)),
                static_cast<unsigned>(attribute(api, kPciBus, id)),
                static_cast<unsigned>(attribute(api, kPciDevice, id)));
  return text.data();
}

void ask(const DriverApi& api, DeviceId id, DeviceFacts& facts) {
  std::array<char, 256> name = {};
  check(api, api.device_name(name.data(), static_cast<int>(name.size()) - 1, id), "Asking the GPU for its name");
  facts.name = printable(name.data());
  Uuid uuid = {};
  check(api, api.device_uuid(&uuid, id), "Asking the GPU for its identity");
  facts.uuid = hex(uuid);
  facts.capability = attribute(api, kCapabilityMajor, id) * 10 + attribute(api, kCapabilityMinor, id);
  size_t bytes = 0;
  check(api, api.device_memory(&bytes, id), "Asking the GPU for its memory");
  facts.memory_bytes = bytes;
  facts.multiprocessors = static_cast<uint32_t>(attribute(api, kMultiprocessors, id));
  facts.l2_bytes = static_cast<uint32_t>(attribute(api, kL2CacheBytes, id));
  facts.shared_bytes = static_cast<uint32_t>(attribute(api, kMaxSharedBytesOfBlock, id));
  facts.integrated = attribute(api, kIntegrated, id) != 0;
  facts.pci_address = pci_address(api, id);
}

std::string driver_words(int version) {
  std::ifstream file("/proc/driver/nvidia/version");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string module = printable(module_version(text));
  return (module.empty() ? "" : "NVIDIA " + module + ", ") + "CUDA " + version_words(version);
}

}  // namespace

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:15:33 UTC 2025": the first word that begins
// with a digit, of the line.
std::string module_version(const std::string& text) {
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  size_t begin = line.find("NVRM version");
  while (begin < line.size()) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    if (word.find_first_not_of("0123456789.") == std::string_view::npos && word.find('.') != std::string_view::npos) {
      return std::string(word);
    }
    begin = end + 1;
  }
  return {};
}

bool has_warpgroups(const DeviceFacts& facts) {
  return facts.capability == 90 && facts.architecture == 90;
}

std::string device_type(const DeviceFacts& facts) {
  return facts.integrated ? "integrated" : "discrete";
}

std::string device_identity(const DeviceFacts& facts) {
  std::string driver = facts.driver;
  std::erase_if(driver, [](char c) { return c == ' ' || c == ','; });
  return facts.uuid + "-" + driver;
}

std::string capability_words(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

std::vector<DeviceFacts> list_devices(const DriverApi& api, const Kernels& kernels) {
  if (const Result result = api.init(0); result != kSuccess) {
    if (result == kNoDevice) return {};
    throw error_of(api, result, "Starting the NVIDIA driver");
  }
  int version = 0, count = 0;
  check(api, api.driver_version(&version), "Asking the NVIDIA driver for its version");
  if (const Result result = api.device_count(&count); result != kSuccess && result != kNoDevice) {
    throw error_of(api, result, "Listing the NVIDIA GPUs");
  }
  const std::string driver = driver_words(version);
  std::vector<DeviceFacts> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceFacts facts;
    facts.ordinal = ordinal;
    facts.name = "NVIDIA GPU " + std::to_string(ordinal);
    facts.driver = driver;
    try {
      DeviceId id = 0;
      check(api, api.device(&id, ordinal), "Asking for the GPU");
      ask(api, id, facts);
      facts.architecture = architecture_of(kernels, facts.capability);
      facts.reason = refusal(api, facts, version, kernels, id);
    } catch (const Error& e) {
      facts.reason = e.what();
    }
    devices.push_back(std::move(facts));
  }
  return devices;
}

}  // namespace canopy::cuda
