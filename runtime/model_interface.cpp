#include "runtime/model_interface.hpp"

#include "ir/bind_shapes.hpp"
#include "ir/invalid_shape.hpp"
#include "ir/size_stages.hpp"

namespace kiln {
model_interface interface_of(const program& p) {
  model_interface result{{}, {}, p.symbols};
  const std::set<std::string> deciding = inputs_deciding_sizes(p);
  for (value v : p.main().parameters()) {
    const std::string& name = module::parameter_name(v);
    result.inputs.push_back({name, v.type(), decides_sizes(p.symbols, name) || deciding.contains(name)});
  }
  for (std::size_t i = 0; i < p.main().outputs().size(); ++i)
    result.outputs.push_back({p.main().output_names()[i], p.main().outputs()[i].type(), false});
  return result;
}

dim_bindings sizes_of_inputs(const model_interface& model, std::span<const given_input> inputs,
                             const dim_bindings& told) {
  if (inputs.size() != model.inputs.size())
    throw error(error_kind::usage, "inputs: the model has " + std::to_string(model.inputs.size()) + ", and " +
                                       std::to_string(inputs.size()) + " are given");
  std::vector<given_shape> shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const model_port& port = model.inputs[i];
    for (std::int64_t d : inputs[i].dims)
      if (d < 0)
        throw error(invalid_shape,
                    "input '" + port.name + "': a dimension is " + std::to_string(d) + ", and none may be negative");
    shapes.push_back({port.name, port.declared, {port.declared.type, {inputs[i].dims.begin(), inputs[i].dims.end()}}});
  }
  dim_bindings sizes = bind_shapes(shapes, told);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].data || !model.inputs[i].decides_sizes) continue;
    const shape& is = shapes[i].is;
    const std::span bytes(static_cast<const std::byte*>(inputs[i].data), is.bytes());
    add_sizes(sizes, bind_values(model.symbols, shapes[i].name, literal(is, {bytes.begin(), bytes.end()})),
              shapes[i].name);
  }
  return sizes;
}

std::map<std::string, literal> literals_of(const model_interface& model, std::span<const given_input> inputs) {
  std::map<std::string, literal> result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const model_port& port = model.inputs.at(i);
    if (!inputs[i].data || !port.decides_sizes) continue;
    const shape is{port.declared.type, {inputs[i].dims.begin(), inputs[i].dims.end()}};
    const std::span bytes(static_cast<const std::byte*>(inputs[i].data), is.bytes());
    result.emplace(port.name, literal(is, {bytes.begin(), bytes.end()}));
  }
  return result;
}

}  // namespace kiln
