#include "engine/predict/prediction.h"

#include <algorithm>

#include "engine/predict/op_work.h"

namespace canopy::predict {
namespace {

constexpr uint32_t kWidths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

/// Of rows, ancestor lists and results: a few dozen bytes for each row.
constexpr double kBusBytesPerRow = 256;

double host_us(const DeviceProfile& device, const KernelRules& rules, uint32_t width) {
  return rules.submissions * (device.submission_us + device.round_trip_us) +
         width * kBusBytesPerRow / (device.bus_gb_s * 1e3);
}

std::string shapes_of(const Op& op) {
  return std::visit([](const auto& args) { return args.shapes(); }, op);
}

void add_op(PassPrediction& pass, const Op& op, const Work& work, const WorkTime& time) {
  const std::string shapes = shapes_of(op);
  const auto same = std::ranges::find_if(pass.ops, [&](const OpPrediction& each) {
    return each.name == name_of(op) && each.shapes == shapes && each.each.total == time.total;
  });
  if (same != pass.ops.end()) {
    ++same->count;
  } else {
    pass.ops.push_back({name_of(op), shapes, 1, work.kernel, work.registers, work.shared_bytes, work.workgroups, time});
  }
}

}  // namespace

PassPrediction predict_pass(RecordedModel& model, const DeviceProfile& device, const KernelRules& rules, uint32_t width,
                            uint32_t context) {
  PassPrediction pass;
  pass.width = width;
  double us = 0;
  for (const Op& op : model.record(width, context, 0)) {
    const Work work = work_of(op, rules, device);
    const WorkTime time = time_of(work, device);
    us += time.total;
    pass.weight_bytes += weight_bytes_of(op);
    add_op(pass, op, work, time);
  }
  pass.host_ms = host_us(device, rules, width) / 1e3;
  pass.ms = us / 1e3 + pass.host_ms;
  return pass;
}

double predict_ops_ms(const OpList& ops, const DeviceProfile& device, const KernelRules& rules) {
  double us = 0;
  for (const Op& op : ops) us += time_of(work_of(op, rules, device), device).total;
  return us / 1e3;
}

double bandwidth_share(const PassPrediction& pass, const DeviceProfile& device) {
  return static_cast<double>(pass.weight_bytes) / (pass.ms * 1e-3) / (device.memory_gb_s * 1e9);
}

std::span<const uint32_t> usual_widths() {
  return kWidths;
}

}  // namespace canopy::predict
