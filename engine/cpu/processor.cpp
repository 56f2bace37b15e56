#include "engine/cpu/processor.h"

#include <algorithm>
#include <array>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <fstream>
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
#elif defined(__aarch64__)
/// What stands in /proc/cpuinfo behind the first of this field; empty where it has none.
std::string field_of_cpuinfo(std::string_view field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos && line.starts_with(field)) return line.substr(colon + 2);
  }
  return "";
}
#endif

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets = {{&kernels_portable, "portable", ""}};
#if defined(__x86_64__)
  sets.push_back({&kernels_avx2, "AVX2", missing_of_avx2()});
  sets.push_back({&kernels_vnni, "AVX-VNNI", missing_of_vnni()});
  sets.push_back({&kernels_avx512, "AVX-512 VNNI", missing_of_avx512()});
#elif defined(__aarch64__)
  sets.push_back({&kernels_neon, "NEON", ""});  // no 64-bit ARM runs a program like this one without it
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
#elif defined(__aarch64__)
  // Few kernels give the name of the processor; boards tell theirs.
  for (const char* field : {"model name", "Hardware"}) {
    if (std::string name = field_of_cpuinfo(field); !name.empty()) return name;
  }
  std::ifstream file("/proc/device-tree/model");
  if (std::string name; std::getline(file, name, '\0') && !name.empty()) return name;
#endif
  return "Processor";
}

}  // namespace canopy::cpu
