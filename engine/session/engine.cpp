#include "engine/session/engine.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/base/machine.h"
#include "engine/format/architecture.h"
#include "engine/format/model_paths.h"
#include "engine/format/tensor_names.h"
#include "engine/model/assistant_head.h"
#include "engine/model/drafter.h"
#include "engine/model/eagle_head.h"
#include "engine/model/mtp_head.h"
#include "engine/model/weight_plan.h"
#include "engine/session/devices.h"
#include "engine/session/measurement.h"
#include "engine/session/reply_writer.h"

namespace canopy {
namespace {

TraceSizes sizes_of(const ModelConfig& config) {
  TraceSizes sizes;
  sizes.layers = config.layers;
  sizes.hidden = config.hidden;
  sizes.heads = config.mean_heads();
  sizes.kv_heads = config.mean_kv_heads();
  sizes.head_dim = config.mean_head_dim();
  sizes.ffn = config.mean_ffn();
  sizes.vocab = config.vocab;
  sizes.expert_layers = config.layers_with_experts();
  sizes.experts = config.experts;
  sizes.experts_used = config.experts_used;
  sizes.expert_ffn = config.expert_ffn;
  sizes.shared_ffn = config.shared_ffn;
  if (config.recurrent_layers() > 0) {
    const DeltaNetConfig& net = config.delta_net;
    sizes.recurrent_layers = config.recurrent_layers();
    sizes.key_heads = net.key_heads;
    sizes.value_heads = net.value_heads;
    sizes.key_dim = net.key_dim;
    sizes.value_dim = net.value_dim;
    sizes.conv_taps = config.conv_taps != 0 ? config.conv_taps : net.taps;
    sizes.rotary_dim = config.rotary_dim;
    sizes.output_gate = config.has_output_gate;
  }
  sizes.latent_rank = config.latent.rank;
  sizes.latent_query_rank = config.latent.query_rank;
  sizes.latent_key_dim = config.latent.key_dim;
  sizes.latent_value_dim = config.latent.value_dim;
  sizes.tied_head = config.tied_head;
  sizes.qk_norm = config.has_qk_norm;
  sizes.parameters = config.parameters;
  return sizes;
}

/// That a matrix has on the device, where it was loaded so.
TensorType kept_type(const TensorView& tensor, bool tied_head, QuantizeOnLoad quantized) {
  const std::optional<WeightType> type = weight_type_of(tensor.type);
  if (!type) return tensor.type;
  const bool is_head = tensor.name == "output" || (tensor.name == "token_embd" && tied_head);
  return stored_as(quantized_type(*type, tensor.cols(), is_head, quantized));
}

/// The type of most matrices of each kind: "attn_q" of "blk.7.attn_q".
void add_types(std::span<const TensorView> tensors, QuantizeOnLoad quantized, TraceSizes& sizes) {
  std::map<std::string, std::map<TensorType, uint32_t>> kinds;
  for (const TensorView& tensor : tensors) {
    if (tensor.rank != 2) continue;
    const std::string_view name = without_expert(tensor.name);
    const size_t dot = name.rfind('.');
    const std::string kind(name.substr(dot == std::string_view::npos ? 0 : dot + 1));
    ++kinds[kind][kept_type(tensor, sizes.tied_head, quantized)];
  }
  for (const auto& [kind, types] : kinds) {
    const auto most = std::ranges::max_element(types, {}, [](const auto& each) { return each.second; });
    sizes.types.emplace_back(kind, to_string(most->first));
  }
}

}  // namespace

TraceSizes sizes_of(const ModelFile& file, QuantizeOnLoad quantized) {
  TraceSizes sizes = sizes_of(file.config());
  add_types(file.tensors(), quantized, sizes);
  return sizes;
}

TraceSizes sizes_of(const DrafterFile& file, uint32_t drafted_tokens) {
  const DrafterConfig& config = file.config();
  TraceSizes sizes = sizes_of(config.transformer);
  sizes.block = config.block_size;
  sizes.taps = static_cast<uint32_t>(config.aux_layers.size());
  sizes.drafted_tokens = drafted_tokens;
  sizes.markov_rank = config.markov.rank;
  sizes.row_conv_taps = config.conv.taps;
  sizes.row_conv_group = config.conv.group;
  add_types(file.tensors(), QuantizeOnLoad::none, sizes);
  return sizes;
}

TraceSizes sizes_of(const MtpFile& file) {
  TraceSizes sizes = sizes_of(file.config());
  sizes.block = StepHead::kDeepest + 1;
  sizes.taps = 2;  // its product is over an embedding and a state, as wide as two layers that are read
  sizes.drafted_tokens = sizes.vocab;
  add_types(file.tensors(), QuantizeOnLoad::none, sizes);
  return sizes;
}

TraceSizes sizes_of(const EagleFile& file) {
  const EagleConfig& config = file.config();
  TraceSizes sizes = sizes_of(config.layer);
  sizes.block = StepHead::kDeepest + 1;
  // Its feature, counted in layers of its own width; and queries, keys and values read rows of twice that.
  const uint64_t columns =
      uint64_t{config.feature_width()} + config.layer.q_width() + 2 * uint64_t{config.layer.kv_width()};
  sizes.taps = static_cast<uint32_t>(std::clamp<uint64_t>((columns + sizes.hidden / 2) / sizes.hidden, 1, 64));
  sizes.drafted_tokens = config.drafted_tokens();
  add_types(file.tensors(), QuantizeOnLoad::none, sizes);
  return sizes;
}

TraceSizes sizes_of(const AssistantFile& file) {
  const AssistantConfig& config = file.config();
  TraceSizes sizes = sizes_of(config.layers);
  sizes.block = BeamHead::kDeepest + 1;
  // Its two projections, counted in layers of its own width: of an embedding and a state, and to the next state.
  const uint64_t columns = 3 * uint64_t{config.target_hidden};
  sizes.taps = static_cast<uint32_t>(std::clamp<uint64_t>((columns + sizes.hidden / 2) / sizes.hidden, 1, 64));
  sizes.drafted_tokens = sizes.vocab;
  add_types(file.tensors(), QuantizeOnLoad::none, sizes);
  return sizes;
}

namespace {

void announce(const OpenCallbacks& callbacks, const LoadProgress& progress) {
  if (callbacks.stop.stop_requested()) throw cancelled("Loading was cancelled.");
  if (callbacks.progress) callbacks.progress(progress);
}

int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// "Loading weights", "Quantizing weights to Q8_0"
std::string weights_stage(QuantizeOnLoad quantized) {
  switch (quantized) {
    case QuantizeOnLoad::q8_0: return "Quantizing weights to Q8_0";
    case QuantizeOnLoad::q4_k: return "Quantizing weights to Q4_K";
    default: return "Loading weights";
  }
}

/// Tells the bytes of a load under the name that `stage` has at the time.
LoadCallbacks load_callbacks(const OpenCallbacks& callbacks, const std::string& stage) {
  LoadCallbacks result;
  result.stop = callbacks.stop;
  result.progress = [&callbacks, &stage, remaining = RemainingTime()](uint64_t done, uint64_t total) mutable {
    const double left = remaining.update(seconds_now(), done, total).value_or(-1);
    announce(callbacks, {stage, done, total, true, left});
  };
  return result;
}

std::unique_ptr<Model> load_model(Device& device, const ModelFile& file, const OpenRequest& request,
                                  std::vector<uint32_t> aux_layers, const OpenCallbacks& callbacks,
                                  ReclaimableMemory* memory) {
  ModelOptions options;
  options.memory = memory;
  options.aux_layers = std::move(aux_layers);
  options.cache_type = request.cache_type;
  options.context = request.context;
  options.max_width = request.max_width;
  options.texts = request.texts;
  options.most_texts = request.most_texts;
  options.quantize = request.quantize;
  std::string stage = weights_stage(QuantizeOnLoad::none);
  options.planned = [&](const LoadPlan& plan) { stage = weights_stage(plan.quantized); };
  options.would_fit = callbacks.would_fit;
  options.callbacks = load_callbacks(callbacks, stage);
  return Model::load(device, file, options);
}

SelfTestReport check_exactness(Model& model, const OpenCallbacks& callbacks) {
  SelfTestCallbacks test;
  test.stop = callbacks.stop;
  test.progress = [&](uint32_t done, uint32_t total) { announce(callbacks, {"Checking exactness", done, total}); };
  return self_test_or_fall_back(model, test);
}

/// Layers of the target whose outputs what drafts for it reads; null: nothing drafts.
std::vector<uint32_t> aux_layers_of(const DraftFile* drafter, const ModelConfig& target) {
  if (drafter == nullptr) return {};
  if (const auto* file = std::get_if<DrafterFile>(drafter)) return file->config().aux_layers;
  if (const auto* eagle = std::get_if<EagleFile>(drafter)) return eagle->config().aux_layers_of(target.layers);
  return std::holds_alternative<ModelFile>(*drafter) ? std::vector<uint32_t>() : mtp_aux_layers(target);
}

/// Says why what could draft is left out.
void leave_out(const std::string& what, const Error& reason, Engine& loaded) {
  loaded.drafter_note = what + ": " + reason.what();
  loaded.drafter_name.clear();
  loaded.drafter_warnings.clear();
  log_info(loaded.drafter_note);
}

/// The head of the target's own file; nothing where there is none.
std::optional<DraftFile> open_own_head(const OpenRequest& request, const ModelFile& target, Engine& loaded) {
  try {
    if (!MtpFile::is_in(target)) {
      if (request.drafter_is_optional) return std::nullopt;
      throw bad_input(loaded.file_name +
                      " has no head that predicts further tokens ('nextn' or 'mtp' tensors), which was to guess.");
    }
    MtpFile head = MtpFile::open(request.path);
    loaded.drafter_warnings = check_pair(target, head);
    loaded.drafter_name = "MTP head";
    return head;
  } catch (const Error& e) {
    if (!request.drafter_is_optional || e.kind() != ErrorKind::bad_input) throw;
    leave_out("The model's own head is not used", e, loaded);
    return std::nullopt;
  }
}

/// That of the request, checked against its target; nothing where none is wanted, or an optional one does not fit.
std::optional<DraftFile> open_drafter(const OpenRequest& request, const ModelFile& target, Engine& loaded) {
  if (request.own_head) {
    if (std::optional<DraftFile> head = open_own_head(request, target, loaded)) return head;
  }
  if (request.drafter.empty()) return std::nullopt;
  const std::string name = model_path_name(request.drafter);
  try {
    DraftFile file = with_context(name, [&] {
      DraftFile opened = open_draft_file(request.drafter, draft_kind(request.drafter, &target));
      loaded.drafter_warnings = check_pair(target, opened);
      return opened;
    });
    loaded.drafter_name = name;
    return file;
  } catch (const Error& e) {
    if (!request.drafter_is_optional || e.kind() != ErrorKind::bad_input) throw;
    log_info("No drafter: " + std::string(e.what()));
    return std::nullopt;
  }
}

/// An optional drafter that does not fit beside its target is left out, like one for another model.
void load_drafter(const DraftFile& drafter, const ModelFile& target, const OpenRequest& request,
                  const OpenCallbacks& callbacks, ReclaimableMemory* memory, Engine& loaded) {
  constexpr const char* kStages[] = {"Loading the drafter", "Loading the head for further tokens",
                                     "Loading the EAGLE-3 head", "Loading the assistant", "Loading the smaller model"};
  const std::string stage = kStages[drafter.index()];
  const LoadCallbacks told = load_callbacks(callbacks, stage);
  Model& model = *loaded.model;
  try {
    with_context(loaded.drafter_name, [&] {
      if (const auto* block = std::get_if<DrafterFile>(&drafter)) {
        loaded.drafter = Drafter::load(*block, model, {request.cache_type, told, memory, &target});
        loaded.drafter_sizes = sizes_of(*block, loaded.drafter->drafted_tokens());
      } else if (const auto* head = std::get_if<MtpFile>(&drafter)) {
        loaded.drafter = MtpHead::load(*head, model, {request.cache_type, told, memory});
        loaded.drafter_sizes = sizes_of(*head);
      } else if (const auto* eagle = std::get_if<EagleFile>(&drafter)) {
        loaded.drafter = EagleHead::load(*eagle, model, {request.cache_type, told, memory});
        loaded.drafter_sizes = sizes_of(*eagle);
      } else if (const auto* assistant = std::get_if<AssistantFile>(&drafter)) {
        loaded.drafter = AssistantHead::load(*assistant, model, {request.cache_type, told, memory});
        loaded.drafter_sizes = sizes_of(*assistant);
      } else {
        const auto& draft = std::get<ModelFile>(drafter);
        loaded.draft_model = DraftModel::load(draft, model, {request.cache_type, told, memory});
        loaded.drafter_sizes = sizes_of(draft, QuantizeOnLoad::none);
      }
    });
  } catch (const Error& e) {
    if (!request.drafter_is_optional || e.kind() != ErrorKind::out_of_memory) throw;
    leave_out("Nothing guesses but the text", e, loaded);
  }
}

/// The costs of passes: from the file of an earlier calibration, or measured now and saved.
CostTable cost_table(Engine& loaded, double seconds, const OpenCallbacks& callbacks) {
  if (seconds <= 0) return CostTable();
  LoadedCalibration known;
  try {
    known = load_calibration(calibration_folder(), loaded.calibration_key());
  } catch (const Error& e) {
    known.note = e.what();  // measured then, and not kept
  }
  if (!known.note.empty()) log_warning(known.note);
  if (known.table) {
    if (loaded.block() > 0) {
      announce(callbacks, {"Preparing the drafter"});
      prepare_drafts(*loaded.model, loaded.resident->current(), loaded.draft_model.get(), callbacks.stop);
    }
    return std::move(*known.table);
  }
  return loaded.calibrate(seconds, callbacks);
}

}  // namespace

void choose_drafter(const std::string& choice, OpenRequest& request) {
  request.own_head = choice.empty() || choice == "mtp";
  request.drafter = request.own_head ? "" : choice;
  if (!choice.empty()) return;
  request.drafter_is_optional = true;
  if (const auto shipped = find_asset("smollm2-135m-dflash.gguf")) request.drafter = shipped->string();
}

std::unique_ptr<Engine> Engine::open(Device& device, const OpenRequest& request, const OpenCallbacks& callbacks,
                                     ReclaimableMemory* memory) {
  ReclaimableMemory nothing_replaced;
  if (memory == nullptr) memory = &nothing_replaced;
  const uint64_t free_before = memory->available(device);
  auto loaded = std::make_unique<Engine>();
  announce(callbacks, {"Opening the file"});
  const ModelFile file = ModelFile::open(request.path);
  loaded->file_name = model_path_name(request.path);
  loaded->keeps_calibration = request.calibration_s > 0;
  // Before the weights are copied, which takes longest: what does not fit should say so at once.
  const std::optional<DraftFile> drafter = open_drafter(request, file, *loaded);

  with_context(loaded->file_name, [&] {
    announce(callbacks, {"Building the tokenizer"});
    loaded->text = make_text_model(file);
    const std::vector<std::string>& notes = file.config().notes;
    loaded->text.warnings.insert(loaded->text.warnings.end(), notes.begin(), notes.end());
    loaded->texts = token_texts(loaded->text.tokenizer);
    announce(callbacks, {"Loading weights"});
    loaded->model = load_model(device, file, request, aux_layers_of(drafter ? &*drafter : nullptr, file.config()),
                               callbacks, memory);
    if (!loaded->model->quantization().empty()) log_info(loaded->file_name + ": " + loaded->model->quantization());
    if (request.self_test) loaded->self_test = check_exactness(*loaded->model, callbacks);
    loaded->draws_on_device = device.info().draws_tokens && (!loaded->self_test || loaded->self_test->draws_alike);
    if (device.info().draws_tokens && !loaded->draws_on_device) {
      log_warning("This device draws other tokens than the host does from the same logits; the host draws them.");
    }
  });
  loaded->target_sizes = sizes_of(file, loaded->model->quantized());
  if (drafter) load_drafter(*drafter, file, request, callbacks, memory, *loaded);
  loaded->resident = std::make_unique<ResidentTexts>(*loaded->model, loaded->drafter.get());
  loaded->speculation = pair_speculation(*loaded->model, loaded->drafter.get(), loaded->draft_model.get(),
                                         cost_table(*loaded, request.calibration_s, callbacks));
  loaded->keeps_learnt = loaded->keeps_calibration && request.keeps_learnt;
  loaded->recall_learnt();
  if (request.calibration_s > 0) {
    // Now rather than in the first reply: the roofline takes a second.
    announce(callbacks, {"Measuring the device"});
    loaded->show_costs();
  }
  if (!request.replies.empty()) {
    announce(callbacks, {"Reading earlier replies"});
    loaded->replies = std::make_unique<SuffixStore>(request.replies, loaded->file_name,
                                                    loaded->text.tokenizer->identity(), request.replies_read_only);
    if (const std::string note = loaded->replies->take_note(); !note.empty()) log_warning(note);
  }
  announce(callbacks, {"Ready"});
  loaded->device_bytes = free_before - std::min(free_before, memory->available(device));
  return loaded;
}

Reply Engine::reply(std::span<const uint32_t> prompt, const ReplySettings& settings,
                    const ReplyCallbacks& callbacks) const {
  const ReplyWriter::Parts parts{*model,          text,
                                 *resident,       speculation.get(),
                                 draws_on_device, replies != nullptr ? &replies->trie() : nullptr,
                                 recycling.get(), draft_model.get()};
  Reply reply = ReplyWriter(parts, prompt, settings, callbacks).write();
  resident->drop_repeated();
  return reply;
}

std::unique_ptr<DraftMemory> Engine::new_memory(uint64_t owner) const {
  auto memory = std::make_unique<DraftMemory>();
  memory->owner = owner;
  memory->speculation =
      pair_speculation(*model, drafter.get(), draft_model.get(), speculation->table(), speculation.get());
  return memory;
}

std::unique_ptr<ReplyWriter> Engine::begin_reply(std::span<const uint32_t> prompt, const ReplySettings& settings,
                                                 const ReplyCallbacks& callbacks, DraftMemory& memory) const {
  const ReplyWriter::Parts parts{*model,
                                 text,
                                 *resident,
                                 memory.speculation.get(),
                                 draws_on_device,
                                 &memory.replies.trie(),
                                 &memory.recycling,
                                 draft_model.get(),
                                 memory.owner};
  return std::make_unique<ReplyWriter>(parts, prompt, settings, callbacks);
}

void Engine::end_reply(DraftMemory& memory, const Reply& reply) const {
  memory.replies.add({}, reply.ids);
  memory.replies.take_note();
  resident->drop_repeated();
  resident->settle();  // another text may be current next
}

ReplyFinished Engine::finished(uint64_t reply_id, const Reply& reply, DecodeMode mode) const {
  return {reply_id,
          reply.reason,
          reply.prompt_tokens,
          reply.reused_tokens,
          static_cast<uint32_t>(reply.ids.size()),
          reply.context_used,
          reply.prefill_ms,
          reply.decode_ms,
          reply.tokens_per_second(),
          mode,
          reply.tau(),
          speculation->ar_tokens_per_second(reply.context_used),
          tokens_of_reply(*text.tokenizer, reply.ids, reply.text, reply.thought.told_apart),
          reply.plain};
}

void Engine::remember(std::string_view chat, std::span<const uint32_t> reply) {
  if (replies == nullptr) return;
  replies->add(chat, reply);
  if (const std::string note = replies->take_note(); !note.empty()) log_warning(note);
}

CalibrationKey Engine::calibration_key() const {
  const DeviceInfo& device = model->device().info();
  CalibrationKey key;
  key.device = device.uuid;
  key.driver = device.driver;
  key.model = file_name + ", " + std::to_string(model->config().parameters) + " parameters, " +
              std::to_string(model->memory().weights) + " bytes";
  if (drafter != nullptr) key.drafter = drafter_name + ", " + drafter->identity();
  if (draft_model != nullptr) {
    key.drafter = drafter_name + ", " + std::to_string(draft_model->config().parameters) + " parameters, " +
                  draft_model->config().quantization + ", token by token";
  }
  key.quantization = model->config().quantization + " " + model->quantization();
  key.kv_type = to_string(model->limits().cache_type);
  const size_t version = std::min(device.kernels.find("; "), device.kernels.size());
  key.variants = device.kernels.substr(0, version);
  if (version < device.kernels.size()) key.tuned = device.kernels.substr(version + 2);
  return key;
}

CostTable Engine::calibrate(double seconds, const OpenCallbacks& callbacks) {
  const CalibrationPlan plan = calibration_plan(*model, drafter.get(), draft_model.get(), seconds);
  const auto progress = [&](const CalibrationProgress& now) {
    if (!callbacks.progress) return;
    callbacks.progress({"Measuring what passes cost", now.done, now.total, false, now.seconds_left});
  };
  resident->clear();
  ModelTimer timer(*model, resident->current(), callbacks.stop, draft_model.get());
  const DeviceInfo& device = model->device().info();
  const std::optional<ProcessorTime> before = is_on_processor(device.type) ? processor_time() : std::nullopt;
  CostTable table = canopy::calibrate(timer, plan, progress);
  const std::optional<ProcessorTime> after = before ? processor_time() : std::nullopt;
  table.set_under({unix_ms(), after ? share_of_others(*before, *after) : std::nullopt});
  keep(table);
  if (speculation != nullptr) {  // not yet, while it is opened
    speculation->replace(table);
    show_costs();
  }
  return table;
}

void Engine::show_costs() {
  const Roofline& bare = speculation->roofline();
  if (speculation->table().verify_points().empty()) return;
  costs = std::make_shared<const CostSnapshot>(cost_snapshot(speculation->table(), bare));
}

void Engine::keep_what_was_learnt() {
  if (!keeps_calibration || speculation == nullptr || !speculation->is_started()) return;
  if (const std::optional<CostTable> table = speculation->refreshed_table()) keep(*table);
  if (!keeps_learnt) return;
  std::string problem;
  try {
    problem = save_learnt(calibration_folder(), calibration_key(), speculation->learnt());
  } catch (const Error& e) {
    problem = e.what();
  }
  if (!problem.empty()) log_info(problem);  // it is learnt again
}

void Engine::recall_learnt() {
  if (!keeps_learnt) return;
  try {
    const auto learnt = load_learnt(calibration_folder(), calibration_key());
    if (learnt) speculation->take_learnt(*learnt);
  } catch (const Error& e) {
    log_info(e.what());
  }
}

/// In a file for the next launch; where that cannot be, a warning says so.
void Engine::keep(const CostTable& table) const {
  std::string problem;
  try {
    problem = save_calibration(calibration_folder(), calibration_key(), table);
  } catch (const Error& e) {
    problem = e.what();
  }
  if (!problem.empty()) log_warning(problem);
}

ModelReady Engine::describe() const {
  const ModelConfig& config = model->config();
  const DeviceInfo& device = model->device().info();
  ModelReady ready;
  ready.name = config.name.empty() ? file_name : config.name;
  ready.file_name = file_name;
  ready.architecture = config.architecture;
  ready.quantization = config.quantization;
  ready.weights_note = model->quantization();
  if (!ready.weights_note.empty()) ready.quantized_to = model->quantized() == QuantizeOnLoad::q4_k ? "Q4_K" : "Q8_0";
  ready.kernels_note = rounding_note(device);
  ready.parameters = config.parameters;
  ready.weight_bytes = model->memory().weights;
  ready.context = model->limits().context;
  ready.model_context = config.max_context;
  ready.device = device.name;
  ready.device_type = device.type;
  ready.driver = device.driver;
  ready.backend = device.backend;
  ready.drafter = drafter_name;
  ready.drafted_by = draft_model != nullptr ? kFromDraft : drafter != nullptr ? drafter->source() : DraftSources{0};
  if (drafter != nullptr) ready.drafter_kind = drafter->kind();
  ready.drafter_note = drafter_note;
  ready.kv_type = to_string(model->limits().cache_type);
  ready.thinking = text.chat->thinking();
  ready.vocabulary = text.tokenizer->identity();
  ready.warnings = text.warnings;
  ready.warnings.insert(ready.warnings.end(), model->warnings().begin(), model->warnings().end());
  ready.warnings.insert(ready.warnings.end(), drafter_warnings.begin(), drafter_warnings.end());
  if (self_test && !self_test->passed) ready.warnings.push_back(self_test->sentence);
  if (self_test && !self_test->fallback.empty()) ready.warnings.push_back(self_test->fallback);
  if (self_test && self_test->ran) {
    ready.self_test = self_test->passed ? SelfTest::passed : SelfTest::failed;
    ready.self_test_note = self_test->sentence;
  }
  ready.memory = memory_use();
  ready.block = block();
  ready.texts = texts;
  ready.costs = costs;
  return ready;
}

uint32_t Engine::block() const {
  if (draft_model != nullptr) return DraftModel::kDeepest + 1;
  return drafter != nullptr ? drafter->max_depth() + 1 : 0;
}

MemoryUse Engine::memory_use() const {
  const MemoryPlan& plan = model->memory();
  const ModelLimits& limits = model->limits();
  const MemoryInfo device = model->device().memory();
  MemoryUse use;
  use.weights = plan.weights;
  if (drafter != nullptr) use.drafter = drafter->device_bytes();
  if (draft_model != nullptr) use.drafter = draft_model->device_bytes();
  use.tree = plan.cache / limits.slots() * limits.tree_slots;
  use.cache = plan.cache - use.tree;
  use.states = plan.states;
  use.working = plan.working;
  use.reserve = plan.reserve;
  use.context = limits.context;
  use.rows = std::min(limits.max_width, limits.tree_slots + 1);
  use.budget = device.total;
  use.available = device.available;
  use.pages = resident->use();
  return use;
}

std::vector<uint32_t> Engine::prompt_ids(const std::vector<ChatTurn>& turns, const std::string& raw_prompt,
                                         std::optional<bool> thinking, const std::string& tools) const {
  if (turns.empty()) return text.encode_raw(raw_prompt);
  PromptOptions options;
  options.enable_thinking = thinking;
  options.tools = tools;
  const ChatTemplate& chat = !tools.empty() && text.tool_chat != nullptr ? *text.tool_chat : *text.chat;
  return chat.render_to_ids(turns, *text.tokenizer, options);
}

}  // namespace canopy
