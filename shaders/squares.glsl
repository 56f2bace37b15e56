// Sums of squares of the rows of activations: float [max_width] totals, then one partial per 4 elements of each row. Who writes
// the last partial of a tile adds them up (an atomic counter tells; nobody waits), so a norm costs no dispatch.
//
// The group's writes reach whoever adds them up in three steps: the barrier before the count makes them available to the
// device and hands them to invocation 0, the atomic count orders the groups, and the barrier behind it makes what others
// wrote visible to the whole group. barrier() alone orders shared memory only.
//
// Order: partial p goes to lane p mod 32; a lane adds its partials in order; the 32 lanes are added in order.

#extension GL_KHR_memory_scope_semantics : require

layout(set = 0, binding = SQUARES_BINDING) coherent buffer Squares { float squares[]; };
layout(set = 0, binding = COUNTERS_BINDING) coherent buffer Counters { uint finished[]; };  // 0 between uses

const uint SQUARE_LANES = 32u;
shared uint last_group;

#define DECLARE_LANE_SUMS(columns) shared float lane_sums[(columns) * SQUARE_LANES]

#define BUFFER_BARRIER()                                                                                            \
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeDevice, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,          \
                 gl_SemanticsAcquireRelease)

// Call in all invocations after the group's partials are written. Columns are those of the tile.
#define FINISH_SQUARES(columns, first_column, tile_index, groups, partial_base, partials)                           \
  {                                                                                                                 \
    BUFFER_BARRIER();                                                                                               \
    if (gl_LocalInvocationIndex == 0u) last_group = atomicAdd(finished[tile_index], 1u) + 1u == (groups) ? 1u : 0u; \
    BUFFER_BARRIER();                                                                                               \
    if (last_group != 0u) {                                                                                         \
      uint invocations = gl_WorkGroupSize.x * gl_WorkGroupSize.y;                                                   \
      for (uint i = gl_LocalInvocationIndex; i < (columns) * SQUARE_LANES; i += invocations) {                      \
        uint column = (first_column) + i / SQUARE_LANES;                                                            \
        precise float sum = 0.0;                                                                                    \
        for (uint p = i % SQUARE_LANES; p < (partials); p += SQUARE_LANES) {                                        \
          sum = sum + squares[(partial_base) + column * (partials) + p];                                            \
        }                                                                                                           \
        lane_sums[i] = sum;                                                                                         \
      }                                                                                                             \
      barrier();                                                                                                    \
      for (uint c = gl_LocalInvocationIndex; c < (columns); c += invocations) {                                     \
        precise float sum = 0.0;                                                                                    \
        for (uint l = 0u; l < SQUARE_LANES; ++l) sum = sum + lane_sums[c * SQUARE_LANES + l];                       \
        squares[(first_column) + c] = sum;                                                                          \
      }                                                                                                             \
      if (gl_LocalInvocationIndex == 0u) finished[tile_index] = 0u;                                                 \
    }                                                                                                               \
  }
