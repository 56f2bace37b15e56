#include "engine/hub/hub_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <regex>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/text.h"
#include "engine/format/gguf.h"

namespace canopy {
namespace {

constexpr size_t kMostNamePart = 96;     // letters of an owner or a repository, as the hub has it
constexpr size_t kMostPathBytes = 1024;  // of a file in a repository
constexpr std::string_view kFolderLabel = "safetensors";
constexpr std::string_view kUsualQuantization = "Q4_K_M";

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool has_ending(std::string_view path, std::string_view ending) {
  return path.size() >= ending.size() && ascii_upper(path.substr(path.size() - ending.size())) == ascii_upper(ending);
}

bool is_name_part(std::string_view text) {
  return !text.empty() && text.size() <= kMostNamePart && text.front() != '.' && text.front() != '-' &&
         text.back() != '.' && text.find("..") == std::string_view::npos && text.find("--") == std::string_view::npos &&
         std::ranges::all_of(text,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; });
}

/// Whether a folder of a model is made of this: weights, configuration and tokenizer, at the top of the repository.
bool is_of_a_folder(std::string_view path) {
  if (path.find('/') != std::string_view::npos) return false;
  static constexpr std::string_view endings[] = {".safetensors", ".json", ".jinja", ".model"};
  return path == "merges.txt" || path == "vocab.txt" ||
         std::ranges::any_of(endings, [&](std::string_view ending) { return path.ends_with(ending); });
}

std::optional<HubVariant> folder_variant(std::span<const HubFile> files) {
  HubVariant folder;
  folder.label = kFolderLabel;
  bool has_config = false, has_weights = false, has_model_files = false;
  for (const HubFile& file : files) {
    if (!is_of_a_folder(file.path)) continue;
    has_config |= file.path == "config.json";
    has_weights |= file.path.ends_with(".safetensors");
    has_model_files |= file.path.starts_with("model") && file.path.ends_with(".safetensors");
    folder.files.push_back(file);
  }
  if (!has_config || !has_weights) return std::nullopt;
  // The same weights once more, under the names of who trained them.
  if (has_model_files)
    std::erase_if(folder.files, [](const HubFile& file) { return file.path.starts_with("consolidated"); });
  return folder;
}

/// The parts that the name of one says there are; of a file that is no part, itself.
HubVariant gguf_variant(const std::vector<HubFile>& files) {
  HubVariant variant;
  variant.files = files;
  std::ranges::sort(variant.files, {}, &HubFile::path);
  variant.first = variant.files.front().path;
  variant.label = quantization_in(variant.first);
  if (variant.label.empty()) variant.label = last_part(variant.first);
  if (const auto part = gguf_part_name(last_part(variant.first))) {
    for (size_t n = 0; n < part->count; ++n) {
      const auto here = n < variant.files.size() ? gguf_part_name(last_part(variant.files[n].path)) : std::nullopt;
      if (here && here->number == n + 1) continue;
      variant.missing = "part " + std::to_string(n + 1) + " of " + std::to_string(part->count);
      break;
    }
  }
  return variant;
}

bool is_half_or_wider(const HubVariant& variant) {
  static constexpr std::string_view wide[] = {"F32", "F16", "FP16", "BF16"};
  return std::ranges::find(wide, variant.label) != std::end(wide);
}

using Matches = std::vector<const HubVariant*>;

template <class Test>
Matches matching(const HubVariants& variants, Test test) {
  Matches found;
  for (const HubVariant& variant : variants.models)
    if (test(variant)) found.push_back(&variant);
  return found;
}

/// Whether `word` stands in the name of the file between letters that are no part of a word.
bool stands_in(std::string_view path, std::string_view word) {
  const std::string name = ascii_upper(path), wanted = ascii_upper(word);
  const auto is_edge = [&](size_t at) {
    return at >= name.size() || std::isalnum(static_cast<unsigned char>(name[at])) == 0;
  };
  for (size_t at = name.find(wanted); at != std::string::npos; at = name.find(wanted, at + 1))
    if ((at == 0 || is_edge(at - 1)) && is_edge(at + wanted.size())) return true;
  return false;
}

Matches named(const std::string& choice, const HubVariants& variants) {
  const auto has_file = [](const HubVariant& variant, auto test) {
    return std::ranges::any_of(variant.files, [&](const HubFile& file) { return test(file.path); });
  };
  const std::string capitals = ascii_upper(choice);
  const auto is_quantization = [&](const HubVariant& v) { return ascii_upper(v.label) == capitals; };
  if (Matches found = matching(variants, is_quantization); !found.empty()) return found;
  const auto is_file = [&](const std::string& path) {
    return ascii_upper(path) == capitals || ascii_upper(last_part(path)) == capitals;
  };
  Matches found = matching(variants, [&](const HubVariant& v) { return !v.is_folder() && has_file(v, is_file); });
  if (!found.empty()) return found;
  return matching(variants, [&](const HubVariant& v) { return !v.is_folder() && stands_in(v.first, choice); });
}

[[noreturn]] void refuse_choice(const std::string& why, const HubVariants& variants) {
  throw bad_input(why + " There are:\n" + variant_list(variants) + "Name one behind a colon.");
}

}  // namespace

std::optional<HubName> parse_hub_name(std::string_view text) {
  HubName name;
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    name.choice = text.substr(colon + 1);
    if (name.choice.empty()) return std::nullopt;
    text = text.substr(0, colon);
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || !is_name_part(text.substr(0, slash)) || !is_name_part(text.substr(slash + 1)))
    return std::nullopt;
  name.repo = text;
  return name;
}

void check_hub_path(std::string_view path) {
  const auto refuse = [&](const std::string& why) {
    throw bad_input("The repository has a file of the name " + quoted_name(path) + ": " + why +
                    ". Nothing is fetched of it.");
  };
  if (path.empty() || path.size() > kMostPathBytes)
    refuse("it has " + std::to_string(path.size()) + " bytes; allowed are 1 to " + std::to_string(kMostPathBytes));
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127 || c == '\\' || c == ':') refuse("it has a character that no file name may have");
  }
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") refuse("it leads out of its folder");
    at = end + 1;
  }
}

uint64_t HubVariant::bytes() const {
  uint64_t sum = 0;
  for (const HubFile& file : files) sum += file.bytes;
  return sum;
}

std::string quantization_in(std::string_view path) {
  static const std::regex pattern(
      "(UD-)?(I?Q[1-8](_[0-9])*(_(K|NL|XXS|XS|S|M|L|XL))*|TQ[12]_0|MXFP4(_MOE)?|NVFP4|BF16|FP16|F16|F32)",
      std::regex::icase | std::regex::ECMAScript);
  const std::string text(path);
  std::string found;
  const auto is_edge = [&](std::ptrdiff_t at) {
    return at < 0 || at >= static_cast<std::ptrdiff_t>(text.size()) ||
           std::isalnum(static_cast<unsigned char>(text[static_cast<size_t>(at)])) == 0;
  };
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    if (is_edge(it->position() - 1) && is_edge(it->position() + it->length())) found = it->str();
  }
  return ascii_upper(found);
}

HubVariants hub_variants(std::span<const HubFile> files) {
  HubVariants variants;
  std::map<std::string, std::vector<HubFile>> models;  // by the path, without the number of a part
  for (const HubFile& file : files) {
    if (!has_ending(file.path, ".gguf")) continue;
    const std::string name = ascii_upper(last_part(file.path));
    if (name.starts_with("MMPROJ") || name.find("IMATRIX") != std::string::npos) {
      variants.left_out.push_back(file);
    } else if (name.starts_with("MTP-")) {
      variants.heads.push_back(file);
    } else {
      const auto part = gguf_part_name(last_part(file.path));
      const std::string folder = file.path.substr(0, file.path.size() - last_part(file.path).size());
      models[part ? folder + part->stem + "/" + std::to_string(part->count) : file.path].push_back(file);
    }
  }
  for (const auto& [key, group] : models) variants.models.push_back(gguf_variant(group));
  std::ranges::sort(variants.models, [](const HubVariant& a, const HubVariant& b) {
    return std::pair(a.bytes(), a.first) < std::pair(b.bytes(), b.first);
  });
  if (auto folder = folder_variant(files)) variants.models.push_back(*std::move(folder));
  return variants;
}

std::string variant_list(const HubVariants& variants, const HubFit* fit) {
  size_t widest = 0;
  const auto shown_name = [&](const HubVariant& variant) {
    const bool twice = std::ranges::count(variants.models, variant.label, &HubVariant::label) > 1;
    return printable(twice && !variant.is_folder() ? variant.first : variant.label);
  };
  for (const HubVariant& variant : variants.models) widest = std::max(widest, shown_name(variant).size());
  std::string lines;
  for (const HubVariant& variant : variants.models) {
    std::string name = shown_name(variant);
    name.resize(widest, ' ');
    lines += "  " + name + "  " + byte_figures(variant.bytes());
    if (!variant.missing.empty()) {
      lines += ", without " + variant.missing;
    } else if (fit != nullptr) {
      lines += (fit->fits(variant) ? ", fits: takes " : ", too large: takes ") +
               byte_figures(fit->needed(variant.bytes())) + " of memory";
    }
    lines += "\n";
  }
  return lines;
}

HubChoice choose_variant(const HubName& name, const HubVariants& variants, const HubFit* fit) {
  if (!name.choice.empty()) {
    const std::string capitals = ascii_upper(name.choice);
    for (const HubFile& head : variants.heads) {  // beside a model, so that they are meant by their name alone
      if (ascii_upper(head.path) != capitals && ascii_upper(last_part(head.path)) != capitals) continue;
      return {{std::string(last_part(head.path)), head.path, {head}, ""}, ""};
    }
    const Matches found = named(name.choice, variants);
    if (found.size() == 1) {
      if (!found[0]->missing.empty())
        throw bad_input(name.text() + " is not whole: " + found[0]->missing + " is not there.");
      return {*found[0], ""};
    }
    refuse_choice(found.empty() ? name.repo + " has nothing of the name " + quoted_name(name.choice) + "."
                                : quoted_name(name.choice) + " names several files of " + name.repo + ".",
                  variants);
  }
  Matches whole = matching(variants, [](const HubVariant& v) { return v.missing.empty(); });
  if (whole.empty())
    throw bad_input(name.repo +
                    " has no model that can be read: neither a whole GGUF file nor a folder with config.json and "
                    "safetensors at its top.");
  if (whole.size() == 1) return {*whole[0], ""};
  const auto is_folder = [](const HubVariant* v) { return v->is_folder(); };
  std::erase_if(whole, is_folder);  // beside GGUF files it is the same model, larger
  if (whole.size() == 1)
    return {*whole[0], "The GGUF file is taken; " + std::string(kFolderLabel) + " names the folder."};
  if (fit != nullptr) {
    Matches tried = whole;
    if (!std::ranges::all_of(tried, [](const HubVariant* v) { return is_half_or_wider(*v); }))
      std::erase_if(tried, [](const HubVariant* v) { return is_half_or_wider(*v); });
    std::ranges::stable_sort(tried, std::ranges::greater{}, [](const HubVariant* v) { return v->bytes(); });
    const auto best = std::ranges::find_if(tried, [&](const HubVariant* v) { return fit->fits(*v); });
    if (best != tried.end()) {
      if (std::ranges::count(tried, (*best)->label, &HubVariant::label) > 1)
        refuse_choice(name.repo + " has several models.", variants);
      return {**best, (*best)->label + " is the largest up to 8 bits that fits " + fit->device + ": it takes " +
                          byte_figures(fit->needed((*best)->bytes())) + " of " + byte_figures(fit->available) + "."};
    }
    throw out_of_memory("No quantization of " + name.repo + " fits " + fit->device + ", which has " +
                        byte_figures(fit->available) + ":\n" + variant_list(variants, fit) +
                        "Name one behind a colon to fetch it all the same.");
  }
  Matches usual;
  for (const HubVariant* v : whole)
    if (v->label == kUsualQuantization) usual.push_back(v);
  if (usual.size() == 1)
    return {*usual[0], std::string(kUsualQuantization) +
                           " is taken, 4 to 5 bits a weight, as what fits this device could not be told."};
  refuse_choice(name.repo + " has " + std::to_string(whole.size()) + " models" +
                    (usual.empty() ? ", none of them " + std::string(kUsualQuantization) : "") + ".",
                variants);
}

}  // namespace canopy
