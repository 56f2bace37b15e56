// A model's file that is cut short, written to or replaced while it is being loaded.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "engine/model/model.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/compute/forwarding_device.h"
#include "tests/format/split_gguf.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

/// Calls a function when the loader hands over a matrix: after the loader has checked that the file is unchanged, and
/// before the matrix is read.
class InterruptedDevice : public ForwardingDevice {
 public:
  InterruptedDevice(std::string matrix, std::function<void()> event)
      : ForwardingDevice(make_reference_device()), matrix_(std::move(matrix)), event_(std::move(event)) {}
  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override {
    if (name == matrix_) event_();
    return ForwardingDevice::make_weight(parts, layout, name);
  }

 private:
  std::string matrix_;
  std::function<void()> event_;
};

class LostFile : public testing::Test {
 protected:
  /// Loads, with an event at the first or at the last matrix.
  void load(const char* matrix, std::function<void()> event) { load_from(path_, matrix, std::move(event)); }

  static void load_from(const fs::path& path, const char* matrix, std::function<void()> event) {
    const ModelFile file = ModelFile::open(path);
    InterruptedDevice device(matrix, std::move(event));
    ModelOptions options;
    options.context = 64;
    (void)Model::load(device, file, options);
  }

  const TempFolder folder_;
  const fs::path path_ = folder_.write("model.gguf", RandomModel{}.build());
};

TEST_F(LostFile, ThatShrinksUnderTheReaderIsAnErrorAndNotTheEnd) {
  for (const char* matrix : {"token_embd", "blk.0.attn_output", "blk.1.ffn_down"}) {
    SCOPED_TRACE(matrix);
    folder_.write("model.gguf", RandomModel{}.build());
    expect_error("changed while it was open", [&] { load(matrix, [&] { fs::resize_file(path_, 4096); }); });
  }
}

TEST_F(LostFile, ThatIsWrittenToIsAnErrorEvenAtTheLastMatrix) {
  expect_error("was written to while it was open", [&] {
    load("blk.1.ffn_down", [&] {
      std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(100000);
      file << "other";
      file.close();
      fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::seconds(1));
    });
  });
}

TEST_F(LostFile, OfWhichAPartShrinksOrIsWrittenToIsNamed) {
  const GgufBuilder whole = RandomModel{}.builder();
  const auto write = [&] { return write_parts(folder_, "split", split_gguf(whole, {4, 12, whole.tensors.size()})); };
  const auto paths = write();
  EXPECT_NO_THROW(load_from(paths[1], "token_embd", [] {}));
  for (const char* matrix : {"token_embd", "blk.1.ffn_down"}) {
    for (const fs::path& path : write()) {
      SCOPED_TRACE(path);
      write();
      expect_error(path.string() + " changed while it was open",
                   [&] { load_from(paths[0], matrix, [&] { fs::resize_file(path, fs::file_size(path) / 2); }); });
    }
  }
}

TEST_F(LostFile, ThatIsReplacedOrRemovedIsReadAsItWas) {
  EXPECT_NO_THROW(load("token_embd", [&] { fs::rename(folder_.write("other", "nothing"), path_); }));
  folder_.write("model.gguf", RandomModel{}.build());
  EXPECT_NO_THROW(load("token_embd", [&] { fs::remove(path_); }));
}

}  // namespace
}  // namespace canopy::test
