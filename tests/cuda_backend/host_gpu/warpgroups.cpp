#include "tests/cuda_backend/host_gpu/warpgroups.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace canopy::host_gpu {
namespace {

constexpr uint32_t kUnit = 16;  // bytes

uint32_t first_byte(uint32_t b) {
  return (b & 0x3FFFu) * kUnit;
}
uint32_t bytes_apart(uint32_t b) {
  return (b >> 16 & 0x3FFFu) * kUnit;
}

}  // namespace

void Warpgroups::reset(uint32_t threads, std::span<const std::byte> shared) {
  threads_.assign(threads, {});
  operands_.assign(threads / kWarp, {});
  shared_ = shared;
  all_shown_ = false;
}

void Warpgroups::meet() {
  for (uint32_t w = 0; w < operands_.size(); ++w) {
    if (operands_[w] != operands_[w / kWarps * kWarps]) fail("warps of a warpgroup began different products");
  }
  for (std::vector<uint32_t>& all : operands_) all.clear();
  all_shown_ = std::ranges::all_of(threads_, &Thread::has_shown);
  for (Thread& thread : threads_) thread.has_shown = false;
}

std::vector<std::byte> Warpgroups::rows_of(uint32_t b) const {
  const size_t first = first_byte(b), apart = bytes_apart(b), part = size_t{kColumns} * kUnit;
  if (first + apart + part > shared_.size()) {
    fail("the operand of a warpgroup ends at byte " + std::to_string(first + apart + part) + " of " +
         std::to_string(shared_.size()) + " of shared memory");
  }
  std::vector<std::byte> rows(2 * part);
  std::memcpy(rows.data(), &shared_[first], part);
  std::memcpy(&rows[part], &shared_[first + apart], part);
  return rows;
}

void Warpgroups::begin_product(uint32_t thread, float* sums, const uint32_t* a, uint32_t b) {
  const uint32_t warp = thread / kWarp;
  if (operands_.size() % kWarps != 0)
    fail("a warpgroup has four warps; the block has " + std::to_string(operands_.size()));
  if (!all_shown_) fail("not all threads have shown what they wrote to a warpgroup before the block's last barrier");
  Thread& own = threads_[thread];
  if (!own.in_group) fail("a product of a warpgroup begins before what registers have is ordered");
  Product product{sums, a, {a[0], a[1], a[2], a[3]}, b, {}};
  if (thread % kWarp == 0) {
    product.rows = rows_of(b);
    operands_[warp].push_back(b);
  }
  own.products.push_back(std::move(product));
  ++own.begun;
  SumsUnderWay& under_way = own.sums[sums];
  if (under_way.products++ == 0) {
    std::copy_n(sums, kSums, under_way.values);
    std::fill_n(sums, kSums, NAN);
  }
}

void Warpgroups::end_group(uint32_t thread) {
  Thread& own = threads_[thread];
  own.groups.push_back(own.begun);
  own.begun = 0;
  own.in_group = false;
}

void Warpgroups::finish(uint32_t warp, uint32_t pending, WarpOperation multiply) {
  const uint32_t first = warp * kWarp;
  for (uint32_t i = 1; i < kWarp; ++i) {
    if (threads_[first + i].groups != threads_[first].groups) fail("lanes of a warp began different products");
  }
  while (threads_[first].groups.size() > pending) {
    for (size_t left = threads_[first].groups.front(); left > 0; --left) compute(warp, multiply);
    for (uint32_t i = 0; i < kWarp; ++i) threads_[first + i].groups.erase(threads_[first + i].groups.begin());
  }
}

void Warpgroups::compute(uint32_t warp, WarpOperation multiply) {
  const uint32_t first = warp * kWarp;
  const Product lead = threads_[first].products.front();
  if (rows_of(lead.b) != lead.rows) fail("rows in shared memory changed while a warpgroup read them");
  std::array<float*, kWarp> values;
  for (uint32_t i = 0; i < kWarp; ++i) {
    Thread& thread = threads_[first + i];
    const Product& product = thread.products.front();
    if (product.b != lead.b) fail("lanes of a warp began products of different operands");
    if (!std::equal(product.a, product.a + 4, product.a_at)) fail("registers changed while a warpgroup read them");
    values[i] = thread.sums[product.sums].values;
  }
  for (uint32_t tile = 0; tile < kColumns / 8; ++tile) {
    std::array<LaneWords, kWarp> given, results;
    for (uint32_t i = 0; i < kWarp; ++i) {
      const uint32_t at = (tile * 8 + i / 4) * kUnit + i % 4 * 4;
      std::copy_n(threads_[first + i].products.front().a, 4, given[i].words);
      std::memcpy(&given[i].words[4], &lead.rows[at], 4);
      std::memcpy(&given[i].words[5], &lead.rows[kColumns * kUnit + at], 4);
      for (uint32_t e = 0; e < 4; ++e) given[i].words[6 + e] = std::bit_cast<uint32_t>(values[i][tile * 4 + e]);
    }
    multiply(given, results);
    for (uint32_t i = 0; i < kWarp; ++i) {
      for (uint32_t e = 0; e < 4; ++e) values[i][tile * 4 + e] = std::bit_cast<float>(results[i].words[e]);
    }
  }
  for (uint32_t i = 0; i < kWarp; ++i) {
    Thread& thread = threads_[first + i];
    float* const sums = thread.products.front().sums;
    thread.products.erase(thread.products.begin());
    SumsUnderWay& under_way = thread.sums[sums];
    if (--under_way.products > 0) continue;
    for (uint32_t e = 0; e < kSums; ++e) {
      if (!std::isnan(sums[e])) fail("sums changed while a warpgroup added to them");
      sums[e] = under_way.values[e];
    }
    thread.sums.erase(sums);
  }
}

void Warpgroups::end(uint32_t thread) const {
  if (!threads_[thread].products.empty()) fail("it ended and did not wait for the products of its warpgroup");
}

}  // namespace canopy::host_gpu
