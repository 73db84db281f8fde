#include "mlir_bridge/kernel/kernel_bytecode.hpp"

#include <unordered_map>

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir_bridge/dialect/convert.hpp"
#include "mlir_bridge/dialect/version.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

#include "ir/error.hpp"
#include "ir/ops/structure.hpp"

namespace kiln {
namespace {

// Version of MLIR's container format. Fixed, so that a newer LLVM writes the same bytes.
constexpr std::int64_t bytecode_format = 6;

// A small context for one call, because kernels are written and printed without a compiler_context.
struct dialect_context {
  dialect_context() : context(mlir::MLIRContext::Threading::DISABLED) {
    context.loadDialect<dialect::KilnDialect>();
    route_diagnostics(context);
  }
  mlir::MLIRContext context;
};

std::vector<std::byte> to_bytes(mlir::ModuleOp module) {
  mlir::BytecodeWriterConfig config("kiln");
  config.setDesiredBytecodeVersion(bytecode_format);
  config.setDialectVersion<dialect::KilnDialect>(dialect::make_version(dialect::needed_version(module)));
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (failed(mlir::writeBytecodeToFile(module, stream, config)))
    throw error(error_kind::internal, "MLIR does not write its bytecode format " + std::to_string(bytecode_format));
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<shape> types_of(const std::vector<value>& values) {
  std::vector<shape> types;
  for (value v : values) types.push_back(v.type());
  return types;
}

void emit_instruction(mlir::OpBuilder& builder, const instruction& from, std::map<value, mlir::Value>& made) {
  if (from.op().is<parameter>()) return;
  if (!from.bodies().empty())
    throw error(error_kind::unsupported, "'" + from.op().str() + "' cannot stand inside a kernel");
  auto* producer = const_cast<instruction*>(&from);
  if (const literal* data = module::constant({producer, 0})) {
    made[{producer, 0}] =
        dialect::ConstantOp::create(builder, builder.getUnknownLoc(), dialect::to_splat(builder.getContext(), *data));
    return;
  }
  llvm::SmallVector<mlir::Value> inputs;
  for (value input : from.inputs()) inputs.push_back(made.at(input));
  mlir::Operation* op = dialect::create_operation(builder, from.op(), inputs, from.outputs());
  for (std::uint32_t i = 0; i < op->getNumResults(); ++i) made[{producer, i}] = op->getResult(i);
}

}  // namespace

int dialect_version() { return static_cast<int>(dialect::current_version); }

std::vector<std::byte> write_kernel(const module& fusion, std::string_view symbol) {
  dialect_context owner;
  mlir::MLIRContext* context = &owner.context;
  mlir::OpBuilder builder(context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToStart(module->getBody());

  auto tensor_types = [&](const std::vector<value>& values) {
    llvm::SmallVector<mlir::Type> types;
    for (const shape& type : types_of(values)) types.push_back(dialect::to_mlir_type(context, type));
    return types;
  };
  std::vector<value> parameters = fusion.parameters();
  auto kernel = dialect::KernelOp::create(
      builder, builder.getUnknownLoc(), builder.getStringAttr(symbol),
      mlir::TypeAttr::get(builder.getFunctionType(tensor_types(parameters), tensor_types(fusion.outputs()))),
      mlir::ArrayAttr(), mlir::ArrayAttr());
  mlir::Block* body = builder.createBlock(&kernel.getBody());
  std::map<value, mlir::Value> made;
  for (value p : parameters)
    made[p] = body->addArgument(dialect::to_mlir_type(context, p.type()), builder.getUnknownLoc());
  for (const instruction& i : fusion.instructions()) emit_instruction(builder, i, made);
  llvm::SmallVector<mlir::Value> outputs;
  for (value output : fusion.outputs()) outputs.push_back(made.at(output));
  dialect::ReturnOp::create(builder, builder.getUnknownLoc(), outputs);

  diagnostic_capture capture;
  if (failed(mlir::verify(*module)))
    throw error(error_kind::invalid_model, "kernel '" + std::string(symbol) + "': " + capture.text());
  return to_bytes(*module);
}

std::string print_kernel(std::span<const std::byte> bytecode) {
  dialect_context owner;
  mlir::OwningOpRef<mlir::ModuleOp> module = read_kernel(owner.context, bytecode);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->getBody()->front().print(stream);
  return text + "\n";
}

std::vector<std::byte> parse_kernel_text(std::string_view text) {
  dialect_context owner;
  diagnostic_capture capture;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&owner.context));
  if (!module) throw error(error_kind::corrupted, "the kernel's text cannot be read: " + capture.text());
  mlir::Location nowhere = mlir::UnknownLoc::get(&owner.context);
  module->walk([&](mlir::Operation* op) {
    op->setLoc(nowhere);
    for (mlir::Region& region : op->getRegions())
      for (mlir::Block& block : region)
        for (mlir::BlockArgument argument : block.getArguments()) argument.setLoc(nowhere);
  });
  std::vector<std::byte> bytes = to_bytes(*module);
  // Checks that there is exactly one kernel and nothing else.
  read_kernel(owner.context, bytes);
  return bytes;
}

}  // namespace kiln
