#version 450
#extension GL_GOOGLE_include_directive : require
// logits[row, token] = adjusted_logit(...) for the tokens with a bias and those of the text so far, which are in the table
// of adjustments, and for those of the path to the row, which may be in the table too. One invocation for each place of the
// table, then one for each place of the longest path; each token is adjusted by one of them.
#include "sample.glsl"

layout(set = 0, binding = 0) buffer Logits { uint logits[]; };  // [rows, vocab]
layout(set = 0, binding = 1) readonly buffer Settings { SamplingWords settings; };
layout(set = 0, binding = 2) readonly buffer Rows { SampledRow rows[]; };
layout(set = 0, binding = 3) readonly buffer Adjustments { TokenAdjustment adjustments[]; };  // ascending by token

uint count_on_path(uint row, uint token) {
  uint count = 0u;
  for (; rows[row].parent != NO_TOKEN; row = rows[row].parent) count += rows[row].token == token ? 1u : 0u;
  return count;
}

// The token `place` rows above the row, if it is the last of its kind on the path; else NO_TOKEN.
uint token_on_path(uint row, uint place) {
  uint token = NO_TOKEN;
  uint at = row;
  for (uint i = 0u; i <= place; ++i) {
    if (rows[at].parent == NO_TOKEN) return NO_TOKEN;
    token = rows[at].token;
    at = rows[at].parent;
  }
  at = row;
  for (uint i = 0u; i < place; ++i) {
    if (rows[at].token == token) return NO_TOKEN;
    at = rows[at].parent;
  }
  return token;
}

bool is_in_table(uint token) {
  uint first = 0u, end = settings.adjustments;
  while (first < end) {
    uint middle = (first + end) / 2u;
    if (adjustments[middle].token < token) {
      first = middle + 1u;
    } else {
      end = middle;
    }
  }
  return first < settings.adjustments && adjustments[first].token == token;
}

void main() {
  uint row = gl_WorkGroupID.y;
  uint place = gl_GlobalInvocationID.x;
  if (rows[first_row + row].token == NO_TOKEN) return;  // stands for nothing
  TokenAdjustment adjustment = TokenAdjustment(NO_TOKEN, 0u, 0.0);
  if (place < most_adjustments) {
    if (place < settings.adjustments) adjustment = adjustments[place];
  } else {
    uint token = token_on_path(first_row + row, place - most_adjustments);
    if (token != NO_TOKEN && !is_in_table(token)) adjustment.token = token;
  }
  if (adjustment.token >= vocab) return;
  uint count = adjustment.count + count_on_path(first_row + row, adjustment.token);
  uint at = row * vocab + adjustment.token;
  logits[at] = adjusted_logit(logits[at], adjustment.bias, count, settings);
}
