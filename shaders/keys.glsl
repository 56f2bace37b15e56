// Which positions of its virtual sequence (rows.h) a row sees: first_key(row) ... keys_end(row) - 1.
layout(constant_id = 3) const uint BLOCK_MASK = 0;  // 1: its whole ancestor list, also what is behind it; 0: up to itself
layout(constant_id = 4) const uint WINDOW = 0;      // positions up to its own that it sees; 0: all

// A row without ancestors stands for nothing and sees nothing.
uint keys_end(Row row) {
  if (row.ancestor_count == 0u) return 0u;
  return BLOCK_MASK != 0u ? row.prefix + row.ancestor_count : row.position + 1u;
}

uint first_key(Row row) {
  if (WINDOW == 0u) return 0u;
  return row.position + 1u > WINDOW ? row.position + 1u - WINDOW : 0u;
}
