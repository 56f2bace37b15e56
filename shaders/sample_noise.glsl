// Drawing among tokens, behind the declarations of `best`, `settings` and `rows`.

// The row's largest logit.
uvec2 best_of_row(uint row) {
  uvec2 own = uvec2(KEY_NONE, NO_TOKEN);
  for (uint i = gl_LocalInvocationID.x; i < blocks; i += LANES) own = better_of(own, best[row * blocks + i]);
  return best_of_group(own);
}

// Of the token that is drawn after a row.
uint position_of(uint row) {
  uint position = settings.position;
  for (; rows[row].parent != NO_TOKEN; row = rows[row].parent) ++position;
  return position;
}

// Of the tokens 2 * pair (the first two) and 2 * pair + 1.
uvec4 random_words(uint pair, uint position) {
  return philox(uvec4(pair, position, settings.turn[0], settings.turn[1]), uvec2(settings.seed[0], settings.seed[1]));
}

// NO_TOKEN for one that cannot be drawn.
uint distance_of(float highest, uint key) {
  if (!is_number(key)) return NO_TOKEN;
  uint far = distance_between(highest, logit_of(key), settings.inverse_temperature);
  return far > settings.farthest ? NO_TOKEN : far;
}

// Whether a token whose random number has so many bits may beat a pair.
bool can_win(uint far, uint bits, uvec2 pair) {
  return far != NO_TOKEN && noise_at_most(bits) - int(far) >= unordered(pair.x);
}

uvec2 with_candidate(uvec2 own, uint id, uint far, uvec2 words) {
  uvec2 u = uniform_of(words.x, words.y);
  if (!can_win(far, bit_count(u), own)) return own;
  return better_of(own, uvec2(ordered(gumbel_noise(u) - int(far)), id));
}

// The pair of the best token.
uvec2 mark_of(uint id, uint position) {
  uvec4 words = random_words(id / 2u, position);
  uvec2 u = (id & 1u) == 0u ? uniform_of(words.x, words.y) : uniform_of(words.z, words.w);
  return uvec2(ordered(gumbel_noise(u)), id);
}
