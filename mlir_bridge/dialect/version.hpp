// The version of the `kiln` dialect, which every kernel's bytecode carries, and how older kernels become current ones.
//
//   1  an internal pre-release, never shipped: `kiln.reduce` called its kind `mode`, `kiln.normalize` had no
//      `centered`. It stays readable, so that the upgrade between versions is tested with files (test/compat/v1).
//   2  the first release.
//   3  kiln.attention.
//   4  kiln.segment_sum.
//   5  kiln.bit_cast; tensors of f8E4M3FNUZ, f8E5M2FNUZ, f8E8M0FNU, f4E2M1FN, i2 and ui2.
//   6  kiln.cache_update.
//   7  kiln.normalize of the result of a depthwise kiln.convolution in the same kernel.
//   8  kiln.cache_update of one layer of a cache.
//   9  kernels with inner anchors (mlir_bridge/kinds/kind.hpp): several of kiln.dot, kiln.normalize, kiln.cache_update.
//  10  kiln.dot that may round its left operand (left_bits).
//  11  kiln.dot of floats of 8 bits.
//
// A kernel is labelled with the oldest version from 3 on that has all of its operations, element types and combinations
// of operations. So an older Kiln reads every kernel that it can compile, and a kernel that does not use what is new
// keeps its bytes and its place in every cache.
//
// To change the dialect: raise current_version, add a row to `introductions` for each new operation and the rows that
// lift the last version to the new one (version.cpp), and add golden files of the new version to test/compat. Files of
// older versions stay and must load for ever.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mlir {
class DialectVersion;
class ModuleOp;
}  // namespace mlir

namespace kiln::dialect {

class KilnDialect;

inline constexpr std::uint64_t current_version = 11;

// Operations introduced after version 3.
struct introduction {
  std::uint64_t version;
  std::string_view operation;
};
inline constexpr introduction introductions[]{{4, "kiln.segment_sum"}, {5, "kiln.bit_cast"}, {6, "kiln.cache_update"}};

// Part of every diagnostic about a version above current_version. Readers search for it to distinguish a newer file
// from a corrupted one.
inline constexpr const char* newer_mark = "was written by a newer Kiln";

// The diagnostic about a kernel of the version `number`, which is above current_version.
inline std::string newer_message(std::uint64_t number) {
  return "the kernel " + std::string(newer_mark) + ": it needs version " + std::to_string(number) +
         " of the kernel dialect and this Kiln knows versions up to " + std::to_string(current_version);
}

// Returns the version with which a kernel of the current form is labelled.
std::uint64_t needed_version(mlir::ModuleOp module);

// Returns the argument of BytecodeWriterConfig::setDialectVersion.
std::unique_ptr<mlir::DialectVersion> make_version(std::uint64_t number);

// Registers reading and writing of the version and of #kiln.dims, and the upgrades from older versions.
void add_bytecode_interface(KilnDialect& dialect);

}  // namespace kiln::dialect
