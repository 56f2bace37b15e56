#include "engine/speculation/sampler.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

void expect_refused(const char* field, const std::function<void(SamplingSettings&)>& change) {
  SamplingSettings settings;
  change(settings);
  try {
    validate(settings);
    FAIL() << field << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("must be"), std::string::npos) << error.what();
  }
}

TEST(SamplingSettings, DefaultsAndLimitsAreValid) {
  validate(SamplingSettings{});
  SamplingSettings limits;
  limits.temperature = 1e-30f;
  limits.top_p = 1e-9f;
  limits.min_p = 0.999f;
  limits.presence_penalty = -2.0f;
  limits.frequency_penalty = 2.0f;
  limits.repetition_penalty = 0.1f;
  limits.logit_bias = {{3, -100.0f}};
  validate(limits);
}

TEST(SamplingSettings, EachBadValueIsRefusedByName) {
  for (const float bad : {not_a_number, infinite, -infinite, -0.5f}) {
    expect_refused("temperature", [&](SamplingSettings& s) { s.temperature = bad; });
    expect_refused("top_p", [&](SamplingSettings& s) { s.top_p = bad; });
    expect_refused("min_p", [&](SamplingSettings& s) { s.min_p = bad; });
    expect_refused("repetition_penalty", [&](SamplingSettings& s) { s.repetition_penalty = bad; });
  }
  for (const float bad : {not_a_number, infinite, -infinite, -2.5f, 2.5f}) {
    expect_refused("presence_penalty", [&](SamplingSettings& s) { s.presence_penalty = bad; });
    expect_refused("frequency_penalty", [&](SamplingSettings& s) { s.frequency_penalty = bad; });
  }
  for (const float bad : {not_a_number, infinite, -infinite}) {
    expect_refused("logit_bias of token 7", [&](SamplingSettings& s) { s.logit_bias = {{7, bad}}; });
  }
  expect_refused("top_p", [](SamplingSettings& s) { s.top_p = 0.0f; });
  expect_refused("top_p", [](SamplingSettings& s) { s.top_p = 1.01f; });
  expect_refused("min_p", [](SamplingSettings& s) { s.min_p = 1.0f; });
  expect_refused("repetition_penalty", [](SamplingSettings& s) { s.repetition_penalty = 0.0f; });
}

}  // namespace
}  // namespace canopy
