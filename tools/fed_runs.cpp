#include "tools/fed_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/error.hpp"
#include "tools/model_options.hpp"

namespace kiln::tools {
namespace {

std::size_t place_of(const std::vector<plan_port>& ports, const std::string& name, const char* option,
                     const char* what) {
  auto found = std::ranges::find(ports, name, &plan_port::name);
  if (found == ports.end())
    throw error(error_kind::usage, fmt::format("{}: the model has no {} '{}'", option, what, name));
  return static_cast<std::size_t>(found - ports.begin());
}

}  // namespace

fed_runs::fed_runs(const plan& of, const std::vector<std::string>& feeds, const std::vector<std::string>& counters,
                   std::span<const literal> inputs)
    : inputs_(inputs.begin(), inputs.end()) {
  for (const std::string& text : feeds) {
    auto [from, to] = split_assignment(text, "--feed");
    std::size_t output = place_of(of.outputs, from, "--feed", "output"),
                input = place_of(of.inputs, to, "--feed", "input");
    if (of.outputs[output].type != of.inputs[input].type)
      throw error(error_kind::usage,
                  fmt::format("--feed {}: output '{}' is {}, input '{}' is {}; both must be the same", text, from,
                              of.outputs[output].type.str(), to, of.inputs[input].type.str()));
    for (auto [o, i] : feeds_)
      if (o == output || i == input)
        throw error(error_kind::usage,
                    fmt::format("--feed {}: the output or the input has another --feed already; give each once", text));
    if (const auto shared = of.outputs[output].shares; shared && *shared != input)
      throw error(error_kind::usage,
                  fmt::format("--feed {}: the output is what becomes of input '{}'; feed it to that one", text,
                              of.inputs[*shared].name));
    if (!of.outputs[output].shares) feeds_.emplace_back(output, input);
  }
  for (const std::string& name : counters) {
    std::size_t input = place_of(of.inputs, name, "--count-up", "input");
    const plan_port& port = of.inputs[input];
    if ((port.type.type != element_type::i64 && port.type.type != element_type::i32) || port.type.element_count() != 1)
      throw error(error_kind::usage, fmt::format("--count-up {}: it is {}, not one i64 or i32", name, port.type.str()));
    counter c{input, 0, 0, port.bytes};
    if (port.bytes == sizeof(std::int32_t)) c.first = inputs_[input].as<std::int32_t>()[0];
    else c.first = inputs_[input].as<std::int64_t>()[0];
    counters_.push_back(c);
  }
}

void fed_runs::start(io_buffers& tensors) {
  tensors.upload(inputs_);
  for (counter& c : counters_) c.now = c.first;
}

void fed_runs::next(io_buffers& tensors, device& on, device_stream* stream) {
  for (auto [output, input] : feeds_) tensors.swap(output, input);
  for (counter& c : counters_) {
    ++c.now;  // little-endian: the low bytes of the i64 are the i32
    on.upload(const_cast<std::byte*>(tensors.inputs()[c.input].data()), &c.now, c.bytes, stream);
  }
}

}  // namespace kiln::tools
