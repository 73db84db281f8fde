#include "tools/program_listing.hpp"

#include <fmt/format.h>

#include "ir/empty_results.hpp"
#include "ir/error.hpp"
#include "ir/ops/structure.hpp"
#include "runtime/alias.hpp"
#include "tools/npy.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::ordered_json;

// Types that .npy does not have are written as bytes.
literal storable(const literal& data) {
  if (storage_bits(data.type().type) >= 8) return data;
  auto bytes = data.bytes();
  return literal({element_type::u8, {dim(static_cast<std::int64_t>(bytes.size()))}},
                 std::vector<std::byte>(bytes.begin(), bytes.end()));
}

class lister {
 public:
  lister(const std::map<std::string, std::size_t>& kernels, const std::optional<std::filesystem::path>& constants)
      : kernels_(kernels), constants_(constants) {}

  json list(const module& main) {
    for (value v : main.parameters()) add_value(v, {{"from", "input"}, {"name", module::parameter_name(v)}});
    for (const instruction& i : main.instructions()) add_instruction(i);
    auto outputs = json::array();
    for (std::size_t i = 0; i < main.outputs().size(); ++i)
      outputs.push_back({{"name", main.output_names()[i]}, {"value", ids_.at(main.outputs()[i])}});
    return {{"values", std::move(values_)}, {"steps", std::move(steps_)}, {"outputs", std::move(outputs)}};
  }

 private:
  void add_value(value v, json what) {
    std::size_t id = values_.size();
    ids_.emplace(v, id);
    json entry{
        {"id", id}, {"type", name(v.type().type)}, {"dims", v.type().static_dims()}, {"bytes", v.type().bytes()}};
    entry.update(what);
    values_.push_back(std::move(entry));
  }

  void add_constant(value v, const literal& data) {
    json what{{"from", "constant"}};
    if (constants_) {
      std::string file = fmt::format("value_{}.npy", values_.size());
      write_npy(*constants_ / file, storable(data));
      what["file"] = (constants_->filename() / file).string();
    }
    add_value(v, std::move(what));
  }

  void add_instruction(const instruction& i) {
    if (i.op().is<parameter>()) return;
    value first{const_cast<instruction*>(&i), 0};
    if (const literal* data = module::constant(first)) return add_constant(first, *data);
    if (auto source = alias_source(i)) return add_value(first, {{"from", "alias"}, {"of", ids_.at(*source)}});
    // Nothing is launched for an empty result.
    if (gives_no_elements(i)) {
      for (std::uint32_t o = 0; o < i.outputs().size(); ++o)
        add_value({const_cast<instruction*>(&i), o}, {{"from", "empty"}});
      return;
    }
    json step, inputs = json::array(), outputs = json::array();
    const auto* kernel = i.op().get_if<code_object>();
    if (kernel) step["kernel"] = kernels_.at(kernel->payload);
    else step["operation"] = i.op().name();
    for (value v : i.inputs()) inputs.push_back(ids_.at(v));
    for (std::uint32_t o = 0; o < i.outputs().size(); ++o) {
      outputs.push_back(values_.size());
      add_value({const_cast<instruction*>(&i), o}, {{"from", "step"}, {"step", steps_.size()}});
    }
    step["inputs"] = std::move(inputs);
    step["outputs"] = std::move(outputs);
    if (!i.origin().empty()) step["origin"] = i.origin();
    steps_.push_back(std::move(step));
  }

  const std::map<std::string, std::size_t>& kernels_;
  const std::optional<std::filesystem::path>& constants_;
  std::map<value, std::size_t> ids_;
  json values_ = json::array(), steps_ = json::array();
};

}  // namespace

json list_program(const program& native, const std::map<std::string, std::size_t>& kernels,
                  const std::optional<std::filesystem::path>& constants) {
  std::error_code failed;
  if (constants) std::filesystem::create_directories(*constants, failed);
  if (failed) throw error(error_kind::io, fmt::format("{}: {}", constants->string(), failed.message()));
  return lister(kernels, constants).list(native.main());
}

}  // namespace kiln::tools
