// The drafter that comes with Canopy, damaged in every kind of place: cut inside and between its parts, bits flipped in
// header, metadata, list of tensors and weights. (Small drafters have each of their bits tried: drafter_damage_test.)

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "engine/base/error.h"
#include "engine/format/dequantize.h"
#include "engine/format/drafter_file.h"
#include "tests/base/temp_folder.h"
#include "tests/robustness/damage.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t header_bytes = 24;

/// Everything that happens to a drafter before its weights are repacked: opens it, checks it against a target, reads
/// every weight.
std::string use(const fs::path& path, const ModelConfig& target) {
  const DrafterFile drafter = DrafterFile::open(path);
  (void)with_context(path.filename().string(), [&] { return check_pair(target, drafter.config()); });
  with_context(path.filename().string(), [&] {
    for (const TensorView& tensor : drafter.tensors()) require_finite(tensor, 0, tensor.rows());
  });
  drafter.check_unchanged();
  return "";
}

class DrafterAssetDamage : public testing::Test {
 protected:
  DrafterAssetDamage() {
    fs::copy_file(fs::path(CANOPY_SOURCE_DIR) / "assets/smollm2-135m-dflash.gguf", path_);
    fs::permissions(path_, fs::perms::owner_write, fs::perm_options::add);
    const DrafterFile drafter = DrafterFile::open(path_);
    const DrafterConfig& config = drafter.config();
    target_ = config.transformer;
    target_.layers = config.target_layers;
    target_.vocab = config.vocab;
    size_ = fs::file_size(path_);
    const auto* begin = drafter.file().gguf()->files().front().bytes().data();
    for (const TensorView& tensor : drafter.tensors()) {
      tensors_.push_back(static_cast<uint64_t>(tensor.bytes.data() - begin));
    }
    std::ranges::sort(tensors_);
  }

  uint64_t data_at() const { return tensors_.front(); }

  /// `count` places from `begin` to `end`, evenly spread.
  static void spread(uint64_t begin, uint64_t end, uint64_t count, std::vector<uint64_t>& places) {
    for (uint64_t i = 0; i < count; ++i) places.push_back(begin + (end - begin) * i / count);
  }

  CaseResult judge(bool may_load) const {
    try {
      std::string fault = use(path_, target_);
      if (!may_load && fault.empty()) fault = "a file that was cut short was used";
      return {true, fault};
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::bad_input) return {false, "the error is of another kind: " + std::string(e.what())};
      return {false, fault_of_refusal(e.what(), path_.filename().string())};
    }
  }

  const TempFolder folder_;
  const fs::path path_ = folder_.path() / "drafter.gguf";
  ModelConfig target_;
  uint64_t size_ = 0;
  std::vector<uint64_t> tensors_;  // offset of the bytes of each, ascending
};

TEST_F(DrafterAssetDamage, FlippedBitsOfEveryPart) {
  ASSERT_EQ(use(path_, target_), "");
  std::vector<uint64_t> bits;
  spread(0, header_bytes * 8, header_bytes * 8, bits);
  spread(header_bytes * 8, 4096 * 8, 2000, bits);             // keys, types, numbers
  spread(4096 * 8, (data_at() - 8192) * 8, 500, bits);        // the vocabulary
  spread((data_at() - 8192) * 8, data_at() * 8, 2000, bits);  // the list of tensors
  spread(data_at() * 8, size_ * 8, 500, bits);
  IsolatedCases cases;
  cases.count = bits.size();
  cases.stride = stride_from_environment();
  cases.describe = [&](uint64_t index) {
    return "bit " + std::to_string(bits[index] % 8) + " of byte " + std::to_string(bits[index] / 8) + " flipped";
  };
  cases.run = [&](uint64_t index) -> CaseResult {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    const auto at = static_cast<std::streamoff>(bits[index] / 8);
    const auto flip = [&] {
      file.seekg(at);
      const int byte = file.get() ^ 1 << bits[index] % 8;
      file.seekp(at);
      file.put(static_cast<char>(byte)).flush();
    };
    flip();
    const CaseResult result = judge(true);
    flip();
    return result;
  };
  const IsolatedTotals totals = run_isolated(cases);
  EXPECT_GT(totals.refused, 0u);
  EXPECT_GT(totals.accepted, 0u);
}

TEST_F(DrafterAssetDamage, CutsInsideAndBetweenAllParts) {
  std::vector<uint64_t> lengths;
  spread(0, header_bytes, header_bytes, lengths);
  spread(header_bytes, 4096, 400, lengths);
  spread(4096, data_at() - 8192, 100, lengths);
  spread(data_at() - 8192, data_at(), 400, lengths);
  for (const uint64_t at : tensors_) {
    for (const uint64_t length : {at - 1, at, at + 1}) lengths.push_back(length);
  }
  lengths.push_back(size_ - 1);
  std::ranges::sort(lengths, std::greater());  // descending, as a file can only be cut further
  IsolatedCases cases;
  cases.count = lengths.size();
  cases.stride = stride_from_environment();
  cases.describe = [&](uint64_t index) { return "cut to " + std::to_string(lengths[index]) + " bytes"; };
  cases.run = [&](uint64_t index) -> CaseResult {
    fs::resize_file(path_, lengths[index]);
    return judge(false);
  };
  const IsolatedTotals totals = run_isolated(cases);
  EXPECT_GT(totals.refused, 0u);
  EXPECT_EQ(totals.accepted, 0u);
}

}  // namespace
}  // namespace canopy::test
