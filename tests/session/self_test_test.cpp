#include "engine/session/self_test.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/base/temp_folder.h"
#include "tests/compute/forwarding_device.h"
#include "tests/compute/stepping_device.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

/// Rounds the last bit of a logit differently in passes of at least `from` rows, as a driver was seen to do in passes
/// of more than one: in the first of the rows that are read, or in the last.
class WideFaultDevice : public ForwardingDevice {
 public:
  enum class Row { first, last };
  WideFaultDevice(std::unique_ptr<Device> inner, uint32_t from, Row row)
      : ForwardingDevice(std::move(inner)), from_(from), row_(row) {}
  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override {
    auto commands = ForwardingDevice::compile(ops, stop);
    const auto* embed = ops.empty() ? nullptr : std::get_if<EmbedArgs>(&ops.front());
    if (embed != nullptr) widths_[commands.get()] = embed->width;
    return commands;
  }
  bool run(Commands& commands, const std::stop_token& stop) override {
    const auto width = widths_.find(&commands);
    if (width != widths_.end()) {
      width_ = width->second;
      wide_ = width_ >= from_;
    }
    return ForwardingDevice::run(commands, stop);
  }
  uint32_t width() const { return width_; }  // of the last pass
  void read_all(std::span<const BufferRead> reads) override {
    ForwardingDevice::read_all(reads);
    for (const BufferRead& r : reads) {
      if (wide_ && r.to.size() > 64) (row_ == Row::first ? r.to[4] : r.to.back()) ^= std::byte{1};
    }
  }

 private:
  uint32_t from_;
  Row row_;
  std::map<const Commands*, uint32_t> widths_;
  uint32_t width_ = 0;
  bool wide_ = false;
};

/// Falls back to the kernels of a device without the fault.
class RepairedDevice : public WideFaultDevice {
 public:
  RepairedDevice(uint32_t fallbacks, uint32_t right_after)
      : WideFaultDevice(make_reference_device(), 3, Row::first), left_(fallbacks), right_after_(right_after) {}
  bool fall_back() override {
    if (left_ == 0) return false;
    --left_;
    ++taken_;
    return true;
  }
  void read_all(std::span<const BufferRead> reads) override {
    if (taken_ >= right_after_) return ForwardingDevice::read_all(reads);
    WideFaultDevice::read_all(reads);
  }
  uint32_t taken() const { return taken_; }

 private:
  uint32_t left_, right_after_, taken_ = 0;
};

SelfTestReport test_on(Device& device, uint32_t max_width = 8, const SelfTestCallbacks& callbacks = {}) {
  TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", RandomModel{}.build()));
  ModelOptions options;
  options.max_width = max_width;
  return run_self_test(*Model::load(device, file, options), callbacks);
}

/// Draws tokens, and where it is told to another one than the host.
class DrawingDevice : public ForwardingDevice {
 public:
  explicit DrawingDevice(bool draws_wrong) : ForwardingDevice(make_reference_device()), draws_wrong_(draws_wrong) {
    info_ = ForwardingDevice::info();
    info_.draws_tokens = true;
  }
  const DeviceInfo& info() const override { return info_; }
  void read_all(std::span<const BufferRead> reads) override {
    ForwardingDevice::read_all(reads);
    for (const BufferRead& r : reads) {
      if (draws_wrong_ && r.to.size() == 5 * sizeof(uint32_t)) r.to[0] ^= std::byte{1};  // tokens after five rows
    }
  }

 private:
  DeviceInfo info_;
  bool draws_wrong_;
};

TEST(SelfTest, ComparesTheTokensThatADeviceDraws) {
  DrawingDevice right(false), wrong(true);
  EXPECT_TRUE(test_on(right).passed);
  EXPECT_TRUE(test_on(right).draws_alike);
  EXPECT_TRUE(test_on(wrong).passed);
  EXPECT_FALSE(test_on(wrong).draws_alike);
  uint32_t done = 0, total = 0;
  SelfTestCallbacks callbacks;
  callbacks.progress = [&](uint32_t so_far, uint32_t all) { done = so_far, total = all; };
  test_on(right, 8, callbacks);
  EXPECT_EQ(done + 1, total);
}

TEST(SelfTest, FallsBackUntilTheDeviceKeepsTheContract) {
  const auto report_of = [](RepairedDevice& device) {
    TempFolder folder;
    const ModelFile file = ModelFile::open(folder.write("model.gguf", RandomModel{}.build()));
    ModelOptions options;
    options.max_width = 8;
    const auto model = Model::load(device, file, options);
    const SelfTestReport report = self_test_or_fall_back(*model);
    const uint64_t made = model->recordings();
    EXPECT_TRUE(run_self_test(*model).passed == report.passed);
    EXPECT_EQ(model->recordings(), made);
    return report;
  };
  RepairedDevice second(2, 1), none(2, 5), right(2, 0);
  const SelfTestReport repaired = report_of(second);
  EXPECT_TRUE(repaired.passed);
  EXPECT_NE(repaired.fallback.find("slower ones are used"), std::string::npos) << repaired.fallback;
  EXPECT_EQ(second.taken(), 1u);
  EXPECT_FALSE(report_of(none).passed);
  EXPECT_EQ(none.taken(), 2u);
  EXPECT_EQ(report_of(right).fallback, "");
  EXPECT_EQ(right.taken(), 0u);
}

/// Has kernels that its driver cannot make, as many as it can fall back from or one more.
class UnmakeableDevice : public ForwardingDevice {
 public:
  UnmakeableDevice(uint32_t unmakeable, uint32_t fallbacks)
      : ForwardingDevice(make_reference_device()), unmakeable_(unmakeable), left_(fallbacks) {}
  bool fall_back() override {
    if (left_ == 0) return false;
    --left_;
    --unmakeable_;
    return true;
  }
  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override {
    if (unmakeable_ > 0) throw Error(ErrorKind::unavailable, "The driver cannot compile this kernel.");
    return ForwardingDevice::compile(ops, stop);
  }

 private:
  uint32_t unmakeable_, left_;
};

TEST(SelfTest, FallsBackFromKernelsThatCannotBeMade) {
  TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", RandomModel{}.build()));
  ModelOptions options;
  options.max_width = 8;
  UnmakeableDevice first(1, 2), all(3, 2);
  const SelfTestReport report = self_test_or_fall_back(*Model::load(first, file, options));
  EXPECT_TRUE(report.passed);
  EXPECT_NE(report.fallback.find("cannot make its fastest kernels"), std::string::npos) << report.fallback;
  const auto model = Model::load(all, file, options);
  try {
    self_test_or_fall_back(*model);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
  }
}

TEST(SelfTest, PassesOnADeviceThatKeepsTheContract) {
  const auto device = make_reference_device();
  const SelfTestReport report = test_on(*device);
  EXPECT_TRUE(report.passed) << report.sentence;
  EXPECT_NE(report.sentence.find("same bits"), std::string::npos);
}

TEST(SelfTest, TellsItsProgressAndCanBeCancelledAtAnyMoment) {
  SteppingDevice device(make_reference_device());
  StopAtOp stop(device);
  std::vector<uint32_t> seen;
  uint32_t of = 0;
  SelfTestCallbacks callbacks;
  callbacks.progress = [&](uint32_t done, uint32_t total) {
    seen.push_back(done);
    of = total;
  };
  EXPECT_TRUE(test_on(device, 8, callbacks).passed);
  ASSERT_EQ(seen.size(), of);
  for (uint32_t i = 0; i < of; ++i) EXPECT_EQ(seen[i], i);
  const uint64_t whole = stop.ops();
  EXPECT_GT(whole, 10 * of);  // within passes too
  for (const uint64_t at : {uint64_t{1}, uint64_t{2}, whole / 3, whole / 2, whole - 1, whole}) {
    callbacks.stop = stop.arm(at);
    try {
      test_on(device, 8, callbacks);
      ADD_FAILURE() << "not cancelled at op " << at;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::cancelled);
      EXPECT_EQ(stop.ops(), at) << "went on after the stop";
    }
  }
}

TEST(SelfTest, NamesTheFirstDifferenceOfOneBit) {
  WideFaultDevice device(make_reference_device(), 2, WideFaultDevice::Row::first);
  const SelfTestReport report = test_on(device);
  EXPECT_FALSE(report.passed);
  EXPECT_NE(report.sentence.find("the logits of row 1 of 3"), std::string::npos) << report.sentence;
}

// The reference device has tiles of 4: a full one, one row more, and two full ones.
TEST(SelfTest, ComparesFullTilesAndPassesOfSeveral) {
  WideFaultDevice several(make_reference_device(), 6, WideFaultDevice::Row::last);
  const SelfTestReport report = test_on(several, 32);
  EXPECT_FALSE(report.passed);
  EXPECT_NE(report.sentence.find("the logits of row 8 of 8"), std::string::npos) << report.sentence;
}

/// Says that each row takes so long, by its clock.
class TimedDevice : public WideFaultDevice {
 public:
  TimedDevice(double ms_a_row, uint32_t fault_from)
      : WideFaultDevice(make_reference_device(), fault_from, Row::last), ms_a_row_(ms_a_row) {}
  double last_run_ms() const override { return width() * ms_a_row_; }

 private:
  double ms_a_row_;
};

// The wider ones are compared where that takes about a second, whatever kind of device it is.
TEST(SelfTest, ComparesAsManyWidthsAsTheDeviceHasTimeFor) {
  const auto report_of = [](double ms_a_row, uint32_t fault_from) {
    TimedDevice device(ms_a_row, fault_from);
    SelfTestCallbacks callbacks;
    uint32_t done = 0, total = 0;
    callbacks.progress = [&](uint32_t so_far, uint32_t all) { done = so_far, total = all; };
    const SelfTestReport report = test_on(device, 40, callbacks);
    EXPECT_LT(done, total);
    return report;
  };
  const SelfTestReport fast = report_of(0.001, 33);
  EXPECT_FALSE(fast.passed);
  EXPECT_NE(fast.sentence.find("row 33 of 33"), std::string::npos) << fast.sentence;
  EXPECT_TRUE(report_of(20, 33).passed) << "with up to 17 rows it took 0.86 s";
  EXPECT_FALSE(report_of(20, 17).passed);
  EXPECT_TRUE(report_of(500, 9).passed);
  EXPECT_FALSE(report_of(500, 8).passed) << "two full tiles are always compared";
}

TEST(SelfTest, SaysWhenItCouldNotRun) {
  const auto device = make_reference_device();
  const SelfTestReport report = test_on(*device, 2);
  EXPECT_FALSE(report.passed);
  EXPECT_NE(report.sentence.find("not checked"), std::string::npos) << report.sentence;
}

}  // namespace
}  // namespace canopy::test
