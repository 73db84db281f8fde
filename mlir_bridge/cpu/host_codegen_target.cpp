#include "mlir_bridge/cpu/host_codegen_target.hpp"

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/cpu/pointwise.hpp"
#include "mlir_bridge/cpu/vector_functions.hpp"
#include "mlir_bridge/targets/target_table.hpp"

namespace kiln::cpu {
namespace {

// Opens a private function (begin, end, pointers...) for the stage. Its pointers are noalias, which those of the host
// ABI cannot be.
void open_stage(kernel_emitter& e) {
  auto& code = e.code;
  auto function = code.make<mlir::func::FuncOp>(
      e.current().symbol + "_body", code.builder.getFunctionType({code.index_type(), code.index_type()}, {}));
  function.setPrivate();
  code.builder.setInsertionPointToStart(function.addEntryBlock());
  e.set_function(function);
  e.set_items(function.getArgument(0), function.getArgument(1));
}

// Emits the exported function with the host ABI, which loads the pointers and calls the stage.
void close_stage(kernel_emitter& e) {
  auto& code = e.code;
  auto& builder = code.builder;
  auto i64 = builder.getI64Type();
  auto pointer_type = mlir::LLVM::LLVMPointerType::get(builder.getContext());
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(e.generated().getBody());
  auto exported =
      code.make<mlir::func::FuncOp>(e.current().symbol, builder.getFunctionType({pointer_type, i64, i64}, {}));
  builder.setInsertionPointToStart(exported.addEntryBlock());
  llvm::SmallVector<Value> operands{exported.getArgument(1), exported.getArgument(2)};
  for (std::size_t i = 0; i < e.arguments().size(); ++i) {
    Value slot = code.make<mlir::LLVM::GEPOp>(pointer_type, pointer_type, exported.getArgument(0),
                                              llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<std::int32_t>(i)});
    operands.push_back(code.make<mlir::LLVM::LoadOp>(pointer_type, slot));
  }
  code.make<mlir::func::CallOp>(e.function(), operands);
  code.make<mlir::func::ReturnOp>();
}

}  // namespace

bool has_multiply_add(const target_row& row) { return row.triple != x86_triple || row.vector_bits >= 256; }

const codegen_target& host_codegen_target(const target_row& row) {
  static constexpr codegen_target plain{.small_code = true,
                                        .reads_between = true,
                                        .open_stage = open_stage,
                                        .close_stage = close_stage,
                                        .pointwise_into = emit_pointwise_into,
                                        .vector_function = vector_function_without_multiply_add};
  static constexpr codegen_target fused = [] {
    codegen_target target = plain;
    target.vector_function = vector_function;
    return target;
  }();
  return has_multiply_add(row) ? fused : plain;
}

}  // namespace kiln::cpu
