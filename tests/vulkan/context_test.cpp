#include "engine/vulkan/context.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/machine.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {
namespace {

using testing::error_of;

std::vector<std::byte> pattern(size_t count, unsigned seed) {
  std::vector<std::byte> data(count);
  for (size_t i = 0; i < count; ++i) {
    data[i] = static_cast<std::byte>((i * 2654435761u + seed) >> 13);
  }
  return data;
}

TEST(Devices, areReportedInFull) {
  const std::vector<DeviceReport> reports = testing::instance().list_devices();
  ASSERT_FALSE(reports.empty());
  for (const DeviceReport& report : reports) {
    EXPECT_FALSE(report.name.empty());
    EXPECT_FALSE(report.vendor.empty());
    EXPECT_FALSE(report.driver_version.empty());
    EXPECT_FALSE(report.api_version.empty());
    EXPECT_GT(report.memory_bytes, 0u);
    EXPECT_EQ(report.usable, report.reason.empty());
    EXPECT_NE(describe_devices(listed(reports)).find(report.name), std::string::npos);
  }
}

TEST(Devices, beyondTheLastAreRefused) {
  EXPECT_NE(error_of([] { testing::instance().physical_device(1000); }).find("no Vulkan device 1000"),
            std::string::npos);
}

TEST(Validation, isChosenByTheEnvironment) {
  const char* before = std::getenv("CANOPY_VALIDATION");
  const std::string saved = before == nullptr ? "" : before;
  setenv("CANOPY_VALIDATION", "sync", 1);
  EXPECT_EQ(validation_from_environment(), Validation::sync);
  setenv("CANOPY_VALIDATION", "", 1);
  EXPECT_EQ(validation_from_environment(), Validation::off);
  setenv("CANOPY_VALIDATION", "everything", 1);
  EXPECT_NE(error_of([] { validation_from_environment(); }).find("may be off, core or sync"), std::string::npos);
  if (before == nullptr) {
    unsetenv("CANOPY_VALIDATION");
  } else {
    setenv("CANOPY_VALIDATION", saved.c_str(), 1);
  }
}

TEST(Validation, messagesAreKeptAndLogged) {
  Instance& instance = testing::instance();
  if (!instance.validating()) GTEST_SKIP() << "CANOPY_VALIDATION is off";
  instance.clear_messages();
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view text) {
    lines.push_back(std::string(to_string(level)) + ": " + std::string(text));
  });
  const auto tell = [&](VkDebugUtilsMessageSeverityFlagBitsEXT severity, const char* text) {
    VkDebugUtilsMessengerCallbackDataEXT data{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CALLBACK_DATA_EXT};
    data.pMessageIdName = "VUID-of-a-test";
    data.pMessage = text;
    vkSubmitDebugUtilsMessageEXT(instance.handle(), severity, VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT, &data);
  };
  tell(VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT, "a forbidden call");
  tell(VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT, "a doubtful call");
  set_log_sink({});
  EXPECT_EQ(lines, (std::vector<std::string>{"error: a forbidden call", "warning: a doubtful call"}));
  const std::vector<ValidationMessage> kept = instance.messages();
  instance.clear_messages();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_TRUE(kept[0].is_error);
  EXPECT_FALSE(kept[1].is_error);
  EXPECT_EQ(kept[0].id, "VUID-of-a-test");
  EXPECT_EQ(kept[1].text, "a doubtful call");
}

class ContextTest : public testing::DeviceTest {};
CANOPY_ON_EVERY_DEVICE(ContextTest);

// The validation layer is active and collects messages; otherwise a test without messages would prove nothing.
TEST_P(ContextTest, aMistakeLeavesAMessage) {
  const auto context = open();
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};  // no size, no usage
  VkBuffer buffer = VK_NULL_HANDLE;
  if (vkCreateBuffer(context->device(), &info, nullptr, &buffer) == VK_SUCCESS) {
    vkDestroyBuffer(context->device(), buffer, nullptr);
  }
  EXPECT_GT(testing::instance().message_count(), 0u);
  ASSERT_FALSE(testing::instance().messages().empty());
  EXPECT_TRUE(testing::instance().messages().front().is_error);
  EXPECT_NE(testing::instance().messages().front().id.find("VUID"), std::string::npos);
  testing::instance().clear_messages();
}

TEST_P(ContextTest, bytesComeBackFromEveryKindOfBuffer) {
  for (const bool staging : {false, true}) {
    const auto context = open({.force_staging = staging});
    for (const BufferKind kind : {BufferKind::device, BufferKind::host_read, BufferKind::host_write}) {
      const Buffer buffer = context->create_buffer(kind, 1003, "odd");
      EXPECT_EQ(buffer.bytes(), 1003u);
      EXPECT_EQ(buffer.mapped().empty(), kind == BufferKind::device && !context->unified_memory());
      const std::vector<std::byte> whole = pattern(1003, 1);
      context->upload(buffer, 0, whole);
      const std::vector<std::byte> part = pattern(501, 2);
      context->upload(buffer, 251, part);
      std::vector<std::byte> expected = whole;
      std::copy(part.begin(), part.end(), expected.begin() + 251);
      std::vector<std::byte> back(1003);
      context->download(buffer, 0, back);
      EXPECT_EQ(back, expected);
      std::vector<std::byte> middle(7);
      context->download(buffer, 600, middle);
      EXPECT_TRUE(std::equal(middle.begin(), middle.end(), expected.begin() + 600));
      context->upload(buffer, 1003, {});  // no bytes, at the very end
    }
  }
}

// In mapped memory that the host does not cache, long results are read from a copy and short ones directly.
TEST_P(ContextTest, bytesComeBackFromUncachedMemory) {
  const auto context = open({.force_uncached = true});
  const Buffer buffer = context->create_buffer(BufferKind::device, 100'000, "uncached");
  const std::vector<std::byte> data = pattern(100'000, 4);
  context->upload(buffer, 0, data);
  std::vector<std::byte> first(64), rest(data.size() - 64);
  const Download both[] = {{&buffer, 0, first}, {&buffer, 64, rest}};
  context->download(both);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), data.begin()));
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), data.begin() + 64));
}

// The copy is a submission of its own: counted by the numbers of the submissions before and after it.
TEST_P(ContextTest, copiesLongResultsOfUncachedMemoryOnTheDevice) {
  const auto context = open({.force_uncached = true});
  if (!context->unified_memory()) GTEST_SKIP() << "device memory is not mapped here";
  const Buffer buffer = context->create_buffer(BufferKind::device, 100'000, "results");
  const auto copies = [&](size_t bytes) {
    CommandList before(*context), after(*context);
    before.finish();
    after.finish();
    std::vector<std::byte> to(bytes);
    const Submission first = context->submit(before);
    context->download(buffer, 0, to);
    const Submission last = context->submit(after);
    context->wait(last);
    return last - first - 1;
  };
  EXPECT_EQ(copies(64), 0u) << "a few bytes are read where they are";
  EXPECT_EQ(copies(100'000), 1u);
}

TEST_P(ContextTest, waitsAsLongAsItsCallerSaysOrTheDeviceNeeds) {
  const auto by_default = open();
  const bool software = by_default->report().type == DeviceType::cpu;
  EXPECT_EQ(by_default->timeout(), std::chrono::seconds(software ? 300 : 10));
  EXPECT_EQ(open({.timeout = std::chrono::seconds(7)})->timeout(), std::chrono::seconds(7));
  EXPECT_EQ(open({.timeout = std::chrono::seconds(600)})->timeout(), std::chrono::seconds(600));
}

TEST_P(ContextTest, stagingCopiesMoreThanItsOwnSize) {
  const auto context = open({.force_staging = true});
  const std::vector<std::byte> data = pattern((20u << 20) + 5, 3);  // staging has two slots of 8 MiB
  const Buffer buffer = context->create_buffer(BufferKind::device, data.size() + 3, "large");
  EXPECT_TRUE(buffer.mapped().empty());
  context->upload(buffer, 3, data);
  std::vector<std::byte> back(data.size());
  context->download(buffer, 3, back);
  EXPECT_TRUE(back == data);
}

TEST_P(ContextTest, severalDownloadsComeTogether) {
  const auto context = open({.force_staging = true});
  // Sizes around that of a slot (8 MiB), so that some are cut; one buffer is in memory that the host sees.
  const size_t sizes[] = {5, (8u << 20) - 7, 0, 4, (9u << 20) + 1, 12};
  std::vector<Buffer> buffers;
  std::vector<std::vector<std::byte>> sent, back;
  for (size_t i = 0; i < std::size(sizes); ++i) {
    buffers.push_back(context->create_buffer(i == 3 ? BufferKind::host_read : BufferKind::device, sizes[i] + 3, "one"));
    sent.push_back(pattern(sizes[i], static_cast<unsigned>(i) + 1));
    back.emplace_back(sizes[i]);
    context->upload(buffers[i], 3, sent[i]);
  }
  std::vector<Download> downloads;
  for (size_t i = 0; i < std::size(sizes); ++i) downloads.push_back({&buffers[i], 3, back[i]});
  context->download(downloads);
  EXPECT_TRUE(back == sent);
  downloads.back().offset = 4;
  EXPECT_NE(error_of([&] { context->download(downloads); }), "");
}

TEST_P(ContextTest, rangesOutsideABufferAreRefused) {
  const auto context = open();
  const Buffer buffer = context->create_buffer(BufferKind::device, 100, "small");
  std::vector<std::byte> data(101);
  EXPECT_NE(error_of([&] { context->upload(buffer, 0, data); }).find("101 bytes at offset 0 leaves a buffer of 100"),
            std::string::npos);
  EXPECT_NE(error_of([&] { context->download(buffer, 101, {}); }), "");
  EXPECT_NE(error_of([&] { context->download(buffer, ~0ull, std::span(data).first(1)); }), "");
  EXPECT_NE(error_of([&] { context->upload(Buffer(), 0, data); }), "");
  EXPECT_NE(error_of([&] { context->create_buffer(BufferKind::device, 0, "none"); }).find("at least one"),
            std::string::npos);
}

TEST_P(ContextTest, refusesWhatExceedsALimitBeforeAllocating) {
  const auto context = open({.max_allocation = 1u << 20, .memory_budget = 3u << 20});
  EXPECT_EQ(context->limits().max_allocation, 1u << 20);
  const std::string large = error_of([&] { context->create_buffer(BufferKind::device, (1u << 20) + 1, "weights"); });
  EXPECT_NE(large.find("out of memory: The buffer \"weights\" of 1.0 MB is larger than the device"), std::string::npos)
      << large;

  EXPECT_EQ(context->memory_info().available(), 3u << 20);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 2; ++i) {
    buffers.push_back(context->create_buffer(BufferKind::device, 1u << 20, "part"));
  }
  const MemoryInfo memory = context->memory_info();
  EXPECT_GE(memory.used, 2u << 20);
  EXPECT_EQ(memory.budget, 3u << 20);
  buffers.push_back(context->create_buffer(BufferKind::device, memory.available() / 2, "half"));
  const std::string full = error_of([&] { context->create_buffer(BufferKind::device, 1u << 20, "last"); });
  EXPECT_NE(full.find("The buffer \"last\" of 1.0 MB does not fit the memory of the device"), std::string::npos)
      << full;
  EXPECT_NE(full.find("available of 3.1 MB"), std::string::npos) << full;
  buffers.clear();
  EXPECT_EQ(context->memory_info().used, 0u);
  EXPECT_NO_THROW(context->create_buffer(BufferKind::device, 1u << 20, "again"));
}

TEST_P(ContextTest, tellsOfItsMemory) {
  const auto context = open();
  const MemoryInfo memory = context->memory_info();
  EXPECT_GT(memory.total, 0u);
  EXPECT_LE(memory.budget, memory.total);
  if (context->report().type == DeviceType::cpu) {
    EXPECT_LE(memory.available(), system_memory().available);
  }
}

TEST_P(ContextTest, buffersMoveAndFreeTheirMemory) {
  const auto context = open({.memory_budget = 64u << 20});
  Buffer first = context->create_buffer(BufferKind::device, 4096, "first");
  const VkBuffer handle = first.handle();
  Buffer second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: moved from on purpose
  EXPECT_EQ(second.handle(), handle);
  second = context->create_buffer(BufferKind::device, 8192, "second");
  EXPECT_EQ(second.bytes(), 8192u);
  second.reset();
  EXPECT_FALSE(second);
  EXPECT_EQ(context->memory_info().used, 0u);
}

TEST_P(ContextTest, twoDevicesCanBeOpenAtOnce) {
  const auto one = open();
  const auto other = std::make_unique<Context>(testing::instance(), testing::usable_devices().front());
  const Buffer a = one->create_buffer(BufferKind::device, 64, "a");
  const Buffer b = other->create_buffer(BufferKind::device, 64, "b");
  one->upload(a, 0, pattern(64, 1));
  other->upload(b, 0, pattern(64, 2));
  std::vector<std::byte> back(64);
  one->download(a, 0, back);
  EXPECT_EQ(back, pattern(64, 1));
}

}  // namespace
}  // namespace canopy::vk
