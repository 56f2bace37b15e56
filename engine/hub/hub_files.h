#pragma once
// The files of a repository on a hub, grouped to what people choose from: a model at one quantization, or a folder.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

/// "OWNER/REPO", "OWNER/REPO:Q4_K_M" or "OWNER/REPO:path/of/file.gguf", as `canopy-cli get` and --model take it.
struct HubName {
  std::string repo;    // "Qwen/Qwen3-4B-GGUF"
  std::string choice;  // a quantization or a file; empty: none was named
  std::string text() const { return choice.empty() ? repo : repo + ":" + choice; }
};

/// Nothing where the text is no such name. A path of two parts looks like one.
std::optional<HubName> parse_hub_name(std::string_view text);

struct HubFile {
  std::string path;  // in the repository, with slashes
  uint64_t bytes = 0;
  std::string digest;  // hexadecimal: SHA-256 of a large file, Git's SHA-1 of a small one; empty: not known
  bool operator==(const HubFile&) const = default;
};

/// Throws bad_input where a path could lead out of the folder that it is meant for, or is none on some system: "..", an
/// absolute one, an empty part, a backslash, a colon, a control character.
void check_hub_path(std::string_view path);

/// What is fetched or opened as one model.
struct HubVariant {
  std::string label;  // "Q4_K_M"; "safetensors" of a folder; the name of the file where it names no quantization
  std::string first;  // the file to open; empty of a folder: config.json stands for it
  std::vector<HubFile> files;
  std::string missing;  // the part of a split file that is not there; else empty
  uint64_t bytes() const;
  bool is_folder() const { return first.empty(); }
};

struct HubVariants {
  std::vector<HubVariant> models;  // GGUF by size, then the folder of safetensors
  std::vector<HubFile> heads;      // mtp-*.gguf: for guesses, beside the model
  std::vector<HubFile> left_out;   // GGUF files that are no language model: mmproj of pictures, imatrix
};

/// Groups the files of one repository.
HubVariants hub_variants(std::span<const HubFile> files);

/// The quantization that a file name names, in capitals, "UD-Q4_K_XL"; empty where it names none.
std::string quantization_in(std::string_view path);

/// Bytes of device memory that a model whose weights have so many bytes takes, and what there is.
struct HubFit {
  uint64_t available = 0;
  std::function<uint64_t(uint64_t weight_bytes)> needed;
  std::string device;
  bool fits(const HubVariant& variant) const { return needed(variant.bytes()) <= available; }
};

struct HubChoice {
  HubVariant variant;
  std::string reason;  // why this one, as a sentence; empty where it was named or is the only one
};

/// The variant that was named: a file by its path or name, else a quantization, whatever its case, else a part of file
/// names. Without a name the only one; else with `fit` the largest of 8.5 bits a weight or less that fits the device,
/// else Q4_K_M. Throws bad_input, with the list of what there is, where none or several are meant.
HubChoice choose_variant(const HubName& name, const HubVariants& variants, const HubFit* fit = nullptr);

/// "  Q4_K_M   2.50 GB", a line for each.
std::string variant_list(const HubVariants& variants, const HubFit* fit = nullptr);

}  // namespace canopy
