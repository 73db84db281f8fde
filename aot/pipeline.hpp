// The AOT stage after import: graph optimization and kernel formation. It does not need a device.
// Throws error{unsupported, invalid_model} for a model that kernels cannot express, and error{io} if a dump cannot be
// written.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aot/caches_in_place.hpp"
#include "aot/kernels/boundaries.hpp"
#include "aot/kernels/formation.hpp"
#include "aot/passes/quantize_weights.hpp"
#include "ir/program.hpp"

namespace kiln {

class rewrite_log;

struct compile_options {
  // f16 or bf16: the element type that replaces the model's f32 inside the program.
  std::optional<element_type> precision;
  // Quantize constant weights of products (aot/passes/quantize_weights.hpp).
  bool int4_weights = false;
  // Receives the quantization counts; may be null.
  quantization_report* quantized = nullptr;
  // Folder for the program's text after every pass; empty: no dumps.
  std::filesystem::path dump_dir;
  // Names of passes to skip; see disableable_passes(). An unknown name throws error{usage}.
  std::vector<std::string> disabled;
  // The caches of a decoder, its output of logits and its input of ids, and what receives the program that updates the
  // caches in place; may be null.
  std::vector<cache_port> caches;
  std::string logits, ids;
  std::optional<program>* steps = nullptr;
  // Receives the rewrites; may be null.
  rewrite_log* log = nullptr;
  // Receives the reasons why neighbouring operations are in different kernels; may be null.
  std::vector<kernel_boundary>* boundaries = nullptr;
};

// The passes that compile_options::disabled may name, sorted.
std::vector<std::string> disableable_passes();

// Throws error{usage} for a name that disableable_passes() lacks, with the nearest valid name.
void check_disabled_passes(std::span<const std::string> names);

// Runs every graph pass, in the order shown in pipeline.cpp.
void optimize(program& p, const compile_options& options = {});

// Runs optimize, record_input_ranges, and form_kernels into MLIR bytecode.
program compile(program imported, const compile_options& options = {}, std::vector<formed_kernel>* formed = nullptr);

}  // namespace kiln
