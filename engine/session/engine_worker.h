#pragma once
// The inside of EngineThread: the queues on both sides of the thread, and what the thread does with a command.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/client/event_queue.h"
#include "engine/session/dense_drafts.h"
#include "engine/session/device_measuring.h"
#include "engine/session/engine.h"
#include "engine/session/engine_thread.h"
#include "engine/session/reply_trace.h"

namespace canopy {

class EngineThread::Worker {
 public:
  explicit Worker(EngineBackend backend);
  ~Worker();

  void post(Command command);
  std::vector<Event> poll();
  void set_wake(std::function<void()> wake);
  const std::vector<DeviceChoice>& devices() const { return devices_; }

 private:
  /// A command with what ends it. A StopReply ends the replies posted before it, running or waiting, and none posted
  /// after it; CancelLoad and CancelCalibration likewise loads and calibrations.
  struct Posted {
    Command command;
    std::stop_source stop;
  };

  /// The members are destroyed in reverse order, so that each is gone before what it refers to.
  struct Current {
    std::string selector;
    std::shared_ptr<Device> device;
    LoadModel request;
    std::unique_ptr<Engine> model;
    std::unique_ptr<ReplyTrace> trace;  // null while nothing is recorded
    std::string trace_name;
    std::filesystem::path dense_trace;  // that drafts are to be added to in the end; empty: none are
  };

  void run();
  std::optional<Posted> next();
  void handle(const Posted& item);
  /// Ends what is of type T, running or waiting. commands_mutex_ is held.
  template <class T>
  void stop_all();
  /// The model in use. Throws unavailable without one.
  Engine& model();
  /// Publishes the error that ended a command; closes the device where that error is its loss.
  void failed(const std::exception_ptr& thrown, const char* (*title)(ErrorKind), uint64_t reply_id);

  void load(const LoadModel& command, const std::stop_token& stop);
  Current open_beside_current(const LoadModel& command, const std::stop_token& stop);
  Current open(const LoadModel& command, const std::stop_token& stop, ReclaimableMemory& memory);
  /// Whether a selector names the device of the model in use.
  bool is_current_device(const std::string& selector) const;
  /// Whether it names the GPU of the model in use, by whatever backend.
  bool is_current_gpu(const std::string& selector) const;
  /// DeviceInfo::uuid of the device that a selector names; empty where there is none or nobody knows.
  std::string uuid_of(const std::string& selector) const;
  /// Frees the current model's memory for the one that is to replace it.
  void release_current();
  /// Opens the model again that release_current() took; a sentence where that fails, else nothing.
  std::string restore();
  void load_failed(const Error& error);
  void release();

  void generate(const Generate& command, const std::stop_token& stop);
  void count(const CountTokens& command);
  void write_reply(const Generate& command, const std::stop_token& stop);
  void tell_what_changed(uint64_t reply_id, DecodeMode mode);

  void calibrate(const Calibrate& command, const std::stop_token& stop);

  void report(const ReportDevice& command, const std::stop_token& stop);
  /// The same without a model in use: opens the device for as long as it takes.
  MeasuredReport report_shape(const ReportDevice& command, const MeasuringCallbacks& callbacks);

  void verify(const VerifyRecording& command, const std::stop_token& stop);

  class Comparison;
  void compare(const Compare& command, const std::stop_token& stop);
  bool is_paused();
  void set_paused(bool paused);
  /// Until it is no longer paused, or `stop`.
  void wait_while_paused(const std::stop_token& stop);

  void record(const RecordTrace& command);
  void end_recording();
  /// Adds drafts behind every token to the recording that has ended, if that was asked for.
  void make_dense(const std::stop_token& stop);
  DenseCallbacks dense_callbacks(const std::stop_token& stop);
  void densify(const DensifyTrace& command, const std::stop_token& stop);
  void tell_of_recording(bool active);

  void publish(Event event, bool wake = true);

  EngineBackend backend_;
  std::vector<DeviceChoice> devices_;

  std::mutex commands_mutex_;
  std::condition_variable commands_ready_;
  std::deque<Posted> commands_;  // waiting
  std::optional<Posted> running_;
  std::stop_source quit_;

  std::mutex pause_mutex_;
  std::condition_variable_any resumed_;
  bool paused_ = false;  // comparisons; guarded by pause_mutex_

  EventQueue events_;
  std::mutex wake_mutex_;
  std::function<void()> wake_;

  // Of the thread alone.
  std::optional<Current> current_;
  bool device_lost_ = false;
  bool would_fit_quantized_ = false;  // the model that was refused last

  std::thread thread_;
};

}  // namespace canopy
