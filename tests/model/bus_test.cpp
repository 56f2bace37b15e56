// A device whose memory the host cannot see, as behind a bus: what a pass costs beside its computing.

#include <gtest/gtest.h>

#include "engine/model/model.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/base/temp_folder.h"
#include "tests/model/random_model.h"
#include "tests/model/same_bits.h"

namespace canopy::test {
namespace {

struct OnBus {
  explicit OnBus(bool behind_bus) {
    VulkanDeviceOptions options;
    options.context.force_staging = behind_bus;
    options.family = vk::KernelFamily::fma;
    options.as_software = !behind_bus;  // false: passes are padded
    device = open_vulkan_device(options);
    model = Model::load(*device, ModelFile::open(folder.write("model.gguf", RandomModel{}.build())), {});
  }
  ~OnBus() {
    for (const auto& message : validation_messages(*device)) ADD_FAILURE() << message.id << ": " << message.text;
  }
  ForwardOutput forward(uint32_t width) {
    RowBatch rows;
    for (uint32_t i = 0; i < width; ++i) rows.add_text((i * 31 + 7) % 77, i);
    std::vector<uint32_t> all(width);
    for (uint32_t i = 0; i < width; ++i) all[i] = i;
    return model->forward({rows, HeadOutput::argmax, all});
  }
  TempFolder folder;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
};

TEST(Bus, APassIsOneSubmissionAndANewWidthOfABucketNoMore) {
  OnBus bus(true);
  bus.forward(8);  // records
  for (const uint32_t width : {8u, 5u, 7u}) {
    const uint64_t before = submission_count(*bus.device);
    bus.forward(width);
    EXPECT_EQ(submission_count(*bus.device), before + 1) << width << " rows";
  }
  EXPECT_EQ(bus.model->recordings(), 1u);
}

TEST(Bus, GivesTheSameBits) {
  OnBus bus(true), unified(false);
  for (const uint32_t width : {1u, 3u, 9u}) {
    const ForwardOutput a = bus.forward(width), b = unified.forward(width);
    EXPECT_TRUE(std::ranges::equal(a.choices(), b.choices()));
    EXPECT_TRUE(same_bits(bus.model->read_kv(1, false, 0, width), unified.model->read_kv(1, false, 0, width)));
  }
}

}  // namespace
}  // namespace canopy::test
