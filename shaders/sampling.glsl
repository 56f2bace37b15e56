// The arithmetic by which a token is drawn: engine/compute/sampling.h, function by function. Both give the
// same bits; what the functions mean and how exact they are is said there.

// SamplingWords and the structs behind it in engine/compute/sampling.h.
struct SamplingWords {
  float inverse_temperature;
  uint top_k;
  uint top_p;
  uint farthest;
  uint seed[2];
  uint turn[2];
  uint position;
  float repetition;
  float inverse_repetition;
  float presence;
  float frequency;
  uint adjustments;
  uint unused[2];
};
struct TokenAdjustment {
  uint token;
  uint count;
  float bias;
};
struct SampledRow {
  uint token;
  uint parent;
};

const uint NO_TOKEN = 0xFFFFFFFFu;
const uint NAT = 1u << 24;
const uint FARTHEST = 64u * NAT;
const uint LN2 = 0xB17217F8u;
const uint LOG2E = 0xB8AA3B29u;
const uint MINUS_INFINITY = 0xFF800000u;

uint settled(uint bits) { return (bits & 0x7F800000u) <= 0x00800000u ? 0u : bits; }
float settled(float x) { return uintBitsToFloat(settled(floatBitsToUint(x))); }
bool is_finite(uint bits) { return (bits & 0x7F800000u) != 0x7F800000u; }

// Of the bits of a logit, and its bits again.
uint adjusted_logit(uint logit, float bias, uint count, SamplingWords s) {
  if (!is_finite(logit)) return logit;
  precise float biased = uintBitsToFloat(settled(logit)) + bias;
  float x = settled(biased);
  if (count == 0u) return floatBitsToUint(x);
  precise float scaled = x * (x > 0.0 ? s.inverse_repetition : s.repetition);
  precise float product = s.frequency * float(count);
  precise float penalty = s.presence + settled(product);
  precise float result = settled(scaled) - settled(penalty);
  return settled(floatBitsToUint(result));
}

uint distance_between(float best, float logit, float inverse_temperature) {
  precise float below = best - logit;
  precise float nats = below * inverse_temperature;
  precise float units = nats * 16777216.0;
  return nats < 64.0 ? uint(units) : FARTHEST;
}

uint high_product(uint a, uint b) {
  uint high, low;
  umulExtended(a, b, high, low);
  return high;
}
int high_product(int a, int b) {
  int high, low;
  imulExtended(a, b, high, low);
  return high;
}

uint log2_fraction(uint x) {
  int g = int((x << 1) ^ 0x80000000u);
  int sum = 2184349;
  sum = high_product(sum, g) - 3588325;
  sum = high_product(sum, g) + 4311294;
  sum = high_product(sum, g) - 7286427;
  sum = high_product(sum, g) + 12974134;
  sum = high_product(sum, g) - 22701861;
  sum = high_product(sum, g) + 40797553;
  sum = high_product(sum, g) - 76495748;
  sum = high_product(sum, g) + 152995782;
  sum = high_product(sum, g) - 344240491;
  sum = high_product(sum, g) + 1032721336;
  sum = high_product(sum, g) + 628098703;
  return uint(max(sum, 0));
}

uint weight_at(uint far) {
  if (far >= 22u * NAT) return 0u;
  uint exponent = high_product(far << 3, LOG2E);
  int g = int((exponent << 6) ^ 0x80000000u);
  int sum = 117391;
  sum = high_product(sum, g) - 1017428;
  sum = high_product(sum, g) + 7302511;
  sum = high_product(sum, g) - 42140866;
  sum = high_product(sum, g) + 182392007;
  sum = high_product(sum, g) - 526272103;
  sum = high_product(sum, g) + 759250125;
  return uint(sum) << 1 >> (exponent >> 26);
}

uint leading_zeros(uint x) { return uint(31 - findMSB(x)); }

// Uniform numbers are uvec2(high, low).
uvec2 uniform_of(uint first, uint second) { return uvec2(first >> 11, first << 21 | second >> 12 << 1 | 1u); }

uint bit_count(uvec2 u) { return u.x != 0u ? 64u - leading_zeros(u.x) : 32u - leading_zeros(u.y); }

uint leading_bits(uvec2 u) {
  uint zeros = leading_zeros(u.x);
  if (zeros == 32u) return u.y << leading_zeros(u.y);
  return u.x << zeros | u.y >> (32u - zeros);
}

int noise_at_most(uint bits) { return int(high_product((54u - bits) << 26, LN2) >> 2) + 16; }

int gumbel_noise(uvec2 u) {
  uint bits = bit_count(u);
  uint mantissa;
  int exponent;
  if (bits < 50u) {
    uint x = u.x << 11 | u.y >> 21;
    uint rest = high_product(613566757u, x);
    rest = high_product(715827883u + rest, x);
    rest = high_product(858993459u + rest, x);
    rest = high_product(1073741824u + rest, x);
    rest = high_product(1431655765u + rest, x);
    rest = high_product(2147483648u + rest, x);
    mantissa = high_product(leading_bits(u), 0x80000000u + (rest >> 1));
    exponent = int(bits) - 53;
  } else {
    uvec2 left = uvec2(0x1FFFFFu - u.x, 0u - u.y);
    uint left_bits = bit_count(left);
    uint shift = left_bits >= 52u ? 30u : 26u;
    uint log2 = ((54u - left_bits) << shift) - (log2_fraction(leading_bits(left)) >> (30u - shift));
    mantissa = high_product(log2, LN2);
    exponent = 31 - int(shift);
  }
  uint zeros = leading_zeros(mantissa);
  exponent -= int(zeros);
  uint log2 = (uint(6 - exponent) << 26) - (log2_fraction(mantissa << zeros) >> 4);
  return int(high_product(log2, LN2) >> 2) - 69774480;
}

// Philox4x32-10: engine/compute/sampling.h.
uvec4 philox(uvec4 c, uvec2 k) {
  for (int round = 0; round < 10; ++round) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, c.x, high0, low0);
    umulExtended(0xCD9E8D57u, c.z, high1, low1);
    c = uvec4(high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0);
    k += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
