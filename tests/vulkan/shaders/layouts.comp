#version 450
#extension GL_EXT_scalar_block_layout : require
// Blocks of every layout rule, for the reflection alone.
layout(local_size_x = 4, local_size_y = 2) in;

struct Pair {
  vec3 a;
  uint b;
};
layout(std430, set = 0, binding = 0) buffer Header {
  Pair pair;
  vec3 points[3];
  mat4 matrix;
  uint rest[];
} header;
layout(std430, set = 0, binding = 1) uniform Rows { float x[8]; } rows[4];

shared float line[32];
shared vec4 one;

void main() {
  line[gl_LocalInvocationIndex] = rows[1].x[gl_LocalInvocationIndex];
  one = vec4(header.points[1], header.matrix[0][1]);
  barrier();
  header.rest[gl_LocalInvocationIndex] = header.pair.b + uint(line[0]) + uint(one.x);
}
