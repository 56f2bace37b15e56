#pragma once
// The codebooks of IQ1_S to IQ3_S: the groups of 8 or 4 magnitudes that these formats can express, each written as one
// number. They were chosen when the formats were made (by ggml, from statistics of weights), so they are data: no
// formula gives them.
//
// A code holds the level of element i in bits 2 i and 2 i + 1 (groups of 8) or in bits 3 i to 3 i + 2 (groups of 4).
// Codes ascend within a codebook, and a block stores the index of its code.

#include <array>
#include <cstdint>

namespace canopy {

extern const std::array<uint16_t, 256> iq2_xxs_codes;  // groups of 8, levels 0 to 2
extern const std::array<uint16_t, 512> iq2_xs_codes;   // groups of 8, levels 0 to 2
extern const std::array<uint16_t, 1024> iq2_s_codes;   // groups of 8, levels 0 to 2
extern const std::array<uint16_t, 256> iq3_xxs_codes;  // groups of 4, levels 0 to 7
extern const std::array<uint16_t, 512> iq3_s_codes;    // groups of 4, levels 0 to 7
extern const std::array<uint16_t, 2048> iq1_codes;     // groups of 8, levels 0 to 2; IQ1_S and IQ1_M

}  // namespace canopy
