// Sums of weights in 64 bits, as uvec2(low, high), and running sums over a workgroup.

uvec2 sum64(uvec2 a, uvec2 b) {
  uint carry;
  uint low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}
bool is_less(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }

// ceil(total * share / 2^32); total below 2^52.
uvec2 share_of(uvec2 total, uint share) {
  uint high0, low0, high1, low1;
  umulExtended(total.x, share, high0, low0);
  umulExtended(total.y, share, high1, low1);
  return sum64(uvec2(low1, high1), uvec2(high0 + (low0 != 0u ? 1u : 0u), 0u));
}

// uvec3(count, weight's low and high word)
shared uvec3 lane_sums[LANES];

uvec3 sum_of(uvec3 a, uvec3 b) { return uvec3(a.x + b.x, sum64(a.yz, b.yz)); }

// What the invocations before this one have together; `all` is the sum of all.
uvec3 sum_before(uvec3 own, out uvec3 all) {
  uint lane = gl_LocalInvocationID.x;
  uvec3 running = own;
  lane_sums[lane] = own;
  barrier();
  for (uint step = 1u; step < LANES; step *= 2u) {
    uvec3 other = lane >= step ? lane_sums[lane - step] : uvec3(0u);
    barrier();
    running = sum_of(running, other);
    lane_sums[lane] = running;
    barrier();
  }
  all = lane_sums[LANES - 1u];
  uvec3 before = lane == 0u ? uvec3(0u) : lane_sums[lane - 1u];
  barrier();
  return before;
}
