#pragma once
// Registers of the instruction set that kernels.cpp is compiled for, and lanes of sixteen made of them. Only
// kernels.cpp includes this. Operators are the compiler's own on vectors, which round as the language says; only what
// it has no operator for is an instruction by name.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(CANOPY_CPU_NEON)
#include <arm_neon.h>
#endif

#define CANOPY_LANES inline __attribute__((always_inline))
// What is a loop over the lanes where no instruction does it: the portable kernels call it, as they would take minutes
// to compile with such loops inside of theirs.
#if defined(__AVX2__) || defined(CANOPY_CPU_NEON)
#define CANOPY_LANE_LOOP CANOPY_LANES
#else
#define CANOPY_LANE_LOOP [[maybe_unused]] __attribute__((noinline))
#endif

namespace canopy::cpu {
namespace {

#if defined(__AVX512F__)
constexpr uint32_t kWide = 16;  // floats of a register
#elif defined(__AVX2__)
constexpr uint32_t kWide = 8;
#else
constexpr uint32_t kWide = 4;
#endif

typedef float V __attribute__((vector_size(4 * kWide)));
typedef int32_t I __attribute__((vector_size(4 * kWide)));
typedef uint16_t U16 __attribute__((vector_size(4 * kWide)));
typedef int16_t S16 __attribute__((vector_size(4 * kWide)));

CANOPY_LANES V load(const float* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
CANOPY_LANES void store(float* to, V v) {
  std::memcpy(to, &v, sizeof v);
}
/// Holds a value in a register: GCC 12 would else load it again for each use, where a core has more multiply-adds to
/// start than loads.
CANOPY_LANES void hold(V& v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#elif defined(__AVX2__)
  asm("" : "+x"(v));
#elif defined(CANOPY_CPU_NEON)
  asm("" : "+w"(v));
#else
  (void)v;
#endif
}
CANOPY_LANES V all(float x) {
  return x - V{};
}
CANOPY_LANES I all(int32_t x) {
  return x - I{};
}

#if defined(_WIN32)
/// a * b + c, rounded once. MinGW's fmaf rounds twice, to a double first: here that one is rounded to odd, so that its
/// last bit says whether anything was left, and rounding it again gives what rounding once would have given.
CANOPY_LANES float rounded_fma(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;  // exact
  const double sum = product + c;
  const double rest = sum - product;
  const double left = (product - (sum - rest)) + (c - rest);  // exactly what the sum is short of
  auto bits = std::bit_cast<uint64_t>(sum);
  if (std::isfinite(sum) && left != 0 && (bits & 1) == 0) bits += (left > 0) == (sum > 0) ? 1 : -1;
  return static_cast<float>(std::bit_cast<double>(bits));
}
#else
CANOPY_LANES float rounded_fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
#endif

CANOPY_LANE_LOOP V fma(V a, V b, V c) {
#if defined(__AVX512F__)
  return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(CANOPY_CPU_NEON)
  return (V)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  V r;
  for (uint32_t i = 0; i < kWide; ++i) r[i] = rounded_fma(a[i], b[i], c[i]);
  return r;
#endif
}

/// Exact for whole numbers below 2^24, else to the nearest, ties to even.
CANOPY_LANES V to_float(I a) {
  return __builtin_convertvector(a, V);
}

/// In each 32-bit lane a sum of products of the two 16-bit numbers there. NEON, which multiplies half a register at a
/// time, keeps every product in a lane of its own until the sum is asked for.
#if defined(CANOPY_CPU_NEON)
struct PairSums {
  int32x4_t low, high;
};
#else
typedef I PairSums;
#endif

/// acc plus the products of the pairs of a and b.
CANOPY_LANES PairSums add_pairs(PairSums acc, S16 a, S16 b) {
#if defined(__AVX512F__)
  return (I)_mm512_dpwssd_epi32((__m512i)acc, (__m512i)a, (__m512i)b);
#elif defined(__AVXVNNI__)
  return (I)_mm256_dpwssd_avx_epi32((__m256i)acc, (__m256i)a, (__m256i)b);
#elif defined(__AVX2__)
  acc = acc + (I)_mm256_madd_epi16((__m256i)a, (__m256i)b);
  asm("" : "+x"(acc));  // GCC 12 would else gather the products in memory and add them later
  return acc;
#elif defined(__SSE2__)
  return acc + (I)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined(CANOPY_CPU_NEON)
  const int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
  return {vmlal_s16(acc.low, vget_low_s16(x), vget_low_s16(y)), vmlal_high_s16(acc.high, x, y)};
#else
  const I x = (I)a, y = (I)b;
  return acc + ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16);
#endif
}

CANOPY_LANES I sum_of_pairs(PairSums sums) {
#if defined(CANOPY_CPU_NEON)
  return (I)vpaddq_s32(sums.low, sums.high);
#else
  return sums;
#endif
}

CANOPY_LANES S16 pair_in_all(const int16_t* from) {
  int32_t pair;
  std::memcpy(&pair, from, sizeof pair);
  return (S16)all(pair);
}

CANOPY_LANES float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 0x1f, mantissa = half & 0x3ffu;
  uint32_t bits = sign | (exponent + 112) << 23 | mantissa << 13;
  if (exponent == 0x1f) bits = sign | 0x7f800000u | mantissa << 13;
  float value;
  if (exponent == 0) {
    value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

CANOPY_LANES uint16_t float_to_half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x33000000u) return static_cast<uint16_t>(sign);
  const uint32_t exponent = magnitude >> 23;
  const uint32_t shift = exponent >= 113 ? 13 : 13 + (113 - exponent);
  uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  mantissa = (mantissa + (1u << (shift - 1)) - 1 + (mantissa >> shift & 1u)) >> shift;
  return static_cast<uint16_t>(sign | ((exponent >= 113 ? (exponent - 113) << 10 : 0) + mantissa));
}

CANOPY_LANE_LOOP V load_halves(const uint16_t* from) {
#if defined(__AVX512F__)
  return (V)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(__F16C__)
  return (V)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#elif defined(CANOPY_CPU_NEON)
  return (V)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
#else
  V v;
  for (uint32_t i = 0; i < kWide; ++i) v[i] = half_to_float(from[i]);
  return v;
#endif
}

/// The upper halves of floats, as bf16 is.
CANOPY_LANES V load_upper_halves(const uint16_t* from) {
  typedef uint16_t Narrow __attribute__((vector_size(2 * kWide)));
  Narrow n;
  std::memcpy(&n, from, sizeof n);
  return (V)(__builtin_convertvector(n, I) << 16);
}

template <class Byte>
CANOPY_LANES V load_bytes(const uint8_t* from) {
  // GCC 12 would else convert bytes one by one.
#if defined(__AVX512F__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm512_cvtepi32_ps(Byte(-1) < 0 ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
#elif defined(__AVX2__)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return _mm256_cvtepi32_ps(Byte(-1) < 0 ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
#else
  typedef Byte Bytes __attribute__((vector_size(kWide)));
  Bytes b;
  std::memcpy(&b, from, sizeof b);
  return __builtin_convertvector(__builtin_convertvector(b, I), V);
#endif
}

CANOPY_LANE_LOOP void store_halves(uint16_t* to, V v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(CANOPY_CPU_NEON)
  vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v)));
#else
  for (uint32_t i = 0; i < kWide; ++i) to[i] = float_to_half(v[i]);
#endif
}

// ---- sixteen lanes ------------------------------------------------------------------------------------------------

constexpr uint32_t kParts = 16 / kWide;

struct F {
  V v[kParts];
};

template <class Make>
CANOPY_LANES F each(Make make) {
  F r;
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kParts; ++i) r.v[i] = make(i);
  return r;
}
CANOPY_LANES F load16(const float* from) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return load(from + kWide * i); });
}
CANOPY_LANES void store16(float* to, F a) {
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kParts; ++i) store(to + kWide * i, a.v[i]);
}
CANOPY_LANES F all16(float x) {
  return each([&](uint32_t) __attribute__((always_inline)) { return all(x); });
}
CANOPY_LANES F operator+(F a, F b) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return a.v[i] + b.v[i]; });
}
CANOPY_LANES F operator-(F a, F b) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return a.v[i] - b.v[i]; });
}
CANOPY_LANES F operator*(F a, F b) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return a.v[i] * b.v[i]; });
}
CANOPY_LANES F operator/(F a, F b) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return a.v[i] / b.v[i]; });
}
CANOPY_LANES F fma(F a, F b, F c) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return fma(a.v[i], b.v[i], c.v[i]); });
}
/// a where a > b, else b; b where either is a NaN.
CANOPY_LANES F larger(F a, F b) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
/// x, or `most` where it is more; a NaN stays one. At least likewise.
CANOPY_LANES F at_most(F x, float most) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return x.v[i] > all(most) ? all(most) : x.v[i]; });
}
CANOPY_LANES F at_least(F x, float least) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return x.v[i] < all(least) ? all(least) : x.v[i]; });
}
CANOPY_LANES F magnitude(F x) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return (V)((I)x.v[i] & all(0x7fffffff)); });
}
/// yes where a < b, else no.
CANOPY_LANES F where_less(F a, F b, F yes, F no) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return a.v[i] < b.v[i] ? yes.v[i] : no.v[i]; });
}
/// 1 where x is a NaN, else 0.
CANOPY_LANES F nan_marks(F x) {
  return each([&](uint32_t i) __attribute__((always_inline)) { return x.v[i] != x.v[i] ? all(1.0f) : all(0.0f); });
}
/// 0 ... 15.
CANOPY_LANES F lane_numbers() {
  constexpr float numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return load16(numbers);
}
/// To the nearest whole number, ties to even, of magnitudes below 2^22.
CANOPY_LANES F rounded(F x) {
  return (x + all16(0x1.8p23f)) - all16(0x1.8p23f);
}
/// 2^n of whole numbers from -126 to 127.
CANOPY_LANES F power_of_two(F n) {
  return each([&](uint32_t i)
                  __attribute__((always_inline)) { return (V)((__builtin_convertvector(n.v[i], I) + 127) << 23); });
}

typedef float V4 __attribute__((vector_size(16)));

/// All lanes by `join`: lanes i and i + 8, then + 4, + 2, + 1.
template <class Join>
CANOPY_LANES float joined_lanes(F a, Join join) {
  V4 quarters[4];
  std::memcpy(quarters, &a, sizeof quarters);
  const V4 four = join(join(quarters[0], quarters[2]), join(quarters[1], quarters[3]));
  return join(join(four[0], four[2]), join(four[1], four[3]));
}

CANOPY_LANES float sum_of(F a) {
  return joined_lanes(
      a, [](auto x, auto y) __attribute__((always_inline)) { return x + y; });
}
/// The largest, NaN left aside; -infinity where there is nothing else.
CANOPY_LANES float largest_of(F a) {
  return joined_lanes(
      larger(a, all16(-__builtin_inff())), [](auto x, auto y) __attribute__((always_inline)) { return x > y ? x : y; });
}

/// exp: 2^n times a polynomial in what is left of it (coefficients of Cephes' expf). Beyond what a float holds as a
/// normal number it stays at the bound.
CANOPY_LANES F exp16(F x) {
  x = at_least(at_most(x, 88.0f), -87.0f);
  const F n = rounded(x * all16(1.44269504f));
  F r = fma(n, all16(-0.693359375f), x);
  r = fma(n, all16(2.12194440e-4f), r);
  F p = all16(1.9875691500e-4f);
  p = fma(p, r, all16(1.3981999507e-3f));
  p = fma(p, r, all16(8.3334519073e-3f));
  p = fma(p, r, all16(4.1665795894e-2f));
  p = fma(p, r, all16(1.6666665459e-1f));
  p = fma(p, r, all16(5.0000001201e-1f));
  p = fma(p, r * r, r + all16(1.0f));
  return p * power_of_two(n);
}

/// tanh: an odd polynomial near 0 (Cephes' tanhf), beyond it by exp.
CANOPY_LANES F tanh16(F x) {
  const F z = x * x;
  F p = all16(-5.70498872745e-3f);
  p = fma(p, z, all16(2.06390887954e-2f));
  p = fma(p, z, all16(-5.37397155531e-2f));
  p = fma(p, z, all16(1.33314422036e-1f));
  p = fma(p, z, all16(-3.33332819422e-1f));
  const F near = fma(p * z, x, x);
  const F size = magnitude(x);
  const F far = all16(1.0f) - all16(2.0f) / (exp16(size + size) + all16(1.0f));
  const F signed_far = where_less(x, all16(0.0f), all16(0.0f) - far, far);
  return where_less(size, all16(0.625f), near, signed_far);
}

CANOPY_LANES F sigmoid16(F x) {
  return all16(1.0f) / (all16(1.0f) + exp16(all16(0.0f) - x));
}

}  // namespace
}  // namespace canopy::cpu
