#pragma once
// Where sweeps are kept unless their user says otherwise.

#include <filesystem>
#include <string>
#include <vector>

namespace canopy {

/// The folder, inside the user's data; created when missing. Throws bad_input where that is not possible.
std::filesystem::path sweep_folder();

/// "nvidia-h200": the letters and digits of a device's name, in small, without what is in brackets.
std::string name_part(const std::string& device);

/// A file that is not there yet: "nvidia-h200-2026-11-24.json", "nvidia-h200-2026-11-24-2.json".
std::filesystem::path new_sweep_file(const std::filesystem::path& folder, const std::string& device);

/// Files of `folder` that look like sweeps, finished or not, the newest first. Of one that is not finished the path is
/// that of the file it will be.
struct KeptSweep {
  std::filesystem::path file;
  bool finished = false;
};
std::vector<KeptSweep> kept_sweeps(const std::filesystem::path& folder);

}  // namespace canopy
