#include "engine/model/forward.h"

#include <gtest/gtest.h>

namespace canopy::test {
namespace {

class Counted final : public Commands {
 public:
  explicit Counted(int& alive) : alive_(alive) { ++alive_; }
  ~Counted() override { --alive_; }

 private:
  int& alive_;
};

TEST(Recordings, KeepTheMostRecentlyUsedAndCountAllThatWereMade) {
  int alive = 0;
  {
    Recordings<uint32_t> recordings;
    const auto most = static_cast<uint32_t>(Recordings<uint32_t>::kMost);
    for (uint32_t shape = 0; shape < most; ++shape) {
      EXPECT_EQ(recordings.find(shape), nullptr);
      Commands& kept = recordings.keep(shape, std::make_unique<Counted>(alive));
      EXPECT_EQ(recordings.find(shape), &kept);
    }
    EXPECT_EQ(alive, static_cast<int>(most));
    ASSERT_NE(recordings.find(0), nullptr);  // used again, so that 1 is the oldest now
    recordings.keep(most, std::make_unique<Counted>(alive));
    EXPECT_EQ(alive, static_cast<int>(most));
    EXPECT_EQ(recordings.find(1), nullptr);
    EXPECT_NE(recordings.find(0), nullptr);
    EXPECT_NE(recordings.find(most), nullptr);
    recordings.keep(1, std::make_unique<Counted>(alive));  // number 2 is removed
    EXPECT_EQ(recordings.find(2), nullptr);
    EXPECT_EQ(recordings.made(), most + 2u);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace canopy::test
