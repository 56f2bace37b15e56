#version 450
// out[i] = in[i] * factor + offset: the smallest kernel with every kind of thing the host must agree on.
layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 64;
layout(constant_id = 3) const uint ADD = 0;

layout(set = 0, binding = 0) readonly buffer In { float in_[]; };
layout(set = 0, binding = 1) writeonly buffer Out { float out_[]; };
layout(std140, set = 0, binding = 2) uniform Settings { vec4 factor; } settings;

layout(push_constant) uniform Push {
  uint count;
  float offset;
};

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= count) return;
  precise float y = in_[i] * settings.factor.x + (offset + float(ADD));
  out_[i] = y;
}
