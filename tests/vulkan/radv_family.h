#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "engine/vulkan/instance.h"

namespace canopy::vk::testing {

/// The name under which the RADV that VK_DRIVER_FILES chooses knows a family of GPUs: later versions of Mesa call
/// GFX1100 NAVI31. RADV ends the process on a name that it does not know, so a child process tries the later one.
inline std::string radv_family(const std::string& name) {
  if (name != "GFX1100") return name;
  const pid_t child = fork();
  if (child == 0) {
    setenv("RADV_FORCE_FAMILY", "NAVI31", 1);
    const Instance instance({.validation = Validation::off});
    _exit(instance.list_devices().size() == 1 ? 0 : 1);
  }
  int status = 0;
  const bool known = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return known ? "NAVI31" : name;
}

}  // namespace canopy::vk::testing
