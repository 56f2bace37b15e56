#include "tests/fuzz/scratch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>

#include "tests/fuzz/harness.h"

namespace canopy::fuzz {

namespace fs = std::filesystem;

ScratchFile::ScratchFile() : descriptor_(::memfd_create("canopy-fuzz", MFD_CLOEXEC)) {
  require(descriptor_ >= 0, "a file in memory can be made");
  path_ = "/proc/self/fd/" + std::to_string(descriptor_);
}

ScratchFile::~ScratchFile() {
  ::close(descriptor_);
}

void ScratchFile::write(std::string_view bytes) {
  require(::ftruncate(descriptor_, 0) == 0, "a file in memory can be emptied");
  const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), 0);
  require(written == static_cast<ssize_t>(bytes.size()), "a file in memory can be written");
}

ScratchFolder::ScratchFolder() {
  const fs::path memory = "/dev/shm";
  const fs::path parent = ::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
  std::string pattern = (parent / "canopy-fuzz-XXXXXX").string();
  require(::mkdtemp(pattern.data()) != nullptr, "a folder can be made");
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void ScratchFolder::write(std::string_view name, std::string_view bytes) {
  written_.push_back(path_ / name);
  std::ofstream(written_.back(), std::ios::binary) << bytes;
}

void ScratchFolder::clear() {
  std::error_code ignored;
  for (const fs::path& file : written_) fs::remove(file, ignored);
  written_.clear();
}

}  // namespace canopy::fuzz
