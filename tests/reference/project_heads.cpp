// The product of the joined rows of the weights with in; then rope_store.

#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const ProjectHeadsArgs& args) {
  for (const Op& op : separate_ops(args)) compute_op(op);
}

}  // namespace canopy::reference
