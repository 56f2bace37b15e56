#version 450
// Moves whole slots: slot to[i] = what slot from[i] held. An invocation owns one word of every slot and reads all its
// sources before it writes, so lists may overlap and form cycles.
layout(local_size_x = 32) in;

layout(set = 0, binding = 0) readonly buffer Moves { uvec2 moves[]; };  // from, to
layout(set = 0, binding = 1) buffer Cache { uint words[]; };            // [slots, slot_words]

layout(push_constant) uniform Push {
  uint count;  // at most 64
  uint slot_words;
};

void main() {
  uint word = gl_GlobalInvocationID.x;
  if (word >= slot_words) return;
  uint held[64];
  for (uint i = 0u; i < count; ++i) held[i] = words[moves[i].x * slot_words + word];
  for (uint i = 0u; i < count; ++i) words[moves[i].y * slot_words + word] = held[i];
}
