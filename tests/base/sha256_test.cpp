// SHA-256 and SHA-1 against the examples of their standards.

#include "engine/base/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace canopy {
namespace {

TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(hex_digits(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_digits(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_digits(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex_digits(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameInPartsOfAnyLength) {
  const std::string text(1000, 'a');
  for (const size_t part : {size_t{1}, size_t{7}, size_t{55}, size_t{64}, size_t{65}, size_t{999}}) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += part)
      hash.add(std::as_bytes(std::span(text).subspan(at, std::min(part, text.size() - at))));
    EXPECT_EQ(hex_digits(hash.digest()), "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3") << part;
  }
}

/// The digest of the digests of texts of 0 to 200 letters, so of each way that an end of a text can lie in a block.
template <class Hash>
std::string of_all_lengths() {
  Hash all;
  for (size_t length = 0; length <= 200; ++length) {
    const std::string text(length, 'a');
    Hash hash;
    hash.add(std::as_bytes(std::span(text)));
    const auto digest = hash.digest();
    all.add(std::as_bytes(std::span(digest)));
  }
  return hex_digits(all.digest());
}

// Expected values of Python's hashlib.
TEST(Sha256, IsRightForEveryLength) {
  EXPECT_EQ(of_all_lengths<Sha256>(), "1be2d7d291484baf4c78d463a65b40a26c255b1946e5205eac8edad606a76fdd");
}

TEST(Sha1, IsRightForEveryLength) {
  EXPECT_EQ(of_all_lengths<Sha1>(), "f6f332e8f89c35ee3df74d34ef8fda777d9647b9");
}

TEST(Sha1, GivesTheDigestsOfTheStandard) {
  const auto of = [](std::string_view text) {
    Sha1 hash;
    hash.add(std::as_bytes(std::span(text)));
    return hex_digits(hash.digest());
  };
  EXPECT_EQ(of(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(of("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(of(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

}  // namespace
}  // namespace canopy
