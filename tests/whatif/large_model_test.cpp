// Models of full size, as sparse files that take no room on the disk: opened, planned, refused and loaded by a device
// without memory, in seconds.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "engine/base/mapped_file.h"
#include "engine/format/architecture.h"
#include "engine/format/tensor_names.h"
#include "engine/model/model.h"
#include "engine/vulkan/device_objects.h"
#include "engine/vulkan/upload.h"
#include "engine/whatif/model_shapes.h"
#include "engine/whatif/prediction.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/safetensors_builder.h"
#include "tests/format/split_gguf.h"

namespace canopy::predict {
namespace {

using test::GgufBuilder;
using test::TempFolder;

constexpr uint64_t kGiB = uint64_t{1} << 30;

/// Qwen3-30B-A3B with the 128 experts of a layer side by side as one dense feed-forward: as many weights in as many
/// bytes, of a kind that there is a forward pass for.
NamedShape dense_30b() {
  NamedShape shape = model_shape("qwen3-8b-q4_k");
  shape.name = "30b-a3b-dense-q4_k";
  shape.config.name = "30b-a3b-dense";
  shape.config.layers = 48;
  shape.config.hidden = 2048;
  shape.config.heads = 32;
  shape.config.kv_heads = 4;
  shape.config.ffn = 128 * 768;
  return shape;
}

GgufBuilder metadata(const ModelConfig& config) {
  GgufBuilder file;
  const std::string prefix = config.architecture + ".";
  file.text("general.architecture", config.architecture).text("general.name", config.name);
  const auto number = [&](const char* key, uint32_t value) { file.value<uint32_t>(prefix + key, value); };
  number("block_count", config.layers);
  number("context_length", 40960);
  number("embedding_length", config.hidden);
  number("feed_forward_length", config.ffn);
  number("attention.head_count", config.heads);
  number("attention.head_count_kv", config.kv_heads);
  number("attention.key_length", config.head_dim);
  number("attention.value_length", config.head_dim);
  if (config.experts > 0) {
    number("expert_count", config.experts);
    number("expert_used_count", config.experts_used);
    number("expert_feed_forward_length", config.expert_ffn);
  }
  file.value<float>(prefix + "attention.layer_norm_rms_epsilon", 1e-6f).value<float>(prefix + "rope.freq_base", 1e6f);
  return file;
}

bool is_of_expert(const RequiredTensor& tensor) {
  return without_expert(tensor.name) != tensor.name;
}

/// The tensors that a GGUF file has, which holds the experts of a layer as one: the first stands for all.
std::vector<RequiredTensor> stored_tensors(const ModelConfig& config) {
  std::vector<RequiredTensor> tensors = required_tensors(config);
  std::erase_if(tensors, [](const RequiredTensor& one) { return is_of_expert(one) && !one.name.ends_with(".0"); });
  return tensors;
}

/// Writes a GGUF file whose tensors are a hole; empty where the file system has no holes.
std::filesystem::path write_sparse(const TempFolder& folder, const std::string& name, const GgufBuilder& file,
                                   uint64_t data) {
  const std::string header = file.build();
  const std::filesystem::path path = folder.write(name, header);
  struct stat status = {};
  if (::truncate(path.c_str(), static_cast<off_t>(header.size() + data)) != 0 || ::stat(path.c_str(), &status) != 0 ||
      static_cast<uint64_t>(status.st_blocks) * 512 > (uint64_t{16} << 20)) {
    return {};
  }
  return path;
}

/// A GGUF file of that shape with some of its tensors, which are a hole.
std::filesystem::path sparse_file(const TempFolder& folder, const NamedShape& shape, const std::string& name,
                                  GgufBuilder file, std::span<const RequiredTensor> tensors) {
  uint64_t data = 0;
  for (const RequiredTensor& wanted : tensors) {
    const bool vector = wanted.rows == 1;
    const TensorType type = vector ? TensorType::f32 : type_of_tensor(shape, wanted.name, wanted.cols);
    GgufBuilder::Tensor tensor;
    tensor.name = wanted.name + ".weight";
    tensor.dimensions = {wanted.cols};
    if (!vector) tensor.dimensions.push_back(wanted.rows);
    uint64_t matrices = 1;
    if (is_of_expert(wanted)) {
      matrices = shape.config.experts;
      tensor.name = std::string(without_expert(wanted.name)) + "_exps.weight";
      tensor.dimensions.push_back(matrices);
    }
    tensor.type = static_cast<uint32_t>(type);
    tensor.offset = data;
    file.tensors.push_back(tensor);
    data += (tensor_bytes(type, matrices * wanted.rows * wanted.cols, wanted.name) + 31) / 32 * 32;
  }
  return write_sparse(folder, name, file, data);
}

std::filesystem::path sparse_file(const TempFolder& folder, const NamedShape& shape, GgufBuilder file) {
  return sparse_file(folder, shape, shape.name + ".gguf", std::move(file), stored_tensors(shape.config));
}

#define CANOPY_SPARSE_FILE(path, ...)                          \
  const std::filesystem::path path = sparse_file(__VA_ARGS__); \
  if (path.empty()) GTEST_SKIP() << "the file system has no sparse files"

/// Bytes of a mapped file that are in the system's memory, beyond the first so many.
uint64_t bytes_in_memory(const std::filesystem::path& path, uint64_t from) {
  const MappedFile file = MappedFile::open(path);
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::span<const std::byte> part = file.bytes().subspan(from / page * page);
  std::vector<unsigned char> pages((part.size() + page - 1) / page);
  if (::mincore(const_cast<std::byte*>(part.data()), part.size(), pages.data()) != 0) return 0;
  return page * static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(), [](int p) { return (p & 1) != 0; }));
}

constexpr uint64_t kAroundTheHeader = uint64_t{8} << 20;

struct LargeShape {
  std::string name;
  NamedShape shape;
  uint64_t least_gib, most_gib;  // of its weights
};

void PrintTo(const LargeShape& shape, std::ostream* out) {
  *out << shape.name;
}

class LargeModel : public ::testing::TestWithParam<LargeShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, LargeModel,
                         ::testing::Values(LargeShape{"qwen3_8b_q4_k", model_shape("qwen3-8b-q4_k"), 4, 5},
                                           LargeShape{"qwen3_8b_bf16", model_shape("qwen3-8b-bf16"), 15, 16},
                                           LargeShape{"dense_30b_q4_k", dense_30b(), 15, 18},
                                           LargeShape{"a3b_30b_q4_k", model_shape("qwen3-coder-30b-a3b-q4_k"), 15, 18}),
                         [](const auto& info) { return info.param.name; });

TEST_P(LargeModel, IsPlannedAndLoadedFromASparseFile) {
  const TempFolder folder;
  const NamedShape& shape = GetParam().shape;
  CANOPY_SPARSE_FILE(path, folder, shape, metadata(shape.config));
  const ModelFile file = ModelFile::open(path);
  EXPECT_EQ(bytes_in_memory(path, kAroundTheHeader), 0u) << "opening reads no weights";
  DryDevice device(24 * kGiB);
  ModelOptions options;
  options.max_width = 64;
  const auto model = Model::load(device, file, options);
  EXPECT_GE(model->memory().weights, GetParam().least_gib * kGiB);
  EXPECT_LE(model->memory().weights, GetParam().most_gib * kGiB);
  EXPECT_LE(model->memory().total(), 24 * kGiB);
  EXPECT_GE(model->limits().context, 4096u);
  // This device takes no bytes of weights: only norms were read, some megabytes around each by the system's own choice,
  // and a window was read ahead.
  EXPECT_LT(bytes_in_memory(path, kAroundTheHeader), model->memory().weights / 4);
}

TEST_P(LargeModel, InPartsIsPlannedAndLoadedLikeOneFile) {
  constexpr size_t count = 4;
  const TempFolder folder;
  const NamedShape& shape = GetParam().shape;
  const std::vector<RequiredTensor> tensors = stored_tensors(shape.config);
  std::vector<std::filesystem::path> paths;
  for (size_t i = 0; i < count; ++i) {
    GgufBuilder part = i == 0 ? metadata(shape.config) : GgufBuilder();
    part.value<uint16_t>("split.no", static_cast<uint16_t>(i)).value<uint16_t>("split.count", count);
    part.value<int32_t>("split.tensors.count", static_cast<int32_t>(tensors.size()));
    const size_t begin = tensors.size() * i / count, end = tensors.size() * (i + 1) / count;
    CANOPY_SPARSE_FILE(path, folder, shape, test::part_name("large", i + 1, count), part,
                       std::span(tensors).subspan(begin, end - begin));
    paths.push_back(path);
  }
  const ModelFile file = ModelFile::open(paths[2]);
  for (const auto& path : paths) EXPECT_EQ(bytes_in_memory(path, kAroundTheHeader), 0u) << "opening reads no weights";
  DryDevice device(24 * kGiB);
  ModelOptions options;
  options.max_width = 64;
  const auto model = Model::load(device, file, options);
  EXPECT_EQ(model->memory().weights, Model::load(device, random_model(shape), options)->memory().weights);
}

TEST_P(LargeModel, IsRefusedBeforeAnythingIsRead) {
  const TempFolder folder;
  const NamedShape& shape = GetParam().shape;
  CANOPY_SPARSE_FILE(path, folder, shape, metadata(shape.config));
  const ModelFile file = ModelFile::open(path);
  DryDevice device(4 * kGiB);
  ModelOptions options;
  options.max_width = 64;
  std::string refusal;
  try {
    Model::load(device, file, options);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    refusal = e.what();
  }
  EXPECT_NE(refusal.find("The model needs "), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("but only 4.29 GB are available"), std::string::npos) << refusal;
  EXPECT_EQ(bytes_in_memory(path, kAroundTheHeader), 0u);
}

/// The buffers of a model's weights on a device whose bindings reach `range` bytes, in the order of loading.
std::vector<uint64_t> buffers_of(const ModelFile& file, uint64_t range) {
  const DryDevice device;
  const WeightPlan plan = plan_weights(file, device);
  std::vector<uint64_t> buffers;
  for (const MatrixPlan* matrix : in_load_order(plan)) {
    const std::vector<WeightPart> parts = matrix->device_parts();
    for (const auto& shard : vk::shard_rows(parts[0].type, joined_extent(parts, matrix->layout), range)) {
      buffers.push_back(shard.unit_bytes);
      if (shard.scale_bytes > 0) buffers.push_back(shard.scale_bytes);
    }
  }
  return buffers;
}

TEST_P(LargeModel, LiesInFewBlocksOfAGibibyte) {
  const ModelFile file = random_model(GetParam().shape);
  for (const uint64_t range : {kGiB, kGiB / 8}) {
    const std::vector<uint64_t> buffers = buffers_of(file, range);
    const uint64_t sum = std::accumulate(buffers.begin(), buffers.end(), uint64_t{0});
    EXPECT_LE(*std::max_element(buffers.begin(), buffers.end()), range);
    uint64_t bytes = 0, count = 0;
    const std::vector<BlockRun> runs = block_runs(buffers, kGiB, 256);
    for (const BlockRun& run : runs) {
      EXPECT_LE(run.bytes, kGiB);
      bytes += run.bytes;
      count += run.buffers;
    }
    EXPECT_EQ(count, buffers.size());
    EXPECT_EQ(bytes, sum) << "nothing is lost between buffers";
    EXPECT_LE(runs.size(), 2 * (sum / kGiB + 1));
  }
}

/// A folder of the shape in 4-bit codes, whose data is a hole: all codes are 0.
std::filesystem::path sparse_gptq_folder(const TempFolder& folder, const NamedShape& shape) {
  const ModelConfig& c = shape.config;
  folder.write("config.json",
               R"({"architectures":["Qwen3ForCausalLM"],"rms_norm_eps":1e-6,"max_position_embeddings":40960,)"
               R"("quantization_config":{"quant_method":"gptq","bits":4,"group_size":128,"sym":false},"hidden_size":)" +
                   std::to_string(c.hidden) + R"(,"num_hidden_layers":)" + std::to_string(c.layers) +
                   R"(,"num_attention_heads":)" + std::to_string(c.heads) + R"(,"num_key_value_heads":)" +
                   std::to_string(c.kv_heads) + R"(,"head_dim":)" + std::to_string(c.head_dim) +
                   R"(,"intermediate_size":)" + std::to_string(c.ffn) + R"(,"vocab_size":)" + std::to_string(c.vocab) +
                   R"(,"tie_word_embeddings":)" + (c.tied_head ? "true}" : "false}"));
  std::string header;
  uint64_t data = 0;
  const auto add = [&](const std::string& name, const char* dtype, uint64_t size,
                       const std::vector<uint64_t>& extents) {
    uint64_t bytes = size;
    for (const uint64_t extent : extents) bytes *= extent;
    header += (header.empty() ? "{" : ",") + test::safetensors_entry(name, dtype, extents, data, data + bytes);
    data += bytes;
  };
  const auto matrix = [&](const std::string& name, uint64_t rows, uint64_t cols) {
    add(name + ".qweight", "I32", 4, {cols / 8, rows});
    add(name + ".qzeros", "I32", 4, {cols / 128, rows / 8});
    add(name + ".scales", "F16", 2, {cols / 128, rows});
  };
  add("model.embed_tokens.weight", "BF16", 2, {c.vocab, c.hidden});
  if (!c.tied_head) add("lm_head.weight", "BF16", 2, {c.vocab, c.hidden});
  add("model.norm.weight", "BF16", 2, {c.hidden});
  for (uint32_t n = 0; n < c.layers; ++n) {
    const std::string layer = "model.layers." + std::to_string(n) + ".";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      add(layer + norm + ".weight", "BF16", 2, {c.hidden});
    for (const char* norm : {"q_norm", "k_norm"}) add(layer + "self_attn." + norm + ".weight", "BF16", 2, {c.head_dim});
    matrix(layer + "self_attn.q_proj", c.q_width(), c.hidden);
    matrix(layer + "self_attn.k_proj", c.kv_width(), c.hidden);
    matrix(layer + "self_attn.v_proj", c.kv_width(), c.hidden);
    matrix(layer + "self_attn.o_proj", c.hidden, c.q_width());
    matrix(layer + "mlp.gate_proj", c.ffn, c.hidden);
    matrix(layer + "mlp.up_proj", c.ffn, c.hidden);
    matrix(layer + "mlp.down_proj", c.hidden, c.ffn);
  }
  const std::string file = test::safetensors_file(header + "}", "");
  const std::filesystem::path path = folder.write("model.safetensors", file);
  struct stat status = {};
  const bool is_sparse = ::truncate(path.c_str(), static_cast<off_t>(file.size() + data)) == 0 &&
                         ::stat(path.c_str(), &status) == 0 &&
                         static_cast<uint64_t>(status.st_blocks) * 512 <= (uint64_t{16} << 20);
  return is_sparse ? path : std::filesystem::path();
}

TEST(LargeGptq, IsPlannedAsFourBitsWithoutBeingRead) {
  const TempFolder folder;
  const NamedShape shape = model_shape("qwen3-8b-q4_k");
  const std::filesystem::path path = sparse_gptq_folder(folder, shape);
  if (path.empty()) GTEST_SKIP() << "the file system has no sparse files";
  const ModelFile file = ModelFile::open(folder.path());
  EXPECT_EQ(file.config().quantization, "GPTQ");
  EXPECT_EQ(file.find("blk.35.ffn_down")->type, TensorType::q4_1);
  const DryDevice device(24 * kGiB);
  const WeightPlan plan = plan_weights(file, device);
  EXPECT_EQ(bytes_in_memory(path, kAroundTheHeader), 0u) << "opening and planning reads no weights";
  uint64_t wide = 0;
  for (const TensorView& tensor : file.tensors()) wide += tensor.packed ? 0 : tensor.elements() * 2;
  EXPECT_LT(plan.device_bytes, wide + 7 * kGiB * 5 / 8 + kGiB / 4) << "5 bits for each of 7 G weights";
  EXPECT_GT(plan.device_bytes, wide + 6 * kGiB * 5 / 8);
}

TEST(LargeMixture, OfAnotherArchitectureIsRefusedBeforeAnythingIsRead) {
  const TempFolder folder;
  const NamedShape shape = dense_30b();
  GgufBuilder file = metadata(shape.config);
  file.value<uint32_t>("qwen3.expert_count", 128);
  CANOPY_SPARSE_FILE(path, folder, shape, file);
  test::expect_error("128 experts; mixtures of experts are not supported", [&] { ModelFile::open(path); });
  EXPECT_EQ(bytes_in_memory(path, kAroundTheHeader), 0u);
}

TEST(LargeMixture, OfItsOwnArchitectureWithoutItsFieldsIsRefused) {
  const TempFolder folder;
  const NamedShape shape = dense_30b();
  GgufBuilder file = metadata(shape.config);
  file.without("general.architecture").text("general.architecture", "qwen3moe");
  CANOPY_SPARSE_FILE(path, folder, shape, file);
  test::expect_error("qwen3moe", [&] { ModelFile::open(path); });
}

}  // namespace
}  // namespace canopy::predict
