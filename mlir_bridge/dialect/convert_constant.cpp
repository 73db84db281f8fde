#include "ir/error.hpp"
#include "mlir_bridge/dialect/convert.hpp"

namespace kiln::dialect {
namespace {

// A splat takes one element in a file but all elements as a literal, so its size is limited.
constexpr std::size_t largest_literal = std::size_t{1} << 30;

unsigned element_bits(const mlir::DenseElementsAttr& data) { return data.getElementType().getIntOrFloatBitWidth(); }

}  // namespace

mlir::DenseElementsAttr to_splat(mlir::MLIRContext* context, const literal& data) {
  if (!data.splat())
    throw error(error_kind::unsupported, "a constant inside a kernel must have one value in every element; pass " +
                                             data.type().str() + " as an input of the kernel");
  mlir::RankedTensorType type = to_mlir_type(context, data.type());
  mlir::Type element = type.getElementType();
  unsigned bits = element.getIntOrFloatBitWidth();
  std::uint64_t raw = 0;
  std::memcpy(&raw, data.bytes().data(), std::min<std::size_t>(sizeof raw, (bits + 7) / 8));
  if (data.type().type == element_type::boolean) raw = raw != 0;
  llvm::APInt pattern = llvm::APInt(64, raw).trunc(bits);
  if (auto floating = llvm::dyn_cast<mlir::FloatType>(element))
    return mlir::DenseElementsAttr::get(type, llvm::APFloat(floating.getFloatSemantics(), pattern));
  return mlir::DenseElementsAttr::get(type, pattern);
}

literal to_literal(ConstantOp op) {
  auto data = llvm::cast<mlir::DenseElementsAttr>(op.getValue());
  shape type = to_shape(data.getType());
  llvm::APInt pattern = llvm::isa<mlir::FloatType>(data.getElementType())
                            ? data.getSplatValue<llvm::APFloat>().bitcastToAPInt()
                            : data.getSplatValue<llvm::APInt>();
  std::uint64_t raw = pattern.getZExtValue();
  unsigned bits = element_bits(data);
  // Repeat the element in all positions of the byte.
  if (bits == 2) raw |= raw << 2, bits = 4;
  if (bits == 4) raw |= raw << 4;
  std::size_t width = bits < 8 ? 1 : bits / 8;
  if (type.bytes() > largest_literal)
    throw error(error_kind::unsupported,
                "a constant of " + type.str() + " inside a kernel is too large to be unfolded");
  std::vector<std::byte> bytes(type.bytes());
  for (std::size_t at = 0; at < bytes.size(); at += width) std::memcpy(&bytes[at], &raw, width);
  return literal(std::move(type), std::move(bytes));
}

}  // namespace kiln::dialect
