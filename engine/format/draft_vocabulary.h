#pragma once
// The part of the vocabulary that a drafter's head is over: the ids of its tokens, as files hold them.
//
//   draft_token_ids   ids in the metadata (GGUF "dflash.draft_token_ids", dflash_config of config.json). The head's
//   rows
//                     are then the target's. Programs that do not know it draft with the target's whole head.
//   d2t               a tensor: in safetensors offsets, id = row + d2t[row], as EAGLE-3 drafters have it; in GGUF ids,
//                     as llama.cpp writes it. Beside it a head of these rows ("output"), else the target's rows.
//   a list            for a drafter that names none: a JSON file beside it, [0, 2, 13], draft_tokens_path().

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "engine/format/tensor_view.h"

namespace canopy {

/// Token ids that ascend, so that they are unique and the lower place has the lower id. `where` names their field in
/// messages, without an article; `vocab` 0: it is unknown. Throws bad_input where there are none or more than `vocab`,
/// and where one is outside the vocabulary or does not ascend.
std::vector<uint32_t> checked_draft_token_ids(std::string_view where, std::span<const int64_t> ids, uint32_t vocab);

/// What the elements of a d2t are.
enum class DraftMap { ids, offsets };

/// The ids of a d2t, I32 or I64 [n]. Throws bad_input for another type or rank, and as above.
std::vector<uint32_t> draft_token_ids_of(const TensorView& d2t, DraftMap elements, uint32_t vocab);

/// The ids in a JSON file, a list of them, as they stand there. Throws bad_input naming the file where it is none.
std::vector<uint32_t> read_draft_token_list(const std::filesystem::path& path);

/// Where a list for a drafter is looked for: draft_tokens.json in its folder, "name.gguf.draft_tokens.json" beside a
/// file.
std::filesystem::path draft_tokens_path(const std::filesystem::path& drafter);

}  // namespace canopy
