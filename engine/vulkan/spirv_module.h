#pragma once
// What a compute shader's SPIR-V module declares: types, constants, variables and their decorations. What follows from
// them is in spirv_reflect.h.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace canopy::vk::spirv {

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
[[noreturn]] void fail(const std::string& why);

/// The operand with this index; throws if the instruction has fewer.
uint32_t operand(Words operands, size_t i);

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

}  // namespace canopy::vk::spirv
