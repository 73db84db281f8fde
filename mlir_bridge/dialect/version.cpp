#include "mlir_bridge/dialect/version.hpp"

#include <algorithm>

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir_bridge/dialect/dialect.hpp"

namespace kiln::dialect {
namespace {

struct dialect_version final : mlir::DialectVersion {
  explicit dialect_version(std::uint64_t n) : number(n) {}
  std::uint64_t number;
};

void rename(mlir::Operation* op, llvm::StringRef from, llvm::StringRef to) {
  if (mlir::Attribute value = op->removeAttr(from)) op->setAttr(to, value);
}

// Rewrites operations called `operation` from version `from` to version `from` + 1. Sorted by `from`.
struct upgrade_step {
  std::uint64_t from;
  llvm::StringRef operation;
  void (*apply)(mlir::Operation* op);
};

constexpr upgrade_step upgrade_steps[] = {
    {1, "kiln.reduce", [](mlir::Operation* op) { rename(op, "mode", "kind"); }},
    {1, "kiln.normalize",
     [](mlir::Operation* op) { op->setAttr("centered", mlir::BoolAttr::get(op->getContext(), true)); }},
};

enum attribute_code : std::uint64_t { dims_code = 0 };

class bytecode_interface final : public mlir::BytecodeDialectInterface {
 public:
  explicit bytecode_interface(mlir::Dialect* dialect) : mlir::BytecodeDialectInterface(dialect) {}

  mlir::LogicalResult writeAttribute(mlir::Attribute attribute, mlir::DialectBytecodeWriter& writer) const override {
    auto dims = llvm::dyn_cast<DimsAttr>(attribute);
    if (!dims) return mlir::failure();
    writer.writeVarInt(dims_code);
    writer.writeList(dims.getDims(), [&](mlir::StringAttr text) { writer.writeOwnedString(text.getValue()); });
    return mlir::success();
  }

  mlir::Attribute readAttribute(mlir::DialectBytecodeReader& reader) const override {
    std::uint64_t code;
    llvm::SmallVector<mlir::StringAttr> dims;
    if (failed(reader.readVarInt(code))) return {};
    if (code != dims_code) return reader.emitError() << "kiln has no attribute " << code, mlir::Attribute();
    auto read = [&](mlir::StringAttr& text) -> mlir::LogicalResult {
      llvm::StringRef characters;
      if (failed(reader.readString(characters))) return mlir::failure();
      text = mlir::StringAttr::get(getContext(), characters);
      return mlir::success();
    };
    if (failed(reader.readList(dims, read))) return {};
    return DimsAttr::get(getContext(), dims);
  }

  // A caller may request an older version (BytecodeWriterConfig::setDialectVersion). The kernel must then use only
  // features of that version.
  void writeVersion(mlir::DialectBytecodeWriter& writer) const override {
    auto wanted = writer.getDialectVersion<KilnDialect>();
    writer.writeVarInt(succeeded(wanted) ? static_cast<const dialect_version*>(*wanted)->number : current_version);
  }

  std::unique_ptr<mlir::DialectVersion> readVersion(mlir::DialectBytecodeReader& reader) const override {
    std::uint64_t number;
    if (failed(reader.readVarInt(number))) return nullptr;
    if (number > current_version) {
      reader.emitError() << newer_message(number);
      return nullptr;
    }
    if (number == 0) return reader.emitError() << "version 0 of the kernel dialect does not exist", nullptr;
    return std::make_unique<dialect_version>(number);
  }

  mlir::LogicalResult upgradeFromVersion(mlir::Operation* top, const mlir::DialectVersion& version) const override {
    for (std::uint64_t from = static_cast<const dialect_version&>(version).number; from < current_version; ++from)
      top->walk([&](mlir::Operation* op) {
        for (const upgrade_step& step : upgrade_steps)
          if (step.from == from && op->getName().getStringRef() == step.operation) step.apply(op);
      });
    return mlir::success();
  }
};

// Returns true for element types that version 5 introduced.
bool is_of_version_5(mlir::Type type) {
  return mlir::isa<mlir::Float8E4M3FNUZType, mlir::Float8E5M2FNUZType, mlir::Float8E8M0FNUType, mlir::Float4E2M1FNType>(
             type) ||
         type.isInteger(2);
}

bool is_float_of_8_bits(mlir::Type type) {
  auto format = mlir::dyn_cast<mlir::FloatType>(type);
  return format && format.getWidth() == 8;
}

}  // namespace

std::uint64_t needed_version(mlir::ModuleOp module) {
  std::uint64_t needed = 3;
  bool convolves = false, normalizes = false;
  int joined = 0;
  module.walk([&](mlir::Operation* op) {
    const llvm::StringRef name = op->getName().getStringRef();
    joined += name == "kiln.dot" || name == "kiln.normalize" || name == "kiln.cache_update";
    convolves |= op->getName().getStringRef() == "kiln.convolution";
    normalizes |= op->getName().getStringRef() == "kiln.normalize";
    if (op->getName().getStringRef() == "kiln.cache_update" && op->getNumOperands() == 4)
      needed = std::max<std::uint64_t>(needed, 8);
    if (name == "kiln.dot" && op->hasAttr("left_bits")) needed = std::max<std::uint64_t>(needed, 10);
    if (name == "kiln.dot" && is_float_of_8_bits(mlir::getElementTypeOrSelf(op->getOperand(0).getType())))
      needed = std::max<std::uint64_t>(needed, 11);
    for (const introduction& i : introductions)
      if (op->getName().getStringRef() == llvm::StringRef(i.operation)) needed = std::max(needed, i.version);
    for (mlir::Type type : op->getOperandTypes())
      if (is_of_version_5(mlir::getElementTypeOrSelf(type))) needed = std::max<std::uint64_t>(needed, 5);
  });
  if (joined > 1) return std::max<std::uint64_t>(needed, 9);
  return convolves && normalizes ? std::max<std::uint64_t>(needed, 7) : needed;
}

std::unique_ptr<mlir::DialectVersion> make_version(std::uint64_t number) {
  return std::make_unique<dialect_version>(number);
}

void add_bytecode_interface(KilnDialect& dialect) { dialect.addInterfaces<bytecode_interface>(); }

}  // namespace kiln::dialect
