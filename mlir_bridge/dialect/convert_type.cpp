#include <array>

#include "ir/error.hpp"
#include "mlir_bridge/dialect/convert.hpp"

namespace kiln::dialect {
namespace {

struct type_row {
  element_type type;
  mlir::Type (*make)(mlir::MLIRContext*);
};

template <class FloatType>
mlir::Type make_float(mlir::MLIRContext* context) {
  return FloatType::get(context);
}

template <unsigned Width, mlir::IntegerType::SignednessSemantics Sign>
mlir::Type make_integer(mlir::MLIRContext* context) {
  return mlir::IntegerType::get(context, Width, Sign);
}

constexpr auto plain = mlir::IntegerType::Signless;
constexpr auto no_sign = mlir::IntegerType::Unsigned;

constexpr std::array<type_row, element_type_count> type_rows{{
    {element_type::f64, make_float<mlir::Float64Type>},
    {element_type::f32, make_float<mlir::Float32Type>},
    {element_type::f16, make_float<mlir::Float16Type>},
    {element_type::bf16, make_float<mlir::BFloat16Type>},
    {element_type::f8e4m3, make_float<mlir::Float8E4M3FNType>},
    {element_type::f8e5m2, make_float<mlir::Float8E5M2Type>},
    {element_type::i64, make_integer<64, plain>},
    {element_type::i32, make_integer<32, plain>},
    {element_type::i16, make_integer<16, plain>},
    {element_type::i8, make_integer<8, plain>},
    {element_type::i4, make_integer<4, plain>},
    {element_type::u64, make_integer<64, no_sign>},
    {element_type::u32, make_integer<32, no_sign>},
    {element_type::u16, make_integer<16, no_sign>},
    {element_type::u8, make_integer<8, no_sign>},
    {element_type::u4, make_integer<4, no_sign>},
    {element_type::boolean, make_integer<1, plain>},
    {element_type::f8e4m3fnuz, make_float<mlir::Float8E4M3FNUZType>},
    {element_type::f8e5m2fnuz, make_float<mlir::Float8E5M2FNUZType>},
    {element_type::f8e8m0, make_float<mlir::Float8E8M0FNUType>},
    {element_type::f4e2m1, make_float<mlir::Float4E2M1FNType>},
    {element_type::i2, make_integer<2, plain>},
    {element_type::u2, make_integer<2, no_sign>},
}};

std::string text(mlir::Type type) {
  std::string result;
  llvm::raw_string_ostream(result) << type;
  return result;
}

}  // namespace

mlir::Type to_mlir_type(mlir::MLIRContext* context, element_type type) {
  for (const type_row& row : type_rows)
    if (row.type == type) return row.make(context);
  throw error(error_kind::internal, "an element type without a row in mlir_bridge/dialect/convert_type.cpp");
}

element_type to_element_type(mlir::Type type) {
  for (const type_row& row : type_rows)
    if (row.make(type.getContext()) == type) return row.type;
  throw error(error_kind::unsupported, "a kernel cannot hold elements of type " + text(type));
}

mlir::RankedTensorType to_mlir_type(mlir::MLIRContext* context, const shape& type) {
  llvm::SmallVector<std::int64_t> sizes;
  llvm::SmallVector<mlir::StringAttr> dims;
  for (const dim& d : type.dims) {
    sizes.push_back(d.is_static() ? d.value() : mlir::ShapedType::kDynamic);
    dims.push_back(mlir::StringAttr::get(context, d.str()));
  }
  mlir::Attribute encoding = type.is_static() ? mlir::Attribute() : DimsAttr::get(context, dims);
  return mlir::RankedTensorType::get(sizes, to_mlir_type(context, type.type), encoding);
}

shape to_shape(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor) throw error(error_kind::unsupported, "a kernel works on ranked tensors, not on " + text(type));
  shape result{to_element_type(tensor.getElementType()), {}};
  if (tensor.hasStaticShape() && !tensor.getEncoding()) {
    result.dims.assign(tensor.getShape().begin(), tensor.getShape().end());
    return result;
  }
  auto encoding = llvm::dyn_cast_or_null<DimsAttr>(tensor.getEncoding());
  if (!encoding)
    throw error(error_kind::unsupported,
                "dimensions of " + text(type) + " have no names: a '?' needs a #kiln.dims encoding");
  for (mlir::StringAttr d : encoding.getDims()) result.dims.push_back(dim::parse(d.getValue()));
  return result;
}

std::vector<shape> to_shapes(mlir::TypeRange types) {
  std::vector<shape> shapes;
  for (mlir::Type type : types) shapes.push_back(to_shape(type));
  return shapes;
}

}  // namespace kiln::dialect
