#pragma once
// What kernels are written against, as nvcc sees it. tests/cuda_backend/host_gpu/include/gpu.h is the same for the
// host. Compiled with -fmad=false: a multiply-add is one only where it is written as fmaf().

#include <cuda_fp16.h>

#include <cstdint>

#define CANOPY_DEVICE __device__ __forceinline__
/// A function that is called, and so neither takes registers of its caller's loops nor is compiled once for each.
#define CANOPY_CALLED static __device__ __noinline__
#define CANOPY_UNROLL _Pragma("unroll")
#define CANOPY_NO_UNROLL _Pragma("unroll 1")
#define CANOPY_PRAGMA(text) _Pragma(#text)
#define CANOPY_UNROLL_BY(count) CANOPY_PRAGMA(unroll count)
/// A kernel NAME of blocks of up to THREADS, with Params as its one argument `p`. It begins when all earlier kernels of
/// the stream have ended.
#define CANOPY_KERNEL(NAME, Params, THREADS)                                                     \
  static CANOPY_DEVICE void NAME##_body(const Params& p);                                        \
  extern "C" __global__ void __launch_bounds__(THREADS) NAME(const __grid_constant__ Params p) { \
    ::canopy::gpu::let_next_start();                                                             \
    ::canopy::gpu::wait_for_earlier();                                                           \
    NAME##_body(p);                                                                              \
  }                                                                                              \
  static CANOPY_DEVICE void NAME##_body([[maybe_unused]] const Params& p)
/// The same, but it begins beside the end of the kernel before it: it calls let_next_start() and wait_for_earlier()
/// itself, all threads do, and reads nothing but weights before. Registers are so few that a multiprocessor can have
/// BLOCKS of its blocks.
#define CANOPY_STREAMING_KERNEL(NAME, Params, THREADS, BLOCKS) \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) NAME([[maybe_unused]] const __grid_constant__ Params p)

namespace canopy::gpu {

CANOPY_DEVICE uint32_t thread() {
  return threadIdx.x;
}
CANOPY_DEVICE uint32_t threads() {
  return blockDim.x;
}
CANOPY_DEVICE uint32_t lane() {
  return threadIdx.x % 32;
}
CANOPY_DEVICE uint32_t warp() {
  return threadIdx.x / 32;
}
CANOPY_DEVICE uint32_t block_x() {
  return blockIdx.x;
}
CANOPY_DEVICE uint32_t block_y() {
  return blockIdx.y;
}
CANOPY_DEVICE uint32_t block_z() {
  return blockIdx.z;
}
CANOPY_DEVICE uint32_t blocks_x() {
  return gridDim.x;
}
CANOPY_DEVICE uint32_t blocks_y() {
  return gridDim.y;
}
CANOPY_DEVICE uint32_t blocks_z() {
  return gridDim.z;
}

/// Element `index` of an array in device memory.
template <class T>
CANOPY_DEVICE T* element(uint64_t address, uint64_t index) {
  return reinterpret_cast<T*>(address) + index;
}

/// 16 bytes of device memory, of which the compiler would not find out by itself that they are not in shared memory.
CANOPY_DEVICE void load(uint64_t address, uint32_t (&words)[4]) {
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(address));
}

/// `count` elements of the block's shared memory from a byte on.
template <class T>
class Shared {
 public:
  CANOPY_DEVICE Shared(uint32_t first_byte, uint32_t) : data_(reinterpret_cast<T*>(bytes() + first_byte)) {}
  CANOPY_DEVICE T& operator[](uint32_t index) const { return data_[index]; }

 private:
  CANOPY_DEVICE static char* bytes() {
    extern __shared__ uint4 canopy_shared[];
    return reinterpret_cast<char*>(canopy_shared);
  }
  T* data_;
};

// Programmatic dependent launch, where GPUs have it; elsewhere a kernel begins when the one before has ended.

/// The next kernel of the stream may begin, once all blocks have called this or ended.
CANOPY_DEVICE void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
/// Waits for the end of all earlier kernels of the stream; what they wrote is visible then.
CANOPY_DEVICE void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

CANOPY_DEVICE void sync() {
  __syncthreads();
}
CANOPY_DEVICE void sync_warp() {
  __syncwarp();
}
/// Orders this thread's writes to device memory before those after it, for all blocks.
CANOPY_DEVICE void fence() {
  __threadfence();
}
CANOPY_DEVICE uint32_t atomic_add(uint32_t* to, uint32_t value) {
  return atomicAdd(to, value);
}
CANOPY_DEVICE void atomic_or(uint32_t* to, uint32_t bits) {
  atomicOr(to, bits);
}

/// To device or shared memory.
CANOPY_DEVICE void atomic_add(uint64_t* to, uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}

CANOPY_DEVICE uint64_t shuffle(uint64_t value, uint32_t lane) {
  return __shfl_sync(0xFFFFFFFFu, static_cast<unsigned long long>(value), static_cast<int>(lane));
}
CANOPY_DEVICE uint32_t shuffle(uint32_t value, uint32_t lane) {
  return __shfl_sync(0xFFFFFFFFu, value, lane);
}
CANOPY_DEVICE float shuffle(float value, uint32_t lane) {
  return __shfl_sync(0xFFFFFFFFu, value, lane);
}
/// The value of the lane whose number differs in the bits of `mask`.
CANOPY_DEVICE uint32_t shuffle_xor(uint32_t value, uint32_t mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, static_cast<int>(mask));
}
CANOPY_DEVICE uint64_t shuffle_xor(uint64_t value, uint32_t mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, static_cast<unsigned long long>(value), static_cast<int>(mask));
}
CANOPY_DEVICE float shuffle_xor(float value, uint32_t mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, static_cast<int>(mask));
}
CANOPY_DEVICE uint32_t largest(uint32_t value) {
  for (uint32_t step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(0xFFFFFFFFu, value, step));
  return value;
}
CANOPY_DEVICE uint32_t ballot(bool value) {
  return __ballot_sync(0xFFFFFFFFu, value);
}

CANOPY_DEVICE uint32_t bits(float value) {
  return __float_as_uint(value);
}
CANOPY_DEVICE float from_bits(uint32_t bits) {
  return __uint_as_float(bits);
}

CANOPY_DEVICE uint32_t ones(uint32_t bits) {
  return __popc(bits);
}
CANOPY_DEVICE uint32_t rotate_right(uint32_t word, uint32_t bits) {
  return __funnelshift_r(word, word, bits);
}
/// a & b | c, in one instruction even where b and c are numbers.
CANOPY_DEVICE uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
/// Byte i of the result is byte (selector >> 4 i & 7) of `first`, then `second`.
CANOPY_DEVICE uint32_t permute(uint32_t first, uint32_t second, uint32_t selector) {
  return __byte_perm(first, second, selector);
}

/// Keeps a number in a register, where the compiler would rather compute it again and again.
CANOPY_DEVICE void keep(uint32_t& number) {
  asm volatile("" : "+r"(number));
}
CANOPY_DEVICE void keep(uint64_t& number) {
  asm volatile("" : "+l"(number));
}

// ---- copies from device to shared memory, 16 bytes each, that go on beside the program
// ---------------------------------

/// Whether there are such copies; else they have ended when they return.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
constexpr bool kCopiesAside = true;
#else
constexpr bool kCopiesAside = false;
#endif

/// What this code is made for: 89 is compute capability 8.9. A GPU may run that of one before its own.
#ifdef __CUDA_ARCH__
constexpr int kArchitecture = __CUDA_ARCH__ / 10;
#else
constexpr int kArchitecture = 0;
#endif

/// For data that is read once: the L2 cache gives it up first.
CANOPY_DEVICE uint64_t read_once() {
  uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}
/// Begins a copy from OFFSET bytes behind `from` to OFFSET bytes behind byte `to` of shared memory.
template <uint32_t OFFSET>
CANOPY_DEVICE void copy_async(uint32_t to, uint64_t from, [[maybe_unused]] uint64_t policy) {
#if __CUDA_ARCH__ >= 800
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(&Shared<uint4>(to, 1)[0]));
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0 + %3], [%1 + %3], 16, %2;" ::"r"(shared), "l"(from),
               "l"(policy), "n"(OFFSET)
               : "memory");
#else
  // In order, so that not too many wait in registers.
  uint4 unit;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(unit.x), "=r"(unit.y), "=r"(unit.z), "=r"(unit.w)
               : "l"(from + OFFSET)
               : "memory");
  Shared<uint4>(to + OFFSET, 1)[0] = unit;
#endif
}
/// The same, or zeros where not `is_there`; `from` is an address either way.
CANOPY_DEVICE void copy_async_or_zero(uint32_t to, uint64_t from, bool is_there) {
#if __CUDA_ARCH__ >= 800
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(&Shared<uint4>(to, 1)[0]));
  const uint32_t bytes = is_there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
#else
  const uint4 zero = {0, 0, 0, 0};
  Shared<uint4>(to, 1)[0] = is_there ? *reinterpret_cast<const uint4*>(from) : zero;
#endif
}
/// This thread's copies since the last call are a group.
CANOPY_DEVICE void end_copy_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until all of this thread's groups but the last `PENDING` have ended. Other threads see them after a sync.
template <int PENDING>
CANOPY_DEVICE void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// ---- halves: two in a word, the first in its lower bits; rounded to nearest even ------------------------------------

// By name, on words: the functions of cuda_fp16.h take words apart and put them together again.

CANOPY_DEVICE uint32_t pack_halves(float first, float second) {
  const __half2_raw raw = __floats2half2_rn(first, second);
  return raw.x | static_cast<uint32_t>(raw.y) << 16;
}
CANOPY_DEVICE float half_value(uint16_t bits) {
  __half_raw raw;
  raw.x = bits;
  return __half2float(__half(raw));
}
/// The lower or the upper half twice, which instructions on halves take out of a word by themselves.
CANOPY_DEVICE uint32_t lower_twice(uint32_t word) {
  uint32_t twice;
  asm("{.reg .b16 lower, upper; mov.b32 {lower, upper}, %1; mov.b32 %0, {lower, lower};}" : "=r"(twice) : "r"(word));
  return twice;
}
CANOPY_DEVICE uint32_t upper_twice(uint32_t word) {
  uint32_t twice;
  asm("{.reg .b16 lower, upper; mov.b32 {lower, upper}, %1; mov.b32 %0, {upper, upper};}" : "=r"(twice) : "r"(word));
  return twice;
}
CANOPY_DEVICE uint32_t half2_add(uint32_t a, uint32_t b) {
  uint32_t sum;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
}
CANOPY_DEVICE uint32_t half2_mul(uint32_t a, uint32_t b) {
  uint32_t product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}
CANOPY_DEVICE uint32_t half2_fma(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t sum;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}

CANOPY_DEVICE uint32_t half2_absolute(uint32_t word) {
  uint32_t absolute;
  asm("abs.f16x2 %0, %1;" : "=r"(absolute) : "r"(word));
  return absolute;
}
/// The larger of each pair of halves.
CANOPY_DEVICE uint32_t half2_max(uint32_t a, uint32_t b) {
  uint32_t larger;
  asm("max.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
}

/// sums += a * b on the tensor cores of a warp: halves a [16, 16], b [16, 8], sums f32 [16, 8]. With g = lane / 4 and
/// q = lane % 4 a lane has of a the words (rows g, g + 8, g, g + 8; columns 2q, 2q, 2q + 8, 2q + 8 and the next), of b
/// the words (rows 2q, 2q + 8 and the next; column g), and of the sums (row g, columns 2q, 2q + 1; row g + 8, the
/// same).
CANOPY_DEVICE void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}

/// The same, where the sums are halves: in words (row g, columns 2q, 2q + 1), (row g + 8, the same). From compute
/// capability 8.0 on.
CANOPY_DEVICE void multiply_to_halves(uint32_t (&sums)[2], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};\n"
      : "+r"(sums[0]), "+r"(sums[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// ---- products of warpgroups -----------------------------------------------------------------------------------------
// Of four neighbouring warps, the first of which has a number divisible by four; of compute capability 9.0 alone. They
// go on beside the program. Each warp has its own 16 rows of `a` in registers, as multiply() takes them; `b` is in
// shared memory, for all four.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool kHasWarpgroups = true;
#else
constexpr bool kHasWarpgroups = false;
#endif

/// Halves b [16, 64] in shared memory, each column of 16 in two parts of eight: from byte `at` on parts of the first
/// eight rows, 16 bytes for each column, and `apart` bytes behind them those of the others. Both are multiples of 16;
/// the operand 16 bytes further is one more. All threads of a warpgroup have the same.
CANOPY_DEVICE uint32_t warpgroup_operand(uint32_t at, uint32_t apart) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(&Shared<uint4>(at, 1)[0])) >> 4 | apart >> 4 << 16;
}
/// What threads wrote to shared memory before this call and a barrier behind it, products of warpgroups see.
CANOPY_DEVICE void show_to_warpgroups() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
/// Before products that take registers which the program has written.
CANOPY_DEVICE void begin_warpgroup_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
/// Begins sums += a * b for 64 columns, of each eight as multiply() has them. Until the product has ended neither the
/// sums nor `a` may be touched, but for other such products that add to the sums.
CANOPY_DEVICE void begin_warpgroup_product([[maybe_unused]] float (&sums)[8][4],
                                           [[maybe_unused]] const uint32_t (&a)[4], [[maybe_unused]] uint32_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  // PTX's descriptor of a matrix, K-major, without swizzling: bits 13-0 its address, 29-16 from eight rows to the next
  // eight, 45-32 from eight columns to the next, in units of 16 bytes.
  const uint64_t matrix = uint64_t{8} << 32 | b;
#define CANOPY_SUMS(t) "+f"(sums[t][0]), "+f"(sums[t][1]), "+f"(sums[t][2]), "+f"(sums[t][3])
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, "
      "%35}, %36, 1, 1, 1, 0;"
      : CANOPY_SUMS(0), CANOPY_SUMS(1), CANOPY_SUMS(2), CANOPY_SUMS(3), CANOPY_SUMS(4), CANOPY_SUMS(5), CANOPY_SUMS(6),
        CANOPY_SUMS(7)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix));
#undef CANOPY_SUMS
#endif
}
/// This warpgroup's products since the last call are a group.
CANOPY_DEVICE void end_warpgroup_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/// Waits until all groups but the last `PENDING` have ended.
template <int PENDING>
CANOPY_DEVICE void wait_for_warpgroup_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
#endif
}

/// Four matrices [8, 8] of halves from shared memory: lane 8i + r has the byte where row r of matrix i begins. Of
/// matrix i a lane gets words[i]: row g, columns 2q and 2q + 1, or where TRANSPOSED rows 2q and 2q + 1 of column g.
template <bool TRANSPOSED>
CANOPY_DEVICE void load_matrices(uint32_t at, uint32_t (&words)[4]) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(&Shared<uint4>(at, 1)[0]));
  if constexpr (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
  }
}

/// Of a matrix [8, 8] of halves, whose row g, columns 2q and 2q + 1 a lane has: rows 2q and 2q + 1 of column g.
CANOPY_DEVICE uint32_t transpose(uint32_t word) {
  uint32_t result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
  return result;
}

}  // namespace canopy::gpu
