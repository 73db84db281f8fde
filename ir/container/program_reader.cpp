#include <bit>
#include <unordered_map>

#include "ir/bind_shapes.hpp"
#include "ir/container/flat.hpp"
#include "ir/container/program_limits.hpp"
#include "ir/container/program_section.hpp"
#include "ir/ops/choice.hpp"
#include "ir/ops/structure.hpp"

namespace kiln::container {
namespace {

[[noreturn]] void corrupted(const std::string& what) { throw error(error_kind::corrupted, what); }

template <class T>
std::size_t count(const flatbuffers::Vector<T>* list) {
  return list ? list->size() : 0;
}

class program_reader {
 public:
  program_reader(std::span<const std::byte> section, const tensor_source& tensors)
      : tensors_(tensors), budget_(section.size()) {
    stored_ = verified_root<schema::Program>(section, program_identifier, "program");
  }

  program run() {
    if (count(stored_->modules()) == 0) corrupted("the program has no main module");
    states_.assign(stored_->modules()->size(), state::unread);
    for (std::uint32_t i = 0; i < stored_->modules()->size(); ++i) {
      budget_.take(sizeof(module));
      std::string name = budget_.text(stored_->modules()->Get(i)->name());
      if (i == 0 && name != result_.main().name()) corrupted("the first module is called '" + name + "', not main");
      modules_.push_back(i == 0 ? &result_.main() : &result_.add_module(std::move(name)));
    }
    for (std::uint32_t i = 0; i < modules_.size(); ++i) read_module(i, 0);
    read_symbols();
    if (stored_->guards())
      for (const schema::Guard* g : *stored_->guards()) {
        budget_.take(sizeof(dim_guard));
        result_.guards.push_back(
            {read_dim(budget_.text(g->a())), read_dim(budget_.text(g->b())), budget_.text(g->why())});
      }
    if (stored_->metadata())
      for (const schema::Entry* e : *stored_->metadata())
        result_.metadata[budget_.text(e->key())] = budget_.text(e->value());
    return std::move(result_);
  }

 private:
  enum class state : std::uint8_t { unread, open, read };

  static dim read_dim(const std::string& text) {
    if (text.size() > max_dim_text) corrupted("a dimension of " + std::to_string(text.size()) + " characters");
    return dim::parse(text);
  }

  std::vector<dim> read_dims(const schema::Dims& stored) {
    std::vector<dim> dims;
    budget_.take(aligned_count(stored.values()) * sizeof(dim));
    if (stored.values()) dims.assign(stored.values()->begin(), stored.values()->end());
    if (stored.symbolic())
      for (const schema::SymbolicDim* s : *stored.symbolic()) {
        std::string text = budget_.text(s->text());
        if (s->at() >= dims.size()) corrupted("the index of a symbolic dimension is out of range");
        dims[s->at()] = read_dim(text);
      }
    return dims;
  }

  shape read_shape(const flatbuffers::String* type_name, const schema::Dims& dims) {
    auto type = parse_element_type(budget_.text(type_name));
    if (!type) corrupted("unknown element type '" + type_name->str() + "'");
    if (count(dims.values()) > max_rank)
      corrupted("a tensor with " + std::to_string(count(dims.values())) + " dimensions");
    return {*type, read_dims(dims)};
  }

  attribute read_value(const schema::Attribute& a) {
    switch (a.value_type()) {
      case schema::AttributeValue::Flag: return a.value_as_Flag()->value();
      case schema::AttributeValue::Integer: return a.value_as_Integer()->value();
      case schema::AttributeValue::Real: return std::bit_cast<double>(a.value_as_Real()->bits());
      case schema::AttributeValue::Text: return budget_.text(a.value_as_Text()->value());
      case schema::AttributeValue::Type: {
        auto type = parse_element_type(budget_.text(a.value_as_Type()->name()));
        if (!type) corrupted("unknown element type '" + a.value_as_Type()->name()->str() + "'");
        return *type;
      }
      case schema::AttributeValue::Integers: {
        const auto* list = a.value_as_Integers()->values();
        budget_.take(aligned_count(list) * sizeof(std::int64_t));
        return list ? std::vector<std::int64_t>(list->begin(), list->end()) : std::vector<std::int64_t>();
      }
      case schema::AttributeValue::Reals: {
        std::vector<double> values;
        const auto* list = a.value_as_Reals()->bits();
        budget_.take(aligned_count(list) * sizeof(double));
        if (list)
          for (std::uint64_t bits : *list) values.push_back(std::bit_cast<double>(bits));
        return values;
      }
      case schema::AttributeValue::Texts: {
        std::vector<std::string> values;
        const auto* list = a.value_as_Texts()->values();
        budget_.take(count(list) * sizeof(std::string));
        if (list)
          for (const flatbuffers::String* s : *list) values.push_back(budget_.text(s));
        return values;
      }
      case schema::AttributeValue::Dims: return read_dims(*a.value_as_Dims());
      default: corrupted("an attribute of an unknown kind");
    }
  }

  value resolve(const schema::Value& v, const std::vector<instruction*>& made) {
    if (v.producer() >= made.size() || v.index() >= made[v.producer()]->outputs().size())
      corrupted("an instruction uses a value that does not exist");
    return {made[v.producer()], v.index()};
  }

  instruction* read_instruction(const schema::Instruction& stored, module& m, const std::vector<instruction*>& made,
                                std::size_t depth) {
    budget_.take(sizeof(instruction) + (count(stored.inputs()) + count(stored.attributes())) * 64);
    std::string name = budget_.text(stored.operation());
    attribute_list attributes;
    if (stored.attributes())
      for (const schema::Attribute* a : *stored.attributes()) {
        if (!a->value()) corrupted("an attribute of '" + name + "' has no value");
        std::string label = budget_.text(a->name());
        attributes.emplace_back(std::move(label), read_value(*a));
      }
    std::vector<value> inputs;
    if (stored.inputs())
      for (const schema::Value* v : *stored.inputs()) inputs.push_back(resolve(*v, made));
    std::vector<module*> bodies;
    if (stored.bodies())
      for (std::uint32_t body : *stored.bodies()) {
        read_module(body, depth + 1);
        bodies.push_back(modules_[body]);
      }
    value result = make(stored, std::move(name), std::move(attributes), std::move(inputs), std::move(bodies), m);
    for (const shape& s : result.producer->outputs()) check_shape(s);
    result.producer->set_origin(budget_.text(stored.origin()));
    return result.producer;
  }

  value make(const schema::Instruction& stored, std::string name, attribute_list attributes, std::vector<value> inputs,
             std::vector<module*> bodies, module& m) {
    bool is_constant = name == constant{}.name();
    if (is_constant != (stored.constant() != nullptr))
      corrupted("a constant without a tensor, or a tensor without a constant");
    if (is_constant) {
      if (!inputs.empty() || !bodies.empty()) corrupted("a constant with inputs");
      const schema::Constant& c = *stored.constant();
      return m.add(constant{tensors_(c.weight(), read_shape(c.type(), *c.dims()))}, {});
    }
    operation op = make_operation(name, attributes);
    if (const auto* p = op.get_if<parameter>()) {
      if (!inputs.empty() || !bodies.empty()) corrupted("a parameter with inputs");
      return m.add_parameter(p->name_in_module, {p->type, p->dims});
    }
    if (bodies.size() != (op.is<if_else>() || op.is<choice>() ? 2u : op.is<loop>() ? 1u : 0u))
      corrupted("'" + name + "' has " + std::to_string(bodies.size()) + " bodies");
    return m.add(std::move(op), std::move(inputs), std::move(bodies));
  }

  void read_module(std::uint32_t index, std::size_t depth) {
    if (index >= modules_.size()) corrupted("an instruction refers to a module that does not exist");
    if (states_[index] == state::read) return;
    if (states_[index] == state::open || depth > max_body_depth)
      corrupted("modules refer to each other recursively or too deeply");
    states_[index] = state::open;
    const schema::Module& stored = *stored_->modules()->Get(index);
    module& m = *modules_[index];
    std::vector<instruction*> made;
    if (stored.instructions())
      for (const schema::Instruction* i : *stored.instructions()) made.push_back(read_instruction(*i, m, made, depth));
    std::vector<value> outputs;
    std::vector<std::string> names;
    if (stored.outputs())
      for (const schema::Output* o : *stored.outputs()) {
        budget_.take(64);
        outputs.push_back(resolve(*o->value(), made));
        names.push_back(budget_.text(o->name()));
      }
    m.set_outputs(std::move(outputs), std::move(names));
    states_[index] = state::read;
  }

  void read_symbols() {
    if (!stored_->symbols()) return;
    for (const schema::Symbol* s : *stored_->symbols()) {
      budget_.take(64 + aligned_count(s->optimal()) * sizeof(std::int64_t));
      dim_range range{s->min(), s->max(), {}};
      const bool is_value = std::string_view(s->name()->c_str()).starts_with(value_prefix);  // it may be negative
      if ((range.min < 0 && !is_value) || range.max < range.min)
        corrupted("symbol '" + s->name()->str() + "' has an impossible range");
      if (s->optimal()) range.optimal.assign(s->optimal()->begin(), s->optimal()->end());
      result_.symbols[budget_.text(s->name())] = std::move(range);
    }
  }

  const tensor_source& tensors_;
  decode_budget budget_;
  const schema::Program* stored_ = nullptr;
  program result_;
  std::vector<module*> modules_;
  std::vector<state> states_;
};

}  // namespace

program decode_program(std::span<const std::byte> section, const tensor_source& tensors) {
  return program_reader(section, tensors).run();
}

}  // namespace kiln::container
