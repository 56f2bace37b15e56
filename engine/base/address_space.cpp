#include "engine/base/address_space.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "engine/base/figures.h"

namespace canopy {

std::string address_space_words() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return " This program may have " + byte_figures(limit.rlim_cur) + " of address space (ulimit -v) and has taken " +
         byte_figures(pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))) + ".";
}

}  // namespace canopy
