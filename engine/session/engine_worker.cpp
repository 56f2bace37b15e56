#include "engine/session/engine_worker.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/session/reply_publisher.h"

namespace canopy {
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

Failure failure_of(const Error& error, const char* title, uint64_t reply_id) {
  return {error.kind(), title, printable(error.what(), 4096, LineBreaks::keep), reply_id};
}

std::string too_long(uint32_t tokens, uint32_t context) {
  return "The conversation has " + std::to_string(tokens) + " tokens, but the context holds only " +
         std::to_string(context) + ".";
}

double ar_speed(const Engine& model) {
  if (model.speculation == nullptr) return 0;
  return model.speculation->ar_tokens_per_second(model.resident->current().length());
}

/// All tokens of the reply that is gone on with. Throws bad_input where they are of another vocabulary.
std::vector<uint32_t> begun_tokens(const TurnTokens& begun, const Tokenizer& tokenizer) {
  std::vector<uint32_t> all = begun.ids;
  all.insert(all.end(), begun.ending.begin(), begun.ending.end());
  if (!all.empty() && begun.vocabulary != tokenizer.identity())
    throw bad_input("The reply cannot go on: it was written by a model with another vocabulary.");
  return all;
}

ReplySettings settings_of(const Generate& command, const Engine& model) {
  ReplySettings settings;
  settings.sampling = command.sampling;
  settings.max_tokens = command.max_tokens;
  settings.begun = begun_tokens(command.begun, *model.text.tokenizer);
  settings.mode = model.drafter == nullptr ? DecodeMode::ar : command.mode.value_or(model.default_mode());
  settings.budget = command.budget;
  settings.probabilities = command.rounds && command.probabilities;
  settings.turn = static_cast<uint64_t>(std::count_if(command.turns.begin(), command.turns.end(),
                                                      [](const ChatTurn& t) { return t.role == "assistant"; }));
  return settings;
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
  while (const std::optional<Posted> item = next()) handle(*item);
  current_.reset();
}

std::optional<EngineThread::Worker::Posted> EngineThread::Worker::next() {
  std::unique_lock lock(commands_mutex_);
  running_.reset();
  commands_ready_.wait(lock, [this] { return quit_.stop_requested() || !commands_.empty(); });
  if (quit_.stop_requested()) return std::nullopt;
  running_ = std::move(commands_.front());
  commands_.pop_front();
  return running_;
}

void EngineThread::Worker::handle(const Posted& item) {
  if (const auto* command = std::get_if<LoadModel>(&item.command)) load(*command, item.stop.get_token());
  if (const auto* command = std::get_if<Generate>(&item.command)) generate(*command, item.stop.get_token());
  if (const auto* command = std::get_if<CountTokens>(&item.command)) count(*command);
  if (const auto* command = std::get_if<Calibrate>(&item.command)) calibrate(*command, item.stop.get_token());
  if (const auto* command = std::get_if<ReportDevice>(&item.command)) report(*command, item.stop.get_token());
  if (const auto* command = std::get_if<Compare>(&item.command)) compare(*command, item.stop.get_token());
  if (const auto* command = std::get_if<VerifyRecording>(&item.command)) verify(*command, item.stop.get_token());
  if (const auto* command = std::get_if<RecordTrace>(&item.command)) record(*command);
  if (std::holds_alternative<StopRecording>(item.command)) make_dense(item.stop.get_token());
  if (const auto* command = std::get_if<DensifyTrace>(&item.command)) densify(*command, item.stop.get_token());
  if (std::holds_alternative<ReleaseModel>(item.command)) release();
}

Engine& EngineThread::Worker::model() {
  if (!current_) throw Error(ErrorKind::unavailable, "No model is loaded: open a model first.");
  return *current_->model;
}

// ---- loading --------------------------------------------------------------------------------------------------------

void EngineThread::Worker::load(const LoadModel& command, const std::stop_token& stop) {
  would_fit_quantized_ = false;
  try {
    Current opened = open_beside_current(command, stop);
    end_recording();
    current_ = std::move(opened);
    publish(current_->model->describe());  // now that the one before has given its memory back
  } catch (...) {
    load_failed(as_error(std::current_exception()));
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
  end_recording();
  ModelReleased released;
  if (current_) released.opened = current_->request;
  current_.reset();
  publish(std::move(released));
}

// ---- replies --------------------------------------------------------------------------------------------------------

void EngineThread::Worker::generate(const Generate& command, const std::stop_token& stop) {
  try {
    write_reply(command, stop);
  } catch (...) {
    failed(std::current_exception(), reply_title, command.reply_id);
  }
}

/// A text in a question is content: what looks like a special token in it is none.
void EngineThread::Worker::count(const CountTokens& command) {
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
  const ReplySettings settings = settings_of(command, model);
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
  publish(ReplyFinished{command.reply_id, reply.reason, reply.prompt_tokens, reply.reused_tokens,
                        static_cast<uint32_t>(reply.ids.size()), model.resident->current().length(), reply.prefill_ms,
                        reply.decode_ms, reply.tokens_per_second(), settings.mode, reply.tau(), ar_speed(model),
                        tokens_of_reply(*model.text.tokenizer, reply.ids, reply.text, reply.thought.told_apart)});
  model.keep_what_was_learnt();
}

void EngineThread::Worker::tell_what_changed(uint64_t reply_id, DecodeMode mode) {
  Engine& model = *current_->model;
  if (mode != DecodeMode::ar && model.speculation != nullptr && model.speculation->is_started()) {
    publish(Learnt{reply_id, std::make_shared<const LearntSnapshot>(learnt_snapshot(
                                 model.speculation->controller(), model.drafter->config().block_size))});
  }
  if (current_->trace != nullptr) tell_of_recording(true);
  publish(model.memory_use());
}

/// Nothing on a lost device can be used again; the conversation is the front end's, so loading anew goes on with it.
void EngineThread::Worker::failed(const std::exception_ptr& thrown, const char* (*title)(ErrorKind),
                                  uint64_t reply_id) {
  const Error error = as_error(thrown);
  if (error.kind() == ErrorKind::device_lost) {
    end_recording();
    current_.reset();
  }
  publish(failure_of(error, title(error.kind()), reply_id));
}

// ---- calibration ----------------------------------------------------------------------------------------------------

void EngineThread::Worker::calibrate(const Calibrate& command, const std::stop_token& stop) {
  try {
    Engine& model = this->model();
    if (model.drafter == nullptr) {
      throw Error(ErrorKind::unavailable, "There is nothing to calibrate without a drafter: open one with the model.");
    }
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

}  // namespace canopy
