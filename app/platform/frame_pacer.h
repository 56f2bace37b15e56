#pragma once
// Decides when the window draws a frame. Nothing is drawn while nothing happens. On a software device, where drawing
// takes processor time from the engine, the distance between frames depends on their measured cost.

#include <limits>

namespace canopy::app {

class FramePacer {
 public:
  /// All times are seconds of one steady clock.
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// Seconds after input at which a frame is drawn again, for tooltips: a little more than their delays
  /// (app/look/theme.cpp).
  static constexpr double kRest = 0.5;

  explicit FramePacer(bool software_device) : software_(software_device) {}

  /// Call on input: the next frame is drawn at once.
  void on_input();
  /// Call when the pointer moved with no button held: a frame is due soon, as what lies under it may light up. On a
  /// software device such frames take at most a quarter of the processor.
  void on_pointer();
  /// Call on an event of the engine. generating: a load or a reply is in progress, so more events will follow.
  void on_engine_event(bool generating);
  /// Call with true while what is shown moves by itself, so that frames are drawn one after the other.
  void on_motion(bool moving) { moving_ = moving; }
  /// Call after a frame, with the time it began and its cost in seconds, device time included.
  void on_frame(double start, double cost);

  /// Seconds from `now` until the next frame; 0: draw now, kNever: wait for an event.
  double wait(double now) const;

  /// Least distance in seconds between the beginnings of two frames that the engine caused.
  double engine_interval() const;
  double average_cost() const { return cost_; }

 private:
  bool software_;
  bool generating_ = false;
  bool moving_ = false;
  int owed_ = 3;          // frames still to draw; Dear ImGui needs up to three until its layout is final
  bool input_ = true;     // the next frame is due to input
  bool pointer_ = false;  // the next frame is due to a move of the pointer
  double last_ = -kNever;
  double cost_ = 0;         // running mean, seconds
  double rested_ = kNever;  // time at which a tooltip is due after input
};

}  // namespace canopy::app
