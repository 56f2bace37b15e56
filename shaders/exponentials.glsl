// Functions made of exponentials.

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

// The others have an exp of their own, to the last bits of a float: a decay is multiplied by itself as often as a text has
// tokens, and a state keeps what it was given, so that what the functions of Vulkan may be off by would add up.

// exp(x) for x <= 0. With n the nearest integer to x / log 2: 2^n times Taylor's polynomial of the rest, which is at most
// log 2 / 2.
float exp_of_negative(float x) {
  if (!(x > -87.0)) return 0.0;
  precise float n = round(x * 1.4426950);
  precise float rest = fma(n, -1.4286068e-6, fma(n, -0.69314575, x));  // log 2 in two parts, the first of few bits
  precise float sum = fma(rest, 1.0 / 5040.0, 1.0 / 720.0);
  sum = fma(sum, rest, 1.0 / 120.0);
  sum = fma(sum, rest, 1.0 / 24.0);
  sum = fma(sum, rest, 1.0 / 6.0);
  sum = fma(sum, rest, 0.5);
  sum = fma(sum, rest, 1.0);
  sum = fma(sum, rest, 1.0);
  precise float result = sum * uintBitsToFloat(uint(int(n) + 127) << 23);
  return result;
}

// log(1 + exp(x)) = max(x, 0) + log(1 + t) with t = exp(-|x|), and log(1 + t) = 2 artanh(t / (2 + t)).
float softplus(float x) {
  float t = exp_of_negative(-abs(x));
  precise float s = t / (2.0 + t);
  precise float square = s * s;
  precise float sum = fma(square, 1.0 / 15.0, 1.0 / 13.0);
  sum = fma(sum, square, 1.0 / 11.0);
  sum = fma(sum, square, 1.0 / 9.0);
  sum = fma(sum, square, 1.0 / 7.0);
  sum = fma(sum, square, 1.0 / 5.0);
  sum = fma(sum, square, 1.0 / 3.0);
  sum = fma(sum, square, 1.0);
  precise float result = fma(2.0 * s, sum, max(x, 0.0));
  return result;
}

// 1 / (1 + exp(-x))
float sigmoid(float x) {
  float t = exp_of_negative(-abs(x));
  precise float result = (x < 0.0 ? t : 1.0) / (1.0 + t);
  return result;
}

float silu(float x) {
  precise float result = x * sigmoid(x);
  return result;
}
