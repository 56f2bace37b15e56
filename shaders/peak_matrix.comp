#version 460
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
// needs: cooperative_matrix
// Products of matrix cores as fast as they go: CHAINS independent sums of each subgroup, `loops` times, by matrices whose
// elements the compiler cannot know.
layout(constant_id = 0) const uint CHAINS = 8;
layout(constant_id = 1) const uint INVOCATIONS = 128;  // whole subgroups
layout(constant_id = 2) const uint TM = 16;            // rows, columns and depth of the device's matrices
layout(constant_id = 3) const uint TN = 16;
layout(constant_id = 4) const uint TK = 16;
layout(local_size_x_id = 1) in;

layout(set = 0, binding = 0) uniform Numbers { float m; float c; float never; };
layout(set = 0, binding = 1) writeonly buffer Out { float result[]; };  // [CHAINS, TM, TN]

layout(push_constant) uniform Push { uint loops; };

void main() {
  coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> a =
      coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>(float16_t(m));
  coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> b =
      coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>(float16_t(c));
  coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator> sums[CHAINS];
  [[unroll]] for (uint i = 0u; i < CHAINS; ++i) {
    sums[i] = coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>(float(i));
  }
  for (uint l = 0u; l < loops; ++l) {
    [[unroll]] for (uint i = 0u; i < CHAINS; ++i) sums[i] = coopMatMulAdd(a, b, sums[i]);
  }
  if (m == never) {  // so that nothing above is dead
    [[unroll]] for (uint i = 0u; i < CHAINS; ++i) {
      coopMatStore(sums[i], result, i * TM * TN, TN, gl_CooperativeMatrixLayoutRowMajor);
    }
  }
}
