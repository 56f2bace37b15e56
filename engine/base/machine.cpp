#include "engine/base/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(_WIN32)
#include <windows.h>
#endif

namespace canopy {
namespace {

#if defined(__linux__)
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

/// The folders of this process's cgroup, its own first; limits of any of them hold.
std::vector<std::string> cgroup_folders(const std::string& root) {
  const std::string top = root + "/sys/fs/cgroup";
  std::vector<std::string> folders;
  const std::string line = first_line(root + "/proc/self/cgroup").value_or("");
  if (!line.starts_with("0::/")) return {top};
  for (std::string path = line.substr(3); path.size() > 1; path.resize(path.rfind('/'))) folders.push_back(top + path);
  folders.push_back(top);
  return folders;
}

/// Nothing for "max".
std::optional<uint64_t> number_in(const std::string& path) {
  const std::optional<std::string> line = first_line(path);
  uint64_t value = 0;
  if (!line || std::from_chars(line->data(), line->data() + line->size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

/// Cores' worth of time that a container may use: cpu.max is "QUOTA PERIOD", or "max PERIOD" without a limit.
std::optional<double> quota(const std::string& root) {
  std::optional<double> least;
  for (const std::string& folder : cgroup_folders(root)) {
    std::istringstream words(first_line(folder + "/cpu.max").value_or("max"));
    double time = 0, period = 0;
    if (words >> time >> period && period > 0) least = std::min(least.value_or(time / period), time / period);
  }
  return least;
}

/// Cores that this process may run on, of siblings one.
std::optional<uint32_t> physical_cores(const std::string& root) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string topology = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    // Without a topology each counts as a core of its own.
    cores.insert(first_line(topology + "thread_siblings_list").value_or("cpu " + std::to_string(cpu)));
  }
  return static_cast<uint32_t>(cores.size());
}
#endif

}  // namespace

SystemMemory system_memory([[maybe_unused]] const std::string& root) {
  SystemMemory memory = {kUnknownMemory, kUnknownMemory};
#if defined(_WIN32)
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof status;
  if (GlobalMemoryStatusEx(&status)) memory = {status.ullTotalPhys, status.ullAvailPhys};
#elif defined(__linux__)
  memory.total = kilobytes_of(root + "/proc/meminfo", "MemTotal:").value_or(kUnknownMemory);
  memory.available = kilobytes_of(root + "/proc/meminfo", "MemAvailable:").value_or(kUnknownMemory);
  for (const std::string& folder : cgroup_folders(root)) {
    const std::optional<uint64_t> most = number_in(folder + "/memory.max");
    if (!most) continue;
    const uint64_t used = std::min(number_in(folder + "/memory.current").value_or(0), *most);
    memory.total = std::min(memory.total, *most);
    memory.available = std::min(memory.available, *most - used);
  }
#endif
  return memory;
}

uint32_t usable_cores([[maybe_unused]] const std::string& root) {
  uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
  cores = physical_cores(root).value_or(cores);
  if (const std::optional<double> limit = quota(root)) {
    cores = std::min(cores, static_cast<uint32_t>(std::max(1.0, std::floor(*limit + 0.5))));
  }
#endif
  return std::max(1u, cores);
}

}  // namespace canopy
