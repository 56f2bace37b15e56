#include "engine/session/engine_thread.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/machine.h"
#include "engine/base/text.h"
#include "engine/session/comparison_events.h"
#include "engine/session/devices.h"
#include "engine/session/engine.h"
#include "engine/session/remote_model.h"
#include "engine/session/reply.h"
#include "engine/session/reply_trace.h"
#include "engine/session/verification.h"

namespace canopy {

// The inside of EngineThread: the queues on both sides of the thread, and what the thread does with a command.

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
  /// The same for the address of a server.
  void connect(const LoadModel& command, const std::stop_token& stop);
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
  void forget(const ForgetReplies& command);
  void write_reply(const Generate& command, const std::stop_token& stop);
  void tell_what_changed(uint64_t reply_id, DecodeMode mode);

  void calibrate(const Calibrate& command, const std::stop_token& stop);

  void report(const ReportDevice& command, const std::stop_token& stop);
  /// The same without a model in use: opens the device for as long as it takes.
  MeasuredReport report_shape(const ReportDevice& command, const MeasuringCallbacks& callbacks);

  void verify(const VerifyRecording& command, const std::stop_token& stop);

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

  void serve(const Serve& command);
  /// Begins to serve the model in use where that is wished for and not done yet.
  void start_service();
  /// Call before the model in use goes.
  void end_service();
  void serve_turn();
  /// Has serve_turn() called when there is no command. From any thread.
  void wake_service();

  void publish(Event event, bool wake = true);

  EngineBackend backend_;
  std::vector<DeviceChoice> devices_;

  std::mutex commands_mutex_;
  std::condition_variable commands_ready_;
  std::deque<Posted> commands_;  // waiting
  std::optional<Posted> running_;
  bool service_calls_ = false;  // there is something to do for service_; guarded by commands_mutex_
  std::stop_source quit_;

  std::mutex pause_mutex_;
  std::condition_variable_any resumed_;
  bool paused_ = false;  // comparisons; guarded by pause_mutex_

  EventQueue events_;
  std::mutex wake_mutex_;
  std::function<void()> wake_;

  // Of the thread alone.
  std::optional<Current> current_;
  std::optional<Serve> serve_;             // what is to be served
  std::unique_ptr<ModelService> service_;  // of the model in use
  std::unique_ptr<RemoteModel> remote_;    // that writes the replies instead; never both
  bool device_lost_ = false;
  bool would_fit_quantized_ = false;  // the model that was refused last

  std::thread thread_;
};

namespace {

const char* load_title(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input: return "The model could not be opened";
    case ErrorKind::out_of_memory: return "The model does not fit into memory";
    case ErrorKind::device_lost: return "The device stopped working";
    case ErrorKind::unavailable: return "The device is not available";
    case ErrorKind::cancelled: return "Loading was cancelled";
  }
  return "";
}

const char* reply_title(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::device_lost: return "The device stopped working";
    case ErrorKind::unavailable: return "There is no model to answer";
    case ErrorKind::out_of_memory: return "Memory ran out during the reply";
    default: return "The reply could not be written";
  }
}

const char* calibration_title(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::device_lost: return "The device stopped working";
    case ErrorKind::cancelled: return "The calibration was cancelled";
    default: return "What passes cost could not be measured";
  }
}

const char* connect_title(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::cancelled: return "Connecting was cancelled";
    case ErrorKind::unavailable: return "The engine elsewhere cannot be reached";
    default: return "The engine elsewhere cannot be used";
  }
}

const char* remote_reply_title(ErrorKind kind) {
  return kind == ErrorKind::unavailable ? "The engine elsewhere did not answer" : "The reply could not be read";
}

Failure failure_of(const Error& error, const char* title, uint64_t reply_id) {
  return {error.kind(), title, printable(error.what(), 4096, LineBreaks::keep), reply_id};
}

std::string too_long(uint32_t tokens, uint32_t context) {
  return "The conversation has " + std::to_string(tokens) + " tokens, but the context holds only " +
         std::to_string(context) + ".";
}

bool is_same_gpu(const Device& device, std::string_view uuid) {
  return !uuid.empty() && gpu_of(device.info().uuid) == gpu_of(uuid);
}

}  // namespace

EngineThread::Worker::Worker(EngineBackend backend) : backend_(std::move(backend)) {
  devices_ = backend_.list_devices();
  thread_ = std::thread([this] { run(); });
}

EngineThread::Worker::~Worker() {
  {
    const std::lock_guard lock(commands_mutex_);
    quit_.request_stop();
    if (running_) running_->stop.request_stop();
  }
  commands_ready_.notify_all();
  thread_.join();
}

void EngineThread::Worker::post(Command command) {
  {
    const std::lock_guard lock(commands_mutex_);
    if (std::holds_alternative<StopReply>(command)) return stop_all<Generate>();
    if (std::holds_alternative<CancelLoad>(command)) return stop_all<LoadModel>();
    if (std::holds_alternative<CancelCalibration>(command)) return stop_all<Calibrate>();
    if (std::holds_alternative<CancelReport>(command)) return stop_all<ReportDevice>();
    if (std::holds_alternative<CancelVerification>(command)) return stop_all<VerifyRecording>();
    if (std::holds_alternative<CancelDensify>(command)) {
      stop_all<StopRecording>();
      return stop_all<DensifyTrace>();
    }
    if (std::holds_alternative<CancelComparison>(command)) return stop_all<Compare>();
    if (const auto* pause = std::get_if<PauseComparison>(&command)) return set_paused(pause->paused);
    if (std::holds_alternative<Compare>(command)) set_paused(false);
    commands_.push_back({std::move(command), {}});
  }
  commands_ready_.notify_one();
}

template <class T>
void EngineThread::Worker::stop_all() {
  if (running_ && std::holds_alternative<T>(running_->command)) running_->stop.request_stop();
  for (Posted& waiting : commands_) {
    if (std::holds_alternative<T>(waiting.command)) waiting.stop.request_stop();
  }
}

std::vector<Event> EngineThread::Worker::poll() {
  return events_.take();
}

void EngineThread::Worker::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(wake_mutex_);
  wake_ = std::move(wake);
}

void EngineThread::Worker::publish(Event event, bool wake) {
  events_.push(std::move(event));
  if (!wake) return;
  const std::lock_guard lock(wake_mutex_);
  if (wake_) wake_();
}

void EngineThread::Worker::run() {
  while (!quit_.stop_requested()) {
    const std::optional<Posted> item = next();
    if (item)
      handle(*item);
    else if (!quit_.stop_requested())
      serve_turn();
  }
  service_.reset();
  current_.reset();
}

/// None: the thread is to end, or there is only something to do for clients, who come last.
std::optional<EngineThread::Worker::Posted> EngineThread::Worker::next() {
  std::unique_lock lock(commands_mutex_);
  running_.reset();
  commands_ready_.wait(lock, [this] { return quit_.stop_requested() || !commands_.empty() || service_calls_; });
  if (quit_.stop_requested() || commands_.empty()) return std::nullopt;
  running_ = std::move(commands_.front());
  commands_.pop_front();
  return running_;
}

void EngineThread::Worker::handle(const Posted& item) {
  if (const auto* command = std::get_if<LoadModel>(&item.command)) load(*command, item.stop.get_token());
  if (const auto* command = std::get_if<Generate>(&item.command)) generate(*command, item.stop.get_token());
  if (const auto* command = std::get_if<CountTokens>(&item.command)) count(*command);
  if (const auto* command = std::get_if<ForgetReplies>(&item.command)) forget(*command);
  if (const auto* command = std::get_if<Calibrate>(&item.command)) calibrate(*command, item.stop.get_token());
  if (const auto* command = std::get_if<ReportDevice>(&item.command)) report(*command, item.stop.get_token());
  if (const auto* command = std::get_if<Compare>(&item.command)) compare(*command, item.stop.get_token());
  if (const auto* command = std::get_if<VerifyRecording>(&item.command)) verify(*command, item.stop.get_token());
  if (const auto* command = std::get_if<RecordTrace>(&item.command)) record(*command);
  if (std::holds_alternative<StopRecording>(item.command)) make_dense(item.stop.get_token());
  if (const auto* command = std::get_if<DensifyTrace>(&item.command)) densify(*command, item.stop.get_token());
  if (std::holds_alternative<ReleaseModel>(item.command)) release();
  if (const auto* command = std::get_if<Serve>(&item.command)) serve(*command);
  if (std::holds_alternative<StopServing>(item.command)) {
    serve_.reset();
    end_service();
  }
  if (const auto* command = std::get_if<StopServed>(&item.command); command && service_)
    service_->stop(command->reply_id);
  if (const auto* command = std::get_if<PauseServed>(&item.command); command && service_)
    service_->pause(command->reply_id, command->paused);
  if (const auto* command = std::get_if<RecordServed>(&item.command)) {
    if (service_ != nullptr)
      service_->record(*command);
    else
      publish(ServedRecorded{command->reply_id, command->path, "The model that wrote it is no longer served."});
  }
}

Engine& EngineThread::Worker::model() {
  if (remote_)
    throw Error(ErrorKind::unavailable, "The model is on another machine, " + remote_->address() +
                                            ": this is done there, or here with a model of this machine.");
  if (!current_) throw Error(ErrorKind::unavailable, "No model is loaded: open a model first.");
  return *current_->model;
}

// ---- loading --------------------------------------------------------------------------------------------------------

void EngineThread::Worker::load(const LoadModel& command, const std::stop_token& stop) {
  would_fit_quantized_ = false;
  if (is_server_address(command.path)) return connect(command, stop);
  try {
    Current opened = open_beside_current(command, stop);
    end_service();
    end_recording();
    remote_.reset();
    current_ = std::move(opened);
    publish(current_->model->describe());  // now that the one before has given its memory back
  } catch (...) {
    load_failed(as_error(std::current_exception()));
  }
  start_service();
}

void EngineThread::Worker::connect(const LoadModel& command, const std::stop_token& stop) {
  try {
    if (stop.stop_requested()) throw cancelled("Connecting was cancelled.");
    auto opened = std::make_unique<RemoteModel>(
        command, [this](const LoadProgress& step) { publish(step); }, stop);
    end_service();
    end_recording();
    current_.reset();
    remote_ = std::move(opened);
    publish(remote_->ready());
  } catch (...) {
    failed(std::current_exception(), connect_title, 0);
  }
}

/// The old model stays until the new one is there, unless their memory does not suffice for both: then it goes as soon
/// as the new one's files are checked and its plan stands.
EngineThread::Worker::Current EngineThread::Worker::open_beside_current(const LoadModel& command,
                                                                        const std::stop_token& stop) {
  ReclaimableMemory memory;
  if (current_) memory = {current_->model->device_bytes, [this] { release_current(); }};
  try {
    return open(command, stop, memory);
  } catch (const Error& e) {
    // A plan may promise more than the device then gives. Freeing the old model helps only where it lives.
    const bool ran_out = e.kind() == ErrorKind::out_of_memory && memory.is_planned();
    if (!ran_out || !current_ || current_->model == nullptr || !is_current_gpu(command.device)) throw;
  }
  release_current();
  would_fit_quantized_ = false;
  ReclaimableMemory nothing_replaced;
  return open(command, stop, nothing_replaced);
}

EngineThread::Worker::Current EngineThread::Worker::open(const LoadModel& command, const std::stop_token& stop,
                                                         ReclaimableMemory& memory) {
  Current opened;
  opened.selector = command.device;
  opened.request = command;
  const auto progress = [this](const LoadProgress& step) { publish(step); };
  if (stop.stop_requested()) throw cancelled("Loading was cancelled.");
  if (is_current_device(command.device) && current_->request.threads == command.threads) {
    opened.device = current_->device;
  } else {
    progress({"Opening the device", 0, 0});
    opened.device = backend_.open_device(command.device, command.threads);
  }
  OpenRequest request;
  request.path = command.path;
  request.cache_type = command.kv;
  request.context = command.context;
  request.quantize = command.quantize;
  if (command.draft) choose_drafter(command.drafter, request);
  request.calibration_s = backend_.calibration_s;
  request.keeps_learnt = true;
  request.replies = backend_.replies;
  try {
    const auto would_fit = [this](QuantizeOnLoad) { would_fit_quantized_ = true; };
    ReclaimableMemory elsewhere;  // the old model's is of no use on another GPU
    const bool same_gpu =
        current_ && (current_->device == opened.device || is_same_gpu(*current_->device, opened.device->info().uuid));
    opened.model = Engine::open(*opened.device, request, {progress, stop, would_fit}, same_gpu ? &memory : &elsewhere);
  } catch (const Error& e) {
    device_lost_ = e.kind() == ErrorKind::device_lost && current_ && current_->device == opened.device;
    throw;
  }
  return opened;
}

std::string EngineThread::Worker::uuid_of(const std::string& selector) const {
  try {
    return backend_.device_uuid ? backend_.device_uuid(selector) : "";
  } catch (const Error&) {
    return {};  // it names no device at all: opening it will say so
  }
}

bool EngineThread::Worker::is_current_device(const std::string& selector) const {
  if (!current_) return false;
  if (current_->selector == selector) return true;
  const std::string uuid = uuid_of(selector);
  return !uuid.empty() && uuid == current_->device->info().uuid;
}

/// A GPU's memory is the same whatever backend it is opened by.
bool EngineThread::Worker::is_current_gpu(const std::string& selector) const {
  return is_current_device(selector) || (current_ && is_same_gpu(*current_->device, uuid_of(selector)));
}

void EngineThread::Worker::release_current() {
  end_service();
  end_recording();
  current_->model.reset();
}

std::string EngineThread::Worker::restore() {
  const LoadModel request = current_->request;
  try {
    publish(LoadProgress{"Bringing the previous model back", 0, 0});
    ReclaimableMemory nothing_replaced;
    current_ = open(request, quit_.get_token(), nothing_replaced);
    return {};
  } catch (...) {
    const Error error = as_error(std::current_exception());
    current_.reset();
    return " The model before it had to make room and could not be opened again: " + std::string(error.what());
  }
}

/// The previous model goes on; one that had made room is opened again.
void EngineThread::Worker::load_failed(const Error& error) {
  if (device_lost_) {
    end_service();
    end_recording();
    current_.reset();
    device_lost_ = false;
  }
  const bool would_fit = would_fit_quantized_;
  Failure failure = failure_of(error, load_title(error.kind()), 0);
  if (current_ && current_->model == nullptr && !quit_.stop_requested()) {
    failure.detail += printable(restore(), 4096, LineBreaks::keep);
    device_lost_ = false;
  }
  failure.would_fit_quantized = would_fit;
  publish(failure);
}

void EngineThread::Worker::release() {
  end_service();
  end_recording();
  ModelReleased released;
  if (current_) released.opened = current_->request;
  if (remote_) released.opened = remote_->opened();
  current_.reset();
  remote_.reset();
  publish(std::move(released));
}

// ---- replies --------------------------------------------------------------------------------------------------------

void EngineThread::Worker::generate(const Generate& command, const std::stop_token& stop) {
  const bool elsewhere = remote_ != nullptr;
  try {
    if (!elsewhere) return write_reply(command, stop);
    remote_->reply(
        command, [this](Event event, bool wake) { publish(std::move(event), wake); }, stop);
  } catch (...) {
    failed(std::current_exception(), elsewhere ? remote_reply_title : reply_title, command.reply_id);
  }
}

void EngineThread::Worker::forget(const ForgetReplies& command) {
  if (backend_.replies.empty()) return;
  try {
    SuffixStore::forget(backend_.replies, command.chat);
    if (current_ && current_->model->replies != nullptr) current_->model->replies->reload();
  } catch (...) {
    failed(
        std::current_exception(), [](ErrorKind) { return "Earlier replies could not be forgotten"; }, 0);
  }
}

/// A text in a question is content: what looks like a special token in it is none.
void EngineThread::Worker::count(const CountTokens& command) {
  if (remote_) return publish(TokensCounted{command.id, 0, 0});  // the vocabulary's rules are the other machine's
  if (!current_ || current_->model == nullptr) return;
  try {
    const Tokenizer& tokenizer = *current_->model->text.tokenizer;
    const auto tokens = static_cast<uint32_t>(tokenizer.encode(command.text, SpecialTokens::as_text).size());
    publish(TokensCounted{command.id, tokenizer.identity(), tokens});
  } catch (...) {
    publish(TokensCounted{command.id, 0, 0});
  }
}

void EngineThread::Worker::write_reply(const Generate& command, const std::stop_token& stop) {
  Engine& model = this->model();
  const std::vector<uint32_t> prompt = model.prompt_ids(command.turns, command.raw_prompt, command.thinking);
  const ReplySettings settings = settings_of(command, model.text.tokenizer->identity());
  const auto tokens = static_cast<uint32_t>(prompt.size() + settings.begun.size());
  if (const uint32_t context = model.model->limits().context; tokens > context) {
    Failure full{ErrorKind::bad_input, "The context is full", too_long(tokens, context), command.reply_id};
    full.prompt_tokens = tokens;
    return publish(std::move(full));
  }
  ReplyPublisher publisher(command.reply_id, static_cast<uint32_t>(prompt.size()),
                           static_cast<uint32_t>(settings.begun.size()),
                           [this](Event event, bool wake) { publish(std::move(event), wake); });
  const ReplyCallbacks callbacks = publisher.callbacks(command.rounds, stop);
  Reply reply;
  try {
    reply = current_->trace != nullptr ? current_->trace->record(prompt, settings, callbacks)
                                       : model.reply(prompt, settings, callbacks);
  } catch (...) {
    publisher.flush();
    throw;
  }
  publisher.flush();
  tell_what_changed(command.reply_id, settings.mode);
  publish(model.finished(command.reply_id, reply, settings.mode));
  if (!command.chat.empty() && current_->trace == nullptr) model.remember(command.chat, reply.ids);
  model.keep_what_was_learnt();
}

void EngineThread::Worker::tell_what_changed(uint64_t reply_id, DecodeMode mode) {
  Engine& model = *current_->model;
  if (mode != DecodeMode::ar && model.speculation->is_started()) {
    publish(Learnt{reply_id, std::make_shared<const LearntSnapshot>(
                                 learnt_snapshot(model.speculation->controller(), model.speculation->block_size()))});
  }
  if (current_->trace != nullptr) tell_of_recording(true);
  publish(model.memory_use());
}

/// Nothing on a lost device can be used again; the conversation is the front end's, so loading anew goes on with it.
void EngineThread::Worker::failed(const std::exception_ptr& thrown, const char* (*title)(ErrorKind),
                                  uint64_t reply_id) {
  const Error error = as_error(thrown);
  if (error.kind() == ErrorKind::device_lost) {
    end_service();
    end_recording();
    current_.reset();
  }
  publish(failure_of(error, title(error.kind()), reply_id));
}

// ---- serving --------------------------------------------------------------------------------------------------------

void EngineThread::Worker::serve(const Serve& command) {
  end_service();
  serve_ = command;
  start_service();
}

void EngineThread::Worker::start_service() {
  if (!serve_ || service_ != nullptr || !current_ || current_->model == nullptr) return;
  try {
    if (!backend_.serve) throw Error(ErrorKind::unavailable, "This program cannot serve a model.");
    service_ = backend_.serve(
        *current_->model, *serve_,
        {[this](Event event, bool wake) { publish(std::move(event), wake); }, [this] { wake_service(); }});
  } catch (...) {
    serve_.reset();
    Serving refused;
    refused.problem = printable(as_error(std::current_exception()).what(), 4096, LineBreaks::keep);
    publish(std::move(refused));
  }
}

void EngineThread::Worker::end_service() {
  if (service_ == nullptr) return;
  service_.reset();
  publish(Serving{});
}

void EngineThread::Worker::serve_turn() {
  {
    const std::lock_guard lock(commands_mutex_);
    service_calls_ = false;
  }
  if (service_ == nullptr) return;
  try {
    if (service_->step()) wake_service();
  } catch (...) {
    failed(std::current_exception(), reply_title, 0);
  }
}

void EngineThread::Worker::wake_service() {
  {
    const std::lock_guard lock(commands_mutex_);
    service_calls_ = true;
  }
  commands_ready_.notify_one();
}

// ---- calibration ----------------------------------------------------------------------------------------------------

/// Throws cancelled where something else goes on, so that a measurement that nobody asked for would disturb it, and be
/// disturbed.
static void require_idle_machine(const std::stop_token& stop) {
  constexpr int looks = 10;
  constexpr auto pause = std::chrono::milliseconds(100);
  if (on_battery()) throw cancelled("The machine runs on its battery.");
  const std::optional<ProcessorTime> before = processor_time();
  if (!before) return;
  for (int i = 0; i < looks && !stop.stop_requested(); ++i) std::this_thread::sleep_for(pause);
  const std::optional<ProcessorTime> after = processor_time();
  if (after && share_of_others(*before, *after).value_or(0) >= MeasuredUnder::load)
    throw cancelled("Other programs use the processor.");
}

void EngineThread::Worker::calibrate(const Calibrate& command, const std::stop_token& stop) {
  try {
    Engine& model = this->model();
    if (command.when_idle) require_idle_machine(stop);
    if (stop.stop_requested()) throw cancelled("The calibration was cancelled.");
    OpenCallbacks callbacks;
    callbacks.stop = stop;
    callbacks.progress = [this](const LoadProgress& step) {
      publish(
          CalibrationProgress{static_cast<uint32_t>(step.done), static_cast<uint32_t>(step.total), step.seconds_left});
    };
    model.calibrate(command.seconds, callbacks);
    publish(Calibrated{model.costs});
  } catch (...) {
    failed(std::current_exception(), calibration_title, 0);
  }
}

// ---- recording ------------------------------------------------------------------------------------------------------

void EngineThread::Worker::record(const RecordTrace& command) {
  end_recording();
  try {
    if (remote_) {
      remote_->record(command.path, command.redact);
      return publish(remote_->recording());
    }
    const Engine& recorded = model();
    const std::filesystem::path path = command.path;
    current_->trace = std::make_unique<ReplyTrace>(path, recorded, command.redact);
    current_->trace_name = printable(path.filename().string());
    current_->dense_trace.clear();
    if (command.dense && !command.redact) current_->dense_trace = path;
    tell_of_recording(true);
  } catch (...) {
    failed(
        std::current_exception(), [](ErrorKind) { return "Recording could not begin"; }, 0);
  }
}

void EngineThread::Worker::end_recording() {
  if (remote_ && remote_->recording().active) publish(remote_->end_recording());
  if (!current_ || current_->trace == nullptr) return;
  current_->trace->finish();
  tell_of_recording(false);
  current_->trace.reset();
}

void EngineThread::Worker::tell_of_recording(bool active) {
  const ReplyTrace& trace = *current_->trace;
  publish(Recording{active && trace.problem().empty(), current_->trace_name, trace.bytes(), trace.rounds(),
                    trace.problem()});
}

// What the engine's thread does to report a device.

namespace {

const char* report_title(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::device_lost: return "The device stopped working";
    case ErrorKind::cancelled: return "The report was cancelled";
    case ErrorKind::unavailable: return "The device is not available";
    default: return "The device could not be measured";
  }
}

DeviceReported summary_of(const MeasuredReport& report) {
  const MeasuredModel& model = report.models.at(0);
  DeviceReported told;
  told.json = std::make_shared<const std::string>(report_text(report));
  told.device = report.info.name;
  told.backend = report.info.backend;
  told.shape = model.shape;
  told.kernels = kernel_family_of(report.info.kernels);
  if (model.self_test) told.self_test = model.self_test->sentence;
  told.problem = model.skipped;
  if (!model.measurement || model.measurement->contexts.empty()) return told;
  const MeasuredContext& shortest = model.measurement->contexts.front();
  for (const MeasuredWidth& pass : shortest.passes) told.passes.emplace_back(pass.width, pass.time.ms());
  told.weights_gb_s = model.measurement->weights_gb_s(shortest);
  told.peak_gb_s = model.measurement->peak.read_gb_s;
  return told;
}

}  // namespace

void EngineThread::Worker::report(const ReportDevice& command, const std::stop_token& stop) {
  try {
    if (stop.stop_requested()) throw cancelled("The report was cancelled.");
    const MeasuringCallbacks callbacks{[this](const LoadProgress& step) { publish(ReportProgress{step}); }, stop};
    if (!current_ || current_->model == nullptr) {
      publish(summary_of(report_shape(command, callbacks)));
      return;
    }
    MeasurementPlan plan;
    plan.seconds = command.seconds;
    MeasuredReport report = describe_device(*current_->device, backend_.commit);
    report.models.push_back(measure_engine(*current_->model, plan, callbacks));
    publish(summary_of(report));
  } catch (...) {
    failed(std::current_exception(), report_title, 0);
  }
}

MeasuredReport EngineThread::Worker::report_shape(const ReportDevice& command, const MeasuringCallbacks& callbacks) {
  callbacks.progress({"Opening the device", 0, 0});
  const std::unique_ptr<Device> device = backend_.open_device(command.device, current_ ? current_->request.threads : 0);
  MeasurementPlan plan;
  plan.seconds = command.seconds;
  MeasuredReport report = describe_device(*device, backend_.commit);
  report.models.push_back(measure_shape(*device, backend_.reported_shape, CacheType::f16, plan, callbacks));
  report.info = device->info();  // a self-test may have made it fall back to other kernels
  return report;
}

// What the engine's thread does to check a recording.

namespace {

const char* verify_title(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::device_lost: return "The device stopped working";
    case ErrorKind::cancelled: return "The check was cancelled";
    default: return "The recording cannot be checked here";
  }
}

void take_verdict(const ReplyVerdict& verdict, RecordingVerified& told) {
  if (verdict.kind == ReplyVerdict::Kind::not_checked) {
    ++told.skipped;
    return;
  }
  ++told.replies;
  told.tokens += verdict.tokens;
}

}  // namespace

void EngineThread::Worker::verify(const VerifyRecording& command, const std::stop_token& stop) {
  try {
    if (stop.stop_requested()) throw cancelled("The check was cancelled.");
    const Engine& engine = model();
    const TraceReader trace = TraceReader::open(command.path);
    const RecordedIdentity identity = compare_identity(engine, trace, false);
    if (!identity.differences.empty())
      throw bad_input(
          "The recording is of another model than the one that is loaded, and another model writes another "
          "text. " +
          identity.differences.front());
    RecordingVerified told;
    told.path = command.path;
    told.recorded_on = trace.header().device;
    for (size_t i = 0; i < trace.replies().size() && told.difference.empty(); ++i) {
      VerifyCallbacks callbacks;
      callbacks.stop = stop;
      callbacks.progress = [&](size_t done, size_t total) {
        publish(VerifyProgress{i, trace.replies().size(), done, total});
      };
      const ReplyVerdict verdict = verify_reply(engine, trace, i, DecodeMode::ar, callbacks);
      take_verdict(verdict, told);
      if (verdict.kind == ReplyVerdict::Kind::different)
        told.difference = "Reply " + std::to_string(i + 1) + " " + verdict_words(engine, trace, verdict);
    }
    publish(std::move(told));
  } catch (...) {
    failed(std::current_exception(), verify_title, 0);
  }
}

DenseCallbacks EngineThread::Worker::dense_callbacks(const std::stop_token& stop) {
  DenseCallbacks callbacks;
  callbacks.stop = stop;
  callbacks.progress = [this](uint64_t done, uint64_t total) { publish(DensifyProgress{done, total}); };
  return callbacks;
}

void EngineThread::Worker::make_dense(const std::stop_token& stop) {
  if (remote_) return end_recording();  // its drafter is on the other machine
  if (!current_ || current_->trace == nullptr) return;
  const std::filesystem::path path = std::exchange(current_->dense_trace, {});
  const bool whole = current_->trace->problem().empty() && current_->trace->rounds() > 0;
  if (path.empty() || !whole || current_->model->drafter == nullptr) return end_recording();
  current_->trace->finish();
  try {
    canopy::densify(model(), path, dense_callbacks(stop));
  } catch (...) {
    // One that was cancelled says so with its title; the window shows no card of it.
    failed(
        std::current_exception(), [](ErrorKind) { return "The recording got no guesses behind every token"; }, 0);
  }
  if (!current_ || current_->trace == nullptr) return;  // the device was lost meanwhile
  tell_of_recording(false);
  current_->trace.reset();
}

void EngineThread::Worker::densify(const DensifyTrace& command, const std::stop_token& stop) {
  TraceDensified done{command.path, 0, ""};
  try {
    if (stop.stop_requested()) throw cancelled("The guesses behind every token were cancelled.");
    done.added = canopy::densify(model(), command.path, dense_callbacks(stop)).added;
  } catch (const Error& e) {
    done.cancelled = e.kind() == ErrorKind::cancelled;
    if (!done.cancelled) done.problem = e.what();
    if (e.kind() == ErrorKind::device_lost) {
      failed(
          std::current_exception(), [](ErrorKind) { return "The recording got no guesses behind every token"; }, 0);
    }
  } catch (...) {
    done.problem = as_error(std::current_exception()).what();
  }
  publish(std::move(done));
}

// What the engine's thread does to compare ways to decode.

namespace {

const char* comparison_title(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::device_lost: return "The device stopped working";
    case ErrorKind::cancelled: return "The comparison was cancelled";
    case ErrorKind::out_of_memory: return "There is no memory for this comparison";
    default: return "This cannot be compared";
  }
}

}  // namespace

void EngineThread::Worker::compare(const Compare& command, const std::stop_token& stop) {
  try {
    Compare asked = command;
    for (ComparisonColumn& column : asked.columns)
      if (remote_ && column.is_loaded()) column = remote_->column(column.way);
    ComparisonHost host;
    if (current_) host.loaded = {current_->model.get(), current_->device, current_->request};
    host.open_device = [this](const std::string& selector) {
      return backend_.open_device(selector, current_ ? current_->request.threads : 0);
    };
    host.device_uuid = backend_.device_uuid;
    host.calibration_s = backend_.calibration_s;
    host.commit = backend_.commit;
    host.publish = [this](Event event, bool wake) { publish(std::move(event), wake); };
    host.is_paused = [this] { return is_paused(); };
    host.wait_while_paused = [this, &stop] { wait_while_paused(stop); };
    compare_and_tell(host, asked, stop);
  } catch (...) {
    failed(std::current_exception(), comparison_title, 0);
  }
}

bool EngineThread::Worker::is_paused() {
  const std::lock_guard lock(pause_mutex_);
  return paused_;
}

void EngineThread::Worker::set_paused(bool paused) {
  {
    const std::lock_guard lock(pause_mutex_);
    paused_ = paused;
  }
  resumed_.notify_all();
}

void EngineThread::Worker::wait_while_paused(const std::stop_token& stop) {
  std::unique_lock lock(pause_mutex_);
  resumed_.wait(lock, stop, [this] { return !paused_; });
}

EngineThread::EngineThread(EngineBackend backend) : worker_(std::make_unique<Worker>(std::move(backend))) {}

EngineThread::~EngineThread() = default;

void EngineThread::post(Command command) {
  worker_->post(std::move(command));
}

std::vector<Event> EngineThread::poll() {
  return worker_->poll();
}

void EngineThread::set_wake(std::function<void()> wake) {
  worker_->set_wake(std::move(wake));
}

std::vector<DeviceChoice> EngineThread::devices() const {
  return worker_->devices();
}

std::unique_ptr<EngineClient> make_engine(const std::string& commit, const DeviceSettings& settings,
                                          MakeService serve) {
  const auto list = []() -> std::vector<DeviceChoice> {
    try {
      return canopy::list_devices();
    } catch (const Error& e) {
      return {{"", "No device", "none", false, e.what()}};
    }
  };
  const auto open = [settings](const std::string& selector, uint32_t threads) {
    DeviceSettings own = settings;
    if (threads > 0) own.threads = std::min(threads, most_threads());
    return open_device(selector, own);
  };
  EngineBackend backend{open, list, kFirstCalibration, device_uuid};
  try {
    backend.replies = data_dir() / "replies";
  } catch (const Error& e) {
    log_warning(e.what());  // then none are kept
  }
  backend.commit = commit;
  backend.serve = std::move(serve);
  return std::make_unique<EngineThread>(std::move(backend));
}

}  // namespace canopy
