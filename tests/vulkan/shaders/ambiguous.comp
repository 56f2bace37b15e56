#version 450
// The size of the workgroup without its default: glslang takes 1 for it and 64 for GROUP.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 64;

layout(set = 0, binding = 0) buffer Out { uint out_[]; };

void main() { out_[gl_GlobalInvocationID.x] = GROUP; }
