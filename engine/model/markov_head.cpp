#include "engine/model/markov_head.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/compute/rows.h"
#include "engine/format/dequantize.h"

namespace canopy {
namespace {

constexpr uint64_t kMarkovWord = sizeof(uint32_t);

/// Where the parts of a pass's input and results lie, in bytes.
struct MarkovLayout {
  MarkovLayout(uint64_t widest, uint64_t candidates, uint64_t depths) {
    Packing input;
    rows = input.add(widest * sizeof(Row));
    moves = input.add(widest * 2 * kMarkovWord);
    input_bytes = input.end();
    Packing results;
    ids = results.add(widest * candidates * kMarkovWord);
    logits = results.add(widest * candidates * kMarkovWord);
    log_sum_exp = results.add(widest * kMarkovWord);
    of_places = results.add(depths * kMarkovWord);
    of_rows = results.add(widest * kMarkovWord);
    result_bytes = results.end();
  }
  uint64_t rows = 0, moves = 0, input_bytes = 0;
  uint64_t ids = 0, logits = 0, log_sum_exp = 0, of_places = 0, of_rows = 0, result_bytes = 0;
};

std::vector<float> confidence_values(const DrafterFile& file, const char* name, uint64_t cols) {
  const TensorView& tensor = file.require(name, 1, cols);
  std::vector<float> values(tensor.elements());
  dequantize(tensor.type, tensor.bytes, values);
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
    throw bad_input("The confidence head " + quoted_name(tensor.shown_name()) +
                    " holds a value that is not finite: the file is damaged.");
  }
  return values;
}

WeightPart one_row(std::span<const float> values) {
  return {.type = WeightType::f32,
          .rows = 1,
          .cols = static_cast<uint32_t>(values.size()),
          .data = std::as_bytes(values),
          .read = {}};
}

}  // namespace

uint64_t MarkovHead::device_bytes(const DrafterConfig& config, const Device& device, uint32_t widest,
                                  uint32_t candidates) {
  const uint64_t rank = config.markov.rank, drafted = config.drafted_tokens();
  const MarkovLayout layout(widest, candidates, config.depths());
  const uint64_t floats = std::max(rank, drafted) + widest * (rank + drafted) +
                          (config.markov.has_confidence ? config.transformer.hidden + rank : 0);
  return floats * sizeof(float) + device.activation_bytes(widest, static_cast<uint32_t>(rank)) +
         device.activation_bytes(widest, static_cast<uint32_t>(drafted)) + layout.input_bytes + layout.result_bytes;
}

MarkovHead::MarkovHead(const DrafterFile& file, const MarkovPlan& plan, Device& device, TensorLoader& tensors,
                       uint32_t widest, uint32_t candidates)
    : device_(device),
      rank_(file.config().markov.rank),
      drafted_(file.config().drafted_tokens()),
      depths_(file.config().depths()),
      widest_(widest),
      candidates_(candidates) {
  const MarkovConfig& markov = file.config().markov;
  const uint32_t hidden = file.config().transformer.hidden;
  w1_ = tensors.matrix(plan.w1);
  w2_ = tensors.matrix(plan.w2);
  if (markov.has_confidence) {
    const uint32_t reads = markov.confidence_reads_markov ? rank_ : 0;
    const std::vector<float> values = confidence_values(file, "conf_proj", uint64_t{hidden} + reads);
    const WeightPart of_hidden = one_row(std::span(values).first(hidden));
    confidence_hidden_ = device.make_weight({&of_hidden, 1}, WeightLayout::stacked, "confidence of hidden states");
    if (reads > 0) {
      const WeightPart of_markov = one_row(std::span(values).last(reads));
      confidence_markov_ = device.make_weight({&of_markov, 1}, WeightLayout::stacked, "confidence of tokens");
    }
    if (markov.confidence_has_bias) confidence_bias_ = confidence_values(file, "conf_proj.bias", 1).front();
  }
  const std::vector<float> ones(std::max(rank_, drafted_), 1.0f);
  ones_ = device.allocate(ones.size() * sizeof(float), "ones");
  device.write(*ones_, 0, as_bytes_of(ones));
  before_ = device.allocate(uint64_t{widest} * rank_ * sizeof(float), "rows of the Markov head");
  rows_ = device.allocate_activations(widest, rank_, "rows of the Markov head");
  sums_ = device.allocate(uint64_t{widest} * drafted_ * sizeof(float), "logits given the token before");
  spare_ = device.allocate_activations(widest, drafted_, "logits given the token before");
  const MarkovLayout layout(widest, candidates, depths_);
  input_ = device.allocate_exchanged(layout.input_bytes, HostUse::writes, "input of the Markov head");
  tokens_ = device.part(*input_, layout.rows, widest * sizeof(Row), "tokens before places");
  moves_ = device.part(*input_, layout.moves, widest * 2 * kMarkovWord, "places of rows");
  results_ = device.allocate_exchanged(layout.result_bytes, HostUse::reads, "results of the Markov head");
  ids_ = device.part(*results_, layout.ids, uint64_t{widest} * candidates * kMarkovWord, "tokens");
  logits_ = device.part(*results_, layout.logits, uint64_t{widest} * candidates * kMarkovWord, "their logits");
  log_sum_exp_ = device.part(*results_, layout.log_sum_exp, widest * kMarkovWord, "sums");
  of_places_ = device.part(*results_, layout.of_places, depths_ * kMarkovWord, "confidence of places");
  of_rows_ = device.part(*results_, layout.of_rows, widest * kMarkovWord, "confidence of tokens");
}

void MarkovHead::record_block(Recorder& record, const Activations& hidden, float norm_eps) {
  if (!has_confidence()) return;
  record(LinearArgs{.width = depths_,
                    .weight = confidence_hidden_.get(),
                    .in = &hidden,
                    .norm_eps = norm_eps,
                    .out = of_places_.get(),
                    .stride = 1});
}

void MarkovHead::record_rows(Recorder& record, uint32_t width, const Buffer& logits) {
  record(EmbedArgs{.width = width,
                   .table = w1_.get(),
                   .rows = tokens_.get(),
                   .x = before_.get(),
                   .norm = {ones_.get()},
                   .out = rows_.get()});
  record(CopyRowsArgs{.count = width, .cols = drafted_, .in = &logits, .moves = moves_.get(), .out = sums_.get()});
  record(LinearAddArgs{.width = width,
                       .weight = w2_.get(),
                       .in = rows_.get(),
                       .x = sums_.get(),
                       .norm = {ones_.get()},
                       .out = spare_.get()});
  record(TopKArgs{.width = width,
                  .logits = sums_.get(),
                  .vocab = drafted_,
                  .k = candidates_,
                  .ids = ids_.get(),
                  .values = logits_.get(),
                  .log_sum_exp = log_sum_exp_.get()});
  if (confidence_markov_ == nullptr) return;
  record(LinearArgs{
      .width = width, .weight = confidence_markov_.get(), .in = rows_.get(), .out = of_rows_.get(), .stride = 1});
}

void MarkovHead::write(std::span<const BlockPlace> places, uint32_t width) {
  const MarkovLayout layout(widest_, candidates_, depths_);
  const auto place = [&](size_t i) { return places[std::min(i, places.size() - 1)]; };
  upload_.clear();
  put_each(upload_, layout.rows, width, [&](size_t i) {
    Row row;
    row.token = place(i).before;
    return row;
  });
  std::vector<uint32_t> moves;
  for (uint32_t i = 0; i < width; ++i) moves.insert(moves.end(), {place(i).slot, i});
  put(upload_, layout.moves, moves);
  device_.write(*input_, 0, upload_);
}

PlaceLists MarkovHead::read(std::span<const BlockPlace> places) {
  const MarkovLayout layout(widest_, candidates_, depths_);
  download_.resize(layout.result_bytes);
  device_.read(*results_, 0, download_);
  PlaceLists lists;
  lists.tokens = array_at<uint32_t>(download_, layout.ids, places.size() * candidates_);
  lists.logits = array_at<float>(download_, layout.logits, places.size() * candidates_);
  lists.log_sum_exp = array_at<float>(download_, layout.log_sum_exp, places.size());
  if (!has_confidence()) return lists;
  for (size_t i = 0; i < places.size(); ++i) {
    double x = double{element_at<float>(download_, layout.of_places, places[i].slot)} + confidence_bias_;
    if (confidence_markov_ != nullptr) x += element_at<float>(download_, layout.of_rows, i);
    lists.confidence.push_back(1 / (1 + std::exp(-x)));
  }
  return lists;
}

}  // namespace canopy
