// What llama.cpp drafts behind texts: the likeliest token of each depth, one after the other, and its log probability.
// Its interface for drafters is still a header of its source folder, llama-ext.h.

#include <llama-ext.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "probe.h"

namespace canopy::peer {
namespace {

using nlohmann::ordered_json;

constexpr uint32_t kContext = 512;

struct Drafted {
  std::vector<int32_t> tokens;
  std::vector<double> log_p;  // of each behind those before it
};

/// Rows of one call.
class Rows {
 public:
  explicit Rows(llama_context* context) : context_(context), batch_(llama_batch_ext_init(context)) {}
  ~Rows() { llama_batch_ext_free(batch_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  void clear() { llama_batch_ext_clear(batch_); }
  /// `state`: what a head reads beside the token; empty: none.
  void add_token(int32_t token, int32_t position, std::span<const float> state = {}) {
    const int32_t row = require_row(llama_batch_ext_add_token(batch_, 0, token));
    place(row, position);
    if (!state.empty() && !llama_batch_ext_set_embd_token(batch_, row, {state.data(), 1, state.size()})) {
      throw std::runtime_error("llama.cpp takes no state of " + std::to_string(state.size()) + " elements.");
    }
  }
  void add_feature(std::span<const float> feature, int32_t position) {
    place(require_row(llama_batch_ext_add_embd(batch_, 0, {feature.data(), 1, feature.size()})), position);
  }
  void run(llama_process_type type = LLAMA_PROCESS_TYPE_DECODE) {
    const int32_t status = llama_process(context_, type, batch_);
    if (status != 0) throw std::runtime_error("llama_process ended with status " + std::to_string(status) + ".");
    llama_synchronize(context_);
  }

 private:
  static int32_t require_row(int32_t row) {
    if (row < 0) throw std::runtime_error("llama.cpp takes no row more: " + std::to_string(row) + ".");
    return row;
  }
  void place(int32_t row, int32_t position) {
    llama_batch_ext_set_pos(batch_, row, &position);
    llama_batch_ext_set_output_logits(batch_, row, true);
  }

  llama_context* context_;
  llama_batch_ext* batch_;
};

/// The largest of some logits and its log probability.
void add_best(std::span<const float> logits, Drafted& drafted) {
  const auto best = std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - *best);
  drafted.tokens.push_back(static_cast<int32_t>(best - logits.begin()));
  drafted.log_p.push_back(-std::log(sum));
}

std::string meta(const llama_model* model, const std::string& key) {
  char text[64] = {};
  return llama_model_meta_val_str(model, key.c_str(), text, sizeof text) < 0 ? "" : text;
}

/// A drafter of one text at a time, opened beside its target.
class Peer {
 public:
  Peer(const DraftsOptions& options, const PeerOptions& target_options)
      : options_(options), target_(target_options), drafter_(drafter_options(options, target_options, target_.get())) {
    if (reads_features()) {
      const int32_t* const layers = llama_model_target_layer_ids(drafter_.model());
      layers_.assign(layers, layers + llama_model_target_layer_ids_n(drafter_.model()));
      for (const int32_t layer : layers_) {
        llama_set_embeddings_layer_inp(target_.get(), static_cast<uint32_t>(layer), true);
      }
    } else {
      llama_set_embeddings_nextn(target_.get(), true, false);
    }
    lattice_ = is_block() ? llama_model_dflash_selector_top_k(drafter_.model()) : 0;
    llama_set_embeddings_nextn(drafter_.get(), true, lattice_ == 0);
    if (is_block()) llama_set_causal_attn(drafter_.get(), meta(drafter_.model(), "dflash.attention.causal") == "true");
  }

  /// ids: the text; the last one is the root.
  Drafted draft(std::span<const int32_t> ids) {
    for (llama_context* const context : {target_.get(), drafter_.get()}) {
      llama_memory_clear(llama_get_memory(context), true);
    }
    const auto read = ids.first(ids.size() - 1);
    target_.append(read, 0, Outputs::all);
    return is_block() ? draft_block(read, ids.back()) : draft_steps(read, ids.back());
  }

 private:
  static PeerOptions drafter_options(const DraftsOptions& options, const PeerOptions& target, llama_context* context) {
    PeerOptions result = target;
    result.model = options.drafter;
    result.target = context;
    result.reads_states = options.kind == DrafterKind::head || options.kind == DrafterKind::assistant;
    return result;
  }

  bool is_block() const { return options_.kind == DrafterKind::block; }
  bool is_eagle() const { return options_.kind == DrafterKind::eagle3; }
  bool is_assistant() const { return options_.kind == DrafterKind::assistant; }
  bool reads_features() const { return is_block() || is_eagle(); }

  /// The outputs of the target's layers at a position of the text that it read, one after the other.
  std::vector<float> feature(size_t position) const {
    const auto width = static_cast<size_t>(llama_model_n_embd(target_.model()));
    std::vector<float> all;
    for (const int32_t layer : layers_) {
      const float* const rows = llama_get_embeddings_layer_inp(target_.get(), static_cast<uint32_t>(layer));
      if (rows == nullptr) throw std::runtime_error("llama.cpp kept no input of layer " + std::to_string(layer) + ".");
      all.insert(all.end(), rows + position * width, rows + (position + 1) * width);
    }
    return all;
  }

  std::vector<float> state(llama_context* context, int32_t row) const {
    const float* const values = llama_get_embeddings_nextn_ith(context, row);
    if (values == nullptr) throw std::runtime_error("llama.cpp kept no state of row " + std::to_string(row) + ".");
    return {values, values + llama_model_n_embd_out(llama_get_model(context))};
  }

  /// DFlash and its relatives: keys and values of the text from its features, then a pass over the root and masks.
  Drafted draft_block(std::span<const int32_t> read, int32_t root) {
    Rows rows(drafter_.get());
    std::vector<std::vector<float>> features;
    for (size_t i = 0; i < read.size(); ++i) features.push_back(feature(i));
    for (size_t i = 0; i < read.size(); ++i) rows.add_feature(features[i], static_cast<int32_t>(i));
    rows.run();
    rows.clear();
    const int32_t mask = llama_vocab_mask(llama_model_get_vocab(drafter_.model()));
    const int32_t block = std::stoi(meta(drafter_.model(), "dflash.block_size"));
    const auto first = static_cast<int32_t>(read.size());
    for (int32_t i = 0; i < block; ++i) rows.add_token(i == 0 ? root : mask, first + i);
    rows.run();
    Drafted drafted;
    if (lattice_ > 0) {
      // A row of it: tokens, then the scores behind each of the tokens before.
      const float* const lattice = llama_get_embeddings_nextn(drafter_.get());
      const auto width = static_cast<size_t>(llama_model_n_embd(drafter_.model())), top = static_cast<size_t>(lattice_);
      size_t before = 0;
      for (uint32_t i = 1; i <= options_.depth; ++i) {
        const float* const row = lattice + i * width;
        add_best({row + top + before * top, top}, drafted);
        before = static_cast<size_t>(drafted.tokens.back());
        drafted.tokens.back() = static_cast<int32_t>(row[before]);
      }
      return drafted;
    }
    for (uint32_t i = 0; i < options_.depth; ++i) add_best(drafter_.logits(options_.first_slot + i), drafted);
    return drafted;
  }

  /// Heads: keys and values of the text, but for an assistant, which reads the target's; then token after token.
  Drafted draft_steps(std::span<const int32_t> read, int32_t root) {
    Rows rows(drafter_.get());
    std::vector<std::vector<float>> states;
    for (size_t i = 0; i < read.size(); ++i) {
      states.push_back(is_eagle() ? feature(i) : state(target_.get(), static_cast<int32_t>(i)));
    }
    if (is_eagle()) {
      for (size_t i = 0; i < read.size(); ++i) rows.add_feature(states[i], static_cast<int32_t>(i));
      rows.run(LLAMA_PROCESS_TYPE_ENCODE);
      for (size_t i = 0; i < read.size(); ++i) states[i] = state(drafter_.get(), static_cast<int32_t>(i));
      rows.clear();
    }
    // A row has a token and the state before it; of EAGLE-3 it stands where the state does.
    const int32_t shift = is_eagle() ? 0 : 1;
    if (!is_assistant() && read.size() > 1) {
      for (size_t i = 1; i < read.size(); ++i) {
        rows.add_token(read[i], static_cast<int32_t>(i) - 1 + shift, states[i - 1]);
      }
      rows.run();
      rows.clear();
    }
    Drafted drafted;
    std::vector<float> before = states.back();
    int32_t token = root;
    for (uint32_t i = 0; i < options_.depth; ++i) {
      const int32_t at = static_cast<int32_t>(read.size()) - 1 + shift + (is_assistant() ? 0 : static_cast<int32_t>(i));
      rows.add_token(token, at, before);
      rows.run();
      add_best(drafter_.logits(0), drafted);
      before = state(drafter_.get(), 0);
      token = drafted.tokens.back();
      rows.clear();
    }
    return drafted;
  }

  const DraftsOptions options_;
  PeerContext target_, drafter_;
  int32_t lattice_ = 0;  // candidates of DFlash2's selector
  std::vector<int32_t> layers_;
};

}  // namespace

void run_drafts(const DraftsOptions& options) {
  std::ifstream file(options.ids_file);
  if (!file) throw std::runtime_error(options.ids_file + " cannot be read.");
  const ordered_json json = ordered_json::parse(file);
  PeerOptions target = options.peer;
  target.context = kContext;
  target.f32_cache = target.heads = true;
  Peer peer(options, target);
  ordered_json drafts = ordered_json::array();
  for (const ordered_json& text : json.at("texts")) {
    const Drafted drafted = peer.draft(text.get<std::vector<int32_t>>());
    drafts.push_back({{"tokens", drafted.tokens}, {"log_p", drafted.log_p}});
  }
  std::cout << ordered_json{{"drafts", drafts}}.dump() << "\n";
}

}  // namespace canopy::peer
