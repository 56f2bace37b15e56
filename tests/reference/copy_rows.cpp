// out[to] = in[from] for each move

#include <algorithm>
#include <map>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const CopyRowsArgs& args) {
  require(args.in != args.out, "copy_rows: in and out are the same buffer.");
  const auto moves = elements<uint32_t>(args.moves, uint64_t{args.count} * 2, "copy_rows: moves");
  std::map<uint64_t, uint64_t> sources;  // by the row that is written

  for (uint32_t i = 0; i < args.count; ++i) {
    const uint64_t from = moves[2 * i];
    const uint64_t to = moves[2 * i + 1];
    require(sources.emplace(to, from).first->second == from, "copy_rows: two rows are moved to the same row.");
    const auto in = elements<float>(args.in, (from + 1) * args.cols, "copy_rows: in");
    const auto out = elements<float>(args.out, (to + 1) * args.cols, "copy_rows: out");
    std::copy_n(in.data() + from * args.cols, args.cols, out.data() + to * args.cols);
  }
}

}  // namespace canopy::reference
