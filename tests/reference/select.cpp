// out[i] = in[index[first + i]], values and sums of squares

#include <algorithm>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const SelectArgs& args) {
  require(args.in != nullptr, "select: in is missing.");
  const uint32_t cols = args.in->cols();
  const HostActivations& in = read_activations(args.in, args.width, cols, "select: in");
  HostActivations& out = written_activations(args.out, args.count, cols, "select: out");
  const auto index =
      elements<uint32_t>(args.index, uint64_t{args.first} + args.count, "select: index").subspan(args.first);
  require(args.out != args.in, "select: in and out are the same activations.");

  for (uint32_t i = 0; i < args.count; ++i) {
    require(index[i] < args.width, "select: an index lies outside the rows of in.");
    std::copy_n(in.row(index[i]), cols, out.row(i));
    out.sum_of_squares(i) = in.sum_of_squares(index[i]);
  }
}

}  // namespace canopy::reference
