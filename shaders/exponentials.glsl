// Functions of exp to the last bits of a float. A decay is multiplied by itself as often as a text has tokens, and a state
// keeps what it was given, so that what the functions of Vulkan may be off by would add up.

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
