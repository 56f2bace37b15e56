#include "engine/whatif/processor_work.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <type_traits>
#include <variant>

#include "engine/base/error.h"
#include "engine/compute/rows.h"
#include "engine/cpu/packing.h"
#include "engine/whatif/op_work.h"

namespace canopy::predict {
namespace {

using cpu::Form;
using cpu::Packed;

// Of the ideal throughput of the vector units, in whole passes on a Xeon of two cores; tiles of products alone, from a
// core's own caches, reached 0.9 (63, 79 and 127 billion multiply-adds a second with AVX2, AVX-VNNI and AVX-512).
constexpr double kShareOfUnits = 0.65;
// How reading and computing overlap, as the order of the norm of their times: 1 would be one after the other. Of the
// same passes, of 1 to 33 rows of models of 0.6 to 4 billion parameters (processor_test.cpp has them).
constexpr double kOverlapOfCores = 1.5;
// Fewer sums under way than the units' latency has room for: registers of sums of one query, and of as many as fill it.
constexpr double kSumsOfQuery = 2, kSumsThatFill = 8, kQueriesTogether = 4;
// Instructions of sixteen exponentials with what masks and scales them.
constexpr double kOpsOfExponentials = 40;
// What a core moves to and from its own caches, in GB/s, where nothing else is known of an op.
constexpr double kCacheGbS = 20;

/// One set of kernels, and how its loops use a register.
struct VectorSet {
  Kernels kernels;
  double floats;          // of a register
  double tile;            // rows of a pass that are computed together
  double multiplies;      // for the products of a register of pairs with a row
  double adds;            // beside them
  double sums_of_halves;  // instructions that put a block's sum together
};
constexpr VectorSet kSets[] = {{Kernels::avx2, 8, 8, 1, 1, 0},
                               {Kernels::vnni, 8, 8, 1, 0, 0},
                               {Kernels::avx512, 16, 12, 1, 0, 0},
                               {Kernels::neon, 4, 8, 2, 0, 1}};
constexpr double kDenseTile = 4;

const VectorSet& set_of(Kernels kernels) {
  const auto found = std::ranges::find(kSets, kernels, &VectorSet::kernels);
  if (found == std::end(kSets)) {
    throw bad_input("The kernels '" + std::string(to_string(kernels)) +
                    "' are those of GPUs; allowed on processors: avx2, vnni, avx512, neon.");
  }
  return *found;
}

/// Vector instructions: all of them, and those among them that only the units for multiplications start.
struct Instructions {
  double multiplies = 0, all = 0;
  Instructions operator*(double times) const { return {multiplies * times, all * times}; }
  Instructions operator+(const Instructions& b) const { return {multiplies + b.multiplies, all + b.all}; }
};

/// For 32 columns of the 16 outputs of a band.
struct BlockInstructions {
  Instructions decode;  // once for the rows of a tile
  Instructions of_row;

  BlockInstructions(Form form, bool has_minimums, const VectorSet& set) {
    const double registers = cpu::kBand / set.floats;
    const bool nibbles = form == Form::nibbles || form == Form::nibbles_with_sub_scales;
    const bool sub_scales = form == Form::nibbles_with_sub_scales || form == Form::bytes_with_sub_scales;
    const bool halves = sub_scales && !nibbles, minimums = nibbles || has_minimums;
    // A line: shifts and masks for four pairs of columns, or shifts for two; then products of each pair.
    const double lines = nibbles ? 4 : 8, unpack = nibbles ? 7 : 3, pairs = nibbles ? 4 : 2;
    const double scales = halves ? 2 : 1;  // of a block
    // A scale is a half that is converted, or a byte that is converted twice and multiplied.
    const double convert = sub_scales ? 2 : 1, multiply = sub_scales ? 1 : 0;
    const double kinds = scales * (minimums ? 2 : 1);
    decode = Instructions{kinds * (convert + multiply), lines * unpack + kinds * (convert + multiply)} * registers;
    // Its products, then of each scale: the sum as a float, its factor, one or two multiply-adds.
    const double finish = scales * (3 + (minimums ? 1 : 0));
    of_row = Instructions{lines * pairs * set.multiplies + finish,
                          lines * pairs * (set.multiplies + set.adds) + finish + scales * set.sums_of_halves} *
             registers;
  }
};

/// For a column of the 16 outputs of a band whose weights are floats.
Instructions dense_decode(Form form, const VectorSet& set) {
  const double ops = form == Form::f32 ? 0 : form == Form::f16 ? 1 : 2;
  return Instructions{ops, ops} * (cpu::kBand / set.floats);
}

/// All rows of a pass of one band's product.
Instructions band_product(const Packed& weight, double rows, const VectorSet& set) {
  const bool dense = weight.form == Form::f32 || weight.form == Form::f16 || weight.form == Form::bf16;
  const double tiles = std::ceil(rows / (dense ? kDenseTile : set.tile));
  if (dense) {
    const double add = cpu::kBand / set.floats;
    return (dense_decode(weight.form, set) * tiles + Instructions{add, add} * rows) * weight.cols;
  }
  const BlockInstructions block(weight.form, weight.has_minimums, set);
  return (block.decode * tiles + block.of_row * rows) * std::ceil(weight.cols / 32.0);
}

/// How often such a core does that in a microsecond; 0 where there are none.
double core_rate(const ProcessorCores& cores, const Instructions& of, const VectorSet& set) {
  if (cores.count == 0) return 0;
  const VectorUnits& units = set.floats == 16 ? cores.of_512 : set.floats == 8 ? cores.of_256 : cores.of_128;
  const double clocks = std::max(of.multiplies / units.multiplies, of.all / units.all);
  return cores.clock_ghz * 1e3 * kShareOfUnits / clocks;
}

/// Cores that have some of the units, with how evenly these can be dealt.
struct BusyCores {
  double cores, evenly;
  BusyCores(double units, const DeviceProfile& device) {
    const double all = device.processor.cores();
    cores = std::min(all, std::max(1.0, units));
    evenly = units / (std::ceil(units / cores) * cores);
  }
};

struct ProcessorWork {
  double bytes = 0;        // of memory
  double cache_bytes = 0;  // of caches
  Instructions instructions;
  double units = 1;
  double steps = 1;
};

std::pair<Work, WorkTime> timed(const ProcessorWork& of, const VectorSet& set, const DeviceProfile& device) {
  const ProcessorFigures& processor = device.processor;
  const BusyCores busy(of.units, device);
  Work work;
  work.memory_bytes = of.bytes;
  work.cache_bytes = of.cache_bytes;
  work.lane_ops = of.instructions.all * set.floats;
  work.workgroups = of.units;
  work.steps = of.steps;
  WorkTime time;
  const double of_cores = busy.cores * busy.evenly * processor.core_gb_s;
  time.memory = of.bytes / (1e3 * std::min(device.memory_gb_s * device.memory_share, of_cores));
  time.cache = of.cache_bytes / (1e3 * kCacheGbS * busy.cores);
  if (of.instructions.all > 0) {
    // Fast cores take more units than slow ones; where there are few, they are the fast ones'.
    const double fast = std::min<double>(busy.cores, processor.fast.count), slow = busy.cores - fast;
    const double rate =
        fast * core_rate(processor.fast, of.instructions, set) + slow * core_rate(processor.slow, of.instructions, set);
    time.arithmetic = 1 / (rate * busy.evenly);
  }
  time.steps = of.steps * device.step_us;
  const double longest = std::max(time.memory, time.arithmetic), shorter = std::min(time.memory, time.arithmetic);
  const double together =
      longest > 0 ? longest * std::pow(1 + std::pow(shorter / longest, kOverlapOfCores), 1 / kOverlapOfCores) : 0;
  time.total = together + time.cache + time.steps;
  const double most = std::max({time.memory, time.cache, time.arithmetic, time.steps});
  time.limit = time.memory == most       ? Limit::memory
               : time.arithmetic == most ? Limit::arithmetic
               : time.cache == most      ? Limit::cache
                                         : Limit::steps;
  return {work, time};
}

/// A product whose threads take so many bands at a time at least.
ProcessorWork product(const Weight& weight, double rows, double bands_of_unit, const VectorSet& set) {
  const Packed form = cpu::packed_form(weight.type(), weight.rows(), weight.cols());
  ProcessorWork work;
  work.bytes = static_cast<double>(cpu::packed_bytes(form));
  work.instructions = band_product(form, rows, set) * form.bands;
  work.units = std::ceil(form.bands / bands_of_unit);
  return work;
}

ProcessorWork joined(ProcessorWork a, const ProcessorWork& b) {
  a.bytes += b.bytes;
  a.cache_bytes += b.cache_bytes;
  a.instructions = a.instructions + b.instructions;
  a.units += b.units;
  return a;
}

/// Of the experts that rows touch, if each chooses evenly.
ProcessorWork experts(const Weight& weight, const ExpertCounts& counts, uint32_t width, double bands_of_unit,
                      const VectorSet& set) {
  const double touched = counts.touched(width), rows = 1.0 * width * counts.used / touched;
  const Packed one = cpu::packed_form(weight.type(), weight.rows() / counts.all, weight.cols());
  ProcessorWork work;
  work.bytes = touched * static_cast<double>(cpu::packed_bytes(one));
  work.instructions = band_product(one, rows, set) * (touched * one.bands);
  work.units = touched * std::ceil(one.bands / bands_of_unit);
  return work;
}

template <class Args>
double width_of(const Args& args) {
  if constexpr (requires { args.width; }) {
    return std::max(1u, args.width);
  } else {
    return 1;
  }
}

/// What has no rule of its own goes through the caches, a unit for each row.
template <class Args>
ProcessorWork work_on_cores(const Args& args, const VectorSet&) {
  ProcessorWork work;
  work.cache_bytes = static_cast<double>(args.price().bytes);
  work.units = width_of(args);
  return work;
}

ProcessorWork work_on_cores(const LinearArgs& args, const VectorSet& set) {
  return product(*args.weight, args.width, 1, set);
}

ProcessorWork work_on_cores(const LinearAddArgs& args, const VectorSet& set) {
  return product(*args.weight, args.width, 2, set);
}

ProcessorWork work_on_cores(const LinearSwigluArgs& args, const VectorSet& set) {
  return product(*args.weight, args.width, 4, set);
}

ProcessorWork work_on_cores(const ProjectHeadsArgs& args, const VectorSet& set) {
  ProcessorWork work;
  work.units = 0;
  for (const Weight* weight : args.weights) work = joined(work, product(*weight, args.heads.width, 1, set));
  work.steps = static_cast<double>(args.weights.size()) + 1;  // heads are finished behind their products
  return work;
}

ProcessorWork work_on_cores(const ExpertSwigluArgs& args, const VectorSet& set) {
  return experts(*args.weight, args.experts, args.width, 4, set);
}

ProcessorWork work_on_cores(const ExpertAddArgs& args, const VectorSet& set) {
  ProcessorWork work = experts(*args.weight, args.experts, args.width, 2, set);
  work.steps = 2;  // then the rows' sums
  return work;
}

/// A page of a K/V head is converted once for all rows; queries share each load, four at a time.
ProcessorWork work_on_cores(const AttentionArgs& args, const VectorSet& set) {
  const KvShape& shape = args.shape;
  const auto keys = static_cast<double>(args.keys());
  const double queries = 1.0 * args.width * args.heads / shape.kv_heads;
  const double elements = shape.head_dim + shape.value_dim();
  const double together = std::min(kQueriesTogether, queries);
  const double filled = std::min(1.0, together * kSumsOfQuery / kSumsThatFill);
  ProcessorWork work;
  work.bytes = shape.planes() * keys * shape.kv_heads * shape.head_dim * mean_element_bytes(shape);
  const double products = queries * keys * elements / set.floats / filled;
  const double converted = keys * elements / set.floats;
  const double exponentials = queries * keys / 16 * kOpsOfExponentials;
  work.instructions =
      Instructions{products + converted + exponentials / 2, products + 2 * converted + exponentials} * shape.kv_heads;
  work.units = shape.kv_heads * std::ceil(keys / cpu::kPage);
  work.steps = 2;  // then pages are merged
  return work;
}

/// States come from memory and go back to it; threads take 16 columns of a head's at a time.
ProcessorWork work_on_cores(const DeltaNetArgs& args, const VectorSet& set) {
  const auto state = static_cast<double>(args.shape.state_elements());
  constexpr double ops = 5;  // of an element and a row: decay, what is known of the key, change, result
  ProcessorWork work;
  work.bytes = 2 * state * sizeof(float);
  work.instructions = Instructions{ops, ops} * (args.width * state / set.floats);
  work.units = args.shape.value_heads * std::ceil(args.shape.value_dim / 16.0);
  return work;
}

}  // namespace

std::pair<Work, WorkTime> processor_work(const Op& op, Kernels kernels, const DeviceProfile& device) {
  const VectorSet& set = set_of(kernels);
  if (!has(device.processor, kernels)) {
    std::string allowed;
    for (const VectorSet& each : kSets) {
      if (has(device.processor, each.kernels))
        allowed += (allowed.empty() ? "" : ", ") + std::string(to_string(each.kernels));
    }
    throw bad_input("The " + std::string(device.name) + " has no instructions for the kernels '" +
                    std::string(to_string(kernels)) + "'; allowed: " + (allowed.empty() ? "those of GPUs" : allowed) +
                    ".");
  }
  const ProcessorWork work = std::visit([&](const auto& args) { return work_on_cores(args, set); }, op);
  return timed(work, set, device);
}

}  // namespace canopy::predict
