#include "engine/vulkan/spirv_module.h"

#include "engine/base/error.h"

namespace canopy::vk::spirv {
namespace {

constexpr uint32_t magic = 0x07230203;
constexpr uint32_t max_ids = 1u << 20;  // far beyond any shader; bounds memory for a damaged module
constexpr uint32_t model_gl_compute = 5;
constexpr uint32_t mode_local_size = 17;
constexpr uint32_t mode_local_size_id = 38;

// A literal string, at most `operands` long.
std::string text(Words operands, size_t first) {
  std::string result;
  for (size_t i = first; i < operands.size(); ++i) {
    for (int shift = 0; shift < 32; shift += 8) {
      const char c = static_cast<char>(operands[i] >> shift & 0xFF);
      if (c == '\0') {
        return result;
      }
      result += c;
    }
  }
  fail("a name has no end");
}

}  // namespace

void fail(const std::string& why) {
  throw bad_input("The SPIR-V module is not usable: " + why + ".");
}

uint32_t operand(Words operands, size_t i) {
  if (i >= operands.size()) {
    fail("an instruction lacks operand " + std::to_string(i));
  }
  return operands[i];
}

Module::Module(Words words) {
  read_header(words);
  for (size_t at = 5; at < words.size();) {
    const uint32_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) {
      fail("the instruction at word " + std::to_string(at) + " is cut short");
    }
    read_instruction(words[at] & 0xFFFF, words.subspan(at + 1, length - 1));
    at += length;
  }
  if (entry_point_.empty()) {
    fail("it has no compute entry point");
  }
}

void Module::read_header(Words words) {
  if (words.size() < 5 || words[0] != magic) {
    fail("it does not start with the SPIR-V header");
  }
  const uint32_t bound = words[3];
  if (bound == 0 || bound > max_ids) {
    fail("its id bound is " + std::to_string(bound) + ", at most " + std::to_string(max_ids) + " is allowed");
  }
  definitions_.resize(bound);
}

void Module::define(uint32_t id, uint32_t op, Words operands) {
  if (id >= definitions_.size()) {
    fail("id " + std::to_string(id) + " is beyond its bound " + std::to_string(definitions_.size()));
  }
  definitions_[id] = {op, operands};
}

void Module::read_instruction(uint32_t op, Words operands) {
  switch (op) {
    case op_name: names_[operand(operands, 0)] = text(operands, 1); break;
    case op_capability: capabilities_.push_back(operand(operands, 0)); break;
    case op_entry_point: read_entry_point(operands); break;
    case op_execution_mode:
    case op_execution_mode_id: read_execution_mode(operands); break;
    case op_decorate:
      decorations_[{operand(operands, 0), operand(operands, 1)}] = operands.size() > 2 ? operands[2] : 0;
      break;
    case op_member_decorate:
      member_decorations_[{operand(operands, 0), operand(operands, 1), operand(operands, 2)}] =
          operands.size() > 3 ? operands[3] : 0;
      break;
    case op_type_bool:
    case op_type_int:
    case op_type_float:
    case op_type_vector:
    case op_type_matrix:
    case op_type_image:
    case op_type_sampled_image:
    case op_type_array:
    case op_type_runtime_array:
    case op_type_struct:
    case op_type_pointer: define(operand(operands, 0), op, operands); break;
    case op_constant_true:
    case op_constant_false:
    case op_constant:
    case op_constant_composite:
    case op_spec_constant_composite:
    case op_spec_constant_op: define(operand(operands, 1), op, operands); break;
    case op_spec_constant_true:
    case op_spec_constant_false:
    case op_spec_constant:
      define(operand(operands, 1), op, operands);
      spec_constants_.push_back(operands[1]);
      break;
    case op_variable:
      define(operand(operands, 1), op, operands);
      variables_.push_back(operands[1]);
      break;
    default: break;
  }
}

void Module::read_entry_point(Words operands) {
  if (operand(operands, 0) == model_gl_compute && entry_point_.empty()) {
    entry_id_ = operand(operands, 1);
    entry_point_ = text(operands, 2);
  }
}

void Module::read_execution_mode(Words operands) {
  const uint32_t mode = operand(operands, 1);
  if (operand(operands, 0) != entry_id_ || (mode != mode_local_size && mode != mode_local_size_id)) {
    return;
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    (mode == mode_local_size ? local_size_[axis] : local_size_ids_[axis]) = operand(operands, 2 + axis);
  }
}

const Definition& Module::definition(uint32_t id) const {
  if (id >= definitions_.size() || definitions_[id].op == 0) {
    fail("id " + std::to_string(id) + " is used but not defined");
  }
  return definitions_[id];
}

const Definition& Module::definition_or_none(uint32_t id) const {
  static const Definition none;
  return id < definitions_.size() ? definitions_[id] : none;
}

uint32_t Module::constant_value(uint32_t id) const {
  const Definition& constant = definition_or_none(id);
  switch (constant.op) {
    case op_constant_true:
    case op_spec_constant_true: return 1;
    case op_constant_false:
    case op_spec_constant_false: return 0;
    case op_constant:
    case op_spec_constant: return operand(constant.operands, 2);
    default: return 1;
  }
}

std::string Module::name(uint32_t id) const {
  const auto found = names_.find(id);
  return found == names_.end() ? "" : found->second;
}

std::optional<uint32_t> Module::decoration(uint32_t id, uint32_t which) const {
  const auto found = decorations_.find({id, which});
  return found == decorations_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint32_t> Module::member_decoration(uint32_t type, uint32_t member, uint32_t which) const {
  const auto found = member_decorations_.find({type, member, which});
  return found == member_decorations_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace canopy::vk::spirv
