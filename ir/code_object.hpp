// A kernel in the program: its payload, the payload's format and the target it was compiled for. Portable formats leave
// `target` empty; only native code objects can run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/hash.hpp"
#include "ir/operation.hpp"

namespace kiln {

enum class code_format : std::uint8_t { mlir_bytecode, amdgcnspirv, native };
template <>
struct enum_table<code_format> {
  static constexpr std::array<std::string_view, 3> names{"mlir_bytecode", "amdgcnspirv", "native"};
};

// The operation of an instruction that runs one kernel. `payload` is the hex content hash of the bytes in the program's
// kernel table: MLIR bytecode, SPIR-V, or (native) a native_kernel as ir/native_kernel.hpp serializes it.
// `types` and `dims` are the outputs' shapes, flattened: output i has type types[i] and ranks[i] dims.
struct code_object {
  std::string symbol;
  code_format format = code_format::mlir_bytecode;
  std::string payload;
  std::string target;  // empty unless native: "x86-64-v4", "gfx942", ...
  std::vector<std::string> types;
  std::vector<std::int64_t> ranks;
  std::vector<dim> dims;

  static code_object make(std::string symbol, code_format format, const content_hash& payload, std::string target,
                          const std::vector<shape>& outputs);

  std::string_view name() const { return "code_object"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("symbol", self.symbol);
    f("format", self.format);
    f("payload", self.payload);
    f("target", self.target);
    f("types", self.types);
    f("ranks", self.ranks);
    f("dims", self.dims);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  // Always throws, because kernels run on a device: error{not_native} for a portable format, error{internal} otherwise.
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

}  // namespace kiln
