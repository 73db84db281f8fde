#include "mlir_bridge/kernel/portable_kernel.hpp"

#include "mlir_bridge/dialect/convert.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

namespace kiln {

portable_kernel::portable_kernel(std::unique_ptr<implementation> impl) : impl_(std::move(impl)) {}
portable_kernel::portable_kernel(portable_kernel&&) noexcept = default;
portable_kernel& portable_kernel::operator=(portable_kernel&&) noexcept = default;
portable_kernel::~portable_kernel() = default;

portable_kernel portable_kernel::parse(const compiler_context& context, std::span<const std::byte> bytecode) {
  return portable_kernel(
      std::make_unique<implementation>(implementation{context.impl(), read_kernel(context.impl()->context, bytecode)}));
}

portable_kernel portable_kernel::clone() const {
  return portable_kernel(std::make_unique<implementation>(implementation{impl_->context, impl_->module.get().clone()}));
}

std::string portable_kernel::symbol() const { return impl_->kernel().getSymName().str(); }
std::vector<shape> portable_kernel::input_shapes() const {
  return dialect::to_shapes(impl_->kernel().getArgumentTypes());
}
std::vector<shape> portable_kernel::output_shapes() const {
  return dialect::to_shapes(impl_->kernel().getResultTypes());
}

std::string portable_kernel::print() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  impl_->kernel().print(stream);
  return text + "\n";
}

}  // namespace kiln
