// onnx_import_check MODEL.onnx FOLDER [NAME=VALUE or NAME=MIN:MAX...]: imports the model, runs it through the reference
// on FOLDER/input_N.pb and writes FOLDER/kiln_output_N.pb, the layout of ONNX's own test data. See
// test/long/import_models.py.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "aot/onnx/import.hpp"
#include "aot/onnx/tensors.hpp"
#include "ir/bind_shapes.hpp"
#include "ir/error.hpp"

namespace {

using namespace kiln;

std::vector<literal> read_inputs(const std::filesystem::path& folder, std::size_t count) {
  std::vector<literal> inputs;
  for (std::size_t i = 0; i < count; ++i) {
    std::ifstream file(folder / ("input_" + std::to_string(i) + ".pb"), std::ios::binary);
    onnx::TensorProto proto;
    if (!proto.ParseFromIstream(&file)) throw error(error_kind::missing_file, "input_" + std::to_string(i) + ".pb");
    onnx_import::external_files none{{}};
    inputs.push_back(onnx_import::take_tensor(proto, none, "input"));
  }
  return inputs;
}

void write_output(const std::filesystem::path& path, const literal& data) {
  onnx::TensorProto proto;
  // The only output types in models of the test set.
  proto.set_data_type(data.type().type == element_type::f16   ? onnx::TensorProto::FLOAT16
                      : data.type().type == element_type::i64 ? onnx::TensorProto::INT64
                                                              : onnx::TensorProto::FLOAT);
  for (auto d : data.type().static_dims()) proto.add_dims(d);
  proto.set_raw_data(data.bytes().data(), data.bytes().size());
  std::ofstream file(path, std::ios::binary);
  if (!proto.SerializeToOstream(&file)) throw error(error_kind::io, "cannot write " + path.string());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return std::cerr << "usage: onnx_import_check MODEL.onnx FOLDER [DIM...]\n", 2;
  try {
    import_options options;
    for (int i = 3; i < count; ++i) options.dims.insert(parse_dim_spec(arguments[i]));
    program p = import_onnx(std::filesystem::path(arguments[1]), options);
    auto inputs = read_inputs(arguments[2], p.main().parameters().size());
    std::vector<given_shape> shapes;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      shapes.push_back({std::to_string(i), p.main().parameters()[i].type(), inputs[i].type()});
    dim_bindings bindings = bind_shapes(shapes);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      bindings.merge(bind_values(p.symbols, module::parameter_name(p.main().parameters()[i]), inputs[i]));
    auto outputs = evaluate(p.bind(bindings).main(), inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      write_output(std::filesystem::path(arguments[2]) / ("kiln_output_" + std::to_string(i) + ".pb"), outputs[i]);
  } catch (const error& e) {
    return std::cerr << e.what() << "\n", exit_code(e.kind());
  }
}
