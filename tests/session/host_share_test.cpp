// What a round costs the host beside waiting for the device: its time, which is printed, and what it allocates, which
// is judged. The device is one whose passes cost nothing; what its driver would take for submissions is not in these
// figures.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "engine/session/engine.h"
#include "tests/base/processor_time.h"
#include "tests/model/golden_data.h"
#include "tests/reference/reference_device.h"
#include "tests/session/still_device.h"

namespace {

uint64_t allocated = 0;  // calls of operator new, by the one thread there is

void* allocate(std::size_t bytes) {
  ++allocated;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Counts all ordinary allocations of this program.
void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace canopy::test {
namespace {

struct Way {
  const char* name;
  DecodeMode mode;
  uint32_t budget;
  uint64_t most_allocated;  // in a round, median: its record, the values of a pass, the text
};

constexpr Way kWays[] = {{"plain", DecodeMode::ar, 1, 12},
                         {"chain", DecodeMode::chain, 1, 24},
                         {"tree_of_15", DecodeMode::tree, 15, 24},
                         {"tree_of_63", DecodeMode::tree, 63, 24},
                         {"adaptive", DecodeMode::adaptive, 1, 40}};

template <class T>
T median(std::vector<T> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

class HostShareTest : public ::testing::TestWithParam<Way> {
 protected:
  struct Rounds {
    std::vector<double> us;
    std::vector<uint64_t> allocations;
    uint64_t made = 0;  // on the device, recordings included
  };

  HostShareTest() : device_(make_reference_device(), {1, 8, 16, 32, 64}) {
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    request.context = 512;
    request.self_test = false;
    engine_ = Engine::open(device_, request, {});
  }

  Rounds rounds(const Way& way) {
    engine_->resident->clear();
    ReplySettings settings;
    settings.mode = way.mode;
    settings.budget = way.budget;
    settings.max_tokens = 120;
    Rounds rounds;
    rounds.us.reserve(settings.max_tokens);
    rounds.allocations.reserve(settings.max_tokens);
    const ProcessorClock clock;
    double begin = 0;
    uint64_t allocated_before = 0, made_before = 0;
    ReplyCallbacks callbacks;
    callbacks.round = [&](const RoundRecord& record) {
      const double now = clock.seconds();
      if (record.round > 0) {
        rounds.us.push_back((now - begin) * 1e6);
        rounds.allocations.push_back(allocated - allocated_before);
      } else {
        made_before = device_.allocations() + device_.recordings();
      }
      rounds.made = device_.allocations() + device_.recordings() - made_before;
      allocated_before = allocated;
      begin = clock.seconds();
    };
    engine_->reply(engine_->text.encode_raw("def read_file(path, mode='r'):"), settings, callbacks);
    return rounds;
  }

  StillDevice device_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(HostShareTest, OfARoundAfterWarmUp) {
  const Way& way = GetParam();
  rounds(way);
  device_.stop_computing();
  rounds(way);  // drafts are now the same in every round, so other paths are accepted than before
  const Rounds measured = rounds(way);
  ASSERT_GE(measured.us.size(), 10u);
  std::printf("%-12s %3zu rounds, host %.1f us, %llu allocations in a round, made on the device: %llu\n", way.name,
              measured.us.size(), median(measured.us), static_cast<unsigned long long>(median(measured.allocations)),
              static_cast<unsigned long long>(measured.made));
  EXPECT_EQ(measured.made, 0u);
  EXPECT_LE(median(measured.allocations), way.most_allocated);
}

INSTANTIATE_TEST_SUITE_P(Modes, HostShareTest, ::testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace canopy::test
