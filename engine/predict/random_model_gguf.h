#pragma once
// A model of a named shape as a GGUF file: what programs and machines without such a model can be measured with.

#include "engine/base/atomic_file.h"
#include "engine/predict/model_shapes.h"

namespace canopy::predict {

/// Writes the file of random_model(shape): random blocks of the types that such files have, and a SentencePiece
/// vocabulary of bytes and made-up words, so that chats and llama.cpp open it. What it writes makes no sense. Nothing
/// but a pattern of random blocks is held in memory.
void write_random_model(const NamedShape& shape, const PutBytes& put);

/// The same for random_drafter(shape), as a drafter of that model: of Q8_0 like most that are published as GGUF.
void write_random_drafter(const NamedShape& shape, const PutBytes& put);

}  // namespace canopy::predict
