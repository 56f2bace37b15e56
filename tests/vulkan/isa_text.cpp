#include "tests/vulkan/isa_text.h"

#include <cctype>
#include <charconv>
#include <set>
#include <vector>

namespace canopy::vk::testing {
namespace {

enum class Kind { other, fused, multiply, add, multiply_then_add };

struct Instruction {
  Kind kind = Kind::other;
  uint32_t lanes = 1;                           // 2: a packed instruction
  std::vector<std::vector<uint32_t>> operands;  // registers of each operand; the first operand is the result
};

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    if (text.starts_with(prefix)) return true;
  }
  return false;
}

// The kind of an instruction by its name without v_, s_, v_dual_ or v_pk_.
Kind kind_of(std::string_view name) {
  const bool f32 = name.find("f32") != std::string_view::npos;
  if (!f32) return Kind::other;
  if (starts_with_any(name, {"fma_", "fmac_", "fmaak_", "fmamk_"})) return Kind::fused;
  if (starts_with_any(name, {"mad_", "mac_", "madak_", "madmk_"})) return Kind::multiply_then_add;
  if (starts_with_any(name, {"mul_"})) return Kind::multiply;
  if (starts_with_any(name, {"add_", "sub_", "subrev_"})) return Kind::add;
  return Kind::other;
}

uint32_t number_at(std::string_view text, size_t& at) {
  uint32_t value = 0;
  const auto end = std::from_chars(text.data() + at, text.data() + text.size(), value).ptr;
  at = static_cast<size_t>(end - text.data());
  return value;
}

constexpr uint32_t scalar = 1000;  // added to the number of a scalar register

// The registers of an operand: "v7", "-|v7|", "v[6:7]", "s4"; none for constants.
std::vector<uint32_t> registers_of(std::string_view operand) {
  for (size_t i = 0; i + 1 < operand.size(); ++i) {
    const bool starts = i == 0 || std::isalnum(static_cast<unsigned char>(operand[i - 1])) == 0;
    if (!starts || (operand[i] != 'v' && operand[i] != 's')) continue;
    const uint32_t kind = operand[i] == 's' ? scalar : 0;
    size_t at = i + 1;
    if (std::isdigit(static_cast<unsigned char>(operand[at])) != 0) return {kind + number_at(operand, at)};
    if (operand[at] != '[') continue;
    const uint32_t first = number_at(operand, ++at);
    const uint32_t last = at < operand.size() && operand[at] == ':' ? number_at(operand, ++at) : first;
    std::vector<uint32_t> registers;
    for (uint32_t r = first; r <= last && r < first + 32; ++r) registers.push_back(kind + r);
    return registers;
  }
  return {};
}

Instruction parse(std::string_view text) {
  Instruction result;
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return result;
  text.remove_prefix(begin);
  const size_t name_end = std::min(text.find_first_of(" \t"), text.size());
  std::string_view name = text.substr(0, name_end);
  text.remove_prefix(name_end);
  if (name.starts_with("v_") || name.starts_with("s_")) {  // GFX11.5 and later compute what is uniform in scalars
    name.remove_prefix(2);
    if (name.starts_with("dual_")) name.remove_prefix(5);
    if (name.starts_with("pk_")) {
      name.remove_prefix(3);
      result.lanes = 2;
    }
    result.kind = kind_of(name);
  }
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    result.operands.push_back(registers_of(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return result;
}

class Counter {
 public:
  // Both halves of a dual instruction read their operands before either writes.
  void line(std::string_view text) {
    std::vector<Instruction> instructions;
    while (true) {
      const size_t dual = text.find("::");
      instructions.push_back(parse(text.substr(0, dual)));
      if (dual == std::string_view::npos) break;
      text.remove_prefix(dual + 2);
    }
    for (const Instruction& instruction : instructions) count(instruction);
    for (const Instruction& instruction : instructions) write(instruction);
  }
  const MultiplyAdds& counts() const { return counts_; }

 private:
  void count(const Instruction& i) {
    switch (i.kind) {
      case Kind::fused: counts_.fused += i.lanes; break;
      case Kind::multiply: counts_.multiplies += i.lanes; break;
      case Kind::multiply_then_add: counts_.split += i.lanes; break;
      case Kind::add:
        counts_.adds += i.lanes;
        if (adds_a_product(i)) counts_.split += i.lanes;
        break;
      case Kind::other: break;
    }
  }
  bool adds_a_product(const Instruction& i) const {
    for (size_t o = 1; o < i.operands.size(); ++o) {
      for (const uint32_t r : i.operands[o]) {
        if (products_.contains(r)) return true;
      }
    }
    return false;
  }
  void write(const Instruction& i) {
    if (i.operands.empty()) return;
    for (const uint32_t r : i.operands[0]) {
      if (i.kind == Kind::multiply) {
        products_.insert(r);
      } else {
        products_.erase(r);
      }
    }
  }

  MultiplyAdds counts_;
  std::set<uint32_t> products_;  // registers that were last written by a multiplication
};

std::string describe(const MultiplyAdds& counts, uint32_t columns) {
  return std::to_string(counts.split) + " of " + std::to_string(counts.adds) + " additions take a rounded product at " +
         std::to_string(columns) + " columns (" + std::to_string(counts.fused) + " fused)";
}

}  // namespace

MultiplyAdds count_multiply_adds(std::string_view disassembly) {
  Counter counter;
  while (!disassembly.empty()) {
    const size_t end = std::min(disassembly.find('\n'), disassembly.size());
    std::string_view line = disassembly.substr(0, end);
    counter.line(line.substr(0, line.find(';')));
    disassembly.remove_prefix(std::min(end + 1, disassembly.size()));
  }
  return counter.counts();
}

uint32_t count_nir_additions(std::string_view nir) {
  uint32_t count = 0;
  while (!nir.empty()) {
    const size_t end = std::min(nir.find('\n'), nir.size());
    const std::string_view line = nir.substr(0, end);
    nir.remove_prefix(std::min(end + 1, nir.size()));
    const size_t result = line.find(" %");
    const size_t op = line.find(" = f");
    if (result == std::string_view::npos || op == std::string_view::npos) continue;
    // "div 32x2  %7 = fadd! %5, %6": bits of an element, and how many there are.
    size_t at = line.find_last_not_of(' ', result);
    at = line.find_last_of(' ', at) + 1;
    if (number_at(line, at) != 32 || !starts_with_any(line.substr(op + 3), {"fadd", "fsub"})) continue;
    count += at < line.size() && line[at] == 'x' ? number_at(line, ++at) : 1;
  }
  return count;
}

std::string rounding_mismatch(const MultiplyAdds& narrow, uint32_t narrow_columns, const MultiplyAdds& wide,
                              uint32_t wide_columns) {
  const bool same_split =
      narrow.split == wide.split || uint64_t{narrow.split} * wide_columns == uint64_t{wide.split} * narrow_columns;
  const bool same_fused = (narrow.fused == 0) == (wide.fused == 0);
  if (same_split && same_fused) return "";
  return describe(narrow, narrow_columns) + ", but " + describe(wide, wide_columns) + ".";
}

}  // namespace canopy::vk::testing
