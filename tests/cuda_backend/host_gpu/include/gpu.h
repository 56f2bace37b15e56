#pragma once
// What kernels are written against, on the host: cuda_backend/kernels/nvcc/gpu.h says what each means.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "engine/base/numbers.h"
#include "tests/cuda_backend/host_gpu/block.h"
#include "tests/cuda_backend/host_gpu/host_kernels.h"
#include "tests/cuda_backend/host_gpu/host_memory.h"

#define CANOPY_DEVICE inline
#define CANOPY_CALLED static inline
#define CANOPY_UNROLL
#define CANOPY_NO_UNROLL
#define CANOPY_UNROLL_BY(count)
#define CANOPY_KERNEL(NAME, Params, THREADS)          \
  static inline void NAME##_body(const Params& p);    \
  CANOPY_STREAMING_KERNEL(NAME, Params, THREADS, 1) { \
    ::canopy::gpu::let_next_start();                  \
    ::canopy::gpu::wait_for_earlier();                \
    NAME##_body(p);                                   \
  }                                                   \
  static inline void NAME##_body([[maybe_unused]] const Params& p)
#define CANOPY_STREAMING_KERNEL(NAME, Params, THREADS, BLOCKS)      \
  static void NAME([[maybe_unused]] const Params& p);               \
  static const ::canopy::host_gpu::KernelEntry NAME##_entry{        \
      ::canopy::gpu::kArchitecture, #NAME, sizeof(Params), THREADS, \
      [](const void* p) { NAME(*static_cast<const Params*>(p)); }}; \
  static void NAME([[maybe_unused]] const Params& p)

namespace canopy::gpu {

inline uint32_t thread() {
  return host_gpu::place().thread;
}
inline uint32_t threads() {
  return host_gpu::place().threads;
}
inline uint32_t lane() {
  return thread() % 32;
}
inline uint32_t warp() {
  return thread() / 32;
}
inline uint32_t block_x() {
  return host_gpu::place().block.x;
}
inline uint32_t block_y() {
  return host_gpu::place().block.y;
}
inline uint32_t block_z() {
  return host_gpu::place().block.z;
}
inline uint32_t blocks_x() {
  return host_gpu::place().grid.x;
}
inline uint32_t blocks_y() {
  return host_gpu::place().grid.y;
}

/// An array of const T is read, one of T may be written too.
inline uint32_t blocks_z() {
  return host_gpu::place().grid.z;
}

template <class T>
T* element(uint64_t address, uint64_t index) {
  return static_cast<T*>(host_gpu::accessed(address + index * sizeof(T), sizeof(T), alignof(T), !std::is_const_v<T>));
}

struct alignas(16) FourWords {
  uint32_t words[4];
};
inline void load(uint64_t address, uint32_t (&words)[4]) {
  std::memcpy(words, element<const FourWords>(address, 0), sizeof(words));
}

template <class T>
class Shared {
 public:
  Shared(uint32_t first_byte, uint32_t count)
      : data_(host_gpu::shared_bytes(first_byte, count * static_cast<uint32_t>(sizeof(T)))), count_(count) {}
  T& operator[](uint32_t index) const {
    if (index >= count_) host_gpu::fail_index(index, count_);
    return reinterpret_cast<T*>(data_)[index];
  }

 private:
  std::byte* data_;
  uint32_t count_;
};

inline void let_next_start() {}
inline void wait_for_earlier() {
  host_gpu::wait_for_earlier_kernels();
}

inline void sync() {
  host_gpu::wait_for_block();
}
inline void sync_warp() {
  host_gpu::exchange({});
}
inline void fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline uint32_t atomic_add(uint32_t* to, uint32_t value) {
  return __atomic_fetch_add(to, value, __ATOMIC_SEQ_CST);
}
inline void atomic_or(uint32_t* to, uint32_t bits) {
  __atomic_fetch_or(to, bits, __ATOMIC_SEQ_CST);
}

inline void atomic_add(uint64_t* to, uint64_t value) {
  __atomic_fetch_add(to, value, __ATOMIC_SEQ_CST);
}

inline uint64_t shuffle(uint64_t value, uint32_t lane) {
  const auto lanes = host_gpu::exchange({{static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)}});
  return lanes[lane % 32].words[0] | uint64_t{lanes[lane % 32].words[1]} << 32;
}
inline uint32_t shuffle(uint32_t value, uint32_t lane) {
  return host_gpu::exchange({{value}})[lane % 32].words[0];
}
inline float shuffle(float value, uint32_t lane) {
  return std::bit_cast<float>(shuffle(std::bit_cast<uint32_t>(value), lane));
}
inline uint32_t shuffle_xor(uint32_t value, uint32_t mask) {
  return shuffle(value, lane() ^ mask);
}
inline uint64_t shuffle_xor(uint64_t value, uint32_t mask) {
  return shuffle(value, lane() ^ mask);
}
inline float shuffle_xor(float value, uint32_t mask) {
  return shuffle(value, lane() ^ mask);
}
inline uint32_t largest(uint32_t value) {
  const auto lanes = host_gpu::exchange({{value}});
  for (uint32_t l = 0; l < 32; ++l) value = lanes[l].words[0] > value ? lanes[l].words[0] : value;
  return value;
}
inline uint32_t ballot(bool value) {
  const auto all = host_gpu::exchange({{value}});
  uint32_t mask = 0;
  for (uint32_t i = 0; i < 32; ++i) mask |= all[i].words[0] << i;
  return mask;
}

inline uint32_t bits(float value) {
  return std::bit_cast<uint32_t>(value);
}
inline float from_bits(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

inline uint32_t ones(uint32_t bits) {
  return static_cast<uint32_t>(std::popcount(bits));
}
inline uint32_t rotate_right(uint32_t word, uint32_t bits) {
  return std::rotr(word, static_cast<int>(bits % 32));
}
inline uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) {
  return (a & b) | c;
}
inline uint32_t permute(uint32_t first, uint32_t second, uint32_t selector) {
  const uint64_t both = first | uint64_t{second} << 32;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(both >> ((selector >> (4 * i) & 7u) * 8) & 255u) << (8 * i);
  }
  return result;
}

inline void keep(uint32_t&) {}
inline void keep(uint64_t&) {}

constexpr bool kCopiesAside = true;
#ifdef CANOPY_HOST_ARCHITECTURE
constexpr int kArchitecture = CANOPY_HOST_ARCHITECTURE;
#else
constexpr int kArchitecture = host_gpu::kArchitecture;
#endif
inline uint64_t read_once() {
  return 0;
}
template <uint32_t OFFSET>
void copy_async(uint32_t to, uint64_t from, uint64_t) {
  host_gpu::copy_async(to + OFFSET, from + OFFSET);
}
inline void copy_async_or_zero(uint32_t to, uint64_t from, bool is_there) {
  host_gpu::copy_async(to, is_there ? from : 0);
}
inline void end_copy_group() {
  host_gpu::end_copy_group();
}
template <int PENDING>
void wait_for_copies() {
  host_gpu::wait_for_copies(PENDING);
}

/// Of each half.
extern const std::array<float, 65536> half_values;
inline float half_value(uint16_t bits) {
  return half_values[bits];
}
inline uint32_t pack_halves(float first, float second) {
  return f32_to_f16(first) | static_cast<uint32_t>(f32_to_f16(second)) << 16;
}
inline uint32_t lower_twice(uint32_t word) {
  return (word & 0xFFFFu) | word << 16;
}
inline uint32_t upper_twice(uint32_t word) {
  return word >> 16 | (word & 0xFFFF0000u);
}
inline uint32_t half2_add(uint32_t a, uint32_t b) {
  const auto one = [](uint32_t x, uint32_t y) {
    return half_value(static_cast<uint16_t>(x)) + half_value(static_cast<uint16_t>(y));
  };
  return pack_halves(one(a, b), one(a >> 16, b >> 16));
}
inline uint32_t half2_mul(uint32_t a, uint32_t b) {
  const auto one = [](uint32_t x, uint32_t y) {
    return half_value(static_cast<uint16_t>(x)) * half_value(static_cast<uint16_t>(y));
  };
  return pack_halves(one(a, b), one(a >> 16, b >> 16));
}
inline uint32_t half2_absolute(uint32_t word) {
  return word & 0x7FFF7FFFu;
}
inline uint32_t half2_max(uint32_t a, uint32_t b) {
  const auto one = [](uint32_t x, uint32_t y) {
    const auto first = static_cast<uint16_t>(x), second = static_cast<uint16_t>(y);
    return uint32_t{half_value(first) < half_value(second) ? second : first};
  };
  return one(a, b) | one(a >> 16, b >> 16) << 16;
}
/// In f32, whose fma is exact enough that rounding its result again rarely differs from rounding once; what matters to
/// a test is that it is the same everywhere.
inline uint32_t half2_fma(uint32_t a, uint32_t b, uint32_t c) {
  const auto one = [](uint32_t x, uint32_t y, uint32_t z) {
    return std::fma(half_value(static_cast<uint16_t>(x)), half_value(static_cast<uint16_t>(y)),
                    half_value(static_cast<uint16_t>(z)));
  };
  return pack_halves(one(a, b, c), one(a >> 16, b >> 16, c >> 16));
}

/// By definition: exact products, added in double precision.
void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

/// Sums of eight columns, added in double precision, are rounded each: a GPU does so at least once in sixteen.
void multiply_to_halves(uint32_t (&sums)[2], const uint32_t (&a)[4], const uint32_t (&b)[2]);

constexpr bool kHasWarpgroups = kArchitecture == host_gpu::kArchitecture;

inline uint32_t warpgroup_operand(uint32_t at, uint32_t apart) {
  if (at % 16 != 0 || apart % 16 != 0) host_gpu::fail("an operand of a warpgroup is not at a multiple of 16 bytes");
  return at / 16 | apart / 16 << 16;
}
inline void show_to_warpgroups() {
  host_gpu::show_to_warpgroups();
}
inline void begin_warpgroup_products() {
  host_gpu::begin_warpgroup_products();
}
inline void begin_warpgroup_product(float (&sums)[8][4], const uint32_t (&a)[4], uint32_t b) {
  host_gpu::begin_warpgroup_product(&sums[0][0], a, b);
}
inline void end_warpgroup_products() {
  host_gpu::end_warpgroup_products();
}
/// Of a warp's lanes, as multiply() does it.
void multiply_warp(std::span<const host_gpu::LaneWords, 32> given, std::span<host_gpu::LaneWords, 32> results);
template <int PENDING>
void wait_for_warpgroup_products() {
  host_gpu::wait_for_warpgroup_products(PENDING, multiply_warp);
}

template <bool TRANSPOSED>
void load_matrices(uint32_t at, uint32_t (&words)[4]) {
  const auto rows = host_gpu::exchange({{at}});
  const uint32_t g = lane() / 4, q = lane() % 4;
  const auto element = [&](uint32_t matrix, uint32_t row, uint32_t column) {
    const uint32_t begin = rows[8 * matrix + row].words[0];
    if (begin % 16 != 0) host_gpu::fail("a row of a matrix at byte " + std::to_string(begin) + ", no multiple of 16");
    return uint32_t{Shared<uint16_t>(begin + column * 2, 1)[0]};
  };
  for (uint32_t i = 0; i < 4; ++i) {
    words[i] = TRANSPOSED ? element(i, 2 * q, g) | element(i, 2 * q + 1, g) << 16
                          : element(i, g, 2 * q) | element(i, g, 2 * q + 1) << 16;
  }
}

inline uint32_t transpose(uint32_t word) {
  const auto all = host_gpu::exchange({{word}});
  const uint32_t g = lane() / 4, q = lane() % 4, shift = g % 2 * 16;
  const auto element = [&](uint32_t row) { return all[row * 4 + g / 2].words[0] >> shift & 0xFFFFu; };
  return element(2 * q) | element(2 * q + 1) << 16;
}

}  // namespace canopy::gpu
