// The AOT stage after import: graph optimization and kernel formation. Needs no device and asks none.
// Throws error{unsupported, invalid_model} where a model holds what kernels cannot express, error{io} where a dump
// cannot be written.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "aot/kernels/formation.hpp"
#include "aot/passes/quantize_weights.hpp"
#include "ir/program.hpp"

namespace kiln {

struct compile_options {
  std::optional<element_type> precision;     // f16 or bf16: what the model's f32 becomes inside
  bool int4_weights = false;                 // quantize constant weights of products (aot/passes/quantize_weights.hpp)
  quantization_report* quantized = nullptr;  // where what that did is counted; may be null
  std::filesystem::path dump_dir;            // where the program's text goes after every pass; empty: nowhere
};

// Every graph pass, in the order that pipeline.cpp shows.
void optimize(program& p, const compile_options& options = {});

// optimize, record_input_ranges, form_kernels into MLIR bytecode.
program compile(program imported, const compile_options& options = {}, std::vector<formed_kernel>* formed = nullptr);

}  // namespace kiln
