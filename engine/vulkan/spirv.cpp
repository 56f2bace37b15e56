#include "engine/vulkan/spirv.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "engine/base/error.h"

namespace canopy::vk::spirv {

// What a compute shader's SPIR-V module declares: types, constants, variables and their decorations.

// The few opcodes and enumerants of SPIR-V 1.6 that matter here.
enum Opcode : uint32_t {
  op_name = 5,
  op_entry_point = 15,
  op_execution_mode = 16,
  op_capability = 17,
  op_type_bool = 20,
  op_type_int = 21,
  op_type_float = 22,
  op_type_vector = 23,
  op_type_matrix = 24,
  op_type_image = 25,
  op_type_sampled_image = 27,
  op_type_array = 28,
  op_type_runtime_array = 29,
  op_type_struct = 30,
  op_type_pointer = 32,
  op_constant_true = 41,
  op_constant_false = 42,
  op_constant = 43,
  op_constant_composite = 44,
  op_spec_constant_true = 48,
  op_spec_constant_false = 49,
  op_spec_constant = 50,
  op_spec_constant_composite = 51,
  op_spec_constant_op = 52,
  op_variable = 59,
  op_decorate = 71,
  op_member_decorate = 72,
  op_execution_mode_id = 331,
};
enum Decoration : uint32_t {
  dec_spec_id = 1,
  dec_block = 2,
  dec_buffer_block = 3,
  dec_array_stride = 6,
  dec_matrix_stride = 7,
  dec_builtin = 11,
  dec_non_writable = 24,
  dec_binding = 33,
  dec_descriptor_set = 34,
  dec_offset = 35,
};
enum StorageClass : uint32_t {
  class_uniform_constant = 0,
  class_uniform = 2,
  class_workgroup = 4,
  class_push_constant = 9,
  class_storage_buffer = 12,
};

using Words = std::span<const uint32_t>;

/// One definition: its opcode and all operands after the instruction word, result type and id included.
struct Definition {
  uint32_t op = 0;  // 0: not one that matters here
  Words operands;
};

/// Throws bad_input: "The SPIR-V module is not usable: <why>."
[[noreturn]] void fail(const std::string& why) {
  throw bad_input("The SPIR-V module is not usable: " + why + ".");
}

class Module {
 public:
  /// Reads every instruction. `words` must outlive the module. Throws bad_input if it is malformed or has no compute
  /// entry point.
  explicit Module(Words words);

  const std::string& entry_point() const { return entry_point_; }
  const std::vector<uint32_t>& capabilities() const { return capabilities_; }
  const std::vector<uint32_t>& variables() const { return variables_; }            // ids, as declared
  const std::vector<uint32_t>& spec_constants() const { return spec_constants_; }  // ids of scalars, as declared

  /// The workgroup's size as the entry point's execution mode gives it; ids of constants where those are not 0.
  const std::array<uint32_t, 3>& local_size() const { return local_size_; }
  const std::array<uint32_t, 3>& local_size_ids() const { return local_size_ids_; }

  uint32_t id_bound() const { return static_cast<uint32_t>(definitions_.size()); }
  /// Throws if the id is not defined.
  const Definition& definition(uint32_t id) const;
  /// With op 0 if the id is not defined.
  const Definition& definition_or_none(uint32_t id) const;
  /// The 32 bits of a scalar constant with its default; 1 for what is no such constant.
  uint32_t constant_value(uint32_t id) const;

  std::string name(uint32_t id) const;  // empty without one
  /// The decoration's operand, 0 if it has none.
  std::optional<uint32_t> decoration(uint32_t id, uint32_t which) const;
  std::optional<uint32_t> member_decoration(uint32_t type, uint32_t member, uint32_t which) const;

 private:
  void read_header(Words words);
  void define(uint32_t id, uint32_t op, Words operands);
  void read_instruction(uint32_t op, Words operands);
  void read_entry_point(Words operands);
  void read_execution_mode(Words operands);

  std::string entry_point_;
  uint32_t entry_id_ = 0;
  std::vector<uint32_t> capabilities_;
  std::array<uint32_t, 3> local_size_ = {1, 1, 1};
  std::array<uint32_t, 3> local_size_ids_{};
  std::vector<Definition> definitions_;  // by id
  std::vector<uint32_t> variables_;
  std::vector<uint32_t> spec_constants_;
  std::map<uint32_t, std::string> names_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> decorations_;                    // (id, decoration) -> operand
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> member_decorations_;  // (type, member, decoration)
};

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

/// The operand with this index; throws if the instruction has fewer.
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
