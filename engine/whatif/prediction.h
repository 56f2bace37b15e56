#pragma once
// The predicted time of a model's passes on a device, and of a pair's rounds as a table of costs. The ops are those of
// the real forward pass, recorded over a device that allocates nothing, of a file or a shape without its weights.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compute/device.h"
#include "engine/compute/ops.h"
#include "engine/format/architecture.h"
#include "engine/format/model_file.h"
#include "engine/model/forward.h"
#include "engine/speculation/pass_cost.h"
#include "engine/whatif/device_profile.h"
#include "engine/whatif/kernel_rules.h"
#include "engine/whatif/kernel_work.h"
#include "engine/whatif/model_shapes.h"

namespace canopy::predict {

// A device that allocates nothing and computes nothing: passes are recorded over it, to be listed and priced.

/// Buffers, weights and caches have their sizes and no memory, and data that is written is dropped. Running, reading
/// and measuring throw bad_input.
class DryDevice final : public Device {
 public:
  /// `available` bytes of memory, as far as plans are concerned; what is allocated takes none of it.
  explicit DryDevice(uint64_t available = uint64_t{1} << 62);

  const DeviceInfo& info() const override { return info_; }
  MemoryInfo memory() const override;
  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override;
  std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) override;
  std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols, std::string_view name) override;
  std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) override;
  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override;
  uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const override;
  uint64_t activation_bytes(uint32_t max_width, uint32_t cols) const override;
  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override;
  void read_all(std::span<const BufferRead> reads) override;
  std::vector<float> read_activations(const Activations& activations, uint32_t width) override;
  void write_activations(Activations& activations, uint32_t width, std::span<const float> values) override;
  std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) override;
  void write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) override;
  DevicePeak measure_peak() override;
  double sample_fma_rate() override;
  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override;
  bool run(Commands& commands, const std::stop_token& stop) override;
  void start(Commands& commands) override;
  void finish() override {}
  double last_run_ms() const override { return 0; }

 private:
  uint64_t available_;
  DeviceInfo info_;
};

// A model whose passes can be recorded, of a file or a shape, without its weights: the real forward pass over a device
// that allocates nothing.

class RecordedModel {
 public:
  /// From the file's configuration and the types of its tensors; their bytes are not read. Throws bad_input for a model
  /// that cannot be computed.
  explicit RecordedModel(const ModelFile& file);
  explicit RecordedModel(const NamedShape& shape);

  const ModelConfig& config() const { return config_; }

  /// The ops of a pass over `width` rows behind `context` positions, each row with its likeliest token. The head is
  /// computed for at most head_rows rows at a time; 0: all. They point into this model and stay valid until the next
  /// call. Throws bad_input for a width of 0 or above kMaxWidth.
  OpList record(uint32_t width, uint32_t context, uint32_t head_rows);

  /// Of a drafter: what makes keys and values of the features of `rows` positions. They stay valid as those of record()
  /// do. Throws bad_input for rows of 0 or above kMaxWidth, and where the model is no drafter.
  OpList record_injection(uint32_t rows);

  /// Of a drafter with a Markov head: what it makes of `rows` places of a block whose logits are there. They stay valid
  /// as those of record() do. Throws as record_injection() does.
  OpList record_markov(uint32_t rows);
  bool has_markov() const { return markov_tables_[0] != nullptr; }

  static constexpr uint32_t kMaxWidth = 4096;

 private:
  void make_weights(const WeightPlan& plan);
  std::unique_ptr<Weight> make_matrix(const MatrixPlan& plan);
  std::unique_ptr<LatentWeights> make_latent(const LatentPlan& plan);
  void make_buffers(uint32_t width, uint32_t head_rows);

  DryDevice device_;
  ModelConfig config_;
  std::vector<LayerSpec> layers_;
  Weights weights_;
  ModelLimits limits_;
  std::unique_ptr<KvCaches> cache_;
  std::unique_ptr<RecurrentMemory> recurrent_;  // of a hybrid
  PassBuffers buffers_;
  PassParts parts_;
  // Of a drafter, null otherwise.
  std::unique_ptr<Weight> features_weight_;  // [H, taps * H]
  std::unique_ptr<Buffer> features_norm_;    // [H]
  struct Injection {
    std::unique_ptr<Buffer> features, projected, rows;
    std::unique_ptr<Activations> normed_features, context;
  };
  uint32_t taps_ = 0;
  Injection injection_;
  std::unique_ptr<Weight> markov_tables_[2];  // [V, R] both; null without a Markov head
  struct Markov {
    std::unique_ptr<Buffer> rows, before, ones, moves, sums, ids, values, log_sum_exp;
    std::unique_ptr<Activations> activations, spare;
  };
  Markov markov_;
  ConvBuffers conv_;  // where a drafter has convolutions along its rows, taps > 0
};

/// The model of a file or a folder where there is one of that path, else of the shape of that name, and how it is
/// called.
struct NamedModelPasses {
  std::unique_ptr<RecordedModel> model;
  std::string name;
};
NamedModelPasses open_for_prediction(const std::string& file_or_shape);

// The predicted time of a model's passes on a device.

/// Ops of a pass that are alike, with the time of one.
struct OpPrediction {
  std::string name;    // "linear_add"
  std::string shapes;  // "4 x Q4_K [4096, 4096]"
  uint32_t count = 0;
  std::string kernel;       // its name, where kernels have names of their own
  double registers = 0;     // of a thread
  double shared_bytes = 0;  // of a workgroup
  double workgroups = 0;
  WorkTime each;
};

struct PassPrediction {
  uint32_t width = 0;
  double ms = 0;              // all of it, as the host sees it
  double host_ms = 0;         // of which submissions and the bus
  uint64_t weight_bytes = 0;  // that the ops need, once each
  std::vector<OpPrediction> ops;
};

/// context: positions before the pass.
PassPrediction predict_pass(RecordedModel& model, const DeviceProfile& device, const KernelRules& rules, uint32_t width,
                            uint32_t context);

/// Weight bytes over time and the device's peak bandwidth.
double bandwidth_share(const PassPrediction& pass, const DeviceProfile& device);

/// 1, 2, 3, 4, 6, 8, 12 ... 128.
std::span<const uint32_t> usual_widths();

// What the rounds of a pair of models would cost on a device, predicted, as a table to choose widths by.

struct RoundSizes {
  uint32_t rows = 129;         // of the widest pass
  uint32_t context = 512;      // the most positions that rounds stand behind
  uint32_t block = 16;         // rows of the drafter's pass
  uint32_t most_waiting = 64;  // features that a draft injects, at most
};

/// Every width behind half of the context, some at both of its ends. drafter: null where there is
/// none; its head must be the target's. What the host does between passes is not predicted and counts as nothing.
/// Throws bad_input for rows or a block of 0, or beyond RecordedModel::kMaxWidth.
CostTable predict_costs(RecordedModel& target, RecordedModel* drafter, const DeviceProfile& device,
                        const KernelRules& rules, const RoundSizes& sizes);

}  // namespace canopy::predict
