#include "engine/model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/format/architecture.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/compute/stepping_device.h"
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

TEST(Model, LayersOfAKindWithoutAForwardPassAreRefusedByNumberAndKind) {
  std::vector<LayerSpec> layers(3);
  EXPECT_NO_THROW(require_supported(layers));
  layers[2].feed_forward = FeedForward::mixture_of_experts;
  expect_error("Layer 2 of the model is a mixture of experts", [&] { require_supported(layers); });
  layers[1].mixer = Mixer::gated_delta_net;
  expect_error("Layer 1 of the model is a gated delta net", [&] { require_supported(layers); });
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
  const PassResult result = mixed.model->run(text_rows(0, 3), PassOutputs::logits_of({0, 1, 2}));
  ASSERT_EQ(result.logits.size(), 3u * 77);
  for (const float logit : result.logits) EXPECT_TRUE(std::isfinite(logit));

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
  EXPECT_NE(untied.model->run(text_rows(0, 1), PassOutputs::logits_of({0})).logits,
            tied.model->run(text_rows(0, 1), PassOutputs::logits_of({0})).logits);
}

TEST(Model, KeptLogitsAreReadRowByRowUntilTheyAreOverwritten) {
  Loaded l{RandomModel{}};
  const std::vector<uint32_t> wanted = {2, 0, 4};
  const PassResult whole = l.model->run(text_rows(0, 5), PassOutputs::logits_of(wanted));
  std::vector<float> row(l.model->config().vocab);
  expect_error("kept 0 rows", [&] { l.model->read_logits(0, row); });  // they came with the result
  PassOutputs kept = PassOutputs::logits_of(wanted);
  kept.keep_logits = true;
  EXPECT_TRUE(l.model->run(text_rows(0, 5), kept).logits.empty());
  for (const uint32_t index : {1u, 0u, 2u, 1u}) {
    l.model->read_logits(index, row);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), whole.logits.begin() + index * row.size())) << index;
  }
  expect_error("wanted row 3", [&] { l.model->read_logits(3, row); });
  expect_error("5 logits", [&] { l.model->read_logits(0, std::span(row).first(5)); });
  l.model->compute_logits(PassOutputs::logits_of({3}));
  expect_error("kept 0 rows", [&] { l.model->read_logits(0, row); });
}

TEST(Model, RecordsOncePerShapeAndReplays) {
  Loaded l{RandomModel{}};
  for (uint32_t i = 0; i < 20; ++i) l.model->run(text_rows(i, 1), PassOutputs::argmax_of({0}));
  EXPECT_EQ(l.model->recordings(), 1u);
  l.model->run(text_rows(20, 2), PassOutputs::argmax_of({1}));
  l.model->run(text_rows(22, 2), PassOutputs::argmax_of({0}));
  EXPECT_EQ(l.model->recordings(), 2u);
}

TEST(Model, RecordingsAreBounded) {
  Loaded l{RandomModel{}};
  for (uint32_t width = 1; width <= 100; ++width) l.model->run(text_rows(0, width), PassOutputs::nothing());
  for (uint32_t width = 1; width <= 100; ++width) l.model->run(text_rows(0, width), PassOutputs::argmax_of({0}));
  EXPECT_EQ(l.model->recordings(), 200u);
  l.model->run(text_rows(0, 1), PassOutputs::nothing());  // not used for long
  EXPECT_EQ(l.model->recordings(), 201u);
  l.model->run(text_rows(0, 100), PassOutputs::argmax_of({0}));  // used recently
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
  expect_error("at most 8", [&] { model.run(text_rows(0, 9), PassOutputs::nothing()); });
  expect_error("below 64", [&] { model.run(text_rows(64, 1), PassOutputs::nothing()); });
  expect_error("has 2 rows", [&] { model.run(text_rows(0, 2), PassOutputs::argmax_of({2})); });
  expect_error("without any", [&] {
    PassOutputs outputs;
    outputs.aux_hidden_states = true;
    model.run(text_rows(0, 1), outputs);
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
  std::vector<uint32_t> rows(9);
  expect_error("allowed: 1 to 8", [&] { model.run(batch, PassOutputs::logits_of(rows)); });
  expect_error("allowed: 1 to 128", [&] { model.run(batch, PassOutputs::argmax_of(std::vector<uint32_t>(129))); });
  PassOutputs outputs;
  outputs.probabilities = true;
  expect_error("argmax or logits", [&] { model.run(batch, outputs); });
  outputs = PassOutputs::argmax_of({3, 4});
  outputs.token_logits = {{2, 0}};
  expect_error("there are 2 wanted rows", [&] { model.run(batch, outputs); });
  outputs.token_logits = {{1, 77}};
  expect_error("77 tokens", [&] { model.run(batch, outputs); });
  outputs.token_logits.assign(257, {0, 0});
  expect_error("at most 256", [&] { model.run(batch, outputs); });
}

TEST(Model, PicksAreRecordedForRoundNumbersOnly) {
  Loaded l{RandomModel{}};
  PassOutputs outputs = PassOutputs::logits_of({2, 0});
  std::vector<std::vector<float>> answers;
  for (const uint32_t count : {1u, 9u, 16u, 17u, 30u, 32u}) {
    outputs.token_logits.clear();
    for (uint32_t i = 0; i < count; ++i) outputs.token_logits.emplace_back(i % 2, (i * 5) % 77);
    const PassResult result = l.model->run(text_rows(0, 3), outputs);
    ASSERT_EQ(result.token_logits.size(), count);
    EXPECT_TRUE(result.log_sum_exp.empty());
    for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(result.token_logits[i], result.logits[i % 2 * 77 + i * 5 % 77]);
  }
  EXPECT_EQ(l.model->recordings(), 2u);
}

TEST(Model, GivesMoreOfTheLastPassOnly) {
  ModelOptions options;
  options.aux_layers = {1};
  Loaded l(RandomModel{}, options);
  Model& model = *l.model;
  expect_error("no pass was completed", [&] { model.compute_logits(PassOutputs::argmax_of({0})); });
  model.run(text_rows(0, 5), PassOutputs::nothing());
  const std::vector<KvMove> moves = {{4, 9}};
  model.move_kv(moves);
  EXPECT_EQ(model.compute_logits(PassOutputs::logits_of({4, 1})).logits,
            model.run(text_rows(0, 5), PassOutputs::logits_of({4, 1})).logits);
  expect_error("has 5 rows", [&] { model.compute_logits(PassOutputs::argmax_of({5})); });
  expect_error("no taps", [&] { model.compute_logits(PassOutputs::nothing()); });
  PassOutputs outputs = PassOutputs::argmax_of({0});
  outputs.aux_hidden_states = true;
  expect_error("no taps", [&] { model.compute_logits(outputs); });
  const uint64_t recordings = model.recordings();
  model.compute_logits(PassOutputs::logits_of({0, 3}));
  EXPECT_EQ(model.recordings(), recordings);
  // A pass that stopped half-way leaves no rows of use behind, and those of the pass before are gone.
  StopAtOp stop(*l.device);
  EXPECT_FALSE(model.run(text_rows(0, 5), PassOutputs::nothing(), stop.arm(3)).completed);
  expect_error("no pass was completed", [&] { model.compute_logits(PassOutputs::logits_of({0, 3})); });
}

TEST(Model, KeepsTapsOnTheDevice) {
  ModelOptions options;
  options.aux_layers = {0, 1};
  Loaded l(RandomModel{}, options);
  PassOutputs outputs;
  outputs.aux_hidden_states = true;
  const std::vector<float> aux_hidden_states = l.model->run(text_rows(0, 3), outputs).aux_hidden_states;
  ASSERT_EQ(aux_hidden_states.size(), 3u * 2 * 64);
  outputs.aux_hidden_states = false;
  l.model->run(text_rows(5, 3), outputs);  // does not change what is kept on the device
  outputs.keep_aux_hidden_states = true;
  EXPECT_TRUE(l.model->run(text_rows(0, 3), outputs).aux_hidden_states.empty());
  std::vector<float> kept(aux_hidden_states.size());
  l.device->read(*l.model->aux_hidden_states(), 0, std::as_writable_bytes(std::span(kept)));
  EXPECT_EQ(kept, aux_hidden_states);
  EXPECT_EQ(Loaded{RandomModel{}}.model->aux_hidden_states(), nullptr);
  EXPECT_EQ(&l.model->embedding(), &l.model->head());  // tied
}

TEST(Model, StopsBetweenTheParts) {
  Loaded l{RandomModel{}};
  StopAtOp stop(*l.device);
  l.model->run(text_rows(0, 4), PassOutputs::argmax_of({3}));  // records
  const PassResult result = l.model->run(text_rows(0, 4), PassOutputs::argmax_of({3}), stop.arm(3));
  EXPECT_EQ(stop.ops(), 3u);
  EXPECT_FALSE(result.completed);
  EXPECT_TRUE(result.ids.empty());
  // The next pass is not disturbed.
  const auto again = l.model->run(text_rows(0, 4), PassOutputs::argmax_of({3}));
  EXPECT_EQ(again.ids, Loaded{RandomModel{}}.model->run(text_rows(0, 4), PassOutputs::argmax_of({3})).ids);
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
