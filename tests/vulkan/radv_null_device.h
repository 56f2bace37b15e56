#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/vulkan/instance.h"

namespace canopy::vk::testing {

/// Whether the RADV that VK_DRIVER_FILES chooses has a null device of a family of GPUs, and what it writes to stderr. A
/// child process asks, as RADV ends the process on a name that it does not know.
struct RadvAnswer {
  bool has_device = false;
  std::string words;
};

inline RadvAnswer ask_radv(const char* family) {
  RadvAnswer answer;
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return answer;
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    setenv("RADV_FORCE_FAMILY", family, 1);
    try {
      const Instance instance({.validation = Validation::off});
      _exit(instance.list_devices().size() == 1 ? 0 : 1);
    } catch (...) {  // without any driver; nothing may return into the test from here
      _exit(1);
    }
  }
  close(pipe_ends[1]);
  char buffer[512];
  for (ssize_t got; (got = read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    answer.words.append(buffer, static_cast<size_t>(got));
  close(pipe_ends[0]);
  int status = 0;
  answer.has_device = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return answer;
}

/// Chooses RADV's null device of a family for this process. Returns why there is none: the driver is not installed, or
/// says itself that it has none (Mesa 26 asks for a shim of the kernel's interface instead); empty on success.
inline std::string choose_radv_null_device(const char* driver_file, const std::string& name) {
  if (!std::filesystem::exists(driver_file)) return std::string(driver_file) + " is not installed";
  setenv("VK_DRIVER_FILES", driver_file, 1);
  setenv("VK_ICD_FILENAMES", driver_file, 1);
  const RadvAnswer answer = ask_radv(name == "GFX1100" ? "NAVI31" : name.c_str());
  if (answer.words.find("RADV_FORCE_FAMILY=<family> has been removed") != std::string::npos) return answer.words;
  // Later versions of Mesa call GFX1100 NAVI31.
  const bool later = name == "GFX1100" && answer.has_device;
  setenv("RADV_FORCE_FAMILY", later ? "NAVI31" : name.c_str(), 1);
  return {};
}

}  // namespace canopy::vk::testing
