#include "engine/base/bytes.h"

#include <algorithm>

namespace canopy {
namespace {

constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// A block of 64 bytes as 16 words, the rest of `words` left for what is derived of them.
void read_words(const uint8_t* block, uint32_t* words) {
  for (size_t i = 0; i < 16; ++i) {
    words[i] = 0;
    for (size_t b = 0; b < 4; ++b) words[i] = words[i] << 8 | block[i * 4 + b];
  }
}

void take_block(std::array<uint32_t, 8>& state, const uint8_t* block) {
  std::array<uint32_t, 64> w;
  read_words(block, w.data());
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  std::array<uint32_t, 8> s = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t mixed = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    const uint32_t one = s[7] + mixed + ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
    const uint32_t two = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                         ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {one + two, s[0], s[1], s[2], s[3] + one, s[4], s[5], s[6]};
  }
  for (size_t i = 0; i < 8; ++i) state[i] += s[i];
}

void take_block(std::array<uint32_t, 5>& state, const uint8_t* block) {
  std::array<uint32_t, 80> w;
  read_words(block, w.data());
  for (size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = state;
  for (size_t i = 0; i < 80; ++i) {
    const uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                           : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                           : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                    : (b ^ c ^ d) + 0xca62c1d6;
    const uint32_t next = std::rotl(a, 5) + mixed + e + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const std::array<uint32_t, 5> added = {a, b, c, d, e};
  for (size_t i = 0; i < 5; ++i) state[i] += added[i];
}

template <size_t Words>
void take(HashedBlocks<Words>& hashed, std::span<const std::byte> bytes) {
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  const size_t begun = hashed.bytes % 64;
  hashed.bytes += left;
  if (begun > 0) {
    const size_t taken = std::min(left, 64 - begun);
    std::copy_n(at, taken, hashed.block.begin() + static_cast<std::ptrdiff_t>(begun));
    at += taken;
    left -= taken;
    if (begun + taken < 64) return;
    take_block(hashed.state, hashed.block.data());
  }
  for (; left >= 64; at += 64, left -= 64) take_block(hashed.state, at);
  std::copy_n(at, left, hashed.block.begin());
}

/// The digest: the end of the text, then its length in bits, as whole blocks.
template <size_t Words>
std::array<uint8_t, Words * 4> digest_of(HashedBlocks<Words> hashed) {
  const uint64_t bits = hashed.bytes * 8;
  std::array<std::byte, 72> end{std::byte{0x80}};
  size_t length = 1 + (119 - hashed.bytes % 64) % 64;
  for (int shift = 56; shift >= 0; shift -= 8) end[length++] = static_cast<std::byte>(bits >> shift & 0xff);
  take(hashed, std::span(end).first(length));
  std::array<uint8_t, Words * 4> digest{};
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(hashed.state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

}  // namespace

void Sha256::add(std::span<const std::byte> bytes) {
  take(blocks_, bytes);
}

std::array<uint8_t, 32> Sha256::digest() const {
  return digest_of(blocks_);
}

void Sha1::add(std::span<const std::byte> bytes) {
  take(blocks_, bytes);
}

std::array<uint8_t, 20> Sha1::digest() const {
  return digest_of(blocks_);
}

std::array<uint8_t, 32> sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return hash.digest();
}

std::string hex_digits(std::span<const uint8_t> bytes) {
  constexpr std::string_view figures = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += figures[byte >> 4];
    text += figures[byte & 15];
  }
  return text;
}

namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::span<const uint8_t> bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = three << 8 | (i + k < bytes.size() ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const bool is_last = at + 4 == text.size();
    const std::string_view four = text.substr(at, 4);
    const size_t padding = is_last ? 4 - std::min<size_t>(four.find_last_not_of('=') + 1, 4) : 0;
    if (padding > 2) return std::nullopt;
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) {
      const size_t digit = i + padding < 4 ? digits.find(four[i]) : 0;
      if (digit == std::string_view::npos) return std::nullopt;
      word = word << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t i = 0; i + padding < 3; ++i) bytes += static_cast<char>(word >> (16 - 8 * i));
  }
  return bytes;
}

}  // namespace canopy
