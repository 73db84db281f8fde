#include <bit>
#include <unordered_map>

#include "ir/container/flat.hpp"
#include "ir/container/program_section.hpp"
#include "ir/ops/structure.hpp"

namespace kiln::container {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<schema::Dims> write_dims(FlatBufferBuilder& out, const std::vector<dim>& dims) {
  std::vector<std::int64_t> values;
  std::vector<Offset<schema::SymbolicDim>> symbolic;
  for (const dim& d : dims) {
    if (!d.is_static())
      symbolic.push_back(
          schema::CreateSymbolicDim(out, static_cast<std::uint32_t>(values.size()), out.CreateSharedString(d.str())));
    values.push_back(d.is_static() ? d.value() : 0);
  }
  auto list = out.CreateVector(values);
  return schema::CreateDims(
      out, list,
      symbolic.empty() ? Offset<flatbuffers::Vector<Offset<schema::SymbolicDim>>>() : out.CreateVector(symbolic));
}

// One overload for each alternative of kiln::attribute.
struct attribute_writer {
  FlatBufferBuilder& out;
  std::string_view name;

  template <class Table>
  Offset<schema::Attribute> finish(Offset<Table> value) const {
    auto label = out.CreateSharedString(name.data(), name.size());
    return schema::CreateAttribute(out, label, schema::AttributeValueTraits<Table>::enum_value, value.Union());
  }
  Offset<schema::Attribute> operator()(bool v) const { return finish(schema::CreateFlag(out, v)); }
  Offset<schema::Attribute> operator()(std::int64_t v) const { return finish(schema::CreateInteger(out, v)); }
  Offset<schema::Attribute> operator()(double v) const {
    return finish(schema::CreateReal(out, std::bit_cast<std::uint64_t>(v)));
  }
  Offset<schema::Attribute> operator()(const std::string& v) const {
    return finish(schema::CreateText(out, out.CreateSharedString(v)));
  }
  Offset<schema::Attribute> operator()(element_type v) const {
    auto type = kiln::name(v);
    return finish(schema::CreateType(out, out.CreateSharedString(type.data(), type.size())));
  }
  Offset<schema::Attribute> operator()(const std::vector<std::int64_t>& v) const {
    return finish(schema::CreateIntegers(out, out.CreateVector(v)));
  }
  Offset<schema::Attribute> operator()(const std::vector<double>& v) const {
    std::vector<std::uint64_t> bits;
    for (double d : v) bits.push_back(std::bit_cast<std::uint64_t>(d));
    return finish(schema::CreateReals(out, out.CreateVector(bits)));
  }
  Offset<schema::Attribute> operator()(const std::vector<std::string>& v) const {
    std::vector<Offset<flatbuffers::String>> texts;
    for (const std::string& s : v) texts.push_back(out.CreateSharedString(s));
    return finish(schema::CreateTexts(out, out.CreateVector(texts)));
  }
  Offset<schema::Attribute> operator()(const std::vector<dim>& v) const { return finish(write_dims(out, v)); }
};

class program_writer {
 public:
  program_writer(const program& p, const weight_collection& weights) : program_(p), weights_(weights) {
    for (const module& m : p.modules()) modules_.emplace(&m, static_cast<std::uint32_t>(modules_.size()));
  }

  std::vector<std::byte> run() {
    std::vector<Offset<schema::Module>> modules;
    for (const module& m : program_.modules()) modules.push_back(write(m));
    std::vector<Offset<schema::Symbol>> symbols;
    for (const auto& [name, range] : program_.symbols) {
      auto label = out_.CreateSharedString(name);
      symbols.push_back(schema::CreateSymbol(out_, label, range.min, range.max, out_.CreateVector(range.optimal)));
    }
    std::vector<Offset<schema::Entry>> metadata;
    for (const auto& [key, value] : program_.metadata) {
      auto label = out_.CreateSharedString(key);
      metadata.push_back(schema::CreateEntry(out_, label, out_.CreateString(value)));
    }
    std::vector<Offset<schema::Guard>> guards;
    for (const dim_guard& g : program_.guards) {
      auto a = out_.CreateString(g.a.str()), b = out_.CreateString(g.b.str()), why = out_.CreateString(g.why);
      guards.push_back(schema::CreateGuard(out_, a, b, why));
    }
    auto module_list = out_.CreateVector(modules);
    auto symbol_list = out_.CreateVector(symbols);
    auto metadata_list = out_.CreateVector(metadata);
    return finish(out_,
                  schema::CreateProgram(out_, module_list, symbol_list, metadata_list,
                                        guards.empty() ? 0 : out_.CreateVector(guards)),
                  program_identifier);
  }

 private:
  schema::Value write(value v) const { return {positions_.at(v.producer), v.index}; }

  Offset<schema::Instruction> write(const instruction& i) {
    std::vector<schema::Value> inputs;
    for (value v : i.inputs()) inputs.push_back(write(v));
    std::vector<std::uint32_t> bodies;
    for (const module* body : i.bodies()) bodies.push_back(modules_.at(body));
    std::vector<Offset<schema::Attribute>> attributes;
    Offset<schema::Constant> data;
    if (const auto* c = i.op().get_if<constant>()) {
      auto type = kiln::name(c->data.type().type);
      auto label = out_.CreateSharedString(type.data(), type.size());
      data = schema::CreateConstant(out_, weights_.index_of(c->data), label, write_dims(out_, c->data.type().dims));
    } else {
      for (const auto& [name, field] : i.op().attributes())
        attributes.push_back(std::visit(attribute_writer{out_, name}, field));
    }
    auto operation = out_.CreateSharedString(i.op().name().data(), i.op().name().size());
    auto attribute_list = out_.CreateVector(attributes);
    auto input_list = out_.CreateVectorOfStructs(inputs);
    auto body_list = out_.CreateVector(bodies);
    auto origin = out_.CreateSharedString(i.origin());
    return schema::CreateInstruction(out_, operation, attribute_list, input_list, body_list, origin, data);
  }

  Offset<schema::Module> write(const module& m) {
    positions_.clear();
    std::vector<Offset<schema::Instruction>> instructions;
    for (const instruction& i : m.instructions()) {
      instructions.push_back(write(i));
      positions_.emplace(&i, static_cast<std::uint32_t>(positions_.size()));
    }
    std::vector<Offset<schema::Output>> outputs;
    for (std::size_t i = 0; i < m.outputs().size(); ++i) {
      schema::Value v = write(m.outputs()[i]);
      auto label = out_.CreateSharedString(m.output_names()[i]);
      outputs.push_back(schema::CreateOutput(out_, label, &v));
    }
    auto name = out_.CreateSharedString(m.name());
    auto instruction_list = out_.CreateVector(instructions);
    auto output_list = out_.CreateVector(outputs);
    return schema::CreateModule(out_, name, instruction_list, output_list);
  }

  const program& program_;
  const weight_collection& weights_;
  FlatBufferBuilder out_;
  std::unordered_map<const module*, std::uint32_t> modules_;
  std::unordered_map<const instruction*, std::uint32_t> positions_;
};

}  // namespace

std::vector<std::byte> encode_program(const program& p, const weight_collection& weights) {
  return program_writer(p, weights).run();
}

}  // namespace kiln::container
