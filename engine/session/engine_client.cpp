#include "engine/session/engine_client.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace canopy {

CostSnapshot cost_snapshot(const CostTable& table, const Roofline& bare) {
  CostSnapshot snapshot{table, calibrated_roofline(bare, table), {}, 0};
  snapshot.table.set_roofline(bare);
  double error = 0;
  for (const CostPoint& point : table.verify_points()) {
    MeasuredPass pass{point.rows, point.context, point.ms, 1000 * snapshot.fitted.seconds(point.rows, point.context)};
    error += std::abs(pass.residual());
    snapshot.passes.push_back(pass);
  }
  if (!snapshot.passes.empty()) snapshot.fit_error = error / static_cast<double>(snapshot.passes.size());
  std::sort(snapshot.passes.begin(), snapshot.passes.end(), [](const MeasuredPass& a, const MeasuredPass& b) {
    return std::tie(a.context, a.width) < std::tie(b.context, b.width);
  });
  return snapshot;
}

bool is_server_address(std::string_view path) {
  const auto begins = [&](std::string_view scheme) {
    return path.size() > scheme.size() && std::equal(scheme.begin(), scheme.end(), path.begin(), [](char a, char b) {
             return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b + 32) : b);
           });
  };
  return begins("http://") || begins("https://");
}

LearntSnapshot learnt_snapshot(const Controller& controller, uint32_t block) {
  const DepthCalibrator& calibrator = controller.calibrator();
  LearntSnapshot snapshot;
  snapshot.drafts = calibrator.drafts();
  for (uint32_t depth = 1; depth < block; ++depth) {
    snapshot.depths.push_back({calibrator.calibration(depth)[depth - 1], calibrator.reliability(depth)});
  }
  snapshot.reliability = calibrator.reliability(0);
  snapshot.promises = controller.promises();
  snapshot.tree = controller.hindsight().tree();
  snapshot.chain = controller.hindsight().chain();
  return snapshot;
}

namespace {

template <class T>
bool are_both(const Event& a, const Event& b) {
  return std::holds_alternative<T>(a) && std::holds_alternative<T>(b);
}

bool only_newest_matters(const Event& last, const Event& event) {
  if (are_both<LoadProgress>(last, event)) {
    return std::get<LoadProgress>(last).stage == std::get<LoadProgress>(event).stage;
  }
  if (are_both<PrefillProgress>(last, event)) {
    return std::get<PrefillProgress>(last).reply_id == std::get<PrefillProgress>(event).reply_id;
  }
  return are_both<CalibrationProgress>(last, event) || are_both<ReportProgress>(last, event) ||
         are_both<MemoryUse>(last, event) || are_both<ComparisonProgress>(last, event);
}

bool merge_into(Event& last, const Event& event) {
  if (const auto* text = std::get_if<TextDelta>(&event)) {
    auto* before = std::get_if<TextDelta>(&last);
    if (before == nullptr || before->reply_id != text->reply_id) return false;
    std::string joined = std::move(before->text) + text->text;
    *before = *text;
    before->text = std::move(joined);
    return true;
  }
  if (!only_newest_matters(last, event)) return false;
  last = event;
  return true;
}

}  // namespace

size_t bulk_of(const RoundRecord& record) {
  return record.nodes.capacity() * sizeof(RoundNode) + record.choice.candidates.capacity() * sizeof(WidthForecast);
}

void EventQueue::push(Event event) {
  const std::lock_guard lock(mutex_);
  if (!events_.empty() && merge_into(events_.back(), event)) return;
  if (const auto* finished = std::get_if<RoundFinished>(&event)) waiting_ += bulk_of(*finished->round);
  events_.push_back(std::move(event));
  while (waiting_ > most_waiting_) abridge_oldest();
}

void EventQueue::abridge_oldest() {
  for (; whole_ < events_.size(); ++whole_) {
    auto* finished = std::get_if<RoundFinished>(&events_[whole_]);
    if (finished == nullptr || bulk_of(*finished->round) == 0) continue;
    waiting_ -= bulk_of(*finished->round);
    RoundRecord rest = *finished->round;
    rest.nodes = std::vector<RoundNode>();  // a new vector, since clear() would keep the memory
    rest.choice.candidates = std::vector<WidthForecast>();
    finished->round = std::make_shared<const RoundRecord>(std::move(rest));
    finished->abridged = true;
    return;
  }
  waiting_ = 0;  // nothing large is left
}

std::vector<Event> EventQueue::take() {
  const std::lock_guard lock(mutex_);
  waiting_ = 0;
  whole_ = 0;
  return std::exchange(events_, {});
}

}  // namespace canopy
