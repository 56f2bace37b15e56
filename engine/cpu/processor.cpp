#include "engine/cpu/processor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(_WIN32)
#include <windows.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "engine/base/error.h"

namespace canopy::cpu {
namespace {

#if defined(__x86_64__)
bool has_avx_vnni() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
bool has_f16c() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1) != 0;
}

/// The built-in checks also ask whether the system keeps these registers.
std::string missing_of_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c() ? "" : "AVX2 with FMA and F16C";
}
std::string missing_of_vnni() {
  return missing_of_avx2().empty() && has_avx_vnni() ? "" : "AVX-VNNI";
}
std::string missing_of_avx512() {
  const bool has = missing_of_avx2().empty() && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
  return has ? "" : "AVX-512 with VNNI";
}
#endif

/// The first line of a file, without its end; nothing where it cannot be read.
std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

/// The value of a line "NAME: 123 kB" in bytes.
std::optional<uint64_t> kilobytes_of(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string word;
  uint64_t value = 0;
  while (file >> word) {
    if (word == name && file >> value) return value * 1024;
    std::getline(file, word);
  }
  return std::nullopt;
}

#if defined(__linux__)
/// The folders of this process's cgroup, its own first; limits of any of them hold.
std::vector<std::string> cgroup_folders() {
  std::vector<std::string> folders;
  const std::string line = first_line("/proc/self/cgroup").value_or("");
  if (!line.starts_with("0::")) return {"/sys/fs/cgroup"};
  std::string path = line.substr(3);
  for (; path.size() > 1; path.resize(path.rfind('/'))) folders.push_back("/sys/fs/cgroup" + path);
  folders.emplace_back("/sys/fs/cgroup");
  return folders;
}

std::optional<uint64_t> number_in(const std::string& path) {
  const std::optional<std::string> line = first_line(path);
  uint64_t value = 0;
  if (!line || std::from_chars(line->data(), line->data() + line->size(), value).ec != std::errc()) return std::nullopt;
  return value;  // nothing for "max"
}

/// Cores' worth of time that a container may use: cpu.max is "QUOTA PERIOD", or "max PERIOD" without a limit.
std::optional<double> quota() {
  std::optional<double> least;
  for (const std::string& folder : cgroup_folders()) {
    std::istringstream words(first_line(folder + "/cpu.max").value_or("max"));
    double time = 0, period = 0;
    if (words >> time >> period && period > 0) least = std::min(least.value_or(time / period), time / period);
  }
  return least;
}

/// Cores that this process may run on, of siblings one.
std::optional<uint32_t> physical_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    // Without a topology each counts as a core of its own.
    cores.insert(first_line(topology + "thread_siblings_list").value_or("cpu " + std::to_string(cpu)));
  }
  return static_cast<uint32_t>(cores.size());
}
#endif

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets = {{&kernels_portable, "portable", ""}};
#if defined(__x86_64__)
  sets.push_back({&kernels_avx2, "AVX2", missing_of_avx2()});
  sets.push_back({&kernels_vnni, "AVX-VNNI", missing_of_vnni()});
  sets.push_back({&kernels_avx512, "AVX-512 VNNI", missing_of_avx512()});
#endif
  return sets;
}

InstructionSet choose_set(const std::string& name) {
  const std::vector<InstructionSet> sets = instruction_sets();
  std::string usable;
  const InstructionSet* best = nullptr;
  for (const InstructionSet& set : sets) {
    if (name == set.kernels->name && !set.missing.empty()) {
      throw Error(ErrorKind::unavailable, "This processor has no " + set.missing + ", which the kernels " + name +
                                              " need. It runs: " + usable + ".");
    }
    if (name == set.kernels->name) return set;
    if (!set.missing.empty()) continue;
    usable += (usable.empty() ? "" : ", ") + std::string(set.kernels->name);
    best = &set;
  }
  if (name == "auto") return *best;
  throw Error(ErrorKind::unavailable, "The processor has no kernels " + name + ". It runs: " + usable + ".");
}

std::string processor_name() {
#if defined(__x86_64__)
  std::array<uint32_t, 12> words = {};
  bool told = __get_cpuid_max(0x80000000u, nullptr) >= 0x80000004u;
  for (uint32_t leaf = 0; told && leaf < 3; ++leaf) {
    uint32_t* w = words.data() + size_t{4} * leaf;
    told = __get_cpuid(0x80000002u + leaf, w, w + 1, w + 2, w + 3) != 0;
  }
  std::string name(reinterpret_cast<const char*>(words.data()), told ? sizeof words : 0);
  name.resize(std::min(name.find('\0'), name.size()));
  // Vendors fill it up with spaces.
  std::string single;
  for (const char c : name) {
    if (c != ' ' || (!single.empty() && single.back() != ' ')) single += c;
  }
  while (single.ends_with(' ')) single.pop_back();
  if (!single.empty()) return single;
#endif
  return "Processor";
}

uint32_t usable_threads() {
  uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
  threads = physical_cores().value_or(threads);
  if (const std::optional<double> limit = quota()) {
    threads = std::min(threads, static_cast<uint32_t>(std::max(1.0, std::floor(*limit + 0.5))));
  }
#endif
  return std::max(1u, threads);
}

SystemMemory system_memory() {
  SystemMemory memory;
#if defined(_WIN32)
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof status;
  if (GlobalMemoryStatusEx(&status)) memory = {status.ullTotalPhys, status.ullAvailPhys};
#else
  memory.total = kilobytes_of("/proc/meminfo", "MemTotal:").value_or(uint64_t{4} << 30);
  memory.available = kilobytes_of("/proc/meminfo", "MemAvailable:").value_or(memory.total / 2);
#endif
#if defined(__linux__)
  for (const std::string& folder : cgroup_folders()) {
    const std::optional<uint64_t> most = number_in(folder + "/memory.max");
    if (!most) continue;
    const uint64_t used = std::min(number_in(folder + "/memory.current").value_or(0), *most);
    memory.total = std::min(memory.total, *most);
    memory.available = std::min(memory.available, *most - used);
  }
#endif
  return memory;
}

}  // namespace canopy::cpu
