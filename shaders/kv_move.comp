#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Moves slots of all planes of a shard of a cache, which are the keys or the values of a layer each: slot to[i] = what
// slot from[i] held. An invocation owns one word of every slot of a plane and reads all its sources before it writes, so
// lists may overlap and form cycles.
layout(local_size_x = 32) in;

layout(constant_id = 0) const uint MOST = 64;  // moves that there is room for

layout(set = 0, binding = 0) readonly buffer Moves { uvec2 moves[]; };  // from, to
layout(set = 0, binding = 1) buffer Planes { uint words[]; };           // [planes, plane_words], of these [slots, slot_words]

layout(push_constant) uniform Push {
  uint count;  // at most MOST
  uint slot_words;
  uint plane_words;
};

void main() {
  uint word = gl_GlobalInvocationID.x;
  if (word >= slot_words) return;
  uint base = gl_WorkGroupID.y * plane_words + word;
  uint held[MOST];
  [[unroll]] for (uint i = 0u; i < MOST; ++i) {
    if (i < count) held[i] = words[base + moves[i].x * slot_words];
  }
  [[unroll]] for (uint i = 0u; i < MOST; ++i) {
    if (i < count) words[base + moves[i].y * slot_words] = held[i];
  }
}
