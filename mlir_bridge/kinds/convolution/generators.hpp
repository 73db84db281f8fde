// The generators of this folder and their tuning parameters (kinds/kind.hpp).
#pragma once

#include "ir/instruction.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

void emit_convolution(kernel_emitter& e);
void emit_open_convolution(kernel_emitter& e);
bool opens_convolution(const instruction& anchor);  // whether emit_open_convolution does it
void emit_transposed_convolution(kernel_emitter& e);
void emit_open_transposed_convolution(kernel_emitter& e);
bool opens_transposed_convolution(const instruction& anchor);  // whether emit_open_transposed_convolution does it
std::vector<candidate> convolution_space(kernel_emitter& e);
std::vector<candidate> transposed_convolution_space(kernel_emitter& e);

}  // namespace kiln::cpu

namespace kiln::gpu {

using namespace codegen;

void emit_convolution(kernel_emitter& e);
void emit_open_convolution(kernel_emitter& e);
bool opens_image(const instruction& anchor);          // true if channels and weights are static
void emit_transposed_convolution(kernel_emitter& e);  // also of open sizes
std::vector<candidate> convolution_space(kernel_emitter& e);
std::vector<candidate> transposed_convolution_space(kernel_emitter& e);

}  // namespace kiln::gpu
