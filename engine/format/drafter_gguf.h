#pragma once
// A drafter as one GGUF file in llama.cpp's dialect, whatever it was opened from.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/atomic_file.h"
#include "engine/format/drafter_file.h"
#include "engine/format/gguf.h"

namespace canopy {

struct DrafterGgufOptions {
  /// Of the matrices: q8_0, f16 or bf16. Norms are F32, and so is a matrix that no block fits into.
  TensorType type = TensorType::q8_0;
  std::string name = {};     // general.name; empty: that of the drafter
  std::string license = {};  // general.license, e.g. "apache-2.0"; empty: that of its GGUF file, if any
  std::string source = {};   // general.description: where the weights come from; empty: likewise
  /// The tokens that its head is to be over, ascending (draft_vocabulary.h); empty: as the drafter says.
  std::vector<uint32_t> draft_token_ids = {};
  /// Whose tokenizer.* entries are copied: the target's file. Null: those of the drafter's own GGUF file, if it is one.
  const GgufFile* tokenizer = nullptr;
};

/// The bytes of the file: read back, it gives the same config (but for the form of a llama3 rope scaling, which GGUF
/// stores as factors) and the weights in the type asked for. An embedding or head that the drafter brings is left out.
/// Throws bad_input where a value is not finite or too large for the type, the type is another one, or tokens are named
/// for a drafter whose own head is over others.
std::string drafter_gguf(const DrafterFile& drafter, const DrafterGgufOptions& options);
/// The same, part by part.
void write_drafter_gguf(const DrafterFile& drafter, const DrafterGgufOptions& options, const PutBytes& put);

}  // namespace canopy
