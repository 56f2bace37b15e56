// The k largest logits of a row, in two steps. Step 1 cuts the row into blocks and keeps each block's winner. Winners are
// ordered as logits are: larger first, then lower id. Every logit of a block that is not among the k best winners is
// beaten by those k, so step 2 looks for the answer only in the k best blocks. That holds for any way to cut the row; here
// GROUP blocks interleave, so that neighbouring invocations read neighbouring words.
//
// A quad is four consecutive logits. Block b owns VECS quads: (b / GROUP) * GROUP * VECS + b % GROUP + GROUP * j.

// GROUP blocks (one workgroup of step 1) interleave. VECS and GROUP fix the order of the sum of exponentials.
const uint GROUP = 64u;
layout(constant_id = 1) const uint VECS = 8;

// What a logit x counts as: 0 x itself, 1 OUTER * x, 2 OUTER * tanh(INNER * x).
layout(constant_id = 4) const uint CAP = 0;
layout(constant_id = 5) const float INNER = 1.0;
layout(constant_id = 6) const float OUTER = 1.0;

// Integers in the order of the logits: 0 no logit at all, 1 a NaN, else a number. -0 counts as 0.
const uint KEY_NONE = 0u;
const uint KEY_NAN = 1u;
const uint KEY_INFINITY = 0xFF800000u;  // the largest of all

#include "exponentials.glsl"

// Bits of what a logit counts as; a NaN stays one.
uint capped(uint bits) {
  if (CAP == 0u || (bits & 0x7FFFFFFFu) > 0x7F800000u) return bits;
  float x = uintBitsToFloat(bits);
  if (CAP == 2u) {
    precise float inner = INNER * x;
    x = tanh_of(inner);
  }
  precise float y = OUTER * x;
  return floatBitsToUint(y);
}

uint key_of(uint bits) {
  uint magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return KEY_NAN;
  if (magnitude == 0u) return 0x80000000u;
  return magnitude == bits ? bits | 0x80000000u : ~bits;
}

// The logit of a key; that of KEY_NONE and KEY_NAN is -inf.
float logit_of(uint key) {
  if (key <= KEY_NAN) return uintBitsToFloat(0xFF800000u);
  return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7FFFFFFFu : ~key);
}

uint block_quad(uint block, uint j) { return (block / GROUP) * (GROUP * VECS) + block % GROUP + GROUP * j; }

#if QUAD_LOADS
layout(set = 0, binding = 0) readonly buffer Logits { uvec4 logits[]; };  // [rows, vocab / 4]
uvec4 load_quad(uint row, uint quad, uint vocab) {
  return logits[row * (vocab / 4u) + min(quad, vocab / 4u - 1u)];
}
#else
layout(set = 0, binding = 0) readonly buffer Logits { uint logits[]; };  // [rows, vocab]
uvec4 load_quad(uint row, uint quad, uint vocab) {
  uint at = row * vocab;
  uint last = vocab - 1u;
  return uvec4(logits[at + min(4u * quad, last)], logits[at + min(4u * quad + 1u, last)],
               logits[at + min(4u * quad + 2u, last)], logits[at + min(4u * quad + 3u, last)]);
}
#endif

// Keys of a loaded quad; elements beyond the vocabulary get KEY_NONE.
uvec4 quad_keys(uvec4 bits, uint quad, uint vocab) {
  uvec4 keys;
  [[unroll]] for (uint e = 0u; e < 4u; ++e) keys[e] = 4u * quad + e < vocab ? key_of(capped(bits[e])) : KEY_NONE;
  return keys;
}
