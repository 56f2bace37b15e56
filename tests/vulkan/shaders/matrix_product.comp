#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
// needs: cooperative_matrix
// c[m][n] = the sum over k of a[m][k] b[k][n], by a single product of the device's matrix cores: one workgroup of one
// subgroup; all matrices are row-major.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint M = 8;
layout(constant_id = 2) const uint N = 8;
layout(constant_id = 3) const uint K = 8;

layout(set = 0, binding = 0) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 1) readonly buffer B { float16_t b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };

void main() {
  coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> left;
  coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> right;
  coopMatLoad(left, a, 0, K, gl_CooperativeMatrixLayoutRowMajor);
  coopMatLoad(right, b, 0, N, gl_CooperativeMatrixLayoutRowMajor);
  coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sum =
      coopMatMulAdd(left, right, coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0));
  coopMatStore(sum, c, 0, N, gl_CooperativeMatrixLayoutRowMajor);
}
