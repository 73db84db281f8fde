#include "test/compat/golden_kernels.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "ir/ops/all.hpp"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Parser/Parser.h"
#include "mlir_bridge/dialect/version.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"
#include "test/mlir_bridge/cpu_contraction/joined.hpp"
#include "test/mlir_bridge/kernel/sample_fusions.hpp"

namespace kiln::test {
namespace {

// Version 1: reduce says `mode`, normalize has no `centered`.
constexpr const char* version_1_normalize_reduce = R"(
"kiln.kernel"() ({
^bb0(%x: tensor<?x7xf32, #kiln.dims<["batch", "7"]>>, %scale: tensor<7xf32>):
  %normal = "kiln.normalize"(%x) {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<?x7xf32, #kiln.dims<["batch", "7"]>>) -> tensor<?x7xf32, #kiln.dims<["batch", "7"]>>
  %wide = "kiln.broadcast"(%scale) : (tensor<7xf32>) -> tensor<?x7xf32, #kiln.dims<["batch", "7"]>>
  %scaled = "kiln.elementwise"(%normal, %wide) {function = "mul"} : (tensor<?x7xf32, #kiln.dims<["batch", "7"]>>, tensor<?x7xf32, #kiln.dims<["batch", "7"]>>) -> tensor<?x7xf32, #kiln.dims<["batch", "7"]>>
  %top = "kiln.reduce"(%scaled) {axes = array<i64: 1>, keep_dims = false, mode = "max"} : (tensor<?x7xf32, #kiln.dims<["batch", "7"]>>) -> tensor<?xf32, #kiln.dims<["batch"]>>
  "kiln.return"(%top) : (tensor<?xf32, #kiln.dims<["batch"]>>) -> ()
}) {sym_name = "normalize_reduce", function_type = (tensor<?x7xf32, #kiln.dims<["batch", "7"]>>, tensor<7xf32>) -> tensor<?xf32, #kiln.dims<["batch"]>>} : () -> ()
)";

constexpr const char* version_1_mean = R"(
"kiln.kernel"() ({
^bb0(%x: tensor<3x5x2xf16>):
  %mean = "kiln.reduce"(%x) {axes = array<i64: 0, 2>, keep_dims = true, mode = "mean"} : (tensor<3x5x2xf16>) -> tensor<1x5x1xf16>
  "kiln.return"(%mean) : (tensor<1x5x1xf16>) -> ()
}) {sym_name = "mean", function_type = (tensor<3x5x2xf16>) -> tensor<1x5x1xf16>} : () -> ()
)";

// One output for each scalar function.
std::unique_ptr<module> all_scalar_functions() {
  auto m = std::make_unique<module>("scalar_functions");
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (const sample& s : elementwise_samples()) {
    std::vector<value> inputs;
    for (const shape& type : s.inputs) inputs.push_back(m->add_parameter("input", type));
    outputs.push_back(m->add(s.op, inputs));
    names.emplace_back(s.op.name());
  }
  m->set_outputs(outputs, names);
  return m;
}

// A depthwise convolution, a bias, and the normalization of the channels.
std::unique_ptr<module> normalized_window(bool centered) {
  auto m = std::make_unique<module>("normalized_window");
  const convolution op{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 8, tensor_layout::channels_last};
  value image = m->add_parameter("x", {element_type::f32, {1, 3, 4, 8}}),
        weights = m->add_parameter("w", {element_type::f32, {3, 3, 1, 8}}),
        bias = m->add_parameter("b", {element_type::f32, {8}});
  value sums = m->add(elementwise{scalar_function::add},
                      {m->add(op, {image, weights}), m->add(broadcast{image.type().dims}, {bias})});
  m->set_outputs({m->add(normalize{{3}, 1e-5, centered}, {sums})}, {"y"});
  return m;
}

// Those that this Kiln labels with the version.
std::map<std::string, std::vector<std::byte>> written_kernels(std::uint64_t version) {
  mlir::MLIRContext context;
  context.loadDialect<dialect::KilnDialect>();
  route_diagnostics(context);
  std::map<std::string, std::vector<std::byte>> kernels;
  auto add = [&](const std::string& name, const module& fusion) {
    auto bytes = write_kernel(fusion, name);
    if (dialect::needed_version(*read_kernel(context, bytes)) == version) kernels.emplace(name, std::move(bytes));
  };
  std::map<std::string_view, int> count;
  for (const sample& s : operator_samples())
    add(std::string(s.op.name()) + "_" + std::to_string(++count[s.op.name()]), *fusion_of(s));
  add("scalar_functions", *all_scalar_functions());
  add("dot_bias_scale_relu", *symbolic_dot_fusion());
  for (const bool centered : {true, false})
    add(centered ? "convolution_normalize" : "convolution_rms", *normalized_window(centered));
  add("normalize_dot_dot", *joined_product(2, 8, 6, joined::both));
  add("cache_update_cache_update", *joined_caches());
  return kernels;
}

nlohmann::json number(element_type type, const literal& data, std::int64_t i) {
  if (!is_float(type)) return data.at_int(i);
  double v = data.at(i);
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}

}  // namespace

std::vector<std::byte> bytecode_of_version(const std::string& text, std::uint64_t version) {
  mlir::MLIRContext context;
  context.loadDialect<dialect::KilnDialect>();
  route_diagnostics(context);
  diagnostic_capture capture;
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!parsed) throw std::runtime_error("golden text: " + capture.text());
  mlir::BytecodeWriterConfig config("kiln");
  config.setDesiredBytecodeVersion(6);
  config.setDialectVersion<dialect::KilnDialect>(dialect::make_version(version));
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (failed(mlir::writeBytecodeToFile(*parsed, stream, config))) throw std::runtime_error("golden text: not written");
  auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

std::map<std::string, std::vector<std::byte>> golden_kernels(int version) {
  if (version >= 3 && version <= dialect_version()) return written_kernels(static_cast<std::uint64_t>(version));
  if (version == 1)
    return {{"mean", bytecode_of_version(version_1_mean, 1)},
            {"normalize_reduce", bytecode_of_version(version_1_normalize_reduce, 1)}};
  throw std::runtime_error("golden kernels of version " + std::to_string(version) +
                           " are frozen: they can be read, not written");
}

std::vector<shape> golden_input_shapes(const std::vector<shape>& declared) {
  std::vector<shape> shapes;
  for (const shape& type : declared) shapes.push_back(type.substitute({{"batch", 3}}));
  return shapes;
}

std::string to_json(const literal& data) {
  nlohmann::json values = nlohmann::json::array();
  for (std::int64_t i = 0; i < data.type().element_count(); ++i) values.push_back(number(data.type().type, data, i));
  return nlohmann::json{
      {"type", std::string(name(data.type().type))}, {"dims", data.type().static_dims()}, {"values", values}}
      .dump();
}

}  // namespace kiln::test
