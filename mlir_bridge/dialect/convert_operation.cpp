#include "ir/error.hpp"
#include "ir/ops/elementwise.hpp"
#include "mlir_bridge/dialect/convert.hpp"

namespace kiln::dialect {
namespace {

// --- attribute values, both ways; null where the result types say it already ---

struct attribute_writer {
  mlir::Builder& builder;
  mlir::Attribute operator()(bool v) { return builder.getBoolAttr(v); }
  mlir::Attribute operator()(std::int64_t v) { return builder.getI64IntegerAttr(v); }
  mlir::Attribute operator()(double v) { return builder.getF64FloatAttr(v); }
  mlir::Attribute operator()(const std::string& v) { return builder.getStringAttr(v); }
  mlir::Attribute operator()(const std::vector<std::int64_t>& v) { return builder.getDenseI64ArrayAttr(v); }
  mlir::Attribute operator()(const std::vector<double>& v) { return builder.getDenseF64ArrayAttr(v); }
  mlir::Attribute operator()(const std::vector<std::string>&) {
    throw error(error_kind::unsupported, "a list of strings cannot be an attribute of a kernel's operation");
  }
  mlir::Attribute operator()(element_type) { return {}; }
  mlir::Attribute operator()(const std::vector<dim>&) { return {}; }
};

// Overwrites the value of a field with the attribute of the kernel. The alternative that the field holds determines the
// required kind. Returns false if the kinds differ.
struct attribute_reader {
  mlir::Attribute from;
  std::span<const shape> results;
  bool operator()(bool& v) {
    return read<mlir::BoolAttr>(v, [](auto a) { return a.getValue(); });
  }
  bool operator()(std::int64_t& v) {
    return read<mlir::IntegerAttr>(v, [](auto a) { return a.getValue().getSExtValue(); }) &&
           llvm::cast<mlir::IntegerAttr>(from).getType().isSignlessInteger(64);
  }
  bool operator()(double& v) {
    return read<mlir::FloatAttr>(v, [](auto a) { return a.getValueAsDouble(); });
  }
  bool operator()(std::string& v) {
    return read<mlir::StringAttr>(v, [](auto a) { return a.getValue().str(); });
  }
  bool operator()(std::vector<std::int64_t>& v) {
    return read<mlir::DenseI64ArrayAttr>(v, [](auto a) { return a.asArrayRef().vec(); });
  }
  bool operator()(std::vector<double>& v) {
    return read<mlir::DenseF64ArrayAttr>(v, [](auto a) { return a.asArrayRef().vec(); });
  }
  bool operator()(std::vector<std::string>&) { return false; }
  bool operator()(element_type& v) { return v = results.front().type, true; }
  bool operator()(std::vector<dim>& v) { return v = results.front().dims, true; }

  template <class Attribute, class Value, class Get>
  bool read(Value& value, Get get) {
    auto typed = llvm::dyn_cast_or_null<Attribute>(from);
    if (typed) value = get(typed);
    return bool(typed);
  }
};

// Fields that an operation has as attributes only where they differ from their default, because the kernels of older
// versions have none.
struct optional_field {
  llvm::StringRef operation, field;
};
constexpr optional_field optional_fields[] = {{"dot", "left_bits"}};

bool said_by_results(const attribute& value) {
  return std::holds_alternative<element_type>(value) || std::holds_alternative<std::vector<dim>>(value);
}

}  // namespace

operation to_operation(mlir::Operation* op) { return to_operation(op, to_shapes(op->getResultTypes())); }

operation to_operation(mlir::Operation* op, std::span<const shape> results) {
  llvm::StringRef name = op->getName().stripDialect();
  if (name == ElementwiseOp::getOperationName().substr(sizeof("kiln")))
    if (auto function = op->getAttrOfType<mlir::StringAttr>("function")) name = function.getValue();
  attribute_list fields = make_operation(name, {}).attributes();
  for (const optional_field& optional : optional_fields)
    if (name == optional.operation && op->hasAttr(optional.field)) fields.emplace_back(optional.field, std::int64_t{0});
  std::size_t used = 0;
  for (auto& [field, value] : fields) {
    mlir::Attribute given = op->getAttr(field);
    if (!said_by_results(value)) ++used;
    if (results.empty() || !std::visit(attribute_reader{given, results}, value))
      throw error(error_kind::corrupted, "kiln." + name.str() +
                                             (given ? ": attribute '" + field + "' has a value of the wrong kind"
                                                    : " lacks the attribute '" + field + "'"));
    // Generators index with it.
    if (auto* axis = std::get_if<std::int64_t>(&value); axis && *axis < 0 && field == "axis")
      *axis += static_cast<std::int64_t>(op->getNumOperands() ? to_shape(op->getOperand(0).getType()).rank()
                                                              : results.front().rank());
  }
  if (op->getAttrs().size() != used)
    throw error(error_kind::corrupted, "kiln." + name.str() + " has an attribute that it does not know");
  return make_operation(name, fields);
}

mlir::Operation* create_operation(mlir::OpBuilder& builder, const operation& op, mlir::ValueRange inputs,
                                  std::span<const shape> outputs) {
  std::string name = op.is<elementwise>() ? ElementwiseOp::getOperationName().str() : "kiln." + std::string(op.name());
  if (!mlir::RegisteredOperationName::lookup(name, builder.getContext()))
    throw error(error_kind::unsupported,
                "'" + op.str() + "' cannot stand inside a kernel: the kernel dialect has no " + name);
  mlir::OperationState state(builder.getUnknownLoc(), name);
  state.addOperands(inputs);
  for (const shape& output : outputs) state.addTypes(to_mlir_type(builder.getContext(), output));
  for (const auto& [field, value] : op.attributes())
    if (mlir::Attribute attribute = std::visit(attribute_writer{builder}, value)) state.addAttribute(field, attribute);
  return builder.create(state);
}

mlir::LogicalResult check_shapes(mlir::Operation* op) {
  try {
    std::vector<shape> results = to_shapes(op->getResultTypes());
    std::vector<shape> inferred = to_operation(op, results).infer(to_shapes(op->getOperandTypes()));
    if (inferred.size() != results.size())
      return op->emitOpError() << "has " << results.size() << " results instead of " << inferred.size();
    for (std::size_t i = 0; i < results.size(); ++i)
      if (inferred[i] != results[i])
        return op->emitOpError() << "gives " << inferred[i].str() << ", its result type says " << results[i].str();
    return mlir::success();
  } catch (const std::exception& e) {
    return op->emitOpError() << "is malformed: " << e.what();
  }
}

}  // namespace kiln::dialect
