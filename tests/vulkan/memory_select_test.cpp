#include "engine/vulkan/memory.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace canopy::vk {
namespace {

constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr uint64_t gib = 1ull << 30;
constexpr uint32_t all = ~0u;

struct Type {
  VkMemoryPropertyFlags flags;
  uint32_t heap;
};

VkPhysicalDeviceMemoryProperties memory(std::initializer_list<uint64_t> heaps, std::initializer_list<Type> types) {
  VkPhysicalDeviceMemoryProperties result{};
  for (const uint64_t bytes : heaps) {
    result.memoryHeaps[result.memoryHeapCount++].size = bytes;
  }
  for (const Type& type : types) {
    result.memoryTypes[result.memoryTypeCount++] = {type.flags, type.heap};
  }
  return result;
}

// A discrete card with a window of 256 MiB for the host, as AMD's drivers list it.
const auto discrete = memory({16 * gib, 32 * gib, gib / 4}, {{local, 0},
                                                             {local, 0},
                                                             {visible | coherent, 1},
                                                             {local | visible | coherent, 2},
                                                             {visible | coherent | cached, 1}});
// An integrated device, whose memory is all the host's.
const auto integrated =
    memory({24 * gib}, {{local, 0}, {local | visible | coherent, 0}, {local | visible | coherent | cached, 0}});

TEST(SelectMemoryType, keepsDeviceBuffersOutOfTheWindowOfADiscreteCard) {
  EXPECT_EQ(select_memory_type(discrete, all, BufferKind::device, gib, false), 0u);
  EXPECT_EQ(select_memory_type(discrete, all & ~1u, BufferKind::device, gib, false), 1u);
}

TEST(SelectMemoryType, readsThroughTheCacheAndWritesAroundIt) {
  EXPECT_EQ(select_memory_type(discrete, all, BufferKind::host_read, 4096, false), 4u);
  EXPECT_EQ(select_memory_type(discrete, all, BufferKind::host_write, 4096, false), 2u);
  // What the device reads often: its own memory where the host can write it.
  const auto input = select_memory_type(discrete, all, BufferKind::input, 4096, false);
  ASSERT_TRUE(input);
  EXPECT_EQ(discrete.memoryTypes[*input].propertyFlags & (local | visible | coherent), local | visible | coherent);
}

TEST(SelectMemoryType, mapsDeviceBuffersWhereMemoryIsUnified) {
  EXPECT_EQ(select_memory_type(integrated, all, BufferKind::device, gib, true), 2u);
  EXPECT_EQ(select_memory_type(integrated, 0b011, BufferKind::device, gib, true), 1u);
  EXPECT_EQ(select_memory_type(integrated, 0b001, BufferKind::device, gib, true), 0u);
}

// An integrated device as RADV lists it: the same memory as two heaps, two thirds of it as the device's own.
TEST(SelectMemoryType, takesTheDevicesShareOfUnifiedMemoryInTwoHeaps) {
  const auto two_heaps = memory({10 * gib, 5 * gib}, {{local, 0},
                                                      {visible | coherent, 1},
                                                      {local | visible | coherent, 0},
                                                      {visible | coherent | cached, 1},
                                                      {local | visible | coherent | cached, 0}});
  EXPECT_EQ(select_memory_type(two_heaps, all, BufferKind::device, gib, true), 4u);
}

// Results are device buffers. Where the host does not cache their memory, many words are read from a copy.
TEST(ReadsInPlace, onlyWhatTheHostCachesOrIsShort) {
  const auto flags = [](const VkPhysicalDeviceMemoryProperties& of, BufferKind kind, bool unified) {
    return of.memoryTypes[select_memory_type(of, all, kind, 4096, unified).value()].propertyFlags;
  };
  constexpr uint64_t logits = 49152 * 4;
  // An APU whose own memory is write-combined; only the host's share is cached.
  const auto apu =
      memory({10 * gib, 5 * gib},
             {{local, 0}, {visible | coherent, 1}, {local | visible | coherent, 0}, {visible | coherent | cached, 1}});
  EXPECT_EQ(flags(apu, BufferKind::device, true), local | visible | coherent);
  EXPECT_FALSE(reads_in_place(flags(apu, BufferKind::device, true), logits));
  EXPECT_TRUE(reads_in_place(flags(apu, BufferKind::device, true), 64)) << "a few ids";
  EXPECT_EQ(flags(apu, BufferKind::host_read, true), visible | coherent | cached);
  EXPECT_TRUE(reads_in_place(flags(apu, BufferKind::host_read, true), logits));
  // An integrated device that caches its own memory, and lavapipe with its single type.
  EXPECT_TRUE(reads_in_place(flags(integrated, BufferKind::device, true), logits));
  const auto lavapipe = memory({8 * gib}, {{local | visible | coherent | cached, 0}});
  EXPECT_TRUE(reads_in_place(flags(lavapipe, BufferKind::device, true), logits));
  EXPECT_TRUE(reads_in_place(flags(lavapipe, BufferKind::host_read, true), logits));
  // A discrete card whose whole memory is visible to the host (resizable BAR).
  const auto resizable =
      memory({16 * gib, 32 * gib},
             {{local, 0}, {visible | coherent, 1}, {local | visible | coherent, 0}, {visible | coherent | cached, 1}});
  for (const auto& card : {discrete, resizable}) {
    EXPECT_FALSE(reads_in_place(flags(card, BufferKind::device, false), 4));
    EXPECT_EQ(flags(card, BufferKind::host_read, false), visible | coherent | cached);
  }
  EXPECT_FALSE(reads_in_place(local | visible | coherent, logits)) << "the window itself";
}

TEST(HeapBudget, neverPromisesMoreThanTheHeapHas) {
  EXPECT_EQ(believable_budget(16 * gib, 14 * gib), 14 * gib);
  EXPECT_EQ(believable_budget(16 * gib, 24 * gib), 16 * gib);
  EXPECT_EQ(believable_usage(2 * gib, gib), 2 * gib);
  EXPECT_EQ(believable_usage(2 * gib, 3 * gib), 3 * gib);
}

TEST(SelectMemoryType, takesCachedMemoryThatIsNotCoherentForReading) {
  const auto odd = memory({gib}, {{visible | coherent, 0}, {visible | cached, 0}});
  EXPECT_EQ(select_memory_type(odd, all, BufferKind::host_read, 1, false), 1u);
  EXPECT_EQ(select_memory_type(odd, all, BufferKind::host_write, 1, false), 0u);
}

TEST(SelectMemoryType, respectsTheAllowedTypesAndTheSizeOfTheHeap) {
  EXPECT_EQ(select_memory_type(discrete, 1u << 3, BufferKind::device, gib / 4, false), 3u);
  EXPECT_EQ(select_memory_type(discrete, 1u << 3, BufferKind::device, gib / 4 + 1, false), std::nullopt);
  EXPECT_EQ(select_memory_type(discrete, 0, BufferKind::device, 1, false), std::nullopt);
  EXPECT_EQ(select_memory_type(discrete, all, BufferKind::host_read, 64 * gib, false), std::nullopt);
}

TEST(SelectMemoryType, neverMapsWhatTheHostCannotSee) {
  EXPECT_EQ(select_memory_type(memory({gib}, {{local, 0}}), all, BufferKind::host_read, 1, false), std::nullopt);
  EXPECT_EQ(select_memory_type(memory({gib}, {{local, 0}}), all, BufferKind::host_write, 1, false), std::nullopt);
}

TEST(SelectMemoryType, leavesSpecialMemoryAlone) {
  for (const VkMemoryPropertyFlags special :
       {VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, VK_MEMORY_PROPERTY_PROTECTED_BIT,
        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD, VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD}) {
    const auto odd = memory({gib}, {{local | visible | coherent | cached | special, 0}, {visible, 0}});
    EXPECT_EQ(select_memory_type(odd, all, BufferKind::device, 1, true), 1u) << special;
    EXPECT_EQ(select_memory_type(odd, all, BufferKind::host_read, 1, true), 1u) << special;
  }
}

}  // namespace
}  // namespace canopy::vk
