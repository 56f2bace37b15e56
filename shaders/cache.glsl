// Reading and rounding the elements of a K/V cache. CACHE: 0 f32, 1 f16 (two to a word).

// f32 bits to f16 bits, round to nearest even; packHalf2x16 may round either way.
uint to_half(float value) {
  uint bits = floatBitsToUint(value);
  uint sign = (bits >> 16) & 0x8000u;
  uint magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;
  if (magnitude < 0x33000001u) return sign;  // at most half of the smallest subnormal
  if (magnitude < 0x38800000u) {             // subnormal result
    uint shift = 126u - (magnitude >> 23);   // 14 ... 24
    uint mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    uint kept = mantissa >> shift;
    uint rest = mantissa & ((1u << shift) - 1u);
    uint half_way = 1u << (shift - 1u);
    if (rest > half_way || (rest == half_way && (kept & 1u) != 0u)) ++kept;
    return sign | kept;
  }
  uint rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return sign | ((rounded - 0x38000000u) >> 13);
}

uint pack_halves(float low, float high) { return to_half(low) | (to_half(high) << 16); }
