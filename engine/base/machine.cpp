#include "engine/base/machine.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#if defined(__linux__)
#include <sched.h>
#include <time.h>
#include <unistd.h>
#endif
#if defined(_WIN32)
#include <windows.h>
#endif
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
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

#if defined(_WIN32)
/// Cores that this process may run on, of siblings one. Of more than 64 processors Windows tells those of one group.
std::optional<uint32_t> physical_cores() {
  DWORD_PTR allowed = 0, all = 0;
  DWORD bytes = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &allowed, &all)) return std::nullopt;
  GetLogicalProcessorInformation(nullptr, &bytes);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> parts(bytes / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  if (parts.empty() || !GetLogicalProcessorInformation(parts.data(), &bytes)) return std::nullopt;
  uint32_t cores = 0;
  for (const SYSTEM_LOGICAL_PROCESSOR_INFORMATION& part : parts)
    cores += part.Relationship == RelationProcessorCore && (part.ProcessorMask & allowed) != 0 ? 1 : 0;
  if (cores == 0) return std::nullopt;
  return cores;
}

double seconds(const FILETIME& time) {
  return 1e-7 * static_cast<double>(uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
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
#elif defined(_WIN32)
  cores = physical_cores().value_or(cores);
#endif
  return std::max(1u, cores);
}

std::optional<ProcessorTime> processor_time([[maybe_unused]] const std::string& root) {
#if defined(__linux__)
  std::ifstream file(root + "/proc/stat");
  std::string name;
  // Behind these come those of guests, which "user" and "nice" have already.
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0, stolen = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts >> stolen))
    return std::nullopt;
  timespec own = {};
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (name != "cpu" || ticks <= 0 || ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) != 0) return std::nullopt;
  ProcessorTime time;
  time.busy = (user + nice + system + interrupts + soft_interrupts + stolen) / static_cast<double>(ticks);
  time.all = time.busy + (idle + waiting) / static_cast<double>(ticks);
  time.own = static_cast<double>(own.tv_sec) + 1e-9 * static_cast<double>(own.tv_nsec);
  return time;
#elif defined(_WIN32)
  FILETIME idle = {}, kernel = {}, user = {}, started = {}, ended = {}, own_kernel = {}, own_user = {};
  if (!GetSystemTimes(&idle, &kernel, &user) ||
      !GetProcessTimes(GetCurrentProcess(), &started, &ended, &own_kernel, &own_user))
    return std::nullopt;
  ProcessorTime time;
  time.all = seconds(kernel) + seconds(user);  // idling counts as the kernel's
  time.busy = time.all - seconds(idle);
  time.own = seconds(own_kernel) + seconds(own_user);
  return time;
#else
  return std::nullopt;
#endif
}

std::optional<double> share_of_others(const ProcessorTime& before, const ProcessorTime& after) {
  constexpr double least_s = 0.1;  // the system counts in hundredths
  const double all = after.all - before.all;
  if (!(all >= least_s)) return std::nullopt;
  return std::clamp((after.busy - before.busy - (after.own - before.own)) / all, 0.0, 1.0);
}

bool on_battery([[maybe_unused]] const std::string& root) {
#if defined(__linux__)
  std::error_code error;
  const std::filesystem::path folder = root + "/sys/class/power_supply";
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const std::string supply = i->path().string() + "/";
    // Batteries of mice and the like are of the device alone.
    if (first_line(supply + "scope").value_or("") == "Device") continue;
    if (first_line(supply + "type").value_or("") == "Battery" &&
        first_line(supply + "status").value_or("") == "Discharging")
      return true;
  }
#elif defined(_WIN32)
  SYSTEM_POWER_STATUS power = {};
  return GetSystemPowerStatus(&power) && power.ACLineStatus == 0;
#endif
  return false;
}

namespace {

/// Calls run(0) to run(parts - 1), each on its own thread, the first on this one.
void run_beside(uint64_t parts, const std::function<void(uint64_t part)>& run) {
  std::vector<std::exception_ptr> failures(parts);
  const auto guarded = [&](uint64_t part) {
    try {
      run(part);
    } catch (...) {
      failures[part] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (uint64_t part = 1; part < parts; ++part) {
      try {
        threads.emplace_back(guarded, part);
      } catch (const std::system_error&) {
        guarded(part);  // no further thread could be started: run this part here
      }
    }
    guarded(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

uint64_t cores() {
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

void parallel_for(uint64_t count, uint64_t least, const std::function<void(uint64_t begin, uint64_t end)>& work) {
  if (count == 0) return;
  const uint64_t parts = std::clamp<uint64_t>(count / std::max<uint64_t>(least, 1), 1, cores());
  run_beside(parts, [&](uint64_t part) { work(count * part / parts, count * (part + 1) / parts); });
}

void parallel_in_order(uint64_t count, uint64_t piece, const std::function<void(const TakeNext& next)>& work) {
  if (count == 0) return;
  std::atomic<uint64_t> taken{0};  // pieces
  const uint64_t pieces = (count - 1) / piece + 1;
  const TakeNext next = [&](uint64_t& begin, uint64_t& end) {
    const uint64_t index = taken.fetch_add(1, std::memory_order_relaxed);
    if (index >= pieces) return false;
    begin = index * piece;
    end = std::min(count, begin + piece);
    return true;
  };
  run_beside(std::min(pieces, cores()), [&](uint64_t) {
    try {
      work(next);
    } catch (...) {
      taken = pieces;
      throw;
    }
  });
}

namespace {

constexpr auto kLinger = std::chrono::milliseconds(1);  // longer than the host works between two passes
constexpr uint32_t kMostThreads = 32;                   // llvmpipe has no more

/// Moves this thread to the lowest scheduling class. Returns whether that worked; if not, the thread must not spin.
bool enter_lowest_class() {
#if defined(__linux__)
  const sched_param none{};
  return pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) == 0;
#else
  return false;
#endif
}

void pause_briefly() {
  for (int i = 0; i < 32; ++i) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

}  // namespace

AwakeCores::AwakeCores() {
#if defined(__linux__)
  const uint32_t count = std::min(std::max(1u, std::thread::hardware_concurrency()), kMostThreads);
  try {
    for (uint32_t i = 0; i < count; ++i) threads_.emplace_back([this] { keep_awake(); });
  } catch (const std::system_error&) {
    // Continue with fewer threads or none: only speed suffers.
  }
#endif
}

AwakeCores::~AwakeCores() {
  holds_.fetch_or(kStop);
  holds_.notify_all();
}

void AwakeCores::keep_awake() {
  if (!enter_lowest_class()) return;
  for (;;) {
    holds_.wait(0);
    auto last_held = std::chrono::steady_clock::now();
    for (auto now = last_held; now - last_held < kLinger; now = std::chrono::steady_clock::now()) {
      const uint32_t holds = holds_.load(std::memory_order_relaxed);
      if ((holds & kStop) != 0) return;
      if (holds != 0) last_held = now;
      pause_briefly();
    }
  }
}

AwakeCores::Hold::Hold(AwakeCores& cores) : cores_(cores) {
  if (cores_.holds_.fetch_add(1) == 0) cores_.holds_.notify_all();
}

AwakeCores::Hold::~Hold() {
  cores_.holds_.fetch_sub(1);
}

}  // namespace canopy
