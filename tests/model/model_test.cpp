#include "engine/model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/base/error.h"
#include "engine/format/architecture.h"
#include "engine/speculation/sampler.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/compute/stepping_device.h"
#include "tests/model/all_logits.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

/// A model with its own device and file.
struct Loaded {
  explicit Loaded(const RandomModel& random, ModelOptions options = {})
      : path(folder.write("model.gguf", random.build())),
        file(ModelFile::open(path)),
        device(std::make_unique<SteppingDevice>(make_reference_device())),
        model(Model::load(*device, file, options)) {}
  TempFolder folder;
  std::filesystem::path path;
  ModelFile file;
  std::unique_ptr<SteppingDevice> device;
  std::unique_ptr<Model> model;
};

RowBatch text_rows(uint32_t first, uint32_t count) {
  RowBatch batch;
  for (uint32_t i = first; i < first + count; ++i) batch.add_text((i * 31 + 7) % 77, i);
  return batch;
}

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "nothing was refused";
  return ErrorKind::bad_input;
}

TEST(Model, MixedTypesAreLoadedSeparatelyOrConvertedWithoutLoss) {
  // The same values in f16 and in f32: q, k and v become three weights, gate and up one of f32, and no logit changes.
  RandomModel random;
  random.type = TensorType::f16;
  random.mixed = true;
  random.v_type = TensorType::bf16;
  Loaded mixed(random);
  ASSERT_EQ(mixed.model->warnings().size(), 1u);
  EXPECT_NE(mixed.model->warnings()[0].find("F32"), std::string::npos) << mixed.model->warnings()[0];
  const std::vector<float> logits = logits_of(*mixed.model, text_rows(0, 3), {0, 1, 2});
  ASSERT_EQ(logits.size(), 3u * 77);
  for (const float logit : logits) EXPECT_TRUE(std::isfinite(logit));

  RandomModel plain = random;
  plain.mixed = false;
  EXPECT_TRUE(Loaded(plain).model->warnings().empty());
}

TEST(Model, UntiedHeadIsUsed) {
  RandomModel random;
  random.tied = false;
  Loaded untied(random);
  random.tied = true;
  Loaded tied(random);
  EXPECT_NE(logits_of(*untied.model, text_rows(0, 1), {0}), logits_of(*tied.model, text_rows(0, 1), {0}));
}

TEST(Model, LogitsAreReadRowByRowUntilTheNextPass) {
  Loaded l{RandomModel{}};
  const size_t vocab = l.model->config().vocab;
  const std::vector<uint32_t> rows = {0, 1, 2, 3, 4};
  const std::vector<float> all = logits_of(*l.model, text_rows(0, 5), rows);
  const auto expect_row = [&](std::span<const float> logits, uint32_t row) {
    ASSERT_EQ(logits.size(), vocab);
    EXPECT_TRUE(std::equal(logits.begin(), logits.end(), all.begin() + static_cast<std::ptrdiff_t>(row * vocab)))
        << row;
  };
  ForwardOutput output = l.model->forward({text_rows(0, 5), HeadOutput::logits, {2, 0, 4}});
  EXPECT_TRUE(output.choices().empty());
  const uint64_t recordings = l.model->recordings();
  for (const uint32_t row : {0u, 2u, 4u, 0u}) expect_row(output.logits(row), row);
  EXPECT_EQ(l.model->recordings(), recordings) << "they came with the pass";
  for (const uint32_t row : {3u, 2u, 0u, 1u, 4u}) expect_row(output.logits(row), row);  // 3 overwrites them
  EXPECT_EQ(l.model->recordings(), recordings + 1);
  expect_error("the pass has 5 rows", [&] { output.logits(5); });
  l.model->forward({text_rows(0, 1)});
  expect_error("another pass", [&] { output.logits(0); });
  expect_error("another pass", [&] { output.logits(rows); });
  ForwardOutput nothing;
  EXPECT_FALSE(nothing.completed());
  expect_error("has 0 rows", [&] { nothing.logits(0); });
}

TEST(Model, APassIsOneUploadOneRunAndOneRead) {
  struct CountingDevice : ForwardingDevice {
    using ForwardingDevice::ForwardingDevice;
    void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
      ++writes, written += from.size();
      ForwardingDevice::write(to, offset, from);
    }
    bool run(Commands& commands, const std::stop_token& stop) override {
      ++runs;
      return ForwardingDevice::run(commands, stop);
    }
    void read_all(std::span<const BufferRead> reads) override {
      ++read_calls, regions += reads.size();
      ForwardingDevice::read_all(reads);
    }
    size_t writes = 0, written = 0, runs = 0, read_calls = 0, regions = 0;
  };
  TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", RandomModel{}.build()));
  CountingDevice device(make_reference_device());
  const auto model = Model::load(device, file, {});
  ForwardInput input{text_rows(0, 3), HeadOutput::argmax, {0, 1, 2}};
  input.probabilities = true;
  input.token_logits = {{0, 5}, {1, 6}};
  device.writes = device.written = device.runs = device.read_calls = device.regions = 0;
  ASSERT_TRUE(model->forward(input).completed());
  EXPECT_EQ(device.writes, 1u);
  EXPECT_LE(device.written, 5 * kPartAlignment) << "what the pass has, not what the largest would need";
  EXPECT_EQ(device.runs, 1u);
  EXPECT_EQ(device.read_calls, 1u);
  EXPECT_EQ(device.regions, 1u);
  ASSERT_TRUE(model->forward({text_rows(3, 2)}).completed());
  EXPECT_EQ(device.writes, 2u);
  EXPECT_EQ(device.read_calls, 1u) << "nothing is wanted of it";
}

TEST(Model, RecordsOncePerShapeAndReplays) {
  Loaded l{RandomModel{}};
  for (uint32_t i = 0; i < 20; ++i) l.model->forward({text_rows(i, 1), HeadOutput::argmax, {0}});
  EXPECT_EQ(l.model->recordings(), 1u);
  l.model->forward({text_rows(20, 2), HeadOutput::argmax, {1}});
  l.model->forward({text_rows(22, 2), HeadOutput::argmax, {0}});
  EXPECT_EQ(l.model->recordings(), 2u);
}

TEST(Model, RecordingsAreBounded) {
  Loaded l{RandomModel{}};
  for (uint32_t width = 1; width <= 100; ++width) l.model->forward({text_rows(0, width)});
  for (uint32_t width = 1; width <= 100; ++width) l.model->forward({text_rows(0, width), HeadOutput::argmax, {0}});
  EXPECT_EQ(l.model->recordings(), 200u);
  l.model->forward({text_rows(0, 1)});  // not used for long
  EXPECT_EQ(l.model->recordings(), 201u);
  l.model->forward({text_rows(0, 100), HeadOutput::argmax, {0}});  // used recently
  EXPECT_EQ(l.model->recordings(), 201u);
}

TEST(Model, ReportsProgressUpToTheWholeFileAndCancels) {
  uint64_t last = 0;
  uint64_t whole = 0;
  ModelOptions options;
  options.callbacks.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last);
    last = done;
    whole = total;
  };
  Loaded l(RandomModel{}, options);
  EXPECT_EQ(last, whole);
  EXPECT_GT(whole, 0u);

  // Ends while matrices are copied: the first may be done, the last is not.
  std::stop_source stop;
  bool asked_for_the_last = false;
  options.callbacks.progress = [&](uint64_t done, uint64_t total) {
    asked_for_the_last |= done == total;
    stop.request_stop();
  };
  options.callbacks.stop = stop.get_token();
  EXPECT_EQ(kind_of([&] { Model::load(*l.device, l.file, options); }), ErrorKind::cancelled);
  EXPECT_FALSE(asked_for_the_last);
}

TEST(Model, LoadingChecksMemoryBeforeItAllocates) {
  TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", RandomModel{}.build()));
  const auto device = make_reference_device(100'000);
  EXPECT_EQ(kind_of([&] { Model::load(*device, file, {}); }), ErrorKind::out_of_memory);
  EXPECT_EQ(device->memory().available, 100'000u);
}

TEST(Model, FreesEverythingWithItself) {
  Loaded l{RandomModel{}};
  EXPECT_LT(l.device->memory().available, l.device->memory().total);
  EXPECT_LE(l.device->memory().total - l.device->memory().available, l.model->memory().total());
  l.model.reset();
  EXPECT_EQ(l.device->memory().available, l.device->memory().total);
}

TEST(Model, RefusesAFileThatChangedUnderIt) {
  TempFolder folder;
  const std::string bytes = RandomModel{}.build();
  const auto path = folder.write("model.gguf", bytes);
  const ModelFile file = ModelFile::open(path);
  std::filesystem::resize_file(path, bytes.size() / 2);
  const auto device = make_reference_device();
  EXPECT_EQ(kind_of([&] { Model::load(*device, file, {}); }), ErrorKind::bad_input);
}

TEST(Model, RefusesANormThatIsNotANumber) {
  TempFolder folder;
  std::string bytes = RandomModel{}.build();
  const ModelFile whole = ModelFile::open(folder.write("model.gguf", bytes));
  const auto* norm = whole.find("output_norm");
  const std::string needle(reinterpret_cast<const char*>(norm->bytes.data()), norm->bytes.size());
  const size_t at = bytes.find(needle);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 4, le(std::nanf("")));
  const ModelFile file = ModelFile::open(folder.write("broken.gguf", bytes));
  const auto device = make_reference_device();
  expect_error("output_norm", [&] { Model::load(*device, file, {}); });
}

TEST(Model, RefusesRowsAndOutputsThatDoNotFit) {
  ModelOptions options;
  options.max_width = 8;
  options.context = 64;
  Loaded l(RandomModel{}, options);
  Model& model = *l.model;
  expect_error("at most 8", [&] { model.forward({text_rows(0, 9)}); });
  expect_error("below 64", [&] { model.forward({text_rows(64, 1)}); });
  expect_error("has 2 rows", [&] { model.forward({text_rows(0, 2), HeadOutput::argmax, {2}}); });
  expect_error("without any", [&] {
    ForwardInput input{text_rows(0, 1)};
    input.aux_hidden_states = true;
    model.forward(input);
  });
  const std::vector<KvMove> outside = {{64 + 8, 0}};
  expect_error("below 72", [&] { model.move_kv(outside); });
  options.aux_layers = {1, 1};
  expect_error("ascending", [&] { Model::load(*l.device, l.file, options); });
}

TEST(Model, RefusesHeadsThatDoNotFit) {
  Loaded l{RandomModel{}};
  Model& model = *l.model;
  const RowBatch batch = text_rows(0, 40);
  expect_error("allowed: 1 to 8", [&] { model.forward({batch, HeadOutput::logits, std::vector<uint32_t>(9)}); });
  expect_error("allowed: 1 to 128", [&] { model.forward({batch, HeadOutput::argmax, std::vector<uint32_t>(129)}); });
  ForwardInput input{batch};
  input.probabilities = true;
  expect_error("with a head only", [&] { model.forward(input); });
  input = {batch, HeadOutput::argmax, {3, 4}};
  input.token_logits = {{2, 0}};
  expect_error("there are 2 wanted rows", [&] { model.forward(input); });
  input.token_logits = {{1, 77}};
  expect_error("77 tokens", [&] { model.forward(input); });
  input.token_logits.assign(257, {0, 0});
  expect_error("at most 256", [&] { model.forward(input); });
  expect_error("those of 1 rows", [&] { model.forward({batch, HeadOutput::argmax, {3}}).best(2); });
}

// They come of one op then, in chunks of 8 rows.
TEST(Model, TheBestTokenIsTheSameWithProbabilities) {
  Loaded l{RandomModel{}};
  ForwardInput input{text_rows(0, 20), HeadOutput::argmax};
  for (uint32_t row = 0; row < 20; ++row) input.head_rows.push_back(row);
  const ForwardOutput alone = l.model->forward(input);
  input.probabilities = true;
  const ForwardOutput with = l.model->forward(input);
  ASSERT_EQ(with.log_sum_exp().size(), 20u);
  for (uint32_t row = 0; row < 20; ++row) {
    EXPECT_EQ(with.best(row), alone.best(row));
    EXPECT_EQ(with.best_logit(row), alone.best_logit(row));
    EXPECT_EQ(with.choices()[row], alone.choices()[row]);
  }
}

/// The first tokens of a row of logits by falling logit, ties by the lower token.
std::vector<uint32_t> likeliest_of(std::span<const float> logits) {
  std::vector<uint32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  ids.resize(kLikeliest);
  return ids;
}

// With every head, in chunks of 8 rows; nothing else is another for it.
TEST(Model, TheLikeliestTokensAreThoseOfTheLogits) {
  Loaded l{RandomModel{}};
  for (const HeadOutput head : {HeadOutput::argmax, HeadOutput::sampled, HeadOutput::logits}) {
    for (const bool probabilities : {false, true}) {
      const uint32_t rows = head == HeadOutput::logits ? 8 : 20;
      ForwardInput input{text_rows(0, 20), head};
      for (uint32_t row = 0; row < rows; ++row) input.head_rows.push_back(row);
      input.probabilities = probabilities;
      if (head == HeadOutput::sampled) {
        SamplingSettings settings;
        settings.temperature = 1.0f;
        settings.seed = 4;
        input.sampling = {sampling_words(settings, 2, 100), {}, false};
      }
      const ForwardOutput without = l.model->forward(input);
      const std::vector<uint32_t> choices(without.choices().begin(), without.choices().end());
      const std::vector<float> sums(without.log_sum_exp().begin(), without.log_sum_exp().end());
      EXPECT_EQ(without.rows_with_likeliest(), 0u);
      input.likeliest = true;
      ForwardOutput output = l.model->forward(input);
      EXPECT_TRUE(std::ranges::equal(output.choices(), choices));
      EXPECT_TRUE(std::ranges::equal(output.log_sum_exp(), sums));
      ASSERT_EQ(output.rows_with_likeliest(), rows);
      for (uint32_t row = 0; row < rows; ++row) {
        const std::vector<uint32_t> expected = likeliest_of(output.logits(row));
        EXPECT_TRUE(std::ranges::equal(output.likeliest(row), expected)) << "row " << row;
        if (head == HeadOutput::argmax) {
          EXPECT_EQ(output.best(row), expected[0]);
        }
      }
    }
  }
  ForwardInput none{text_rows(0, 4)};
  none.likeliest = true;
  expect_error("come with a head only", [&] { l.model->forward(none); });
}

// In chunks of 8 rows; logits that are asked for afterwards are those of the model, without penalties.
TEST(Model, DrawsTokensAfterRows) {
  Loaded l{RandomModel{}};
  SamplingSettings settings;
  settings.temperature = 1.0f;
  settings.seed = 9;
  settings.presence_penalty = 2.0f;
  settings.logit_bias = {{3, 1.0f}};
  TokenAdjustments text(settings, 77);
  text.add(std::vector<uint32_t>{5, 5, 70});
  ForwardInput input{text_rows(0, 20), HeadOutput::sampled};
  for (uint32_t row = 0; row < 20; ++row) {
    input.head_rows.push_back(row);
    input.parents.push_back(row == 0 ? kNoToken : row / 2);
  }
  input.parents[1] = 0;
  input.sampling = {sampling_words(settings, 2, 100), {text.all().begin(), text.all().end()}, true};
  ForwardOutput output = l.model->forward(input);
  ASSERT_EQ(output.choices().size(), 20u);
  const std::vector<float> logits = output.logits(input.head_rows);
  EXPECT_EQ(logits, l.model->forward({text_rows(0, 20)}).logits(input.head_rows));
  Sampler sampler(settings, 77);
  std::vector<std::vector<uint32_t>> paths(20);
  for (uint32_t row = 0; row < 20; ++row) {
    if (row > 0) {
      paths[row] = paths[input.parents[row]];
      paths[row].push_back(input.batch.rows[row].token);
    }
    std::vector<uint32_t> history = {5, 5, 70};
    history.insert(history.end(), paths[row].begin(), paths[row].end());
    EXPECT_EQ(output.drawn(row),
              sampler.sample(std::span(logits).subspan(row * size_t{77}, 77), history, 2, 100 + paths[row].size()))
        << row;
  }
  expect_error("A token drawn after row 2", [&] {
    l.model->forward({text_rows(0, 3), HeadOutput::argmax, {2}}).drawn(2);
  });
  expect_error("those of 0 rows", [&] { l.model->forward(input).best(2); });
  input.parents.pop_back();
  expect_error("of 19 rows", [&] { l.model->forward(input); });
  input.parents.push_back(19);
  expect_error("the parent 19", [&] { l.model->forward(input); });
  input.parents.clear();
  input.sampling.adjustments = {{7}, {7}};
  expect_error("Adjustment 1 names token 7", [&] { l.model->forward(input); });
  input.sampling.adjustments.resize(5000);
  expect_error("of 5000 tokens", [&] { l.model->forward(input); });
}

TEST(Model, SingleLogitsAreRecordedForRoundNumbersOnly) {
  Loaded l{RandomModel{}};
  ForwardInput input{text_rows(0, 3), HeadOutput::logits, {2, 0}};
  for (const uint32_t count : {1u, 9u, 16u, 17u, 30u, 32u}) {
    input.token_logits.clear();
    for (uint32_t i = 0; i < count; ++i) input.token_logits.push_back({i % 2, (i * 5) % 77});
    ForwardOutput result = l.model->forward(input);
    ASSERT_EQ(result.token_logits().size(), count);
    EXPECT_TRUE(result.log_sum_exp().empty());
    const std::vector<float> logits = result.logits(input.head_rows);
    for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(result.token_logits()[i], logits[i % 2 * 77 + i * 5 % 77]);
  }
  EXPECT_EQ(l.model->recordings(), 2u);
}

TEST(Model, GivesMoreOfTheLastPassOnly) {
  Loaded l(RandomModel{});
  Model& model = *l.model;
  ForwardOutput output = model.forward({text_rows(0, 5)});
  const std::vector<KvMove> moves = {{4, 9}};
  model.move_kv(moves);
  const std::vector<uint32_t> rows = {4, 1};
  const std::vector<float> later = output.logits(rows);
  EXPECT_EQ(later, logits_of(model, text_rows(0, 5), rows));
  // A pass that stopped half-way leaves no rows of use behind, and those of the pass before are gone.
  output = model.forward({text_rows(0, 5)});
  StopAtOp stop(*l.device);
  EXPECT_FALSE(model.forward({text_rows(0, 5)}, stop.arm(3)).completed());
  expect_error("another pass", [&] { output.logits(0); });
}

// Gemma's residual stream is kept smaller than it is, and what a drafter reads of it is not. With post norms of 0 its
// layers add nothing: what is kept are the embeddings.
TEST(Model, TapsAreThoseOfTheModelWhateverTheResidualStreamIsKeptAt) {
  const TempFolder folder;
  RandomModel random;
  random.architecture = "gemma3";
  GgufBuilder builder = random.builder();
  for (const char* norm : {"blk.0.post_attention_norm.weight", "blk.0.post_ffw_norm.weight"}) {
    builder.without_tensor(norm).zeros(norm, {random.hidden});
  }
  const ModelFile file = ModelFile::open(folder.write("m.gguf", builder.build()));
  ModelOptions options;
  options.aux_layers = {0};
  const auto device = make_reference_device();
  const auto model = Model::load(*device, file, options);
  ForwardInput input{text_rows(0, 1)};
  input.aux_hidden_states = true;
  model->forward(input);
  const std::vector<float> kept = aux_hidden_states_of(*model, 1);
  std::vector<float> embedding(random.hidden);
  std::memcpy(embedding.data(),
              file.require("token_embd", random.vocab, random.hidden).bytes.data() +
                  input.batch.rows[0].token * random.hidden * sizeof(float),
              random.hidden * sizeof(float));
  for (uint32_t c = 0; c < random.hidden; ++c) ASSERT_EQ(kept[c], 8 * embedding[c]) << c;  // the root of 64
}

TEST(Model, KeepsTapsOnTheDevice) {
  ModelOptions options;
  options.aux_layers = {0, 1};
  Loaded l(RandomModel{}, options);
  ForwardInput input{text_rows(0, 3)};
  input.aux_hidden_states = true;
  l.model->forward(input);
  const std::vector<float> kept = aux_hidden_states_of(*l.model, 3);
  ASSERT_EQ(kept.size(), 3u * 2 * 64);
  EXPECT_NE(kept, std::vector<float>(kept.size()));
  l.model->forward({text_rows(5, 3)});  // does not change what is kept on the device
  EXPECT_EQ(aux_hidden_states_of(*l.model, 3), kept);
  input.batch = text_rows(5, 3);
  l.model->forward(input);
  EXPECT_NE(aux_hidden_states_of(*l.model, 3), kept);
  EXPECT_EQ(Loaded{RandomModel{}}.model->aux_hidden_states(), nullptr);
  EXPECT_EQ(&l.model->embedding(), &l.model->head());  // tied
}

TEST(Model, StopsBetweenTheParts) {
  Loaded l{RandomModel{}};
  StopAtOp stop(*l.device);
  const ForwardInput input{text_rows(0, 4), HeadOutput::argmax, {3}};
  l.model->forward(input);  // records
  const ForwardOutput result = l.model->forward(input, stop.arm(3));
  EXPECT_EQ(stop.ops(), 3u);
  EXPECT_FALSE(result.completed());
  EXPECT_TRUE(result.choices().empty());
  // The next pass is not disturbed.
  EXPECT_EQ(l.model->forward(input).best(3), Loaded{RandomModel{}}.model->forward(input).best(3));
}

TEST(Model, CountsTheOperationsOfAPass) {
  Loaded l{RandomModel{}};
  // Two layers: q 64, k 32, v 32, output 64, gate 96, up 96, down 96 rows of 64; the head 77 of 64.
  constexpr double layers = 2.0 * (64 + 32 + 32 + 64 + 96 + 96 + 96) * 64;
  constexpr double head = 77.0 * 64;
  EXPECT_EQ(l.model->weight_elements(), static_cast<uint64_t>(layers + head));
  EXPECT_DOUBLE_EQ(l.model->pass_flops(3, 1, 10), 3 * (2 * layers + 4.0 * 64 * 10 * 2) + 2 * head);
}

}  // namespace
}  // namespace canopy::test
