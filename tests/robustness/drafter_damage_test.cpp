// Every truncation and every flipped bit of small drafters: each is opened beside its target, checked against it, put
// on a device, and used. A drafter that loads may draft anything; the text is that of the target all the same.

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/session/engine.h"
#include "tests/base/temp_folder.h"
#include "tests/reference/reference_device.h"
#include "tests/robustness/damage.h"
#include "tests/robustness/seed_model.h"

namespace canopy::test {
namespace {

constexpr uint64_t device_bytes = uint64_t{256} << 20;
constexpr uint32_t reply_tokens = 6;

class DrafterDamage : public testing::Test {
 protected:
  void write_target(const std::vector<SeedFile>& files) {
    for (const SeedFile& file : files) target_.write(file.name, file.bytes);
    request_.path = files.size() == 1 ? target_.path() / files.front().name : target_.path();
    request_.context = 32;
    request_.max_width = 8;
    request_.self_test = false;
    do {
      ASSERT_LT(++seed_, 100u) << "every reply ends before there is something to draft";
      plain_ = reply(DecodeMode::ar);
    } while (plain_.size() < reply_tokens);
  }

  /// Damages one file of a drafter in every way and uses the result.
  void use_all(const std::filesystem::path& drafter, const std::filesystem::path& file, const std::string& bytes) {
    request_.drafter = drafter;
    ASSERT_EQ(use(), "") << "whole";
    const Damages damages(bytes);
    const IsolatedTotals totals = use_every_damage(
        damages, {drafter, file, {}, [&](uint64_t index, const std::string&) -> std::string {
                    const std::string fault = use();
                    return fault.empty() && damages.is_cut(index) ? "a file that was cut short was used" : fault;
                  }});
    EXPECT_GT(totals.refused, 0u);
    EXPECT_GT(totals.accepted, 0u);
  }

  const TempFolder folder_;

 private:
  std::vector<uint32_t> reply(DecodeMode mode) {
    const auto device = make_reference_device(device_bytes);
    const auto loaded = Engine::open(*device, request_, {});
    ReplySettings settings;
    settings.mode = mode;
    settings.budget = 6;
    settings.max_tokens = reply_tokens;
    settings.sampling.temperature = 0.9f;
    settings.sampling.seed = seed_;
    const std::vector<uint32_t> prompt = loaded->text.encode_raw("abcd ab");
    open_ = true;
    return loaded->reply(prompt, settings).ids;
  }

  /// Drafts with the drafter. Returns what is wrong, or an empty text; throws what opening throws.
  std::string use() {
    open_ = false;
    try {
      return reply(DecodeMode::tree) == plain_ ? "" : "the text is another one";
    } catch (const Error& e) {
      if (!open_) throw;
      // Finite weights may still give NaN in a draft, which is reported when it happens.
      const std::string message = e.what();
      const bool told = e.kind() == ErrorKind::bad_input && message.find("drafter") != std::string::npos;
      return told ? "" : "drafting failed with: " + message;
    }
  }

  const TempFolder target_;
  OpenRequest request_;
  uint64_t seed_ = 0;  // of a reply that ends only at its length
  std::vector<uint32_t> plain_;
  bool open_ = false;
};

TEST_F(DrafterDamage, EveryBitOfAFileInLlamaCppsDialect) {
  write_target({{"target.gguf", seed_gguf().build()}});
  const std::string bytes = seed_drafter_gguf().build();
  const auto path = folder_.write("drafter.gguf", bytes);
  use_all(path, path, bytes);
}

TEST_F(DrafterDamage, EveryBitOfTheConfigOfAFolder) {
  write_target(seed_folder());
  for (const SeedFile& file : seed_drafter_folder()) folder_.write(file.name, file.bytes);
  use_all(folder_.path(), folder_.path() / "config.json", seed_drafter_folder()[0].bytes);
}

TEST_F(DrafterDamage, EveryBitOfTheWeightsOfAFolder) {
  write_target(seed_folder());
  for (const SeedFile& file : seed_drafter_folder()) folder_.write(file.name, file.bytes);
  use_all(folder_.path(), folder_.path() / "model.safetensors", seed_drafter_folder()[1].bytes);
}

}  // namespace
}  // namespace canopy::test
