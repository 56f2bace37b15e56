#include "engine/speculation/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/numbers.h"

namespace canopy {
namespace {

uint64_t mul(uint64_t a, uint64_t b) {
  return checked_mul(a, b, "work of a pass");
}
uint64_t add(uint64_t a, uint64_t b) {
  return checked_add(a, b, "work of a pass");
}

void require_count(uint32_t value, std::string_view field) {
  constexpr uint32_t most = 1u << 24;
  if (value >= 1 && value <= most) return;
  throw bad_input("The model shape's " + std::string(field) + " is " + std::to_string(value) + "; 1 to " +
                  std::to_string(most) + " is allowed.");
}

void require_element_size(double bytes, std::string_view field) {
  if (bytes > 0 && bytes <= kMostElementBytes) return;
  throw bad_input("The model shape's bytes of one " + std::string(field) + " element are " + std::to_string(bytes) +
                  "; more than 0 and at most " + std::to_string(kMostElementBytes) + " is allowed.");
}

void validate(const ModelShape& shape) {
  require_count(shape.layers, "number of layers");
  require_count(shape.hidden, "hidden size");
  require_count(shape.query_heads, "number of query heads");
  require_count(shape.kv_heads, "number of K/V heads");
  require_count(shape.head_dim, "head size");
  require_count(shape.vocab, "vocabulary size");
  require_element_size(shape.weight_bytes, "weight");
  require_element_size(shape.kv_bytes, "K/V");
  require_element_size(shape.activation_bytes, "activation");
  if (shape.moe_layers > shape.layers) {
    throw bad_input("The model shape has " + std::to_string(shape.moe_layers) + " layers with experts among " +
                    std::to_string(shape.layers) + " layers; there can be no more of them than layers.");
  }
  if (shape.recurrent_layers > shape.layers || shape.gated > 1) {
    throw bad_input("The model shape has " + std::to_string(shape.recurrent_layers) + " recurrent layers among " +
                    std::to_string(shape.layers) + " layers and gates " + std::to_string(shape.gated) +
                    " times; at most as many as layers, and 0 or 1 times, are allowed.");
  }
  if (uint64_t{shape.recurrent_layers} + shape.layers_without_mixer > shape.layers ||
      uint64_t{shape.moe_layers} + shape.layers_without_ffn > shape.layers || shape.ungated_ffn > 1) {
    throw bad_input("The model shape has " + std::to_string(shape.layers_without_mixer) + " layers without a mixer, " +
                    std::to_string(shape.recurrent_layers) + " recurrent ones, " +
                    std::to_string(shape.layers_without_ffn) + " without a feed-forward and " +
                    std::to_string(shape.moe_layers) + " with experts among " + std::to_string(shape.layers) +
                    " layers; the first two and the last two are to be no more than these together.");
  }
  if (shape.latent_rank > 0) {
    require_count(shape.latent_key_dim, "size of a latent's key");
    require_count(shape.latent_value_dim, "size of a latent's value");
    if (shape.latent_rank >= shape.head_dim || shape.kv_heads != 1) {
      throw bad_input("The model shape has latents of " + std::to_string(shape.latent_rank) + " elements in " +
                      std::to_string(shape.kv_heads) + " keys of " + std::to_string(shape.head_dim) +
                      "; fewer in one key are allowed.");
    }
  }
  if (shape.recurrent_layers > 0) {
    require_count(shape.recurrent_keys, "number of elements of recurrent keys");
    require_count(shape.recurrent_values, "number of elements of recurrent values");
    require_count(shape.recurrent_key_dim, "size of a recurrent key");
  }
  if (shape.moe_layers + shape.layers_without_ffn < shape.layers) require_count(shape.ffn, "feed-forward size");
  if (shape.moe_layers == 0) return;
  require_count(shape.experts, "number of experts");
  require_count(shape.experts_per_row, "number of experts a row uses");
  require_count(shape.expert_ffn, "feed-forward size of an expert");
  if (shape.experts_per_row > shape.experts) {
    throw bad_input("The model shape's number of experts a row uses is " + std::to_string(shape.experts_per_row) +
                    "; there are only " + std::to_string(shape.experts) + ".");
  }
}

uint64_t to_bytes(uint64_t elements, double bytes_each) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(elements) * bytes_each));
}

void require_positive(double value, std::string_view what) {
  if (std::isfinite(value) && value > 0) return;
  throw bad_input("The device's " + std::string(what) + " is " + std::to_string(value) +
                  "; a positive finite number is needed.");
}

}  // namespace

PassWork::LayerCounts PassWork::attention_counts() const {
  const uint64_t h = shape_.hidden, heads = shape_.query_heads, dim = shape_.head_dim;
  if (shape_.latent_rank == 0) {
    const uint64_t q = mul(heads, dim), kv = mul(shape_.kv_heads, dim);
    // Queries, their gate and output; keys and values. In and out: h, q, k and v; scores, values and output.
    return {mul(h, add(mul(2 + shape_.gated, q), 2 * kv)), add(add(2 * h, mul(4 + 2 * shape_.gated, q)), 2 * kv)};
  }
  // Queries of rows or of their own latents, the key; of each head a matrix for queries and one for values; output.
  const uint64_t rank = shape_.latent_rank, query_rank = shape_.latent_query_rank;
  const uint64_t keys = mul(heads, shape_.latent_key_dim), values = mul(heads, shape_.latent_value_dim);
  const uint64_t queries = add(keys, mul(heads, dim - rank));
  const uint64_t of_queries = query_rank == 0 ? mul(h, queries) : mul(query_rank, add(h, queries));
  const uint64_t of_heads = add(mul(keys, dim), mul(values, rank));
  const uint64_t of_rows = add(add(mul(query_rank == 0 ? 1 : 2, query_rank), queries), add(3 * h, dim));
  return {add(add(of_queries, mul(h, dim)), add(of_heads, mul(h, values))),
          add(of_rows, add(add(keys, 2 * values), mul(2 * heads, add(dim, rank))))};
}

PassWork::PassWork(const ModelShape& shape) : shape_(shape) {
  validate(shape);
  const uint64_t layers = shape.layers;
  const uint64_t moe = shape.moe_layers;
  const uint64_t dense = layers - moe - shape.layers_without_ffn;
  const uint64_t h = shape.hidden;
  const uint64_t kv = mul(shape.kv_heads, shape.head_dim);
  const LayerCounts of_attention = attention_counts();
  const uint64_t matrices = shape.ungated_ffn != 0 ? 2 : 3;  // of a feed-forward
  const uint64_t value_dim = shape.latent_rank != 0 ? shape.latent_rank : shape.head_dim;
  const uint64_t expert = moe == 0 ? 0 : mul(h, shape.expert_ffn);
  const uint64_t used = shape.experts_per_row;
  const uint64_t recurrent = shape.recurrent_layers, attentive = layers - recurrent - shape.layers_without_mixer;
  const uint64_t keys = shape.recurrent_keys, values = shape.recurrent_values;
  const uint64_t state = recurrent == 0 ? 0 : mul(values, shape.recurrent_key_dim);

  // One element of a weight is one multiplication and one addition a row, except those of the embedding.
  const uint64_t recurrence = mul(h, add(2 * keys, 3 * values));  // queries, keys; values, their gate and output
  const uint64_t head = mul(h, shape.vocab);
  const uint64_t mixers = add(mul(attentive, of_attention.weights), mul(recurrent, recurrence));
  const uint64_t feed_forward =
      add(mul(matrices * dense, mul(h, shape.ffn)), mul(matrices * moe, mul(h, shape.shared_ffn)));
  const uint64_t layer_weights = add(mixers, feed_forward);
  const uint64_t routers = mul(moe, mul(h, shape.experts));
  expert_weights_ = mul(matrices * moe, expert);
  dense_weights_ = add(add(layer_weights, routers), mul(2, head));
  flops_per_row_ = mul(2, add(add(layer_weights, routers), add(mul(used, expert_weights_), head)));
  flops_per_row_ = add(flops_per_row_, mul(7 * recurrent, state));  // decay, products with key and query, the sum
  // Queries times keys, probabilities times values.
  flops_per_pair_ = mul(2 * attentive, mul(shape.query_heads, uint64_t{shape.head_dim} + value_dim));
  state_bytes_ = mul(recurrent, mul(2 * sizeof(float), state));

  // Inputs and outputs: of gate/up and down 2 h + 4 ffn, without gates 2 ffn.
  const uint64_t inner = matrices == 3 ? 4 : 2;
  const uint64_t recurrence_io = add(2 * h, add(4 * keys, 6 * values));
  const uint64_t dense_io = add(2 * h, mul(inner, shape.ffn));
  const uint64_t experts_io = add(mul(inner * used, shape.expert_ffn), mul(inner, shape.shared_ffn));
  const uint64_t moe_io = add(add(2 * h, shape.experts), experts_io);
  activations_per_row_ = add(mul(attentive, of_attention.row_elements), mul(recurrent, recurrence_io));
  activations_per_row_ = add(activations_per_row_, add(mul(dense, dense_io), mul(moe, moe_io)));
  activations_per_row_ = add(activations_per_row_, add(h, shape.vocab));
  activations_per_pair_ = mul(2 * attentive, shape.query_heads);             // scores are written and read
  kv_per_position_ = mul((shape.latent_rank != 0 ? 1 : 2) * attentive, kv);  // a latent key is its value, too
}

uint64_t PassWork::flops(uint32_t width, uint32_t context) const {
  const uint64_t pairs = mul(width, uint64_t{context} + width);
  return add(mul(width, flops_per_row_), mul(pairs, flops_per_pair_));
}

uint64_t PassWork::weight_elements(uint32_t width) const {
  if (shape_.moe_layers == 0) return dense_weights_;
  const double missed = 1.0 - static_cast<double>(shape_.experts_per_row) / shape_.experts;
  const double touched = shape_.experts * (1.0 - std::pow(missed, width));
  return add(dense_weights_, static_cast<uint64_t>(std::llround(touched * static_cast<double>(expert_weights_))));
}

PassWork::Bytes PassWork::bytes(uint32_t width, uint32_t context) const {
  const uint64_t positions = uint64_t{context} + width;  // committed ones are read, the pass's own written
  const uint64_t activations = add(mul(width, activations_per_row_), mul(mul(width, positions), activations_per_pair_));
  return {.weights = to_bytes(weight_elements(width), shape_.weight_bytes),
          .kv = to_bytes(mul(positions, kv_per_position_), shape_.kv_bytes),
          .activations = to_bytes(activations, shape_.activation_bytes),
          .states = state_bytes_};
}

Roofline::Roofline(const ModelShape& shape, const DevicePeaks& peaks, const RooflineCalibration& calibration)
    : work_(shape), peaks_(peaks) {
  require_positive(peaks.flops_per_second, "peak of operations per second");
  require_positive(peaks.bytes_per_second, "memory bandwidth in bytes per second");
  *this = calibrated(calibration);
}

Roofline Roofline::calibrated(const RooflineCalibration& calibration) const {
  double sum = 0;
  for (const double value : {calibration.alpha_m, calibration.beta_m, calibration.alpha_c, calibration.beta_c}) {
    if (!std::isfinite(value) || value < 0) {
      throw bad_input("A roofline's calibration has the value " + std::to_string(value) +
                      "; all four must be at least 0 and finite.");
    }
    sum += value;
  }
  if (sum == 0) throw bad_input("A roofline's calibration is zero throughout; at least one value must be positive.");
  Roofline result = *this;
  result.calibration_ = calibration;
  return result;
}

double Roofline::memory_seconds(uint32_t width, uint32_t context) const {
  return static_cast<double>(work_.bytes(width, context).total()) / peaks_.bytes_per_second;
}

double Roofline::compute_seconds(uint32_t width, uint32_t context) const {
  return static_cast<double>(work_.flops(width, context)) / peaks_.flops_per_second;
}

// The objective is a sum over points of (max(memory line, compute line) - measured)^2: for a given split of the points
// into memory-bound and compute-bound ones, two independent lines with coefficients >= 0, each in closed form. Any
// pair of lines splits the points by a half-plane of (memory_s, compute_s). So: try the half-planes of many
// directions, refine the best few by Newton steps (the split's closed form) and, across the kinks where a point changes
// sides, by a simplex search. Everything is scaled to 1 first.

namespace {

struct Line {
  double slope = 0;
  double offset = 0;
  double at(double x) const { return slope * x + offset; }
};

struct Lines {
  Line memory, compute;
};

struct ScaledPoint {
  double memory, compute, measured, weight;
};

struct Candidate {
  Lines lines;
  double ssr = 0;
};

double ssr_of(const std::vector<ScaledPoint>& points, const Lines& lines) {
  double sum = 0;
  for (const ScaledPoint& p : points) {
    const double error = std::max(lines.memory.at(p.memory), lines.compute.at(p.compute)) - p.measured;
    sum += p.weight * error * error;
  }
  return sum;
}

// Weighted moments of (x, y), enough for the least squares line.
struct Moments {
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;

  void add(double weight, double px, double py) {
    w += weight;
    x += weight * px;
    y += weight * py;
    xx += weight * px * px;
    xy += weight * px * py;
  }
  void remove(double weight, double px, double py) { add(-weight, px, py); }

  // The sum of squares, but for the part that no line changes.
  double loss(const Line& l) const {
    return l.slope * l.slope * xx + 2 * l.slope * l.offset * x + l.offset * l.offset * w - 2 * l.slope * xy -
           2 * l.offset * y;
  }

  // The best line with slope and offset >= 0.
  Line best() const {
    if (w <= 0) return {};
    const double spread = w * xx - x * x;
    if (spread > 1e-13 * w * xx) {
      const Line free = {.slope = (w * xy - x * y) / spread, .offset = (xx * y - x * xy) / spread};
      if (free.slope >= 0 && free.offset >= 0) return free;
    }
    const Line flat = {.slope = 0, .offset = std::max(0.0, y / w)};
    const Line through_zero = {.slope = xx > 0 ? std::max(0.0, xy / xx) : 0, .offset = 0};
    return loss(flat) < loss(through_zero) ? flat : through_zero;
  }
};

// The best lines for the split that `lines` make.
Lines newton_target(const std::vector<ScaledPoint>& points, const Lines& lines) {
  Moments memory, compute;
  for (const ScaledPoint& p : points) {
    if (lines.memory.at(p.memory) >= lines.compute.at(p.compute)) {
      memory.add(p.weight, p.memory, p.measured);
    } else {
      compute.add(p.weight, p.compute, p.measured);
    }
  }
  return {.memory = memory.best(), .compute = compute.best()};
}

Lines between(const Lines& from, const Lines& to, double t) {
  const auto mix = [t](double a, double b) { return a + t * (b - a); };
  return {.memory = {mix(from.memory.slope, to.memory.slope), mix(from.memory.offset, to.memory.offset)},
          .compute = {mix(from.compute.slope, to.compute.slope), mix(from.compute.offset, to.compute.offset)}};
}

// Damped Newton: each step goes towards the closed form of the current split as far as the objective falls.
void descend(const std::vector<ScaledPoint>& points, Candidate& c) {
  for (int step = 0; step < 60; ++step) {
    const Lines target = newton_target(points, c.lines);
    bool moved = false;
    for (double t = 1; t > 1e-4 && !moved; t /= 2) {
      const Lines next = between(c.lines, target, t);
      const double ssr = ssr_of(points, next);
      if (ssr >= c.ssr * (1 - 1e-12)) continue;
      c = {next, ssr};
      moved = true;
    }
    if (!moved) return;
  }
}

using Vertex = std::array<double, 4>;

Lines to_lines(const Vertex& v) {  // back inside the bounds
  return {.memory = {std::max(0.0, v[0]), std::max(0.0, v[1])}, .compute = {std::max(0.0, v[2]), std::max(0.0, v[3])}};
}

// Nelder and Mead's simplex, which needs no derivative and so passes kinks.
void simplex_search(const std::vector<ScaledPoint>& points, Candidate& best, double size) {
  struct Corner {
    Vertex at;
    double ssr;
  };
  const auto corner = [&](const Vertex& v) { return Corner{v, ssr_of(points, to_lines(v))}; };
  const Vertex start = {best.lines.memory.slope, best.lines.memory.offset, best.lines.compute.slope,
                        best.lines.compute.offset};
  std::array<Corner, 5> simplex = {corner(start)};
  for (size_t i = 0; i < 4; ++i) {
    Vertex v = start;
    v[i] += size * std::max(v[i], 0.1);
    simplex[i + 1] = corner(v);
  }
  const auto better = [](const Corner& a, const Corner& b) { return a.ssr < b.ssr; };
  for (int step = 0; step < 400; ++step) {
    std::sort(simplex.begin(), simplex.end(), better);
    Corner& worst = simplex.back();
    if (worst.ssr - simplex.front().ssr <= 1e-10 * simplex.front().ssr) break;
    Vertex centre{};
    for (size_t i = 0; i < 4; ++i) {
      for (size_t d = 0; d < 4; ++d) centre[d] += simplex[i].at[d] / 4;
    }
    const auto beyond = [&](double factor) {  // on the line from the worst corner through the centre
      Vertex v;
      for (size_t d = 0; d < 4; ++d) v[d] = centre[d] + factor * (centre[d] - worst.at[d]);
      return corner(v);
    };
    Corner next = beyond(1);
    if (next.ssr < simplex.front().ssr) {
      next = std::min(next, beyond(2), better);
    } else if (next.ssr >= simplex[3].ssr) {
      next = std::min(beyond(0.5), beyond(-0.5), better);
    }
    if (next.ssr < worst.ssr) {
      worst = next;
      continue;
    }
    for (size_t i = 1; i < simplex.size(); ++i) {  // shrink towards the best
      Vertex v;
      for (size_t d = 0; d < 4; ++d) v[d] = (simplex[i].at[d] + simplex[0].at[d]) / 2;
      simplex[i] = corner(v);
    }
  }
  const Corner& found = *std::min_element(simplex.begin(), simplex.end(), better);
  if (found.ssr < best.ssr) best = {to_lines(found.at), found.ssr};
}

constexpr size_t max_candidates = 10;

// Keeps the best few, which differ by more than rounding.
void keep(std::vector<Candidate>& best, const Candidate& c) {
  if (best.size() == max_candidates && c.ssr >= best.back().ssr) return;
  for (const Candidate& b : best) {
    if (std::abs(b.ssr - c.ssr) <= 1e-9 * b.ssr) return;
  }
  const auto at = std::upper_bound(best.begin(), best.end(), c,
                                   [](const Candidate& a, const Candidate& b) { return a.ssr < b.ssr; });
  best.insert(at, c);
  if (best.size() > max_candidates) best.pop_back();
}

// Every split by a line across the (memory, compute) plane, for a fan of directions.
std::vector<Candidate> split_starts(const std::vector<ScaledPoint>& points) {
  const auto range = [&](auto value) {
    const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                                 [&](const auto& a, const auto& b) { return value(a) < value(b); });
    return std::max(value(*high) - value(*low), 1e-9);
  };
  const double memory_range = range([](const ScaledPoint& p) { return p.memory; });
  const double compute_range = range([](const ScaledPoint& p) { return p.compute; });

  std::vector<Candidate> best;
  std::vector<size_t> order(points.size());
  std::vector<double> key(points.size());
  constexpr int directions = 24;
  const size_t stride = std::max<size_t>(1, points.size() / 96);
  for (int d = 0; d <= directions; ++d) {
    const double angle = std::numbers::pi / 2 * d / directions;
    Moments memory, compute;
    for (size_t i = 0; i < points.size(); ++i) {
      const ScaledPoint& p = points[i];
      key[i] = std::cos(angle) * p.compute / compute_range - std::sin(angle) * p.memory / memory_range;
      order[i] = i;
      compute.add(p.weight, p.compute, p.measured);
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key[a] < key[b]; });
    for (size_t taken = 0; taken <= points.size(); ++taken) {  // that many are memory-bound
      if (taken % stride == 0 || taken == points.size()) {
        const Lines lines = {.memory = memory.best(), .compute = taken == points.size() ? Line{} : compute.best()};
        keep(best, {lines, ssr_of(points, lines)});
      }
      if (taken == points.size()) break;
      const ScaledPoint& p = points[order[taken]];
      memory.add(p.weight, p.memory, p.measured);
      compute.remove(p.weight, p.compute, p.measured);
    }
  }
  return best;
}

void require(bool good, size_t index, std::string_view field, double value, std::string_view allowed) {
  if (good) return;
  throw bad_input("Point " + std::to_string(index) + " of the roofline's fit has the " + std::string(field) + " " +
                  std::to_string(value) + "; " + std::string(allowed) + " is needed.");
}

void validate(std::span<const RooflinePoint> points) {
  if (points.size() < min_roofline_points) {
    throw bad_input("A roofline cannot be fitted to " + std::to_string(points.size()) + " measured passes; at least " +
                    std::to_string(min_roofline_points) + " are needed.");
  }
  double memory = 0, compute = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const RooflinePoint& p = points[i];
    const auto time = [](double v) { return std::isfinite(v) && v >= 0; };
    const auto positive = [](double v) { return std::isfinite(v) && v > 0; };
    require(time(p.memory_s), i, "memory time", p.memory_s, "a finite number of at least 0");
    require(time(p.compute_s), i, "compute time", p.compute_s, "a finite number of at least 0");
    require(positive(p.measured_s), i, "measured time", p.measured_s, "a positive finite number");
    require(positive(p.sigma), i, "sigma", p.sigma, "a positive finite number");
    memory = std::max(memory, p.memory_s);
    compute = std::max(compute, p.compute_s);
  }
  if (memory == 0 || compute == 0) throw bad_input("A roofline cannot be fitted to points whose bare times are all 0.");
}

// The units of the scaled quantities that are fitted.
struct Scales {
  double memory = 0, compute = 0, measured = 0;
};

// A branch that no point is bound by: as high as the points allow, so that it bounds wider passes.
void raise_idle_branch(std::span<const RooflinePoint> points, RooflineCalibration& fit) {
  bool memory_bound = false, compute_bound = false;
  double most_m = 1, most_c = 1;
  for (const RooflinePoint& p : points) {
    const double memory = fit.alpha_m * p.memory_s + fit.beta_m;
    const double compute = fit.alpha_c * p.compute_s + fit.beta_c;
    (memory >= compute ? memory_bound : compute_bound) = true;
    if (p.memory_s > 0) most_m = std::min(most_m, compute / p.memory_s);
    if (p.compute_s > 0) most_c = std::min(most_c, memory / p.compute_s);
  }
  if (!compute_bound) {
    fit.alpha_c = most_c;
    fit.beta_c = 0;
  }
  if (!memory_bound) {
    fit.alpha_m = most_m;
    fit.beta_m = 0;
  }
}

}  // namespace

RooflineFit fit_roofline(std::span<const RooflinePoint> points) {
  validate(points);
  Scales scale;
  for (const RooflinePoint& p : points) {
    scale.memory = std::max(scale.memory, p.memory_s);
    scale.compute = std::max(scale.compute, p.compute_s);
    scale.measured = std::max(scale.measured, p.measured_s);
  }
  std::vector<ScaledPoint> scaled;
  for (const RooflinePoint& p : points) {
    scaled.push_back({p.memory_s / scale.memory, p.compute_s / scale.compute, p.measured_s / scale.measured,
                      1 / (p.sigma * p.sigma)});
  }

  std::vector<Candidate> candidates = split_starts(scaled);
  for (Candidate& c : candidates) {
    descend(scaled, c);
    for (const double size : {0.1, 0.01}) simplex_search(scaled, c, size);
    descend(scaled, c);
  }
  const Lines best = std::min_element(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
                       return a.ssr < b.ssr;
                     })->lines;

  RooflineFit fit;
  fit.calibration = {.alpha_m = best.memory.slope * scale.measured / scale.memory,
                     .beta_m = best.memory.offset * scale.measured,
                     .alpha_c = best.compute.slope * scale.measured / scale.compute,
                     .beta_c = best.compute.offset * scale.measured};
  raise_idle_branch(points, fit.calibration);
  for (const RooflinePoint& p : points) {
    const double error = (fit.calibration.seconds(p.memory_s, p.compute_s) - p.measured_s) / p.sigma;
    fit.weighted_ssr += error * error;
  }
  return fit;
}

std::vector<double> width_sigmas(std::span<const uint32_t> widths, double scale) {
  std::vector<double> sigmas(widths.size(), 1.0);
  if (widths.empty()) return sigmas;
  const auto [low, high] = std::minmax_element(widths.begin(), widths.end());
  if (*low == *high) return sigmas;
  double sum = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    sigmas[i] = 1.0 + scale * static_cast<double>(widths[i] - *low) / static_cast<double>(*high - *low);
    sum += sigmas[i];
  }
  for (double& sigma : sigmas) sigma *= static_cast<double>(widths.size()) / sum;
  return sigmas;
}

}  // namespace canopy
