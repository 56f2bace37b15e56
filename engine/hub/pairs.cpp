#include "engine/hub/pairs.h"

#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/hub/hub_files.h"

namespace canopy {
namespace {

constexpr uint64_t kMostPairBytes = uint64_t{1} << 20;
constexpr const char* kPairsFormat = "canopy-pairs-1";

uint64_t bytes_of(const JsonFields& fields, const char* field) {
  const nlohmann::json* value = fields.find(field);
  if (value == nullptr) return 0;
  if (!value->is_number_unsigned())
    throw bad_input("The field \"" + std::string(field) + "\" of " + fields.what() + " is " + printable(value->dump()) +
                    "; a number of bytes is allowed.");
  return value->get<uint64_t>();
}

PairHalf half_of(const JsonFields& pair, const char* field) {
  const nlohmann::json* object = pair.object(field);
  if (object == nullptr) throw bad_input(pair.what() + " lacks the field \"" + field + "\".");
  const JsonFields fields(*object, "\"" + std::string(field) + "\" of " + pair.what());
  PairHalf half{fields.text("name"), fields.text_or("repo", ""), fields.text_or("gguf", ""),
                fields.text_or("licence", ""), bytes_of(fields, "bytes")};
  for (const auto& [name, repo] : {std::pair("repo", half.repo), std::pair("gguf", half.gguf)})
    if (const auto parsed = parse_hub_name(repo); !repo.empty() && (!parsed || !parsed->choice.empty()))
      throw bad_input("The field \"" + std::string(name) + "\" of " + fields.what() + " is " + quoted_name(repo) +
                      "; OWNER/REPO is allowed.");
  return half;
}

/// The name of a model without what tells only how its weights are stored.
std::string model_part(std::string_view repo) {
  std::string name = ascii_lower(repo.substr(repo.find('/') + 1));
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string_view ending : {"-gguf", "-awq", "-gptq", "-fp8", "-bf16", "_gguf", "-unsloth", "-i1"}) {
      if (!name.ends_with(ending)) continue;
      name.resize(name.size() - ending.size());
      changed = true;
    }
  }
  return name;
}

}  // namespace

std::vector<KnownPair> read_pairs(const std::filesystem::path& path) {
  return with_context(path.filename().string(), [&] {
    const nlohmann::json root = parse_json(read_small_file(path, kMostPairBytes), "the list of pairs");
    const JsonFields fields(root, "the list of pairs");
    if (fields.text("format") != kPairsFormat)
      throw bad_input("The field \"format\" is " + quoted_name(fields.text("format")) + "; " + kPairsFormat +
                      " is allowed.");
    std::vector<KnownPair> pairs;
    const nlohmann::json& list = fields.list("pairs");
    for (size_t i = 0; i < list.size(); ++i) {
      const JsonFields each(list[i], "pair " + std::to_string(i));
      KnownPair pair;
      pair.target = half_of(each, "target");
      pair.drafter = half_of(each, "drafter");
      pair.kind = each.text("kind");
      pair.note = each.text_or("note", "");
      pair.source = each.text("source");
      pair.memory = bytes_of(each, "memory");
      pair.tried = each.text_or("tried", "");
      pairs.push_back(std::move(pair));
    }
    return pairs;
  });
}

std::vector<KnownPair> known_pairs() {
  const auto path = find_asset("pairs.json");
  return path ? read_pairs(*path) : std::vector<KnownPair>();
}

std::vector<KnownPair> pairs_for(const std::vector<KnownPair>& pairs, std::string_view repo) {
  const std::string wanted = model_part(repo);
  std::vector<KnownPair> found;
  for (const KnownPair& pair : pairs)
    if (wanted == ascii_lower(pair.target.name) ||
        (!pair.target.repo.empty() && wanted == model_part(pair.target.repo)))
      found.push_back(pair);
  return found;
}

}  // namespace canopy
