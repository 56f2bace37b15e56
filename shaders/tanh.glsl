// tanh to some units in the last place everywhere; GLSL's own loses its digits near 0. Below 1/2 an odd polynomial (its
// coefficients interpolate (tanh z - z) / z^3 at Chebyshev nodes), beyond by the exponential.
float tanh_of(float z) {
  float a = min(abs(z), 10.0);  // where f32 has reached 1
  precise float twice = a + a;
  precise float denominator = exp(twice) + 1.0;
  precise float far = 1.0 - 2.0 / denominator;
  precise float s = a * a;
  precise float cubed = s * a;
  float p = fma(fma(fma(fma(-0.0068779234, s, 0.021441568), s, -0.053929474), s, 0.13333209), s, -0.33333331);
  float result = a < 0.5 ? fma(cubed, p, a) : far;
  return z < 0.0 ? -result : result;
}
