// What a feed-forward makes of a gate and of what it gates: f(g) * u.

layout(constant_id = 10) const uint GELU = 0;  // f: 0 silu, 1 gelu; both g / (1 + exp(-steep(g)))

float steep(float g) {
  if (GELU == 0u) return g;
  precise float square = g * g;
  precise float part = 0.044715 * square;
  precise float result = 1.59576912 * fma(part, g, g);
  return result;
}

float gated(float g, float u) {
  precise float f = g / (1.0 + exp(-steep(g)));
  precise float y = f * u;
  return y;
}
