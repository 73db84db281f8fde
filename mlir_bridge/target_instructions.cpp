#include "mlir_bridge/target_instructions.hpp"

#include "mlir_bridge/gpu/matrix_instruction.hpp"

namespace kiln {

std::vector<std::string> matrix_instructions_of(const target_row& target) {
  std::vector<std::string> list;
  for (element_type type : {element_type::f16, element_type::bf16, element_type::f32, element_type::i8})
    for (const gpu::matrix_instruction* i : gpu::find_matrix_instructions(target.gpu.matrix, type, false))
      list.push_back(std::string(name(type)) + " " + std::to_string(i->m) + "x" + std::to_string(i->n) + "x" +
                     std::to_string(i->k));
  return list;
}

}  // namespace kiln
