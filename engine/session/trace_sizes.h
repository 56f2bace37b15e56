#pragma once
// What a trace says of the sizes of its models, so that the time of their passes can be predicted elsewhere.

#include "engine/format/drafter_file.h"
#include "engine/format/model_file.h"
#include "engine/format/quantize_on_load.h"
#include "engine/trace/trace_records.h"

namespace canopy {

/// quantized: what wide weights became while loading.
TraceSizes sizes_of(const ModelFile& file, QuantizeOnLoad quantized);
/// drafted_tokens: that its head is over.
TraceSizes sizes_of(const DrafterFile& file, uint32_t drafted_tokens);

}  // namespace canopy
