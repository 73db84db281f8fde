#include "ir/ops/structure.hpp"
#include "mlir_bridge/dialect/convert.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

namespace kiln {

std::unique_ptr<module> to_fusion(const portable_kernel& kernel) {
  dialect::KernelOp from = kernel.impl().kernel();
  auto fusion = std::make_unique<module>(kernel.symbol());
  llvm::DenseMap<mlir::Value, value> made;
  for (mlir::BlockArgument argument : from.getBody().getArguments())
    made[argument] =
        fusion->add_parameter("input" + std::to_string(argument.getArgNumber()), dialect::to_shape(argument.getType()));

  std::vector<value> outputs;
  std::vector<std::string> names;
  for (mlir::Operation& op : from.getBody().front()) {
    std::vector<value> inputs;
    for (mlir::Value input : op.getOperands()) inputs.push_back(made.at(input));
    if (llvm::isa<dialect::ReturnOp>(op)) {
      for (std::size_t i = 0; i < inputs.size(); ++i) names.push_back("output" + std::to_string(i));
      outputs = std::move(inputs);
    } else {
      // Append the constant here; add_constant would move it to the front.
      auto constant_op = llvm::dyn_cast<dialect::ConstantOp>(op);
      value first = constant_op ? fusion->add(constant{dialect::to_literal(constant_op)}, {})
                                : fusion->add(dialect::to_operation(&op), std::move(inputs));
      for (std::uint32_t i = 0; i < op.getNumResults(); ++i) made[op.getResult(i)] = {first.producer, i};
    }
  }
  fusion->set_outputs(std::move(outputs), std::move(names));
  return fusion;
}

}  // namespace kiln
