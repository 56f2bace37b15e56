// Passes that are padded to the widths of a device's buckets: the same results, from few recordings.

#include <gtest/gtest.h>

#include "engine/model/drafter.h"
#include "engine/model/model.h"
#include "engine/model/sequence.h"
#include "engine/speculation/sampler.h"
#include "tests/base/temp_folder.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/random_drafter.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

class BucketDevice final : public ForwardingDevice {
 public:
  explicit BucketDevice(std::vector<uint32_t> buckets) : ForwardingDevice(make_reference_device()) {
    info_ = ForwardingDevice::info();
    info_.width_buckets = std::move(buckets);
  }
  const DeviceInfo& info() const override { return info_; }

 private:
  DeviceInfo info_;
};

/// A model and a drafter of random weights on a device with these buckets.
struct LoadedPair {
  explicit LoadedPair(std::vector<uint32_t> buckets) : device(std::move(buckets)) {
    RandomModel random;
    random.context = 96;
    const ModelFile file = ModelFile::open(folder.write("model.gguf", random.build()));
    ModelOptions options;
    options.cache_type = CacheType::f32;
    options.max_width = 20;
    const RandomDrafter weights;
    options.aux_layers = weights.aux_layers;
    model = Model::load(device, file, options);
    weights.write(folder, file.config());
    drafter = Drafter::load(DrafterFile::open(folder.path()), *model, {CacheType::f32, {}});
  }
  TempFolder folder;
  BucketDevice device;
  std::unique_ptr<Model> model;
  std::unique_ptr<Drafter> drafter;
};

std::vector<uint32_t> text_from(uint32_t first, uint32_t count) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = first; i < first + count; ++i) tokens.push_back((i * 31 + 7) % 77);
  return tokens;
}

/// A pass over text behind 5 committed positions, with everything that a head can give.
ForwardInput input_of(HeadOutput head, uint32_t width, bool all_rows) {
  ForwardInput input = text_input(text_from(5, width), 5, head);
  if (all_rows) {
    input.head_rows.clear();
    for (uint32_t row = 0; row < std::min(width, 8u); ++row) input.head_rows.push_back(row);
  }
  if (head == HeadOutput::sampled) {
    SamplingSettings settings;
    settings.temperature = 1.0f;
    settings.top_k = 20;
    settings.frequency_penalty = 0.5f;
    input.sampling = {sampling_words(settings), {{12, 3}}, true};
  }
  input.probabilities = true;
  for (uint32_t i = 0; i < input.head_rows.size(); ++i) input.token_logits.push_back({i, 3 * i + 1});
  return input;
}

TEST(PaddedWidth, IsTheNextBucketOrAMultipleOfTheLast) {
  DeviceInfo info;
  EXPECT_EQ(padded_width(info, 37), 37u);
  info.width_buckets = {1, 8, 16};
  for (const auto& [width, padded] : {std::pair(1u, 1u), {2u, 8u}, {8u, 8u}, {9u, 16u}, {17u, 32u}, {33u, 48u}}) {
    EXPECT_EQ(padded_width(info, width), padded) << width;
  }
}

TEST(WidthBuckets, ChangeNoResult) {
  LoadedPair plain({}), padded({1, 8, 16});
  for (LoadedPair* loaded : {&plain, &padded}) loaded->model->forward(text_input(text_from(0, 5), 0));
  for (const HeadOutput head : {HeadOutput::argmax, HeadOutput::logits, HeadOutput::sampled}) {
    for (const bool all_rows : {false, true}) {
      for (uint32_t width = 1; width <= 20; ++width) {
        SCOPED_TRACE(std::to_string(width) + " rows" + (all_rows ? ", the head of all" : ""));
        const ForwardInput input = input_of(head, width, all_rows);
        ForwardOutput expected = plain.model->forward(input), actual = padded.model->forward(input);
        for (uint32_t node = 1; node <= input.token_logits.size(); ++node) {
          ASSERT_LT(expected.log_p(node), 0);
          EXPECT_EQ(actual.log_p(node), expected.log_p(node));
        }
        if (head != HeadOutput::logits) {
          ASSERT_EQ(actual.choices().size(), input.head_rows.size());
          EXPECT_TRUE(std::ranges::equal(actual.choices(), expected.choices()));
        } else {
          EXPECT_TRUE(std::ranges::equal(actual.logits(input.head_rows), expected.logits(input.head_rows)));
        }
        for (const bool values : {false, true}) {
          EXPECT_EQ(padded.model->read_kv(1, values, 0, 5 + width), plain.model->read_kv(1, values, 0, 5 + width));
        }
      }
    }
  }
}

// Rows that stand for nothing write no K/V anywhere: what lies in the slots behind a pass stays.
TEST(WidthBuckets, LeaveTheOtherSlotsAlone) {
  LoadedPair loaded({16});
  Model& model = *loaded.model;
  model.forward(text_input(text_from(0, 16), 0));
  const std::vector<float> before = model.read_kv(0, false, 0, model.limits().slots());
  model.forward(text_input(text_from(0, 3), 0));
  EXPECT_EQ(model.read_kv(0, false, 0, model.limits().slots()), before);
}

TEST(WidthBuckets, RowsThatFillAPassUpTouchNoExperts) {
  const TempFolder folder;
  RandomModel random;
  random.architecture = "qwen3moe";
  random.experts = 40;
  BucketDevice device({16});
  const auto model = Model::load(device, ModelFile::open(folder.write("model.gguf", random.build())), {});
  const ForwardOutput output = model->forward(text_input(text_from(0, 1), 0));
  ASSERT_EQ(output.distinct_experts().size(), 2u);
  EXPECT_EQ(output.distinct_experts()[0], random.experts_used);
  EXPECT_EQ(output.distinct_experts()[1], random.experts_used);
}

TEST(WidthBuckets, MeetNoNewShapeAtAWidthBetween) {
  LoadedPair loaded({1, 8, 16});
  loaded.model->forward(input_of(HeadOutput::argmax, 8, true));
  const uint64_t made = loaded.model->recordings();
  for (uint32_t width = 2; width <= 8; ++width) loaded.model->forward(input_of(HeadOutput::argmax, width, true));
  EXPECT_EQ(loaded.model->recordings(), made);
  loaded.model->forward(input_of(HeadOutput::argmax, 9, true));
  EXPECT_EQ(loaded.model->recordings(), made + 1);
}

TEST(WidthBuckets, DraftsOfAllDepthsShareARecording) {
  LoadedPair plain({}), padded({1, 8, 16});
  std::vector<Draft> drafts;
  for (LoadedPair* loaded : {&plain, &padded}) {
    Sequence sequence(*loaded->model, loaded->drafter.get());
    ForwardInput input = sequence.text(text_from(0, 9), HeadOutput::argmax);
    input.aux_hidden_states = true;
    ASSERT_TRUE(sequence.append(text_from(0, 9), loaded->model->forward(input)));
    for (const uint32_t depths : {2u, loaded->drafter->max_depth(), 1u}) {
      drafts.push_back(*sequence.draft(11, depths));
    }
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(drafts[i].tokens, drafts[i + 3].tokens);
    EXPECT_EQ(drafts[i].logits, drafts[i + 3].logits);
    EXPECT_EQ(drafts[i].log_sum_exp, drafts[i + 3].log_sum_exp);
  }
  EXPECT_LT(padded.drafter->recordings(), plain.drafter->recordings());
}

}  // namespace
}  // namespace canopy::test
