#include "engine/vulkan/spirv_reflect.h"

#include <algorithm>
#include <limits>

#include "engine/vulkan/spirv_module.h"

namespace canopy::vk {
namespace {

using namespace spirv;

constexpr int max_type_depth = 32;
constexpr int max_operation_steps = 4096;  // of one constant computed from others

// Operations of OpSpecConstantOp that size arrays.
enum Operation : uint32_t {
  do_iadd = 128,
  do_isub = 130,
  do_imul = 132,
  do_udiv = 134,
  do_umod = 137,
  do_select = 169,
  do_iequal = 170,
  do_inotequal = 171,
  do_ugreater = 172,
  do_ugreater_equal = 174,
  do_uless = 176,
  do_uless_equal = 178,
};
constexpr uint32_t builtin_workgroup_size = 25;

uint64_t saturating_product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

uint64_t saturating_sum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<uint64_t>::max() : sum;
}

class Reflector {
 public:
  Reflector(Words words, std::span<const SpecConstant> given) : module_(words), given_(given) {}

  ShaderReflection run() {
    result_.entry_point = module_.entry_point();
    result_.capabilities = module_.capabilities();
    resolve_spec_constants();
    resolve_local_size();
    for (const uint32_t id : module_.variables()) {
      resolve_variable(id);
    }
    std::sort(result_.bindings.begin(), result_.bindings.end(),
              [](const ShaderBinding& a, const ShaderBinding& b) { return a.binding < b.binding; });
    return std::move(result_);
  }

 private:
  void resolve_spec_constants() {
    for (const uint32_t id : module_.spec_constants()) {
      if (const std::optional<uint32_t> spec_id = module_.decoration(id, dec_spec_id)) {
        const Definition& constant = module_.definition(id);
        if (constant.op == op_spec_constant && constant.operands.size() != 3) {
          fail("specialisation constant " + std::to_string(*spec_id) + " is not 32 bits wide");
        }
        add_spec_constant(*spec_id, module_.constant_value(id));
      }
    }
    std::sort(result_.spec_constants.begin(), result_.spec_constants.end(),
              [](const SpecConstantInfo& a, const SpecConstantInfo& b) { return a.id < b.id; });
  }

  void add_spec_constant(uint32_t spec_id, uint32_t value) {
    for (SpecConstantInfo& known : result_.spec_constants) {
      if (known.id == spec_id) {
        known.ambiguous = known.ambiguous || known.default_value != value;
        return;
      }
    }
    result_.spec_constants.push_back({spec_id, value});
  }

  // The value that an array is sized by: of the constants given, and computed from them (OpSpecConstantOp). 1 for what
  // is no such constant, or is computed by an operation that no array needs.
  uint64_t size_value(uint32_t id) const {
    int steps = 0;
    return size_value(id, steps);
  }

  uint64_t size_value(uint32_t id, int& steps) const {
    if (++steps > max_operation_steps) {
      fail("its constants are computed from each other in more than " + std::to_string(max_operation_steps) + " steps");
    }
    const Definition& constant = module_.definition_or_none(id);
    if (constant.op == op_spec_constant_op) {
      return computed_value(constant.operands, steps);
    }
    if (const std::optional<uint32_t> spec_id = module_.decoration(id, dec_spec_id)) {
      for (const SpecConstant& given : given_) {
        if (given.id == *spec_id) return given.value;
      }
    }
    return module_.constant_value(id);
  }

  uint64_t computed_value(Words operands, int& steps) const {
    const auto value = [&](size_t i) { return size_value(operand(operands, 3 + i), steps); };
    const auto word = [](uint64_t v) { return v & 0xFFFFFFFF; };
    switch (operand(operands, 2)) {
      case do_iadd: return word(value(0) + value(1));
      case do_isub: return word(value(0) - value(1));
      case do_imul: return saturating_product(value(0), value(1));  // an array as large as that fits nowhere
      case do_udiv: return value(1) == 0 ? 1 : value(0) / value(1);
      case do_umod: return value(1) == 0 ? 1 : value(0) % value(1);
      case do_select: return value(0) != 0 ? value(1) : value(2);
      case do_iequal: return value(0) == value(1) ? 1 : 0;
      case do_inotequal: return value(0) != value(1) ? 1 : 0;
      case do_ugreater: return value(0) > value(1) ? 1 : 0;
      case do_ugreater_equal: return value(0) >= value(1) ? 1 : 0;
      case do_uless: return value(0) < value(1) ? 1 : 0;
      case do_uless_equal: return value(0) <= value(1) ? 1 : 0;
      default: return 1;
    }
  }

  // GLSL's local_size_x_id makes a composite decorated as the workgroup's size, which overrides the execution mode.
  void resolve_local_size() {
    result_.local_size = module_.local_size();
    std::array<uint32_t, 3> ids = module_.local_size_ids();
    for (uint32_t id = 0; id < module_.id_bound(); ++id) {
      const Definition& d = module_.definition_or_none(id);
      if ((d.op == op_constant_composite || d.op == op_spec_constant_composite) &&
          module_.decoration(id, dec_builtin) == builtin_workgroup_size) {
        for (size_t axis = 0; axis < 3; ++axis) {
          ids[axis] = operand(d.operands, 2 + axis);
        }
      }
    }
    for (size_t axis = 0; axis < 3; ++axis) {
      if (const uint32_t id = ids[axis]; id != 0) {
        result_.local_size[axis] = module_.constant_value(id);
        if (module_.definition(id).op == op_spec_constant) {
          result_.local_size_ids[axis] = module_.decoration(id, dec_spec_id);
        }
      }
    }
  }

  void resolve_variable(uint32_t id) {
    const Definition& variable = module_.definition(id);
    const uint32_t storage = operand(variable.operands, 2);
    const Definition& pointer = module_.definition(operand(variable.operands, 0));
    if (pointer.op != op_type_pointer) {
      fail("variable " + std::to_string(id) + " is not a pointer");
    }
    const uint32_t type = operand(pointer.operands, 2);
    switch (storage) {
      case class_push_constant: result_.push_bytes = narrow(type_bytes(type, 0)); break;
      case class_workgroup: result_.shared_bytes = saturating_sum(result_.shared_bytes, type_bytes(type, 0)); break;
      case class_storage_buffer:
      case class_uniform:
      case class_uniform_constant: add_binding(id, storage, type); break;
      default: break;
    }
  }

  static uint32_t narrow(uint64_t bytes) {
    if (bytes > std::numeric_limits<uint32_t>::max()) {
      fail("its push-constant block is " + std::to_string(bytes) + " bytes long");
    }
    return static_cast<uint32_t>(bytes);
  }

  void add_binding(uint32_t id, uint32_t storage, uint32_t type) {
    const std::optional<uint32_t> set = module_.decoration(id, dec_descriptor_set);
    const std::optional<uint32_t> number = module_.decoration(id, dec_binding);
    ShaderBinding binding;
    binding.name = module_.name(id);
    if (!set || !number) {
      fail("variable \"" + binding.name + "\" has no set and binding");
    }
    binding.binding = *number;
    if (*set != 0) {
      fail("binding " + std::to_string(*number) + " is in set " + std::to_string(*set) + ", only set 0 is used");
    }
    if (result_.find_binding(*number) != nullptr) {
      fail("binding " + std::to_string(*number) + " is declared twice");
    }
    if (module_.definition(type).op == op_type_array) {
      binding.count = module_.constant_value(operand(module_.definition(type).operands, 2));
      type = operand(module_.definition(type).operands, 1);
    }
    if (binding.count == 0) {
      fail("binding " + std::to_string(*number) + " is an array of no elements");
    }
    binding.type = binding_type(*number, storage, type);
    binding.static_bytes = type_bytes(type, 0);
    binding.read_only = binding.type == BindingType::uniform_buffer || is_read_only(id, type);
    result_.bindings.push_back(binding);
  }

  BindingType binding_type(uint32_t number, uint32_t storage, uint32_t type) const {
    const Definition& d = module_.definition(type);
    if (storage == class_storage_buffer && d.op == op_type_struct) {
      return BindingType::storage_buffer;
    }
    if (storage == class_uniform && d.op == op_type_struct) {  // before SPIR-V 1.3, storage buffers were BufferBlocks
      return module_.decoration(type, dec_buffer_block) ? BindingType::storage_buffer : BindingType::uniform_buffer;
    }
    fail("binding " + std::to_string(number) + " is neither a storage buffer nor a uniform buffer");
  }

  bool is_read_only(uint32_t variable, uint32_t type) const {
    if (module_.decoration(variable, dec_non_writable)) {
      return true;
    }
    const size_t members = module_.definition(type).operands.size() - 1;
    for (uint32_t m = 0; m < members; ++m) {
      if (!module_.member_decoration(type, m, dec_non_writable)) {
        return false;
      }
    }
    return members > 0;
  }

  // Bytes of a type by its explicit layout where it has one; a run-time array counts nothing.
  uint64_t type_bytes(uint32_t id, int depth) const {
    if (depth > max_type_depth) {
      fail("its types are nested deeper than " + std::to_string(max_type_depth));
    }
    const Definition& type = module_.definition(id);
    switch (type.op) {
      case op_type_bool: return 4;
      case op_type_int:
      case op_type_float: return operand(type.operands, 1) / 8;
      case op_type_vector:
        return saturating_product(operand(type.operands, 2), type_bytes(operand(type.operands, 1), depth + 1));
      case op_type_matrix:
        return saturating_product(operand(type.operands, 2), type_bytes(operand(type.operands, 1), depth + 1));
      case op_type_array: return array_bytes(id, type, depth);
      case op_type_struct: return struct_bytes(id, type, depth);
      default: return 0;
    }
  }

  uint64_t array_bytes(uint32_t id, const Definition& type, int depth) const {
    const uint64_t count = size_value(operand(type.operands, 2));
    const std::optional<uint32_t> stride = module_.decoration(id, dec_array_stride);
    return saturating_product(count, stride ? *stride : type_bytes(operand(type.operands, 1), depth + 1));
  }

  uint64_t struct_bytes(uint32_t id, const Definition& type, int depth) const {
    uint64_t end = 0;
    for (uint32_t m = 0; m + 1 < type.operands.size(); ++m) {
      const uint32_t member = type.operands[m + 1];
      const std::optional<uint32_t> offset = module_.member_decoration(id, m, dec_offset);
      uint64_t bytes = type_bytes(member, depth + 1);
      if (const std::optional<uint32_t> stride = module_.member_decoration(id, m, dec_matrix_stride);
          stride && module_.definition(member).op == op_type_matrix) {
        bytes = saturating_product(operand(module_.definition(member).operands, 2), *stride);
      }
      end = std::max(end, saturating_sum(offset ? *offset : end, bytes));
    }
    return end;
  }

  Module module_;
  std::span<const SpecConstant> given_;
  ShaderReflection result_;
};

}  // namespace

std::string_view to_string(BindingType type) {
  return type == BindingType::storage_buffer ? "storage buffer" : "uniform buffer";
}

const ShaderBinding* ShaderReflection::find_binding(uint32_t binding) const {
  const auto found =
      std::find_if(bindings.begin(), bindings.end(), [&](const ShaderBinding& b) { return b.binding == binding; });
  return found == bindings.end() ? nullptr : &*found;
}

const SpecConstantInfo* ShaderReflection::find_spec_constant(uint32_t id) const {
  const auto found =
      std::find_if(spec_constants.begin(), spec_constants.end(), [&](const SpecConstantInfo& c) { return c.id == id; });
  return found == spec_constants.end() ? nullptr : &*found;
}

ShaderReflection reflect(std::span<const uint32_t> words, std::span<const SpecConstant> constants) {
  return Reflector(words, constants).run();
}

}  // namespace canopy::vk
