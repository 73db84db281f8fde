#include <deque>
#include <map>
#include <string>
#include <vector>

#include "ir/container/container.hpp"
#include "ir/container/stripped.hpp"
#include "runtime/c_open.hpp"
#include "runtime/c_status.hpp"
#include "runtime/model_interface.hpp"

using kiln::c_interface::fail;
using kiln::c_interface::guarded;

namespace {

// A port with its dims as texts, and the pointers to them that kiln_port shows.
struct described_port {
  explicit described_port(const kiln::model_port& port)
      : name(port.name), type(port.declared.type), decides_sizes(port.decides_sizes) {
    for (const kiln::dim& d : port.declared.dims) texts.push_back(d.str());
    for (const std::string& text : texts) pointers.push_back(text.c_str());
  }
  described_port(const described_port&) = delete;
  std::string name;
  kiln::element_type type;
  bool decides_sizes;
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
};

kiln_status describe(const std::deque<described_port>& ports, std::size_t index, kiln_port* port) {
  if (!port) return fail(KILN_USAGE, "the pointer for the result is null");
  if (index >= ports.size()) return fail(KILN_USAGE, "there is no tensor of this index");
  const described_port& p = ports[index];
  *port = {p.name.c_str(), static_cast<kiln_type>(p.type), p.pointers.size(), p.pointers.data(), p.decides_sizes};
  return KILN_OK;
}

}  // namespace

struct kiln_description {
  explicit kiln_description(kiln::model_interface model, bool weights)
      : symbols(std::move(model.symbols)), has_weights(weights) {
    for (const auto& port : model.inputs) inputs.emplace_back(port);
    for (const auto& port : model.outputs) outputs.emplace_back(port);
  }
  std::map<std::string, kiln::dim_range> symbols;
  std::deque<described_port> inputs, outputs;
  bool has_weights;
};

extern "C" {

kiln_status kiln_description_open(const char* path, kiln_description** description) {
  if (!description) return fail(KILN_USAGE, "the pointer for the description is null");
  *description = nullptr;
  if (!path) return fail(KILN_USAGE, "the path is null");
  return guarded([&] {
    // Unsigned code is allowed, because nothing of the program runs.
    const kiln::program read = kiln::read_program(path, kiln::native_consent{.allow_unsigned = true});
    *description = new kiln_description(interface_of(read), !read.metadata.contains(kiln::stripped_weights_key));
  });
}

void kiln_description_close(kiln_description* description) { delete description; }

size_t kiln_description_dim_count(const kiln_description* description) {
  return description ? description->symbols.size() : 0;
}
kiln_status kiln_description_dim(const kiln_description* description, size_t index, kiln_dim_info* info) {
  if (!description || !info) return fail(KILN_USAGE, "the description or the pointer for the result is null");
  return kiln::c_interface::describe(description->symbols, index, info);
}

size_t kiln_description_input_count(const kiln_description* description) {
  return description ? description->inputs.size() : 0;
}
size_t kiln_description_output_count(const kiln_description* description) {
  return description ? description->outputs.size() : 0;
}
kiln_status kiln_description_input(const kiln_description* description, size_t index, kiln_port* port) {
  return description ? describe(description->inputs, index, port) : fail(KILN_USAGE, "the description is null");
}
kiln_status kiln_description_output(const kiln_description* description, size_t index, kiln_port* port) {
  return description ? describe(description->outputs, index, port) : fail(KILN_USAGE, "the description is null");
}
int kiln_description_has_weights(const kiln_description* description) {
  return description && description->has_weights ? 1 : 0;
}

}  // extern "C"
