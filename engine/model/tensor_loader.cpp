#include "engine/model/tensor_loader.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/dequantize.h"
#include "engine/format/finite.h"
#include "engine/format/packed_matrix.h"
#include "engine/model/page_release.h"
#include "engine/model/row_conversion.h"

namespace canopy {
namespace {

std::vector<float> decoded(const TensorView& tensor) {
  std::vector<float> values(tensor.elements());
  std::vector<std::byte> scratch;
  dequantize(tensor.type, rows_of(tensor, 0, tensor.rows(), scratch), values);
  return values;
}

/// Hands out rows of a matrix where they lie in the file, or converted.
class MatrixReader {
 public:
  MatrixReader(const MatrixPlan& plan, LoadMonitor& monitor, ReadAhead& read_ahead)
      : plan_(plan), monitor_(monitor), read_ahead_(read_ahead) {
    for (const TensorView* part : plan.parts) pages_.emplace_back(part->bytes);
  }
  MatrixReader(const MatrixReader&) = delete;
  MatrixReader& operator=(const MatrixReader&) = delete;

  std::vector<WeightPart> parts() {
    std::vector<WeightPart> parts = plan_.device_parts();
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].read = [this, i](uint32_t first, uint32_t count, std::vector<std::byte>& scratch) {
        return read(i, first, count, scratch);
      };
    }
    return parts;
  }

 private:
  struct Rows {
    size_t part = 0;
    std::span<const std::byte> bytes;
  };

  std::span<const std::byte> read(size_t part, uint32_t first, uint32_t count, std::vector<std::byte>& scratch) {
    const TensorView& tensor = *plan_.parts[part];
    if (!plan_.rows.empty()) return gather(tensor, std::span(plan_.rows).subspan(first, count), scratch);
    if (tensor.packed) return unpack(tensor, first, count, scratch);
    const uint64_t row = tensor.bytes.size() / tensor.rows();
    const std::span<const std::byte> rows = tensor.bytes.subspan(row * first, row * count);
    monitor_.advance(rows.size());
    read_ahead_.advance(rows.size());
    require_finite(tensor, first, rows);
    if (plan_.converts(tensor)) {
      convert_rows(tensor, first, count, plan_.type, scratch);
      pages_[part].used(rows);
      return scratch;
    }
    // A caller that passes the same scratch again no longer needs the earlier result, which may be of another part.
    const Rows last = std::exchange(last_of(scratch), {part, rows});
    if (!last.bytes.empty()) pages_[last.part].used(last.bytes);
    return rows;
  }

  /// Rows that the file has in another form. Codes of neighbouring rows often share words and pages, which are
  /// therefore given back with the whole tensor.
  std::span<const std::byte> unpack(const TensorView& tensor, uint64_t first, uint64_t count,
                                    std::vector<std::byte>& scratch) {
    const uint64_t bytes = tensor.bytes.size(), all = tensor.rows();
    const uint64_t share = bytes * (first + count) / all - bytes * first / all;
    monitor_.advance(share);
    read_ahead_.advance(share);
    std::vector<std::byte> own;
    const bool converts = plan_.converts(tensor);
    const std::span<const std::byte> rows = rows_of(tensor, first, count, converts ? own : scratch);
    require_finite(tensor, first, rows);
    if (converts) convert_rows(tensor, static_cast<uint32_t>(first), rows, plan_.type, scratch);
    return scratch;
  }

  /// Rows are whole blocks in every type, so these are the bits that the whole tensor's rows would have.
  std::span<const std::byte> gather(const TensorView& tensor, std::span<const uint32_t> rows,
                                    std::vector<std::byte>& scratch) {
    const uint64_t row = row_bytes(tensor);
    std::vector<std::byte> gathered(row * rows.size()), made;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::ranges::copy(rows_of(tensor, rows[i], 1, made), gathered.begin() + static_cast<std::ptrdiff_t>(row * i));
    }
    TensorView chosen = tensor;
    chosen.shape[0] = rows.size();
    monitor_.advance(tensor.bytes.size() / tensor.rows() * rows.size());
    require_finite(chosen, 0, gathered);
    if (plan_.converts(tensor)) {
      convert_rows(chosen, 0, gathered, plan_.type, scratch);
    } else {
      scratch = std::move(gathered);
    }
    return scratch;
  }

  Rows& last_of(const std::vector<std::byte>& scratch) {
    const std::lock_guard lock(mutex_);
    return last_[&scratch];
  }

  const MatrixPlan& plan_;
  LoadMonitor& monitor_;
  ReadAhead& read_ahead_;
  std::deque<PageRelease> pages_;  // of each part
  std::mutex mutex_;
  std::map<const void*, Rows> last_;  // by scratch; each entry is one thread's
};

/// values[order[i]] at i; all as they are where the order is empty.
std::vector<float> in_order(std::vector<float> values, std::span<const uint32_t> order) {
  if (order.empty()) return values;
  std::vector<float> result(values.size());
  for (size_t i = 0; i < order.size(); ++i) result.at(i) = values.at(order[i]);
  return result;
}

}  // namespace

TensorLoader::TensorLoader(Device& device, std::span<const MatrixPlan* const> matrices, LoadMonitor& monitor,
                           std::function<void()> check_unchanged)
    : device_(device),
      monitor_(monitor),
      read_ahead_(in_reading_order(matrices)),
      check_unchanged_(std::move(check_unchanged)) {
  std::vector<WeightRequest> requests;
  for (const MatrixPlan* plan : matrices) requests.push_back({plan->device_parts(), plan->layout});
  device_.expect_weights(requests);
}

TensorLoader::~TensorLoader() {
  device_.expect_weights({});
}

std::unique_ptr<Weight> TensorLoader::matrix(const MatrixPlan& plan) {
  before_reading();
  MatrixReader reader(plan, monitor_, read_ahead_);
  return device_.make_weight(reader.parts(), plan.layout, plan.name);
}

std::unique_ptr<Buffer> TensorLoader::norm(const TensorView& tensor, float offset, std::span<const uint32_t> order,
                                           float scale) {
  const TensorView* only = &tensor;
  std::vector<float> values = in_order(values_of({&only, 1}, "norm"), order);
  for (float& value : values) value = (value + offset) * scale;
  return vector(values, tensor.name);
}

std::unique_ptr<Buffer> TensorLoader::rates(const TensorView& tensor, bool logarithms) {
  const TensorView* only = &tensor;
  std::vector<float> values = values_of({&only, 1}, "rate");
  for (float& value : values) {
    if (logarithms) value = static_cast<float>(-std::exp(static_cast<double>(value)));
    if (value <= 0 && std::isfinite(value)) continue;
    throw bad_input("The rates " + quoted_name(tensor.shown_name()) + " hold " + std::to_string(value) +
                    "; finite numbers up to 0 are allowed, as states would grow otherwise.");
  }
  return vector(values, tensor.name);
}

std::unique_ptr<Buffer> TensorLoader::router(std::span<const TensorView* const> parts) {
  return vector(values_of(parts, "router"), parts.front()->name);
}

std::unique_ptr<Buffer> TensorLoader::bias(std::span<const TensorView* const> parts, std::span<const uint32_t> order) {
  return vector(in_order(values_of(parts, "bias"), order), parts.front()->name);
}

std::unique_ptr<Buffer> TensorLoader::bias(const TensorView& tensor) {
  const TensorView* only = &tensor;
  return bias({&only, 1});
}

std::unique_ptr<Buffer> TensorLoader::paired_bias(const TensorView& gate, const TensorView& up) {
  const TensorView* parts[] = {&gate, &up};
  const std::vector<float> values = values_of(parts, "bias");
  const size_t half = values.size() / 2;
  std::vector<float> paired(values.size());
  for (size_t i = 0; i < values.size(); ++i) paired[i] = values[i % 2 * half + i / 2];
  return vector(paired, gate.name);
}

std::unique_ptr<Buffer> TensorLoader::sinks(const TensorView& tensor) {
  const TensorView* only = &tensor;
  return vector(values_of({&only, 1}, "vector of sinks"), tensor.name);
}

std::vector<float> TensorLoader::values_of(std::span<const TensorView* const> parts, const char* kind) {
  before_reading();
  std::vector<float> all;
  for (const TensorView* part : parts) {
    const std::vector<float> values = decoded(*part);
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
      throw bad_input("The " + std::string(kind) + " " + quoted_name(part->shown_name()) +
                      " holds a value that is not finite: the file is damaged.");
    }
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::unique_ptr<Buffer> TensorLoader::vector(std::span<const float> values, const std::string& name) {
  auto buffer = device_.allocate(values.size_bytes(), name);
  device_.write(*buffer, 0, std::as_bytes(values));
  return buffer;
}

void TensorLoader::before_reading() {
  monitor_.advance(0);
  check_unchanged_();
}

}  // namespace canopy
