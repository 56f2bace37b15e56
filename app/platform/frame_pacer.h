#pragma once
// Decides when the window draws. Nothing happens, nothing is drawn; on a software device drawing shares the processor
// with the engine, so frames are spaced by what they were measured to cost.

#include <limits>

namespace canopy::app {

class FramePacer {
 public:
  /// Times are seconds of one steady clock.
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// After input, when frames come once more: a little more than the delays of tooltips together (app/look/theme.cpp).
  static constexpr double kRest = 0.5;

  explicit FramePacer(bool software_device) : software_(software_device) {}

  /// The user did something: answer at once.
  void on_input();
  /// The engine reported something. generating: a load or a reply is under way, so more will follow.
  void on_engine_event(bool generating);
  /// Whether what is shown moves by itself: then frames follow each other.
  void on_motion(bool moving) { moving_ = moving; }
  /// A frame was drawn: when it began and what it cost, device time included.
  void on_frame(double start, double cost);

  /// Seconds from now until the next frame; 0 = draw now, kNever = wait for an event.
  double wait(double now) const;

  /// Smallest distance between the starts of two frames that the engine caused.
  double engine_interval() const;
  double average_cost() const { return cost_; }

 private:
  bool software_;
  bool generating_ = false;
  bool moving_ = false;
  int owed_ = 3;       // frames still to draw; Dear ImGui settles within three
  bool input_ = true;  // the next one answers the user
  double last_ = -kNever;
  double cost_ = 0;         // running mean, seconds
  double rested_ = kNever;  // when the mouse will have rested long enough for a tooltip
};

}  // namespace canopy::app
