// Two neighbouring pairs (x, y), (z, w) turned by (cos, sin) = turn.xy and turn.zw.
vec4 rotated(vec4 x, vec4 turn) {
  precise vec4 far = vec4(-x.y * turn.y, x.x * turn.y, -x.w * turn.w, x.z * turn.w);
  precise vec4 near = vec4(fma(x.x, turn.x, far.x), fma(x.y, turn.x, far.y), fma(x.z, turn.z, far.z), fma(x.w, turn.z, far.w));
  return near;
}
