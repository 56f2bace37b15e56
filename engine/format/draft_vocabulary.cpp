#include "engine/format/draft_vocabulary.h"

#include <limits>
#include <string>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/reader.h"
#include "engine/base/text_encoding.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

template <class T>
std::vector<int64_t> elements_of(const TensorView& tensor) {
  std::vector<int64_t> result;
  result.reserve(tensor.elements());
  Reader reader(tensor.bytes);
  for (uint64_t i = 0; i < tensor.elements(); ++i) result.push_back(reader.read<T>("an element"));
  return result;
}

}  // namespace

std::vector<uint32_t> checked_draft_token_ids(std::string_view where, std::span<const int64_t> ids, uint32_t vocab) {
  const int64_t end = vocab != 0 ? vocab : std::numeric_limits<int32_t>::max();
  const std::string what(where);
  const auto element = [&](size_t i) { return "Element " + std::to_string(i) + " of the " + what; };
  if (ids.empty() || ids.size() > static_cast<uint64_t>(end)) {
    throw bad_input("The " + what + " names " + std::to_string(ids.size()) + " tokens; 1 to " + std::to_string(end) +
                    " are allowed.");
  }
  std::vector<uint32_t> result;
  result.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= end) {
      throw bad_input(element(i) + " stands for token " + std::to_string(ids[i]) + "; 0 to " + std::to_string(end - 1) +
                      " is allowed.");
    }
    if (i > 0 && ids[i] <= ids[i - 1]) {
      throw bad_input(element(i) + " stands for token " + std::to_string(ids[i]) + ", the one before it for " +
                      std::to_string(ids[i - 1]) + "; tokens must ascend, each named once.");
    }
    result.push_back(static_cast<uint32_t>(ids[i]));
  }
  return result;
}

std::vector<uint32_t> draft_token_ids_of(const TensorView& d2t, DraftMap elements, uint32_t vocab) {
  const std::string where = "tensor " + quoted_name(d2t.shown_name());
  const bool is_long = d2t.type == TensorType::i64;
  if (d2t.rank != 1 || (!is_long && d2t.type != TensorType::i32)) {
    throw bad_input("The " + where + " is " + std::string(to_string(d2t.type)) + " of shape " + d2t.shape_text() +
                    "; I32 or I64 of one dimension is expected.");
  }
  std::vector<int64_t> ids = is_long ? elements_of<int64_t>(d2t) : elements_of<int32_t>(d2t);
  if (elements == DraftMap::offsets) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i < ids.size(); ++i) {
      // What is outside stays outside, whatever is added.
      if (ids[i] >= -most && ids[i] <= most) ids[i] += static_cast<int64_t>(i);
    }
  }
  return checked_draft_token_ids(where, ids, vocab);
}

std::vector<uint32_t> read_draft_token_list(const std::filesystem::path& path) {
  constexpr uint64_t most_bytes = 64ull << 20;
  return with_context(shown(path), [&] {
    const nlohmann::json root = parse_json(read_text_input(path, most_bytes), "The file");
    if (!root.is_array() || root.empty()) throw bad_input("A list of token ids is expected, [0, 2, 13].");
    const nlohmann::json object = {{"tokens", root}};
    return JsonFields(object, "the list").ids("tokens");
  });
}

std::filesystem::path draft_tokens_path(const std::filesystem::path& drafter) {
  constexpr const char* name = "draft_tokens.json";
  std::error_code ignored;
  if (std::filesystem::is_directory(drafter, ignored)) return drafter / name;
  std::filesystem::path beside = drafter;
  beside += std::string(".") + name;
  return beside;
}

}  // namespace canopy
