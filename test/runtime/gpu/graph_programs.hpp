// Programs and runs for tests of graph replay.
#pragma once

#include "stand_in_driver.hpp"

namespace kiln::testing {

// The driver's name of a function.
inline std::string entry(const stand_in_kind& kind, const char* cuda, const char* hip) {
  return kind.api == gpu::api::cuda ? cuda : hip;
}

// Two branches that do not depend on each other and share memory with what came before, a copy, zeroed scratch, two
// outputs.
inline program branching_program() {
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", vector_type), z = m.add_parameter("z", vector_type);
  value a = twice(p, m, x), b = exponential(p, m, z);
  for (int i = 0; i < 3; ++i) a = add(p, m, a, x), b = twice(p, m, b);
  value c = call(p, m, "add_counter",
                 make_kernel({make_launch("add_counter", n, {in(0), scratch(0), out(0)})}, {{4, false, true}}), {a},
                 {vector_type});
  m.set_outputs({add(p, m, c, b), sum(p, m, b), z, twice(p, m, a)}, {"y", "sum", "z_again", "a2"});
  return p;
}

// Device tensors for every input and output, several sets of which can be mixed.
struct tensor_sets {
  tensor_sets(const executable& e, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) sets.push_back(std::make_unique<io_buffers>(e));
  }
  std::vector<std::unique_ptr<io_buffers>> sets;
};

// Runs with the inputs of one set and the outputs of another, and returns the output bytes. With a stream, the run is
// queued and waited for.
inline std::vector<literal> run_mixed(const executable& e, execution_context& context, io_buffers& from, io_buffers& to,
                                      const std::vector<literal>& inputs, device_stream* stream = nullptr) {
  from.upload(inputs);
  for (executable::output_span out : to.outputs()) e.target().fill_zero(out.data(), out.size());
  e.target().synchronize();
  if (stream) {
    e.run(context, from.inputs(), to.outputs(), *stream);
    e.target().synchronize(stream);
  } else {
    e.run(context, from.inputs(), to.outputs());
  }
  return to.download();
}

inline std::vector<literal> inputs_for(const executable& e, float first) {
  std::vector<literal> values;
  for (std::size_t i = 0; i < e.plan().inputs.size(); ++i)
    values.push_back(vector_literal(ramp(first + 0.25f * static_cast<float>(i), 0.001f)));
  return values;
}

}  // namespace kiln::testing
