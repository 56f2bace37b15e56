#pragma once
// The instruction sets of the processor.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cpu/kernels.h"

namespace canopy::cpu {

/// An instruction set that kernels are built for.
struct InstructionSet {
  const Kernels* kernels = nullptr;
  std::string title;    // "AVX-512 VNNI"
  std::string missing;  // what the processor or the system lacks for it, "AVX-512 VNNI"; empty: it can be used
};
/// Those of this build, the slowest first; the first can always be used.
std::vector<InstructionSet> instruction_sets();

/// The set of that name ("avx2"), or for "auto" the fastest that can be used. Throws unavailable, saying what the
/// processor lacks and what it has.
InstructionSet choose_set(const std::string& name);

/// "AMD EPYC 7763 64-Core Processor"; "Processor" where the system does not tell.
std::string processor_name();

}  // namespace canopy::cpu
