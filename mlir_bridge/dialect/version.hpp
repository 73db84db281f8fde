// The version of the `kiln` dialect, which every kernel's bytecode carries, and how older kernels become current ones.
//
//   1  an internal pre-release, never shipped: `kiln.reduce` called its kind `mode`, `kiln.normalize` had no
//   `centered`. Kept so that
//      the way from one version to the next is exercised by files that exist (test/compat/v1).
//   2  the first release.
//   3  kiln.attention.
//
// To change the dialect: raise current_version, add the rows that lift the last version to the new one (version.cpp),
// and add golden files of the new version to test/compat. Files of older versions stay and must load for ever.
#pragma once

#include <cstdint>
#include <memory>

namespace mlir {
class DialectVersion;
}

namespace kiln::dialect {

class KilnDialect;

inline constexpr std::uint64_t current_version = 3;

// Part of every diagnostic about a version above current_version; how a reader tells "newer" from "broken".
inline constexpr const char* newer_mark = "was written by a newer Kiln";

// For BytecodeWriterConfig::setDialectVersion, to label bytecode as an older version (tests write their golden files
// so).
std::unique_ptr<mlir::DialectVersion> make_version(std::uint64_t number);

// Registers reading and writing of the version and of #kiln.dims, and the upgrade steps.
void add_bytecode_interface(KilnDialect& dialect);

}  // namespace kiln::dialect
