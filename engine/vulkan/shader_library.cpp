#include "engine/vulkan/shader_library.h"

#include <algorithm>
#include <string>

#include "engine/base/damage_hash.h"
#include "engine/base/error.h"

namespace canopy::vk {
namespace {

const ShaderCode* lookup(std::span<const ShaderCode> table, std::string_view name) {
  const auto found = std::lower_bound(table.begin(), table.end(), name,
                                      [](const ShaderCode& code, std::string_view key) { return code.name < key; });
  return found != table.end() && found->name == name ? &*found : nullptr;
}

// Names that begin like the one asked for, up to its first underscore: usually the other variants.
std::string similar_names(std::span<const ShaderCode> table, std::string_view name) {
  const std::string_view stem = name.substr(0, name.find('_'));
  std::string names;
  for (const ShaderCode& code : table) {
    if (code.name.starts_with(stem)) {
      names += (names.empty() ? "" : ", ") + std::string(code.name);
    }
  }
  return names;
}

}  // namespace

std::vector<ShaderCode> merge_shaders(std::initializer_list<std::span<const ShaderCode>> files) {
  std::vector<ShaderCode> table;
  for (const std::span<const ShaderCode> file : files) {
    table.insert(table.end(), file.begin(), file.end());
  }
  std::sort(table.begin(), table.end(), [](const ShaderCode& a, const ShaderCode& b) { return a.name < b.name; });
  const auto twin = std::adjacent_find(table.begin(), table.end(),
                                       [](const ShaderCode& a, const ShaderCode& b) { return a.name == b.name; });
  if (twin != table.end()) {
    throw bad_input("Two shaders are called \"" + std::string(twin->name) + "\".");
  }
  return table;
}

const ShaderCode& find_shader(std::span<const ShaderCode> table, std::string_view name) {
  if (const ShaderCode* code = lookup(table, name)) {
    return *code;
  }
  const std::string similar = similar_names(table, name);
  throw bad_input("There is no shader \"" + std::string(name) + "\" among the " + std::to_string(table.size()) +
                  " in this build" + (similar.empty() ? "." : "; similar ones are " + similar + "."));
}

bool has_shader(std::string_view name) {
  return lookup(engine_shaders(), name) != nullptr;
}

std::string shaders_hash(std::initializer_list<std::string_view> prefixes) {
  std::string hashes;
  for (const ShaderCode& code : engine_shaders()) {
    const bool wanted = std::any_of(prefixes.begin(), prefixes.end(),
                                    [&](std::string_view prefix) { return code.name.starts_with(prefix); });
    if (wanted) hashes += damage_hash_text({reinterpret_cast<const char*>(code.words.data()), code.words.size_bytes()});
  }
  return damage_hash_text(hashes);
}

}  // namespace canopy::vk
