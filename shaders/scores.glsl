// What attention makes of a product of a query and a key.
#include "tanh.glsl"

layout(constant_id = 11) const float SOFTCAP = 0.0;  // 0: none

// The score of a product of a query and a key.
float score_of(float product, float scale) {
  precise float score = product * scale;
  if (SOFTCAP > 0.0) {
    precise float inner = score / SOFTCAP;
    precise float capped = SOFTCAP * tanh_of(inner);
    score = capped;
  }
  return score;
}
